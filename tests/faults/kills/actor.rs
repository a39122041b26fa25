//! What the writers of one workspace share: a step, and what is known of it.

use agentcfg_tests::harness::{Dice, Request, Response, Studio};
use serde_json::Value;

/// A change as the audit log shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The identifier of the target; none where the answer would have told it.
    pub target: Option<String>,
    pub action: &'static str,
}

impl Change {
    pub fn new(target: &str, action: &'static str) -> Self {
        Self {
            target: Some(target.to_owned()),
            action,
        }
    }

    pub fn is_shown_by(&self, entry: &Value) -> bool {
        let target = self.target.as_deref();
        entry["action"] == self.action && target.is_none_or(|target| entry["target"]["id"] == target)
    }
}

/// A request, and the change that it makes; a request that only reads has none.
pub struct Step {
    pub request: Request,
    pub change: Option<Change>,
}

/// A writer of things that no other writer changes, with a model of them.
pub trait Actor: Send {
    /// The next step. Until its outcome is known, the model keeps both states.
    fn step(&mut self, studio: &Studio<'_>, dice: &mut Dice) -> Step;

    /// The step was answered with success. Returns the change, with a target that only the answer told.
    fn answered(&mut self, change: Option<Change>, answer: &Response) -> Option<Change>;

    /// The step was not answered; the audit log shows whether it happened.
    fn settled(&mut self, happened: bool);

    /// Whether an entry of the log is of this actor.
    fn owns(&self, entry: &Value) -> bool;

    /// Compares what is stored with the model.
    fn verify(&mut self, studio: &Studio<'_>);
}
