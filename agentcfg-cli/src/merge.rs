//! The three-way merge of two changes of one agent: field by field, and line by line in the persona.

use serde_json::{Map, Value};
use similar::TextMerge;

use crate::agent_file::{self, Fields};

/// The name of the user's side in conflict markers.
const MINE: &str = "your edit";

/// The line between the sides of a conflict.
const SEPARATOR: &str = "=======";

/// Two changes of one state, as one.
#[derive(Debug, PartialEq)]
pub enum Merged {
    /// The changes are of different fields and lines, or the same.
    Clean(Fields),
    /// The file of the agent, with the two sides of each conflict between markers.
    Conflict(String),
}

/// Merges the change from `base` to `mine` with that from `base` to `theirs`, which `label` names in conflict markers.
pub fn merge(agent_id: &str, base: &Fields, mine: &Fields, theirs: &Fields, label: &str) -> Merged {
    let mut merged = theirs.clone();
    let mut lines = String::new();
    let mut has_conflict = false;
    for (name, mine) in mine.in_front() {
        let (base, theirs) = (base.get(name), theirs.get(name));
        if let Some(value) = value(base, mine, theirs) {
            lines += &agent_file::field(name, &value);
            merged.set(name, value);
            continue;
        }
        has_conflict = true;
        lines += &match (base, mine, theirs) {
            (Value::Object(base), Value::Object(mine), Value::Object(theirs))
                if [base, mine, theirs].map(has_nulls) == [false; 3] =>
            {
                Entries::of(base, mine, theirs).lines(name, label)
            }
            _ => sides(&agent_file::field(name, mine), &agent_file::field(name, theirs), label),
        };
    }
    let [base, mine, theirs] = [base, mine, theirs].map(|fields| fields.get(Fields::BODY));
    match value(base, mine, theirs).map_or_else(|| persona(base, mine, theirs, label), Ok) {
        Ok(value) => merged.set(Fields::BODY, value),
        Err(text) => return Merged::Conflict(agent_file::compose(agent_id, &lines, Some(&text))),
    }
    match has_conflict {
        true => Merged::Conflict(agent_file::compose(agent_id, &lines, merged.get(Fields::BODY).as_str())),
        false => Merged::Clean(merged),
    }
}

/// The line at which a file still has a marker of this conflict of [`merge`], counted from 0.
pub fn unresolved(file: &str, conflict: &str, label: &str) -> Option<usize> {
    let (begin, end) = (format!("<<<<<<< {MINE}"), format!(">>>>>>> {label}"));
    // Where a side has such a line too, as an underlined heading, the separator may be a part of the text.
    let count = |marker: &str| conflict.lines().filter(|line| *line == marker).count();
    let is_marker = match count(SEPARATOR) == count(&begin) {
        true => |line: &str| line == SEPARATOR,
        false => |_: &str| false,
    };
    file.lines()
        .position(|line| line == begin || line == end || is_marker(line))
}

/// The lines of both sides of a conflict between markers.
fn sides(mine: &str, theirs: &str, label: &str) -> String {
    format!("<<<<<<< {MINE}\n{mine}{SEPARATOR}\n{theirs}>>>>>>> {label}\n")
}

/// One value of two changes; `None` where they collide. The entries of a map are values of their own.
fn value(base: &Value, mine: &Value, theirs: &Value) -> Option<Value> {
    match (mine, theirs, base) {
        _ if mine == theirs || theirs == base => Some(mine.clone()),
        _ if mine == base => Some(theirs.clone()),
        (Value::Object(mine), Value::Object(theirs), Value::Object(base))
            if [mine, theirs, base].map(has_nulls) == [false; 3] =>
        {
            Entries::of(base, mine, theirs).merged()
        }
        _ => None,
    }
}

/// Whether an entry of a map is null. Such a map is merged as a whole, because null stands for an entry that is not
/// there.
fn has_nulls(map: &Map<String, Value>) -> bool {
    map.values().any(Value::is_null)
}

/// The entries of a map that two changes leave, in the order of their names.
struct Entries<'a>(Vec<(&'a str, Entry<'a>)>);

enum Entry<'a> {
    Merged(Value),
    /// Both changes are of this entry. Null is an entry that is not there.
    Collided {
        mine: &'a Value,
        theirs: &'a Value,
    },
}

