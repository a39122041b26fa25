//! The YAML of front matter, with the place of each key and value.
//!
//! A tree of maps, lists and scalars of YAML 1.2. Anchors, aliases, tags and several documents are refused: front
//! matter needs none of them, and a reader of the file would have to resolve them. In the files of other tools aliases
//! are resolved, and the tags of the core types are read.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Span, StrInput, options};

use super::Place;

/// A value and its place.
#[derive(Debug, Clone)]
pub struct Node {
    pub place: Place,
    pub value: Yaml,
}

impl Node {
    /// Whether there is no value, for which the parser has `~`, or that itself.
    pub fn is_absent(&self) -> bool {
        matches!(&self.value, Yaml::Scalar { text, is_plain: true } if text.is_empty() || text == "~")
    }
}

#[derive(Debug, Clone)]
pub enum Yaml {
    Scalar { text: String, is_plain: bool },
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key of a map with its value.
#[derive(Debug, Clone)]
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

/// What is wrong with a text that is no map, or more than one document.
pub const NO_FIELDS: &str = "the front matter must be fields, such as `display_name: Writer`";
pub const SEVERAL_DOCUMENTS: &str = "the front matter must be one YAML document";

type Result<T> = std::result::Result<T, Malformed>;

/// Reads a text as a map. `first_line` is the number of its first line in the file. A text without content has no
/// entries.
pub fn parse(text: &str, first_line: usize) -> Result<Vec<Entry>> {
    read(text, first_line, None).map(|(entries, _)| entries)
}

/// What a reader of a text may not expect of it.
#[derive(Default)]
pub struct Notes {
    /// Where the first alias or `<<` is.
    pub shared: Option<Place>,
    /// The scalars without quotes that a comment follows on their line, or that are empty because of one.
    pub before_comments: Vec<Node>,
}

/// As [`parse`], with anchors, aliases, `<<` and the tags of the core types.
pub fn parse_shared(text: &str, first_line: usize) -> Result<(Vec<Entry>, Notes)> {
    read(text, first_line, Some(Shared::default()))
}

fn read(text: &str, first_line: usize, shared: Option<Shared>) -> Result<(Vec<Entry>, Notes)> {
    let options = options! {
        emit_comments: false,
        disallow_directives: true,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut reader = Reader {
        text,
        end: 0,
        before_comments: Vec::new(),
        events: Parser::new_from_str_with_options(text, options),
        first_line,
        last: Place {
            line: first_line,
            column: 1,
        },
        shared,
    };
    let entries = reader.document()?;
    let notes = Notes {
        shared: reader.shared.and_then(|shared| shared.first),
        before_comments: reader.before_comments,
    };
    Ok((entries, notes))
}

/// The most values that aliases may stand for.
const MAX_SHARED: usize = 100_000;

/// The values with anchors.
#[derive(Default)]
struct Shared {
    values: HashMap<usize, Node>,
    /// How many values aliases stood for.
    number: usize,
    /// Where the first alias or `<<` is.
    first: Option<Place>,
}

struct Reader<'a> {
    text: &'a str,
    /// Where the last event ends in the text.
    end: usize,
    before_comments: Vec<Node>,
    events: Parser<'a, StrInput<'a>>,
    first_line: usize,
    last: Place,
    /// Absent where there must be no anchors.
    shared: Option<Shared>,
}

/// The number of values in one.
fn number_of(node: &Node) -> usize {
    match &node.value {
        Yaml::Scalar { .. } => 1,
        Yaml::List(items) => 1 + items.iter().map(number_of).sum::<usize>(),
        Yaml::Map(entries) => 1 + entries.iter().map(|entry| number_of(&entry.node)).sum::<usize>(),
    }
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
                        _ => Err(Malformed::new(node.place, NO_FIELDS)),
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
                _ => return Err(Malformed::new(self.last, SEVERAL_DOCUMENTS)),
            }
        }
    }

    fn next(&mut self) -> Result<Event<'a>> {
        match self.events.next_event() {
            Some(Ok((event, span))) => {
                self.last = self.place(&span);
                self.end = span.byte_range().map_or(self.end, |range| range.end);
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
        let anchor = event.anchor_id();
        let is_alias = matches!(event, Event::Alias(_));
        if self.shared.is_none() && (is_alias || anchor.is_some()) {
            return refused("anchors and aliases");
        }
        if is_alias {
            return self.alias(&event);
        }
        let tag = event.tag();
        if tag.is_some_and(|tag| self.shared.is_none() || !tag.is_yaml_core_schema()) {
            return refused("tags");
        }
        // `!!str` makes a text of a number, as quotes do.
        let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
        let value = match event {
            Event::Scalar(text, style, ..) => Yaml::Scalar {
                text: text.into_owned(),
                is_plain: style == ScalarStyle::Plain && !is_text,
            },
            Event::SequenceStart(..) => self.list()?,
            Event::MappingStart(..) => self.map()?,
            _ => return Err(Malformed::new(place, "must be a value")),
        };
        let node = Node { place, value };
        if matches!(node.value, Yaml::Scalar { is_plain: true, .. })
            && !node.is_absent()
            && self.has_comment(self.end, false)
        {
            self.before_comments.push(node.clone());
        }
        if let (Some(shared), Some(anchor)) = (&mut self.shared, anchor) {
            shared.values.insert(anchor, node.clone());
        }
        Ok(node)
    }

    /// Whether a comment follows on the same line, also after the colon of a key.
    fn has_comment(&self, end: usize, is_key: bool) -> bool {
        let after = self.text.get(end..).and_then(|rest| rest.lines().next());
        let after = after.map(str::trim_start).unwrap_or_default();
        let after = after.strip_prefix(':').filter(|_| is_key).unwrap_or(after);
        after.trim_start().starts_with('#')
    }

    /// The value that an alias stands for.
    fn alias(&mut self, event: &Event<'a>) -> Result<Node> {
        let place = self.last;
        let (Some(shared), Event::Alias(anchor)) = (&mut self.shared, event) else {
            return Err(Malformed::new(place, "must be a value"));
        };
        let Some(node) = shared.values.get(anchor) else {
            return Err(Malformed::new(place, "an alias must not be within its own value"));
        };
        shared.first.get_or_insert(place);
        shared.number += number_of(node);
        match shared.number > MAX_SHARED {
            true => Err(Malformed::new(
                place,
                format!("aliases must stand for at most {MAX_SHARED} values"),
            )),
            false => Ok(node.clone()),
        }
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
        let (mut entries, mut merged) = (Vec::new(), Vec::new());
        loop {
            let event = self.next()?;
            if matches!(event, Event::MappingEnd) {
                entries.extend(without(merged, &entries));
                return Ok(Yaml::Map(entries));
            }
            let key = self.node(event)?;
            let end_of_key = self.end;
            let Yaml::Scalar { text, is_plain } = key.value else {
                return Err(Malformed::new(key.place, "a key must be a text"));
            };
            let event = self.next()?;
            if let Some(shared) = self.shared.as_mut().filter(|_| is_plain && text == "<<") {
                shared.first.get_or_insert(key.place);
                merged.extend(entries_of(self.node(event)?)?);
                continue;
            }
            let node = self.node(event)?;
            if node.is_absent() && self.has_comment(end_of_key, true) {
                let place = key.place;
                self.before_comments.push(Node { place, ..node.clone() });
            }
            entries.push(Entry {
                key: text,
                place: key.place,
                node,
            });
        }
    }
}

/// The entries of a value of `<<`: a map, or several of which the first counts.
fn entries_of(node: Node) -> Result<Vec<Entry>> {
    match node.value {
        Yaml::Map(entries) => Ok(entries),
        Yaml::List(maps) => {
            let mut entries = Vec::new();
            for map in maps {
                entries.extend(without(entries_of(map)?, &entries));
            }
            Ok(entries)
        }
        Yaml::Scalar { .. } => Err(Malformed::new(node.place, "<< must have a map, or several in a list")),
    }
}

/// The entries whose keys are not among others.
fn without(entries: Vec<Entry>, others: &[Entry]) -> Vec<Entry> {
    let is_new = |entry: &Entry| others.iter().all(|other| other.key != entry.key);
    entries.into_iter().filter(is_new).collect()
}
