//! Changes of the provider key, and model calls with it.

use agentcfg_tests::harness::{Dice, Response, Studio};
use serde_json::Value;

use super::actor::{Actor, Change, Step};
use crate::provider;

/// The agent of the model calls.
pub const CALLER: &str = "caller";
/// The credential without a provider key.
pub const MANAGED: &str = "sk-managed-0123456789";

#[derive(Default)]
pub struct ProviderKey {
    saved: Option<String>,
    pending: Option<Option<String>>,
    count: usize,
}

impl ProviderKey {
    fn expected(&self) -> &str {
        self.saved.as_deref().unwrap_or(MANAGED)
    }
}

impl Actor for ProviderKey {
    fn step(&mut self, studio: &Studio<'_>, dice: &mut Dice) -> Step {
        if dice.once_in(2) {
            return Step {
                request: provider::call(studio, CALLER, &studio.owner),
                change: None,
            };
        }
        self.count += 1;
        let next = (self.saved.is_none() || dice.once_in(2)).then(|| format!("sk-workspace-{}", self.count));
        let request = provider::save(studio, next.as_deref());
        let action = match next {
            Some(_) => "provider_key.saved",
            None => "provider_key.deleted",
        };
        self.pending = Some(next);
        Step {
            request,
            change: Some(Change::new("openai", action)),
        }
    }

    fn answered(&mut self, change: Option<Change>, answer: &Response) -> Option<Change> {
        if change.is_none() {
            assert_eq!(provider::credential(answer), self.expected());
        }
        self.settled(true);
        change
    }

    fn settled(&mut self, happened: bool) {
        if let Some(next) = self.pending.take().filter(|_| happened) {
            self.saved = next;
        }
    }

    fn owns(&self, entry: &Value) -> bool {
        entry["action"].as_str().unwrap().starts_with("provider_key.")
    }

    fn verify(&mut self, studio: &Studio<'_>) {
        let answer = provider::call(studio, CALLER, &studio.owner).send().expect(200);
        assert_eq!(provider::credential(&answer), self.expected(), "the provider key");
    }
}
