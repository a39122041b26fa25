//! Markdown with front matter, also where it is not quite YAML, as the tools that read it forgive.

use std::path::Path;

use super::convert::As;
use super::parse_tree::{Scalars, from_shared_yaml, refuse_repeated};
use super::source_tree::{Entry, Node, Value};
use super::table::{Row, To};
use crate::agent_file::yaml::NO_FIELDS;
use crate::agent_file::{FrontMatter, Place, Problem};

/// The front matter and the text after it.
pub struct Document {
    pub entries: Vec<Entry>,
    pub body: String,
    pub body_place: Place,
}

/// Reads a text without a byte order mark. `None`: there is no front matter. Keys that the format knows begin a field
/// also where the text is not valid YAML.
pub fn read(file: &Path, text: &str, known: &[Row], warnings: &mut Vec<Problem>) -> Result<Option<Document>, Problem> {
    let is_page = |text: &str| !text.lines().filter_map(key_of).any(|key| is_known(key, known));
    let split = match FrontMatter::split(file, text) {
        // A rule is the first line of a page, too.
        Err(_) if is_page(text) => return Ok(None),
        split => split?,
    };
    let Some(FrontMatter { yaml, body, body_line }) = split else {
        return Ok(None);
    };
    let entries = match from_shared_yaml(file, yaml, (2, Scalars::Core), warnings) {
        Ok(entries) => entries,
        Err(problem) if problem.message == NO_FIELDS && is_page(yaml) => return Ok(None),
        Err(problem) => read_lenient(file, yaml, known, &problem, warnings)?,
    };
    Ok(Some(Document {
        entries,
        body: body.trim().to_owned(),
        body_place: Place {
            line: body_line,
            column: 1,
        },
    }))
}

/// A field of front matter by its lines.
struct Field<'a> {
    /// The number of the first line, from 0.
    first: usize,
    lines: Vec<&'a str>,
}

impl<'a> Field<'a> {
    fn key(&self) -> Option<&'a str> {
        key_of(self.lines.first()?)
    }
}

/// Reads front matter that is not valid YAML field by field, with warnings. A text that is not valid by itself is read
/// as it is.
fn read_lenient(
    file: &Path,
    yaml: &str,
    known: &[Row],
    problem: &Problem,
    warnings: &mut Vec<Problem>,
) -> Result<Vec<Entry>, Problem> {
    let mut entries: Vec<Entry> = Vec::new();
    for field in with_examples(fields(yaml, known), known) {
        let (line, lines) = (field.first + 2, field.lines.join("\n"));
        let fault = match parsed(file, &field.lines, line, warnings) {
            Ok(more) => {
                entries.extend(more);
                continue;
            }
            Err(fault) => fault,
        };
        let Some((key, rest)) = lines.split_once(':').filter(|(key, _)| is_key(key)) else {
            return Err(problem.clone());
        };
        let kind = known.iter().find(|(row, ..)| *row == key).map(|(.., kind)| *kind);
        if !can_be_text(kind, rest.trim()) {
            let message = format!(
                "{key} {}: indent it with spaces, and put texts into quotes",
                fault.message
            );
            return Err(Problem::new(file, fault.place, message));
        }
        let place = Place { line, column: 1 };
        let text = match head_and_tail(file, &field, line) {
            Some((head, tail)) => {
                let blank = field.lines[tail..].iter().take_while(|line| is_blank(line)).count();
                let (from, to) = (line + tail + blank, line + field.lines.len() - 1);
                let message = format!(
                    "the lines {from} to {to} are no fields and are read as a part of {key}: indent them, or put the \
                     whole text into quotes"
                );
                let place = Place { line: from, column: 1 };
                warnings.push(Problem::new(file, place, message));
                format!("{}\n{}", head.trim_end(), field.lines[tail..].join("\n"))
            }
            None => {
                let message = format!("{key} is not valid YAML and is read as a text: put it into quotes");
                warnings.push(Problem::new(file, place, message));
                unquoted(rest.trim()).to_owned()
            }
        };
        let node = Node::at(place, Value::Text(text.trim().to_owned()));
        entries.push(Entry {
            key: key.to_owned(),
            place,
            node,
        });
    }
    refuse_repeated(file, &entries)?;
    Ok(entries)
}

/// Reads lines as YAML. The first has this number in the file.
fn parsed(file: &Path, lines: &[&str], line: usize, warnings: &mut Vec<Problem>) -> Result<Vec<Entry>, Problem> {
    let yaml = format!("{}\n", lines.join("\n"));
    from_shared_yaml(file, &yaml, (line, Scalars::Core), warnings)
}

