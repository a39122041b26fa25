//! Reading the arguments of a tool: all faults are reported together.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use agentcfg_core::model::{Message, WorkspaceId};
use agentcfg_core::validate::{Invalid, Valid, shown};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// The arguments of a call that were not taken yet, and the faults of the others.
pub(super) struct Arguments {
    left: Map<String, Value>,
    /// The definition as it was written.
    definition: Option<Box<RawValue>>,
    faults: Vec<String>,
}

impl Arguments {
    /// Wraps the arguments of a call.
    pub(super) fn new(arguments: Map<String, Value>, definition: Option<Box<RawValue>>) -> Self {
        Self {
            left: arguments,
            definition,
            faults: Vec::new(),
        }
    }

    /// Takes an optional text.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        match self.left.remove(name)? {
            Value::String(text) => Some(text),
            other => {
                self.faults
                    .push(format!("{name} must be a string, got {}", kind(&other)));
                None
            }
        }
    }

    /// Takes a required text. Without one, the fault is noted and the text is empty.
    pub(super) fn required(&mut self, name: &str) -> String {
        let is_there = self.left.contains_key(name);
        let text = self.text(name);
        if !is_there {
            self.fault(format!("{name} is required"));
        }
        text.unwrap_or_default()
    }

    /// Takes one word of a set.
    pub(super) fn word<T: std::str::FromStr>(&mut self, name: &str) -> Option<T>
    where
        T::Err: std::fmt::Display,
    {
        let text = self.text(name)?;
        let word = text
            .parse()
            .map_err(|rule: T::Err| self.fault(format!("{name} {rule}")));
        word.ok()
    }

    /// Takes the workspace.
    pub(super) fn workspace(&mut self) -> Option<WorkspaceId> {
        self.word("workspace_id")
    }

    /// Takes the message for a change.
    pub(super) fn message(&mut self) -> Option<Message> {
        let text = self.text("message")?;
        let read = Message::try_from(text);
        read.map_err(|invalid| {
            let faults = invalid.faults();
            self.faults
                .extend(faults.iter().map(|fault| format!("message {}", fault.rule())));
        })
        .ok()
    }

    /// Takes an integer within bounds.
    pub(super) fn integer(&mut self, name: &str, bounds: RangeInclusive<u64>) -> Option<u64> {
        let value = self.left.remove(name)?;
        let number = value.as_u64().filter(|number| bounds.contains(number));
        if number.is_none() {
            let (least, most) = (bounds.start(), bounds.end());
            self.faults
                .push(format!("{name} must be an integer from {least} to {most}"));
        }
        number
    }

    /// Takes a flag, which is false where it is left out.
    pub(super) fn flag(&mut self, name: &str) -> bool {
        match self.left.remove(name) {
            None => false,
            Some(Value::Bool(flag)) => flag,
            Some(other) => {
                self.fault(format!("{name} must be a boolean, got {}", kind(&other)));
                false
            }
        }
    }

    /// Takes a list of values.
    pub(super) fn list(&mut self, name: &str) -> Vec<Value> {
        match self.left.remove(name) {
            None => Vec::new(),
            Some(Value::Array(items)) => items,
            Some(other) => {
                self.fault(format!("{name} must be an array, got {}", kind(&other)));
                Vec::new()
            }
        }
    }

    /// Takes a list of texts.
    pub(super) fn texts(&mut self, name: &str) -> Vec<String> {
        let texts = match self.left.remove(name) {
            None => return Vec::new(),
            Some(Value::Array(items)) => items
                .into_iter()
                .map(|item| match item {
                    Value::String(text) => Some(text),
                    _ => None,
                })
                .collect::<Option<Vec<_>>>(),
            Some(_) => None,
        };
        texts.unwrap_or_else(|| {
            self.fault(format!("{name} must be an array of strings"));
            Vec::new()
        })
    }

    /// Notes a fault.
    pub(super) fn fault(&mut self, fault: String) {
        self.faults.push(fault);
    }

    /// Takes the arguments that are left, as the body of a request.
    pub(super) fn body(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.left)
    }

    /// Ends the reading with a body, in which null is refused: `instead` says what to do. A field in `cleared` is null
    /// in the body that is read.
    ///
    /// # Errors
    ///
    /// Every fault, of the arguments that were taken and of the body.
    pub(super) fn finish_with<T>(
        mut self,
        mut body: Map<String, Value>,
        cleared: &[&str],
        instead: &str,
        read: impl FnOnce(&[u8]) -> Result<Valid<T>, Invalid>,
    ) -> Result<T, String> {
        let nulls = body.iter().filter(|(_, value)| value.is_null());
        let nulls: Vec<String> = nulls.map(|(name, _)| shown(name).to_string()).collect();
        let refused = nulls.iter().map(|name| format!("{name} must not be null: {instead}"));
        self.faults.extend(refused);
        for field in cleared {
            body.entry(*field).or_insert(Value::Null);
        }
        let mut fields: BTreeMap<String, Box<RawValue>> = BTreeMap::new();
        for (name, value) in body {
            let text = match self.definition.take_if(|_| name == "definition") {
                Some(written) => Ok(written),
                None => to_raw_value(&value),
            };
            fields.insert(name, text.map_err(|error| error.to_string())?);
        }
        let text = serde_json::to_vec(&fields).map_err(|error| error.to_string())?;
        let invalid = match read(&text) {
            Ok(read) if self.faults.is_empty() => return Ok(read.into_inner()),
            Ok(_) => None,
            Err(invalid) => Some(invalid),
        };
        match invalid {
            // A field that was refused as null must not be refused a second time.
            Some(invalid) if !nulls.is_empty() => {
                let others = invalid
                    .faults()
                    .iter()
                    .filter(|fault| !nulls.iter().any(|name| name == fault.field()));
                self.faults.extend(others.map(ToString::to_string));
            }
            Some(invalid) => self.faults.push(invalid.to_string()),
            None => {}
        }
        Err(self.faults.join("; "))
    }

    /// Ends the reading.
    ///
    /// # Errors
    ///
    /// Every fault, and every argument that was not taken.
    pub(super) fn finish(mut self) -> Result<(), String> {
        let unknown = self
            .left
            .keys()
            .map(|name| format!("{} is not a known argument", shown(name)));
        self.faults.extend(unknown);
        if self.faults.is_empty() {
            return Ok(());
        }
        Err(self.faults.join("; "))
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use agentcfg_core::model::{AgentPatch, Patch};
    use serde_json::json;

    use super::*;

    #[test]
    fn all_faults_are_reported_together() {
        let Value::Object(given) = json!({"workspace_id": "x", "limit": 0, "clear": [1], "more": 1, "etag": null})
        else {
            panic!()
        };
        let mut arguments = Arguments::new(given, None);
        assert_eq!(arguments.workspace(), None);
        assert_eq!(arguments.integer("limit", 1..=10), None);
        assert!(arguments.texts("clear").is_empty());
        assert_eq!(arguments.required("agent_id"), "");
        assert_eq!(arguments.text("etag"), None);
        let message = arguments.finish().unwrap_err();
        let parts: Vec<&str> = message.split("; ").collect();
        assert!(parts[0].starts_with("workspace_id must be"), "{message}");
        assert_eq!(
            &parts[1..],
            [
                "limit must be an integer from 1 to 10",
                "clear must be an array of strings",
                "agent_id is required",
                "etag must be a string, got null",
                "more is not a known argument",
            ]
        );
    }

    #[test]
    fn the_faults_of_a_body_are_reported_with_the_others() {
        let read = |given: Value, cleared: &[&str]| {
            let Value::Object(given) = given else { panic!() };
            let mut arguments = Arguments::new(given, None);
            arguments.integer("limit", 1..=10);
            let body = arguments.body();
            arguments.finish_with(body, cleared, "name it in clear", AgentPatch::from_json)
        };
        assert_eq!(
            read(
                json!({"limit": 0, "role": 7, "display_name": null, "zebra": 1}),
                &["model"]
            ),
            Err(
                "limit must be an integer from 1 to 10; display_name must not be null: name it in clear; \
                 role must be a string, got a number; zebra is not a known field"
                    .to_owned()
            )
        );
        assert_eq!(
            read(json!({"role": "Author"}), &["model"]).unwrap(),
            AgentPatch::default().role("Author").model(Patch::Null)
        );
    }
}
