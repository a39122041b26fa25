//! Edits of a persona: single places of a long text are changed without sending all of it.

use serde_json::Value;

use super::arguments::Arguments;

/// The edits of one call, in their order.
pub(super) struct PersonaEdits(Vec<Edit>);

struct Edit {
    find: String,
    replace: String,
}

impl PersonaEdits {
    /// Takes the argument `persona_edits`.
    pub(super) fn take(arguments: &mut Arguments) -> Self {
        let mut edits = Vec::new();
        for (index, item) in arguments.list("persona_edits").into_iter().enumerate() {
            match Edit::of(item) {
                Some(edit) => edits.push(edit),
                None => arguments.fault(format!(
                    "persona_edits[{index}] must be an object of the texts find, which is not empty, and replace"
                )),
            }
        }
        Self(edits)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The persona after the edits.
    ///
    /// # Errors
    ///
    /// An edit whose text occurs not once.
    pub(super) fn apply(&self, persona: &str) -> Result<String, String> {
        let mut text = persona.to_owned();
        for (index, Edit { find, replace }) in self.0.iter().enumerate() {
            let count = occurrences(&text, find);
            if count != 1 {
                return Err(format!(
                    "persona_edits[{index}].find must occur exactly once in persona_prompt, and occurs {count} times; nothing \
                     was changed"
                ));
            }
            text = text.replacen(find.as_str(), replace, 1);
        }
        Ok(text)
    }
}

/// How often a text occurs in another one, occurrences that overlap included: each of them may be the one that is meant.
fn occurrences(text: &str, find: &str) -> usize {
    text.char_indices()
        .filter(|(at, _)| text[*at..].starts_with(find))
        .count()
}

impl Edit {
    fn of(item: Value) -> Option<Self> {
        let Value::Object(mut members) = item else { return None };
        let (find, replace) = (members.remove("find"), members.remove("replace"));
        match (find, replace) {
            (Some(Value::String(find)), Some(Value::String(replace))) if members.is_empty() && !find.is_empty() => {
                Some(Self { find, replace })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::mcp::json::object;

    fn applied(edits: Value, persona: &str) -> Result<String, String> {
        let mut arguments = Arguments::new(object(json!({ "persona_edits": edits })), None);
        let edits = PersonaEdits::take(&mut arguments);
        arguments.finish()?;
        edits.apply(persona)
    }

    #[test]
    fn edits_follow_each_other() {
        let edits = json!([{"find": "short", "replace": "long"}, {"find": "long notes", "replace": "letters"}]);
        assert_eq!(applied(edits, "Write short notes.").unwrap(), "Write letters.");
    }

    #[test]
    fn a_text_that_occurs_not_once_is_refused() {
        for (find, persona, count) in [
            ("x", "a b a", 0),
            ("a", "a b a", 2),
            ("--", "---", 2),
            ("éé", "éééé", 3),
        ] {
            let refused = applied(json!([{"find": find, "replace": ""}]), persona).unwrap_err();
            assert!(refused.contains(&format!("occurs {count} times")), "{refused}");
        }
        for wrong in [
            json!([1]),
            json!([{"find": ""}]),
            json!([{"find": "", "replace": "x"}]),
            json!("x"),
        ] {
            let refused = applied(wrong, "a").unwrap_err();
            assert!(refused.contains("persona_edits"), "{refused}");
        }
    }
}
