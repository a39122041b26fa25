//! What an export does with a file that is at its path already: nothing is lost that the export does not know.
//!
//! The file of one agent is replaced if it is readable as that agent and has nothing that the new one lacks. A file of
//! several agents, or one that a tool has beside them, keeps what is not of the export.

use std::collections::BTreeSet;
use std::path::Path;

use super::formats::YAML;
use super::output_file::{File, Holds};
use super::parse_tree::from_json;
use super::source_tree::{Entry, Node, Value, find, put};
use super::table::{Imported, To};
use super::{Format, Reading, Went, agents, read_text, yaml_file};
use crate::agent_file::utf8;

/// What becomes of a file that is there.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    Unchanged,
    Write(String),
    /// Why the file is not overwritten, and the text that it would have.
    Refused {
        reason: String,
        text: String,
    },
}

/// Compares a file with the one at its path in a directory.
pub fn outcome(format: &Format, dir: &Path, file: &File, bytes: &[u8]) -> Outcome {
    if bytes == file.text.as_bytes() {
        return Outcome::Unchanged;
    }
    let path = dir.join(&file.path);
    let text = match utf8(&path, bytes) {
        Ok(text) if text.trim().is_empty() => return Outcome::Write(file.text.clone()),
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
        Err(problem) => return refused(problem.message, &file.text),
    };
    if !text.contains("\r\n") {
        return of_text(format, dir, &path, file, text);
    }
    // The line ends of the file stay.
    let with_ends = |text: String| text.replace('\n', "\r\n");
    match of_text(format, dir, &path, file, &text.replace("\r\n", "\n")) {
        Outcome::Unchanged => Outcome::Unchanged,
        Outcome::Write(text) => Outcome::Write(with_ends(text)),
        Outcome::Refused { reason, text } => Outcome::Refused {
            reason,
            text: with_ends(text),
        },
    }
}

fn of_text(format: &Format, dir: &Path, path: &Path, file: &File, text: &str) -> Outcome {
    match file.holds {
        Holds::Agent => match replaced(format, dir, path, text, &file.text) {
            Ok(true) => Outcome::Unchanged,
            Ok(false) if has_comments(path, text) => refused(COMMENTS, &file.text),
            Ok(false) => Outcome::Write(file.text.clone()),
            Err(reason) => refused(reason, &file.text),
        },
        Holds::Names => match yaml_file::merged(path, text, &file.text, YAML) {
            Ok(merged) if merged == text => Outcome::Unchanged,
            Ok(merged) => Outcome::Write(merged),
            Err(reason) => refused(reason, &file.text),
        },
        Holds::Prompts => in_json(path, text, &file.text, prompts),
        Holds::Config(own) => in_json(path, text, &file.text, |before, new| Ok(config(before, new, own))),
    }
}

/// Why a file of JSON with comments is not written again.
const COMMENTS: &str = "its comments would be lost";

/// Whether a file is one of JSON that has comments.
fn has_comments(path: &Path, text: &str) -> bool {
    let is_json = path.extension().is_some_and(|end| end == "json" || end == "jsonc");
    is_json && serde_json::from_str::<serde::de::IgnoredAny>(text).is_err()
}

fn refused(reason: impl Into<String>, text: &str) -> Outcome {
    Outcome::Refused {
        reason: reason.into(),
        text: text.to_owned(),
    }
}

/// Whether a text has all that a newer one of the same agent has, or why it is not replaced by it.
fn replaced(format: &Format, dir: &Path, path: &Path, before: &str, after: &str) -> Result<bool, String> {
    let (keys, old_texts, old) = content(format, dir, path, before);
    let (new_keys, new_texts, new) = content(format, dir, path, after);
    if !old.is_empty() && old_texts == new_texts {
        // Its comments and its layout stay.
        return Ok(true);
    }
    let ids = |agents: &[Imported]| -> BTreeSet<String> { agents.iter().map(|one| one.agent_id.clone()).collect() };
    // The name in it may be an older one of the agent that the file is named after.
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_named = |id: &String| name.strip_prefix(id.as_str()).is_some_and(|rest| rest.starts_with('.'));
    if old.is_empty() || new.is_empty() || (ids(&old) != ids(&new) && !ids(&old).iter().all(is_named)) {
        return Err("it is not the file of this agent".to_owned());
    }
    let other: Vec<_> = keys
        .iter()
        .filter(|key| !new_keys.contains(*key))
        .filter(|key| format.rows.iter().all(|(row, to, _)| row != key || *to == To::Kept))
        .map(String::as_str)
        .collect();
    if !other.is_empty() {
        return Err(format!("the agent does not have its keys {}", other.join(", ")));
    }
    let versions = |agents: &[Imported]| -> BTreeSet<_> { agents.iter().filter_map(|one| one.version).collect() };
    match versions(&old).is_subset(&versions(&new)) {
        true => Ok(false),
        false => Err("it has versions of the agent that the export does not have".to_owned()),
    }
}

