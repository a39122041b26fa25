//! Creations, changes, deletions, restorations, labels and rollbacks of single agents.

use std::collections::BTreeMap;

use agentcfg_tests::harness::{Dice, Request, Response, Studio};
use serde_json::{Value, json};

use super::actor::{Actor, Change, Step};

/// The number of agents of one actor.
const AGENTS: usize = 4;

/// An agent. Its versions differ in the role alone.
#[derive(Debug, Clone)]
struct Agent {
    is_active: bool,
    /// The role in each version; the last one is the current one.
    roles: Vec<Option<String>>,
    labels: BTreeMap<&'static str, usize>,
}

pub struct Agents {
    prefix: String,
    agents: BTreeMap<String, Agent>,
    /// The agent of the step under way, as it is if the step happens.
    pending: Option<(String, Agent)>,
    /// The agents that changed since the last comparison.
    touched: Vec<String>,
    count: usize,
}

impl Agents {
    pub fn new(number: usize) -> Self {
        Self {
            prefix: format!("w{number}-"),
            agents: BTreeMap::new(),
            pending: None,
            touched: Vec::new(),
            count: 0,
        }
    }

    /// A request on one agent, its action, and the agent afterwards.
    fn next(
        &mut self,
        studio: &Studio<'_>,
        id: &str,
        before: Option<&Agent>,
        dice: &mut Dice,
    ) -> (Request, &'static str, Agent) {
        let on = |method: &str, path: &str, more: &str| {
            let target = format!("/api/agents/{path}?workspace_id={}&agent_id={id}{more}", studio.id);
            studio.server.request(method, target)
        };
        let Some(before) = before else {
            let new = Agent {
                is_active: true,
                roles: vec![None],
                labels: BTreeMap::new(),
            };
            let request = studio.server.post("/api/agents/configs");
            return (request.json(&studio.agent(id, &Value::Null)), "agent.created", new);
        };
        let mut after = before.clone();
        if !before.is_active {
            after.is_active = true;
            return (on("POST", "configs/restore", ""), "agent.restored", after);
        }
        let current = before.roles.len();
        let label = ["production", "staging"][dice.below(2)];
        let version = 1 + dice.below(current);
        match dice.below(8) {
            0 => {
                after.is_active = false;
                (on("DELETE", "configs", ""), "agent.deactivated", after)
            }
            1 | 2 if before.labels.get(label) != Some(&version) => {
                after.labels.insert(label, version);
                let request = on("PUT", "labels", &format!("&label={label}"));
                (request.json(&json!({"version": version})), "label.set", after)
            }
            3 if before.labels.contains_key(label) => {
                after.labels.remove(label);
                let request = on("DELETE", "labels", &format!("&label={label}"));
                (request, "label.removed", after)
            }
            4 if before.roles[version - 1] != before.roles[current - 1] => {
                after.roles.push(before.roles[version - 1].clone());
                let request = on("POST", "rollback", "").json(&json!({"version": version}));
                (request, "agent.rolled_back", after)
            }
            _ => {
                self.count += 1;
                let role = format!("change {}", self.count);
                after.roles.push(Some(role.clone()));
                let request = on("PATCH", "configs", "").json(&json!({"role": role}));
                (request, "agent.updated", after)
            }
        }
    }
}

impl Actor for Agents {
    fn step(&mut self, studio: &Studio<'_>, dice: &mut Dice) -> Step {
        let id = format!("{}{}", self.prefix, dice.below(AGENTS));
        let before = self.agents.get(&id).cloned();
        let (request, action, after) = self.next(studio, &id, before.as_ref(), dice);
        let change = Some(Change::new(&id, action));
        self.touched.push(id.clone());
        self.pending = Some((id, after));
        Step {
            request: request.bearer(&studio.owner),
            change,
        }
    }

    fn answered(&mut self, change: Option<Change>, _: &Response) -> Option<Change> {
        self.settled(true);
        change
    }

    fn settled(&mut self, happened: bool) {
        if let Some((id, agent)) = self.pending.take().filter(|_| happened) {
            self.agents.insert(id, agent);
        }
    }

    fn owns(&self, entry: &Value) -> bool {
        let id = entry["target"]["id"].as_str().unwrap_or_default();
        entry["target"]["type"] == "agent" && id.starts_with(&self.prefix)
    }

    fn verify(&mut self, studio: &Studio<'_>) {
        let list = studio.list_request("&state=all").send().expect(200).json();
        let own = list
            .as_array()
            .unwrap()
            .iter()
            .filter(|agent| agent["agent_id"].as_str().unwrap().starts_with(&self.prefix));
        let found: BTreeMap<_, _> = own
            .map(|agent| {
                let id = agent["agent_id"].as_str().unwrap().to_owned();
                (id, (agent["is_active"].clone(), agent["role"].clone()))
            })
            .collect();
        let known = self.agents.iter().map(|(id, agent)| {
            let role = agent.roles.last().unwrap();
            (id.clone(), (json!(agent.is_active), json!(role)))
        });
        assert_eq!(found, known.collect(), "records differ from the acknowledged changes");

        let mut touched = std::mem::take(&mut self.touched);
        touched.sort();
        touched.dedup();
        for id in touched.iter().filter(|id| self.agents.contains_key(*id)) {
            let agent = &self.agents[id];
            let get = |path: &str, more: &str| {
                let target = format!("/api/agents/{path}?workspace_id={}&agent_id={id}{more}", studio.id);
                let request = studio.server.get(target).bearer(&studio.owner);
                request.send().expect(200).json()
            };
            let versions = get("versions", "&limit=1000");
            let numbers: Vec<_> = versions
                .as_array()
                .unwrap()
                .iter()
                .map(|version| version["version"].as_u64().unwrap() as usize)
                .collect();
            let expected: Vec<_> = (1..=agent.roles.len()).rev().collect();
            assert_eq!(numbers, expected, "the versions of {id} have a gap");
            let labels = get("labels", "");
            let labels: BTreeMap<_, _> = labels
                .as_array()
                .unwrap()
                .iter()
                .map(|row| {
                    let version = row["version"].as_u64().unwrap() as usize;
                    (row["label"].as_str().unwrap(), version)
                })
                .collect();
            assert_eq!(labels, agent.labels, "the labels of {id}");
            for (label, version) in &agent.labels {
                let of = get("version", &format!("&label={label}"));
                assert_eq!(of["config"]["role"], json!(agent.roles[version - 1]), "{label} of {id}");
            }
        }
    }
}
