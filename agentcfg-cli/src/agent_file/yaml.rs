//! The YAML of front matter, with the place of each key and value.
//!
//! A tree of maps, lists and scalars of YAML 1.2. Anchors, aliases, tags and several documents are refused: front matter needs none
//! of them, and a reader of the file would have to resolve them.

use granit_parser::{Event, Parser, ScalarStyle, Span, StrInput, options};

use super::Place;

/// A value and its place.
#[derive(Debug)]
pub struct Node {
    pub place: Place,
    pub value: Yaml,
}

#[derive(Debug)]
pub enum Yaml {
    Scalar { text: String, is_plain: bool },
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key of a map with its value.
#[derive(Debug)]
pub struct Entry {
    pub key: String,
    pub place: Place,
    pub node: Node,
}

/// The first malformed place. The text after it cannot be read.
#[derive(Debug)]
pub struct Malformed {
    pub place: Place,
    pub message: String,
}

impl Malformed {
    fn new(place: Place, message: impl Into<String>) -> Self {
        Self {
            place,
            message: message.into(),
        }
    }
}

/// The greatest depth of nested maps and lists. A definition has 32 levels at most; the core names one that is deeper.
const MAX_DEPTH: usize = 40;

type Result<T> = std::result::Result<T, Malformed>;

/// Reads a text as a map. `first_line` is the number of its first line in the file. A text without content has no
/// entries.
pub fn parse(text: &str, first_line: usize) -> Result<Vec<Entry>> {
    let options = options! {
        emit_comments: false,
        disallow_directives: true,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut reader = Reader {
        events: Parser::new_from_str_with_options(text, options),
        first_line,
        last: Place {
            line: first_line,
            column: 1,
        },
    };
    reader.document()
}

struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
    first_line: usize,
    last: Place,
}

impl<'a> Reader<'a> {
    fn document(&mut self) -> Result<Vec<Entry>> {
        loop {
            match self.next()? {
                Event::StreamStart | Event::DocumentStart(..) => {}
                Event::StreamEnd => return Ok(Vec::new()),
                event => {
                    let node = self.node(event)?;
                    self.end()?;
                    return match node.value {
                        Yaml::Map(entries) => Ok(entries),
                        Yaml::Scalar { text, .. } if text.is_empty() => Ok(Vec::new()),
                        _ => Err(Malformed::new(
                            node.place,
                            "the front matter must be fields, such as `display_name: Writer`",
                        )),
                    };
                }
            }
        }
    }

    fn end(&mut self) -> Result<()> {
        loop {
            match self.next()? {
                Event::DocumentEnd => {}
                Event::StreamEnd => return Ok(()),
                _ => return Err(Malformed::new(self.last, "the front matter must be one YAML document")),
            }
        }
    }

    fn next(&mut self) -> Result<Event<'a>> {
        match self.events.next_event() {
            Some(Ok((event, span))) => {
                self.last = self.place(&span);
                Ok(event)
            }
            Some(Err(error)) => {
                let place = self.place(&Span::empty(*error.marker()));
                Err(Malformed::new(place, format!("must be valid YAML: {}", error.info())))
            }
            None => Ok(Event::StreamEnd),
        }
    }

    fn place(&self, span: &Span) -> Place {
        Place {
            line: self.first_line + span.start.line().saturating_sub(1),
            column: span.start.col() + 1,
        }
    }

    /// The node that an event begins. The parser bounds the depth.
    fn node(&mut self, event: Event<'a>) -> Result<Node> {
        let place = self.last;
        let refused = |what: &str| {
            let message = format!("{what} of YAML are not supported: write the value itself");
            Err(Malformed::new(place, message))
        };
        if matches!(event, Event::Alias(_)) || event.anchor_id().is_some() {
            return refused("anchors and aliases");
        }
        if event.tag().is_some() {
            return refused("tags");
        }
        let value = match event {
            Event::Scalar(text, style, ..) => Yaml::Scalar {
                text: text.into_owned(),
                is_plain: style == ScalarStyle::Plain,
            },
            Event::SequenceStart(..) => self.list()?,
            Event::MappingStart(..) => self.map()?,
            _ => return Err(Malformed::new(place, "must be a value")),
        };
        Ok(Node { place, value })
    }

    fn list(&mut self) -> Result<Yaml> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(Yaml::List(items)),
                event => items.push(self.node(event)?),
            }
        }
    }

    fn map(&mut self) -> Result<Yaml> {
        let mut entries = Vec::new();
        loop {
            let event = self.next()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(Yaml::Map(entries));
            }
            let key = self.node(event)?;
            let Yaml::Scalar { text, .. } = key.value else {
                return Err(Malformed::new(key.place, "a key must be a text"));
            };
            let event = self.next()?;
            entries.push(Entry {
                key: text,
                place: key.place,
                node: self.node(event)?,
            });
        }
    }
}