impl<'a> Entries<'a> {
    fn of(base: &'a Map<String, Value>, mine: &'a Map<String, Value>, theirs: &'a Map<String, Value>) -> Self {
        let new = theirs.keys().filter(|name| !mine.contains_key(*name));
        let names = mine.keys().chain(new).map(String::as_str);
        let mut entries = Vec::new();
        for name in names {
            let [base, mine, theirs] = [base, mine, theirs].map(|map| map.get(name).unwrap_or(&Value::Null));
            match value(base, mine, theirs) {
                Some(Value::Null) => {}
                Some(value) => entries.push((name, Entry::Merged(value))),
                None => entries.push((name, Entry::Collided { mine, theirs })),
            }
        }
        Self(entries)
    }

    /// The map; `None` if an entry collided.
    fn merged(self) -> Option<Value> {
        let entry = |(name, entry): (&str, Entry<'_>)| match entry {
            Entry::Merged(value) => Some((name.to_owned(), value)),
            Entry::Collided { .. } => None,
        };
        let map: Option<Map<String, Value>> = self.0.into_iter().map(entry).collect();
        map.map(Value::Object)
    }

    /// The lines of the field, with markers around the entries that collided alone.
    fn lines(&self, field: &str, label: &str) -> String {
        let lines = |name: &str, value: &Value| match value {
            Value::Null => String::new(),
            value => {
                let map: Map<String, Value> = [(name.to_owned(), value.clone())].into_iter().collect();
                agent_file::field(field, &map.into())
            }
        };
        let head = format!("{field}:\n");
        let below = |lines: &str| lines.strip_prefix(&head).unwrap_or(lines).to_owned();
        let on_both_sides = |entry: &Entry<'_>| match entry {
            Entry::Merged(_) => true,
            Entry::Collided { mine, theirs } => !mine.is_null() && !theirs.is_null(),
        };
        // A side without entries has no line with the name of the field.
        if !self.0.iter().any(|(_, entry)| on_both_sides(entry)) {
            let side = |pick: fn(&'a Value, &'a Value) -> &'a Value| {
                let present = self.0.iter().filter_map(|(name, entry)| match entry {
                    Entry::Collided { mine, theirs } => Some(below(&lines(name, pick(mine, theirs)))),
                    Entry::Merged(_) => None,
                });
                match present.collect::<String>() {
                    none if none.is_empty() => none,
                    entries => format!("{head}{entries}"),
                }
            };
            return sides(&side(|mine, _| mine), &side(|_, theirs| theirs), label);
        }
        self.0.iter().fold(head.clone(), |text, (name, entry)| {
            text + &match entry {
                Entry::Merged(value) => below(&lines(name, value)),
                Entry::Collided { mine, theirs } => {
                    sides(&below(&lines(name, mine)), &below(&lines(name, theirs)), label)
                }
            }
        })
    }
}

/// The merged lines of a persona, or the text with markers around the lines that collide.
fn persona(base: &Value, mine: &Value, theirs: &Value, label: &str) -> Result<Value, String> {
    // As in the file, where the last line ends like the others.
    let text = |value: &Value| format!("{}\n", value.as_str().unwrap_or_default());
    let [base, mine, theirs] = [base, mine, theirs].map(text);
    let mut merge = TextMerge::from_lines(&*base, &*mine, &*theirs);
    merge.labels("before", MINE, label);
    let merged = merge.to_string();
    let merged = merged.strip_suffix('\n').unwrap_or(&merged).to_owned();
    match merge.is_conflicted() {
        true => Err(merged),
        false => Ok(merged.into()),
    }
}

#[cfg(test)]
mod tests {
    use agentcfg_client::model::AgentSpec;
    use serde_json::json;

    use super::*;

    fn fields(changed: &Value) -> Fields {
        let mut spec = json!({"agent_id": "writer", "display_name": "Writer", "role": "author", "model": "gpt-5",
            "persona_prompt": "One.\nTwo.\nThree.\nFour.\nFive.", "capabilities": ["a"], "parameters": {"x": 1, "y": 2}});
        spec.as_object_mut()
            .unwrap()
            .extend(changed.as_object().unwrap().clone());
        let spec = AgentSpec::from_json(spec.to_string().as_bytes()).unwrap();
        Fields::of_spec(&spec).unwrap()
    }

    fn merged(mine: &Value, theirs: &Value) -> Merged {
        merge(
            "writer",
            &fields(&json!({})),
            &fields(mine),
            &fields(theirs),
            "version 7",
        )
    }

    #[test]
    fn changes_of_different_fields_lines_and_entries_are_combined() {
        let mine = json!({"role": "editor", "persona_prompt": "ONE.\nTwo.\nThree.\nFour.\nFive.", "parameters": {"x": 5, "y": 2}});
        let theirs = json!({"model": null, "persona_prompt": "One.\nTwo.\nThree.\nFour.\nFive.\nSix.", "parameters": {"x": 1, "z": 3}});
        let expected = json!({"role": "editor", "model": null, "persona_prompt": "ONE.\nTwo.\nThree.\nFour.\nFive.\nSix.",
            "parameters": {"x": 5, "z": 3}});
        assert_eq!(merged(&mine, &theirs), Merged::Clean(fields(&expected)));
        assert_eq!(merged(&theirs, &mine), Merged::Clean(fields(&expected)));
    }

