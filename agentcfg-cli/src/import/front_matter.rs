//! Markdown with front matter, also where it is not quite YAML, as the tools that read it forgive.

use std::path::Path;

use super::convert::As;
use super::parse_tree::{Scalars, from_shared_yaml, refuse_repeated};
use super::source_tree::{Entry, Node, Value};
use super::table::Row;
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
    let Some(FrontMatter { yaml, body, body_line }) = FrontMatter::split(file, text)? else {
        return Ok(None);
    };
    let entries = match from_shared_yaml(file, yaml, (2, Scalars::Core), warnings) {
        Ok(entries) => entries,
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
    for (first, field) in fields(yaml, known) {
        let (line, lines) = (first + 2, field.join("\n"));
        let fault = match from_shared_yaml(file, &format!("{lines}\n"), (line, Scalars::Core), warnings) {
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
        warnings.push(Problem::new(
            file,
            place,
            format!("{key} is not valid YAML and is read as a text: put it into quotes"),
        ));
        let node = Node::at(place, Value::Text(unquoted(rest.trim()).to_owned()));
        entries.push(Entry {
            key: key.to_owned(),
            place,
            node,
        });
    }
    refuse_repeated(file, &entries)?;
    Ok(entries)
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

/// The lines of each field, with the number of the first, from 0. After a line that belongs to no field only a known
/// key begins another one: lines such as `user: hello` are part of a text.
fn fields<'a>(yaml: &'a str, known: &[Row]) -> Vec<(usize, Vec<&'a str>)> {
    let mut fields: Vec<(usize, Vec<&str>)> = Vec::new();
    let mut is_prose = false;
    for (number, line) in yaml.lines().enumerate() {
        let key = line.split_once(':').map(|(key, _)| key).filter(|key| is_key(key));
        let begins = key.is_some_and(|key| known.iter().any(|(row, ..)| *row == key) || !is_prose);
        is_prose = match begins {
            true => false,
            false => is_prose || !(line.is_empty() || line.starts_with([' ', '\t', '-', '#'])),
        };
        match fields.last_mut() {
            Some((_, lines)) if !begins => lines.push(line),
            _ => fields.push((number, vec![line])),
        }
    }
    fields
}

fn is_key(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}
