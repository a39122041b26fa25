//! Agents by their names in one YAML file: some of them are replaced, and all others stay with their comments.

use std::path::Path;

use super::parse_tree::{Scalars, from_shared_yaml};
use super::source_tree::{Entry, find};

/// The text with the entries of a second text in place of those with their names, and the new ones at its end.
pub fn merged(path: &Path, before: &str, after: &str, scalars: Scalars) -> Result<String, String> {
    let (original, mut whole) = (before, before.to_owned());
    // The last text of a file reads with the line feed that the file may lack.
    if !whole.is_empty() && !whole.ends_with('\n') {
        whole.push('\n');
    }
    let before = whole.as_str();
    let read =
        |text: &str| from_shared_yaml(path, text, (1, scalars), &mut Vec::new()).map_err(|problem| problem.message);
    let (old, new) = (read(before)?, read(after)?);
    let mut lines: Vec<&str> = before.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = after.split_inclusive('\n').collect();
    let mut added = Vec::new();
    // From the end, so that the lines before stay where they are.
    for (at, entry) in new.iter().enumerate().rev() {
        let text = block(&new_lines, &new, at);
        match old.iter().position(|one| one.key == entry.key) {
            Some(at) if old[at].node == entry.node => {}
            Some(_) => added.push((Some(entry.key.as_str()), text)),
            None => added.push((None, text)),
        }
    }
    if added.is_empty() {
        return Ok(original.to_owned());
    }
    let place = |key: &Option<&str>| key.and_then(|key| old.iter().position(|one| one.key == key));
    added.sort_by_key(|(key, _)| std::cmp::Reverse(place(key)));
    let mut end = Vec::new();
    for (key, text) in added {
        match place(&key) {
            Some(at) => {
                let (from, to) = range(&lines, &old, at).ok_or("its agents do not begin lines of their own")?;
                lines.splice(from..to, text);
            }
            None => end.push(text),
        }
    }
    let mut merged: String = lines.concat();
    for text in end.iter().rev() {
        if !merged.ends_with('\n') {
            merged.push('\n');
        }
        merged.push('\n');
        merged.push_str(&text.concat());
    }
    // Whatever the layout of the file: what is not of the export is there as it was.
    let now = read(&merged)?;
    let expected = |entry: &Entry| find(&new, &entry.key).unwrap_or(&entry.node) == &entry.node;
    let is_kept = old.iter().all(|entry| {
        find(&now, &entry.key).is_some_and(|node| *node == *find(&new, &entry.key).unwrap_or(&entry.node))
    });
    match is_kept && now.iter().all(expected) && new.iter().all(|entry| find(&now, &entry.key).is_some()) {
        true => Ok(merged),
        false => Err("its other agents cannot be kept as they are".to_owned()),
    }
}

/// The lines of an entry, from 0: without the comments and empty lines before the next one.
fn range(lines: &[&str], entries: &[Entry], at: usize) -> Option<(usize, usize)> {
    let place = entries[at].place;
    let next = entries.get(at + 1).map_or(lines.len() + 1, |next| next.place.line);
    if place.column != 1 || next <= place.line {
        return None;
    }
    let (from, mut to) = (place.line - 1, next - 1);
    let is_between = |line: &str| line.trim().is_empty() || line.starts_with('#');
    while to > from + 1 && is_between(lines[to - 1]) {
        to -= 1;
    }
    Some((from, to))
}

fn block<'a>(lines: &[&'a str], entries: &[Entry], at: usize) -> Vec<&'a str> {
    match range(lines, entries, at) {
        Some((from, to)) => lines[from..to].to_vec(),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_stay_with_their_comments() {
        let before =
            "# Our crew\n\na: # first\n  role: A\n\n# Not ready.\nbad:\n  role: B # x\n\nc:\n  role: C\n# end\n";
        let merge = |after: &str| merged(Path::new("agents.yaml"), before, after, Scalars::Core);
        let changed = "a:\n  role: New\n\nd:\n  role: D\n\nc:\n  role: C\n";
        let expected = "# Our crew\n\na:\n  role: New\n\n# Not ready.\nbad:\n  role: B # x\n\nc:\n  role: C\n# end\n\n\
            d:\n  role: D\n";
        assert_eq!(merge(changed).as_deref(), Ok(expected));
        assert_eq!(merge("c:\n  role: C\n").as_deref(), Ok(before));
        assert_eq!(merge("").as_deref(), Ok(before));
        let folded = "a:\n  backstory: >\n    Long.";
        let longer = "a:\n  backstory: >\n    Long.\n\nb:\n  role: B\n";
        let both = merged(Path::new("agents.yaml"), folded, "b:\n  role: B\n", Scalars::Core);
        assert_eq!(both.as_deref(), Ok(longer));
        let flow = merged(
            Path::new("agents.yaml"),
            "{a: {role: A}, b: {role: B}}\n",
            changed,
            Scalars::Core,
        );
        assert!(flow.is_err(), "{flow:?}");
        let alias = merged(
            Path::new("agents.yaml"),
            "a: &x\n  role: A\nb: *x\n",
            changed,
            Scalars::Core,
        );
        assert!(alias.is_err(), "{alias:?}");
    }
}
