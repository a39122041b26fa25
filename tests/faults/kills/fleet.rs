//! Applies of several agents: after a kill, all of one apply are there or none.

use agentcfg_tests::harness::{Dice, Response, Studio};
use serde_json::{Value, json};

use super::actor::{Actor, Change, Step};

#[derive(Default)]
pub struct Fleet {
    /// The number of the last apply; 0 before the first.
    applied: usize,
    tried: usize,
    is_pending: bool,
}

/// The number of agents in an apply.
fn size(number: usize) -> usize {
    3 + number % 3
}

impl Actor for Fleet {
    fn step(&mut self, studio: &Studio<'_>, _: &mut Dice) -> Step {
        self.tried += 1;
        self.is_pending = true;
        let role = format!("apply {}", self.tried);
        let agents: Vec<_> = (0..size(self.tried))
            .map(|number| json!({"agent_id": format!("fleet-{number}"), "display_name": "Fleet", "role": role}))
            .collect();
        let target = format!("/api/agents/apply?workspace_id={}", studio.id);
        let body = json!({"agents": agents, "set": "fleet", "prune": true});
        Step {
            request: studio.server.post(target).bearer(&studio.owner).json(&body),
            change: Some(Change::new(&studio.id.to_string(), "agents.applied")),
        }
    }

    fn answered(&mut self, change: Option<Change>, _: &Response) -> Option<Change> {
        self.settled(true);
        change
    }

    fn settled(&mut self, happened: bool) {
        if std::mem::take(&mut self.is_pending) && happened {
            self.applied = self.tried;
        }
    }

    fn owns(&self, entry: &Value) -> bool {
        entry["action"] == "agents.applied"
    }

    fn verify(&mut self, studio: &Studio<'_>) {
        let list = studio.list().json();
        let roles: Vec<_> = list
            .as_array()
            .unwrap()
            .iter()
            .filter(|agent| agent["agent_id"].as_str().unwrap().starts_with("fleet-"))
            .map(|agent| agent["role"].clone())
            .collect();
        let expected = match self.applied {
            0 => Vec::new(),
            number => vec![json!(format!("apply {number}")); size(number)],
        };
        assert_eq!(roles, expected, "an apply is whole or not there");
    }
}