/// The keys, the records as texts, and the agents of a text. There are none where a part of it is no agent, or cannot
/// be read.
fn content(format: &Format, dir: &Path, path: &Path, text: &str) -> (BTreeSet<String>, Vec<String>, Vec<Imported>) {
    let mut reading = Reading {
        takes_all: true,
        ..Reading::default()
    };
    read_text(format, dir, path, text, &mut reading);
    let keys: BTreeSet<String> = reading
        .records
        .iter()
        .flat_map(|record| &record.entries)
        .map(|entry| entry.key.clone())
        .collect();
    // A page with a title has front matter, too.
    let is_known = keys
        .iter()
        .any(|key| key != super::formats::BODY && format.rows.iter().any(|(row, ..)| row == key));
    let texts = reading.records.iter().map(|record| {
        let mut entries = record.entries.clone();
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        Node::map(entries).json()
    });
    let texts = texts.collect();
    let agents = agents(format, &mut reading, &mut Went::new());
    match is_known && reading.problems.is_empty() && reading.skipped.is_empty() {
        true => (keys, texts, agents),
        false => (BTreeSet::new(), Vec::new(), Vec::new()),
    }
}

/// Merges two values of JSON. One of the first two of the answer is why the file cannot have both.
fn in_json(
    path: &Path,
    before: &str,
    after: &str,
    merge: impl Fn(&Node, &Node) -> Result<(Node, Vec<String>), String>,
) -> Outcome {
    let (old, new) = match (from_json(path, before), from_json(path, after)) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(problem), _) | (_, Err(problem)) => return refused(problem.message, after),
    };
    let (merged, others) = match merge(&old, &new) {
        Ok(merged) => merged,
        Err(reason) => return refused(reason, after),
    };
    if merged.json() == old.json() {
        return Outcome::Unchanged;
    }
    let text = merged.pretty();
    if !others.is_empty() {
        return refused(format!("it has another value of {}", others.join(", ")), &text);
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(before) {
        Ok(_) => Outcome::Write(text),
        Err(_) => refused(COMMENTS, &text),
    }
}

/// The prompts of both lists; of one with the same name and version the new one.
fn prompts(before: &Node, after: &Node) -> Result<(Node, Vec<String>), String> {
    let key = |prompt: &Node| {
        (
            prompt.text_of("name").map(str::to_owned),
            prompt.get("version").and_then(Node::scalar),
        )
    };
    let old = before.as_list().ok_or("it is not a list of prompts")?;
    if let Some(other) = old.iter().find(|prompt| key(prompt).0.is_none()) {
        return Err(format!(
            "it has something else than prompts in line {}",
            other.place.line
        ));
    }
    let mut merged = old.to_vec();
    for prompt in after.as_list().unwrap_or_default() {
        match merged.iter_mut().find(|one| key(one) == key(prompt)) {
            Some(one) => *one = prompt.clone(),
            None => merged.push(prompt.clone()),
        }
    }
    Ok((Node::list(merged), Vec::new()))
}

/// The members of both configurations, and the paths where they have different ones. The new ones win.
fn config(before: &Node, after: &Node, own: Option<&str>) -> (Node, Vec<String>) {
    let (mut merged, mut others) = (before.clone(), Vec::new());
    let Some(entries) = merged.entries_mut() else {
        return (after.clone(), vec!["the whole file".to_owned()]);
    };
    for Entry { key, node, .. } in after.entries() {
        let Some(old) = find(entries, key).cloned() else {
            put(entries, key, node.clone());
            continue;
        };
        // The schema of the file that is there counts.
        if key == "$schema" {
            continue;
        }
        if old == *node {
            // The order of rules counts.
            put(entries, key, node.clone());
            continue;
        }
        if let (Value::Map(members), true) = (&old.value, node.is_map()) {
            let mut members = members.clone();
            for member in node.entries() {
                let is_other = find(&members, &member.key).is_some_and(|one| *one != member.node);
                if is_other && own != Some(key) {
                    others.push(format!("{key}.{}", member.key));
                }
                put(&mut members, &member.key, member.node.clone());
            }
            put(entries, key, Node::map(members));
        } else {
            others.push(key.clone());
            put(entries, key, node.clone());
        }
    }
    (merged, others)
}
