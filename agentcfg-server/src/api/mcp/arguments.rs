//! Reading the arguments of a tool: all faults are reported together.

use std::ops::RangeInclusive;

use agentcfg_core::model::{Message, WorkspaceId};
use agentcfg_core::validate::shown;
use serde_json::{Map, Value};

/// The arguments of a call that were not taken yet, and the faults of those that were.
pub(super) struct Arguments {
    left: Map<String, Value>,
    faults: Vec<String>,
}

impl Arguments {
    /// The arguments of a call.
    pub(super) fn new(arguments: Map<String, Value>) -> Self {
        Self {
            left: arguments,
            faults: Vec::new(),
        }
    }

    /// Takes a text that may be left out.
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

    /// Takes a text that is required; an empty one stands for one that is missing, whose fault is noted.
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

    /// Takes the reason for a change.
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

    /// Takes the arguments that are left, as the body of a request. Null is refused: `instead` says what to do.
    pub(super) fn body(&mut self, instead: &str) -> Map<String, Value> {
        let body = std::mem::take(&mut self.left);
        for (name, _) in body.iter().filter(|(_, value)| value.is_null()) {
            self.faults.push(format!("{} must not be null: {instead}", shown(name)));
        }
        body
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
    use serde_json::json;

    use super::*;

    #[test]
    fn all_faults_are_reported_together() {
        let Value::Object(given) = json!({"workspace_id": "x", "limit": 0, "clear": [1], "more": 1, "etag": null})
        else {
            panic!()
        };
        let mut arguments = Arguments::new(given);
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
}