    #[test]
    fn the_same_change_twice_is_no_conflict() {
        let both = json!({"role": null, "persona_prompt": "New.", "capabilities": ["b"], "parameters": {}});
        assert_eq!(merged(&both, &both), Merged::Clean(fields(&both)));
    }

    #[test]
    fn changes_that_collide_stand_side_by_side() {
        let mine = json!({"role": "editor", "persona_prompt": "1.\nTwo.\nThree.\nFour.\nFive.", "capabilities": []});
        let theirs = json!({"role": null, "persona_prompt": "I.\nTwo.\nThree.\nFour.\n5.", "capabilities": ["a", "b"]});
        let Merged::Conflict(text) = merged(&mine, &theirs) else {
            panic!("no conflict")
        };
        let expected = "\
---
agent_id: writer
display_name: Writer
<<<<<<< your edit
role: editor
=======
>>>>>>> version 7
agent_type: ai
model: gpt-5
<<<<<<< your edit
=======
capabilities:
  - a
  - b
>>>>>>> version 7
parameters:
  x: 1
  \"y\": 2
---
<<<<<<< your edit
1.
=======
I.
>>>>>>> version 7
Two.
Three.
Four.
5.
";
        assert_eq!(text, expected);
        let persona = text.split("---\n").nth(2).unwrap();
        assert_eq!(unresolved(persona, &text, "version 7"), Some(0));
        assert_eq!(unresolved("one\n=======\n", &text, "version 7"), Some(1));
        assert_eq!(unresolved("<<<<<<< other\n", &text, "version 7"), None);
        let with_heading = text.replace("1.", "1.\n=======");
        assert_eq!(unresolved("1.\n=======\n", &with_heading, "version 7"), None);
    }

    #[test]
    fn parameters_that_collide_alone_stand_between_markers() {
        let conflict = |mine: &Value, theirs: &Value| match merged(mine, theirs) {
            Merged::Conflict(text) => text,
            clean @ Merged::Clean(_) => panic!("no conflict: {clean:?}"),
        };
        let text = conflict(
            &json!({"parameters": {"a": 8, "x": 5, "y": 2}}),
            &json!({"parameters": {"a": 7, "x": 1, "y": 3, "z": 4}}),
        );
        let expected = "\
parameters:
<<<<<<< your edit
  a: 8
=======
  a: 7
>>>>>>> version 7
  x: 5
  \"y\": 3
  z: 4
---
";
        assert!(text.contains(expected), "{text}");
        // One side has no parameter left: the name of the field is between the markers too.
        let text = conflict(&json!({"parameters": {}}), &json!({"parameters": {"x": 3}}));
        let expected = "  - a\n<<<<<<< your edit\n=======\nparameters:\n  x: 3\n>>>>>>> version 7\n---\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn a_persona_that_one_side_removed_collides_with_a_change_of_it() {
        let (mine, theirs) = (json!({"persona_prompt": null}), json!({"persona_prompt": "New."}));
        assert!(matches!(merged(&mine, &theirs), Merged::Conflict(text) if text.contains("New.")));
        assert_eq!(merged(&mine, &json!({})), Merged::Clean(fields(&mine)));
        assert_eq!(merged(&json!({}), &mine), Merged::Clean(fields(&mine)));
    }

    proptest::proptest! {
        #[test]
        fn one_sided_changes_and_lines_far_apart_always_merge(first in "[a-z]{0,5}", last in "[a-z\n]{0,9}") {
            let (mine, theirs) = (format!("{first}\nx\ny\nz\nend"), format!("start\nx\ny\nz\n{last}"));
            let base = fields(&json!({"persona_prompt": "start\nx\ny\nz\nend"}));
            let mine = fields(&json!({ "persona_prompt": mine }));
            let theirs = fields(&json!({ "persona_prompt": theirs }));
            let both = fields(&json!({"persona_prompt": format!("{first}\nx\ny\nz\n{last}")}));
            proptest::prop_assert_eq!(merge("writer", &base, &mine, &theirs, "v"), Merged::Clean(both));
            proptest::prop_assert_eq!(merge("writer", &base, &mine, &base, "v"), Merged::Clean(mine.clone()));
            proptest::prop_assert_eq!(merge("writer", &base, &base, &mine, "v"), Merged::Clean(mine.clone()));
        }
    }
}
