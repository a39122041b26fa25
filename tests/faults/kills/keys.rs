//! Creations, rotations and revocations of API keys. A revocation that was acknowledged holds after each kill.

use agentcfg_tests::harness::{Dice, Key, Response, Studio};
use serde_json::{Value, json};

use super::actor::{Actor, Change, Step};

/// The most keys in force, each of which costs a slow hash after a restart.
const LIVE: usize = 3;
/// The number of ended keys that are tried after each restart.
const ENDED: usize = 4;

enum Pending {
    Creation,
    /// Of a live key.
    Rotation(usize),
    Revocation(usize),
}

/// A key whose plaintext is known.
#[derive(Debug, Clone)]
pub struct Known {
    pub key: Key,
    /// The identifier of the key that it replaced.
    replaced: Option<String>,
}

impl Known {
    /// Whether the key is in force after these entries of the log.
    pub fn is_live_after(&self, entries: &[Value]) -> bool {
        let has = |id: &str, actions: &[&str]| {
            let mut on_key = entries.iter().filter(|entry| entry["target"]["id"] == id);
            on_key.any(|entry| actions.contains(&entry["action"].as_str().unwrap()))
        };
        let is_made = match &self.replaced {
            Some(old) => has(old, &["api_key.rotated"]),
            None => has(&self.key.id, &["api_key.created"]),
        };
        is_made && !has(&self.key.id, &["api_key.revoked", "api_key.rotated"])
    }
}

#[derive(Default)]
pub struct Keys {
    live: Vec<Known>,
    ended: Vec<Known>,
    pending: Option<Pending>,
}

impl Keys {
    /// Returns the identifier of the key.
    fn end(&mut self, at: usize) -> String {
        let known = self.live.swap_remove(at);
        let id = known.key.id.clone();
        self.ended.push(known);
        id
    }

    /// The keys in force, and the last that were ended.
    pub fn known(&self) -> impl Iterator<Item = &Known> {
        self.live.iter().chain(self.ended.iter().rev().take(ENDED))
    }
}

fn key(answer: &Response) -> Key {
    let record = answer.json();
    let text = |name: &str| record[name].as_str().unwrap().to_owned();
    Key {
        id: text("id"),
        key: text("key"),
    }
}

impl Actor for Keys {
    fn step(&mut self, studio: &Studio<'_>, dice: &mut Dice) -> Step {
        let (request, change) = if self.live.len() < LIVE {
            self.pending = Some(Pending::Creation);
            let body = json!({
                "workspace_id": studio.id, "name": "k", "environment": "production", "scope": "read", "rate_limit": 1_000_000,
            });
            let change = Change {
                target: None,
                action: "api_key.created",
            };
            (studio.server.post("/api/api-keys").json(&body), change)
        } else {
            let at = dice.below(self.live.len());
            let id = &self.live[at].key.id;
            if dice.once_in(2) {
                self.pending = Some(Pending::Rotation(at));
                let request = studio.server.post(format!("/api/api-keys/rotate?key_id={id}"));
                (request.json(&json!({})), Change::new(id, "api_key.rotated"))
            } else {
                self.pending = Some(Pending::Revocation(at));
                let request = studio.server.delete(format!("/api/api-keys?key_id={id}"));
                (request, Change::new(id, "api_key.revoked"))
            }
        };
        Step {
            request: request.bearer(&studio.owner),
            change: Some(change),
        }
    }

    fn answered(&mut self, change: Option<Change>, answer: &Response) -> Option<Change> {
        let replaced = match self.pending.take() {
            Some(Pending::Revocation(at)) => {
                self.end(at);
                return change;
            }
            Some(Pending::Rotation(at)) => Some(self.end(at)),
            Some(Pending::Creation) | None => None,
        };
        let key = key(answer);
        self.live.push(Known { key, replaced });
        change
    }

    fn settled(&mut self, happened: bool) {
        match self.pending.take().filter(|_| happened) {
            Some(Pending::Rotation(at) | Pending::Revocation(at)) => {
                self.end(at);
            }
            // The plaintext of a key that was created without an answer is lost.
            Some(Pending::Creation) | None => {}
        }
    }

    fn owns(&self, entry: &Value) -> bool {
        entry["target"]["type"] == "api_key"
    }

    fn verify(&mut self, studio: &Studio<'_>) {
        let target = format!("/api/agents/configs?workspace_id={}&limit=1", studio.id);
        for Known { key, .. } in self.known() {
            let is_live = self.live.iter().any(|live| live.key.id == key.id);
            let answer = studio.server.get(&target).bearer(&key.key).send();
            assert_eq!(answer.status, if is_live { 200 } else { 401 }, "{}: {answer:?}", key.id);
        }
    }
}
