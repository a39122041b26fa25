//! The three-way merge of two changes of one agent: field by field, and line by line in the persona.

use serde_json::{Map, Value};
use similar::TextMerge;

use crate::file::{self, Fields};

/// The name of the user's side in conflict markers.
const MINE: &str = "your edit";

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
        let theirs = theirs.get(name);
        if let Some(value) = value(base.get(name), mine, theirs) {
            lines += &file::field(name, &value);
            merged.set(name, value);
        } else {
            let (mine, theirs) = (file::field(name, mine), file::field(name, theirs));
            lines += &format!("<<<<<<< {MINE}\n{mine}=======\n{theirs}>>>>>>> {label}\n");
            has_conflict = true;
        }
    }
    let [base, mine, theirs] = [base, mine, theirs].map(|fields| fields.get(Fields::BODY));
    match value(base, mine, theirs).map_or_else(|| persona(base, mine, theirs, label), Ok) {
        Ok(value) => merged.set(Fields::BODY, value),
        Err(text) => return Merged::Conflict(file::compose(agent_id, &lines, Some(&text))),
    }
    match has_conflict {
        true => Merged::Conflict(file::compose(agent_id, &lines, merged.get(Fields::BODY).as_str())),
        false => Merged::Clean(merged),
    }
}

/// The line at which a file still has a marker of [`merge`], counted from 0.
pub fn unresolved(file: &str, label: &str) -> Option<usize> {
    let markers = [format!("<<<<<<< {MINE}"), format!(">>>>>>> {label}")];
    file.lines()
        .position(|line| markers.iter().any(|marker| marker == line))
}

/// One value of two changes; `None` where they collide. The entries of a map are values of their own.
fn value(base: &Value, mine: &Value, theirs: &Value) -> Option<Value> {
    match (mine, theirs, base) {
        _ if mine == theirs || theirs == base => Some(mine.clone()),
        _ if mine == base => Some(theirs.clone()),
        (Value::Object(mine), Value::Object(theirs), Value::Object(base)) => entries(base, mine, theirs),
        _ => None,
    }
}

fn entries(base: &Map<String, Value>, mine: &Map<String, Value>, theirs: &Map<String, Value>) -> Option<Value> {
    let mut merged = Map::new();
    for name in mine.keys().chain(theirs.keys()) {
        // Null stands for an entry that is not there: no map of an agent has nulls.
        let [base, mine, theirs] = [base, mine, theirs].map(|map| map.get(name).unwrap_or(&Value::Null));
        let value = value(base, mine, theirs)?;
        if !value.is_null() {
            merged.insert(name.clone(), value);
        }
    }
    Some(merged.into())
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
        assert_eq!(unresolved(persona, "version 7"), Some(0));
        assert_eq!(unresolved("<<<<<<< other\n=======", "version 7"), None);
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