/// The value of a field up to the first line that is not indented, if that value is a text of YAML, and where the lines
/// after it begin.
fn head_and_tail(file: &Path, field: &Field<'_>, line: usize) -> Option<(String, usize)> {
    let is_outside = |line: &&str| !line.is_empty() && !line.starts_with([' ', '\t']);
    let outside = 1 + field.lines[1..].iter().position(is_outside)?;
    let blank = field.lines[..outside].iter().rev().take_while(|line| is_blank(line));
    let tail = outside - blank.count();
    let head = &field.lines[..tail];
    let (_, value) = head[0].split_once(':')?;
    let is_plain = !value.trim().starts_with(['"', '\'', '|', '>']);
    // Of a text without quotes a comment would be lost.
    if is_plain && head.iter().any(|line| line.contains(" #")) {
        return None;
    }
    let entries = parsed(file, head, line, &mut Vec::new()).ok()?;
    let [entry] = &entries[..] else { return None };
    match &entry.node.value {
        Value::Null => Some((String::new(), tail)),
        _ => Some((entry.node.scalar()?, tail)),
    }
}

/// Whether a value that is not valid YAML can only be a text. Of a list or a map the parts would be lost.
fn can_be_text(kind: Option<As>, value: &str) -> bool {
    let is_plain_line = || !value.contains('\n') && !value.starts_with(['&', '*', '!', '[', '{', '|', '>', '-']);
    match kind {
        Some(As::Text | As::Model(_)) => true,
        Some(As::Words | As::WordList) | None => is_plain_line(),
        Some(_) => false,
    }
}

/// A text without the quotes around it. Quotes within it are part of the text, as in `"Fix" or "Review"`.
fn unquoted(text: &str) -> &str {
    let inner = |quote: &char| text.strip_prefix(*quote)?.strip_suffix(*quote);
    let of_whole = ['"', '\'']
        .iter()
        .find_map(|quote| inner(quote).filter(|inner| !inner.contains(*quote)));
    of_whole.unwrap_or(text)
}

/// The lines of each field. After a line that belongs to no field only a known key begins another one: lines such as
/// `user: hello` are part of a text.
fn fields<'a>(yaml: &'a str, known: &[Row]) -> Vec<Field<'a>> {
    let mut fields: Vec<Field<'_>> = Vec::new();
    let mut is_prose = false;
    for (number, line) in yaml.lines().enumerate() {
        let begins = key_of(line).is_some_and(|key| is_known(key, known) || !is_prose);
        is_prose = !begins && (is_prose || is_of_no_field(line));
        match fields.last_mut() {
            Some(field) if !begins => field.lines.push(line),
            _ => fields.push(Field {
                first: number,
                lines: vec![line],
            }),
        }
    }
    fields
}

/// Adds examples of a conversation to the description before them: fields with keys that the format does not know, such
/// as `Examples` and `user`, that are no valid YAML.
fn with_examples<'a>(fields: Vec<Field<'a>>, known: &[Row]) -> Vec<Field<'a>> {
    let is_own = |field: &Field<'_>| field.key().is_some_and(|key| is_known(key, known));
    let is_example = |field: &Field<'_>| {
        let is_spoken = |key: &str| EXAMPLES.iter().any(|word| word.eq_ignore_ascii_case(key));
        field.key().is_some_and(is_spoken) || field.lines.iter().any(|line| is_of_no_field(line))
    };
    let mut joined: Vec<Field<'_>> = Vec::new();
    let mut rest = fields.into_iter().peekable();
    while let Some(mut field) = rest.next() {
        let mut others = Vec::new();
        while let Some(other) = rest.next_if(|other| !is_own(other)) {
            others.push(other);
        }
        let examples = match others
            .iter()
            .position(is_example)
            .filter(|_| is_description(&field, known))
        {
            Some(at) if !is_yaml(others.iter().filter(|other| is_example(other))) => others.split_off(at),
            _ => Vec::new(),
        };
        field
            .lines
            .extend(examples.into_iter().flat_map(|example| example.lines));
        joined.push(field);
        joined.extend(others);
    }
    joined
}

/// The keys of examples of a conversation.
const EXAMPLES: &[&str] = &["example", "examples", "context", "user", "assistant", "commentary"];

/// Whether a field is a text in which examples of a conversation are common.
fn is_description(field: &Field<'_>, known: &[Row]) -> bool {
    let row = known.iter().find(|(row, ..)| field.key() == Some(row));
    row.is_some_and(|(_, to, _)| *to == To::Field("description"))
}

fn is_yaml<'a>(fields: impl Iterator<Item = &'a Field<'a>>) -> bool {
    let lines: Vec<&str> = fields.flat_map(|field| field.lines.iter().copied()).collect();
    parsed(Path::new(""), &lines, 1, &mut Vec::new()).is_ok()
}

/// Whether a line neither begins a field nor continues one.
fn is_of_no_field(line: &str) -> bool {
    !(line.is_empty() || line.starts_with([' ', '\t', '-', '#']) || key_of(line).is_some())
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

fn is_known(key: &str, known: &[Row]) -> bool {
    known.iter().any(|(row, ..)| *row == key)
}

/// The key of the field that a line begins.
fn key_of(line: &str) -> Option<&str> {
    line.split_once(':').map(|(key, _)| key).filter(|key| is_key(key))
}

fn is_key(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}
