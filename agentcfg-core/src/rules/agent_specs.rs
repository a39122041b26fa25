//! The rule for the agents of an apply.

use std::collections::HashMap;
use std::fmt::Display;

use crate::body::{Body, FromJson, Rule, from_entry, mismatch};
use crate::json::Json;
use crate::model::AgentSpec;
use crate::validate::{Faults, MAX_APPLIED};

/// At most 1,000 agents, each of them once.
pub(crate) struct AgentSpecs;

impl FromJson for Vec<AgentSpec> {
    fn from_json(json: Json<'_>, field: &dyn Display, faults: &mut Faults) -> Option<Self> {
        let Json::Array(items) = json else {
            return mismatch(&json, field, "an array of objects", faults);
        };
        // What is behind the limit is not read, so that it costs no memory.
        if items.len() > MAX_APPLIED {
            faults.push(field, too_many_agents(items.len()));
            return None;
        }
        let before = faults.count();
        let specs: Vec<_> = items
            .into_iter()
            .enumerate()
            .map(|(i, item)| from_entry(item, &format_args!("{field}[{i}]"), faults))
            .collect();
        if faults.count() > before {
            // Reading has found these faults already, which the rule for the whole value would report again.
            let read = specs
                .iter()
                .enumerate()
                .filter_map(|(i, spec)| Some((i, spec.as_ref()?)));
            each_once(read, field, faults);
            return None;
        }
        specs.into_iter().collect()
    }
}

impl Rule for AgentSpecs {
    type Value = Vec<AgentSpec>;

    fn check(specs: &Vec<AgentSpec>, field: &str, faults: &mut Faults) {
        if specs.len() > MAX_APPLIED {
            faults.push(field, too_many_agents(specs.len()));
            return;
        }
        for (i, spec) in specs.iter().enumerate() {
            let mut own = Faults::default();
            Body::check(spec, &mut own);
            faults.add_under(&format_args!("{field}[{i}]"), own);
        }
        each_once(specs.iter().enumerate(), &field, faults);
    }
}

/// Refuses an agent that is named again.
fn each_once<'a>(specs: impl Iterator<Item = (usize, &'a AgentSpec)>, field: &dyn Display, faults: &mut Faults) {
    let mut first = HashMap::new();
    for (i, spec) in specs {
        if let Some(before) = first.insert(&spec.agent_id, i) {
            faults.push(
                format_args!("{field}[{i}].agent_id"),
                format_args!("must not name the agent of {field}[{before}] again"),
            );
        }
    }
}

/// The fault of a list of too many agents.
fn too_many_agents(count: usize) -> String {
    format!("must have at most {MAX_APPLIED} elements, got {count}")
}
