//! The steps of a history.

use agentcfg_core::model::{AgentPatch, Patch, Plan, StatusReport};
use proptest::prelude::*;

use super::reference::{Condition, TTL_MILLIS};

/// The number of workspaces in a history.
pub const WORKSPACES: usize = 2;

/// One step of a history. The leading numbers choose the workspace and the agent.
#[derive(Debug, Clone)]
// The steps of a run are few.
#[allow(clippy::large_enum_variant)]
pub enum Step {
    Create(usize, usize, Option<String>),
    Update(usize, usize, AgentPatch, Condition),
    Delete(usize, usize, Condition),
    Restore(usize, usize, Condition),
    Report(usize, usize, StatusReport),
    List(usize, usize, usize),
    ListOne(usize, usize),
    Status(usize),
    Plan(usize, Plan),
    Advance(i64),
}

pub fn agent_id(number: usize) -> String {
    format!("agent-{number}")
}

fn any_patch() -> impl Strategy<Value = AgentPatch> {
    let text = || {
        prop_oneof![
            Just(Patch::Absent),
            Just(Patch::Null),
            "[a-c]{0,2}".prop_map(Patch::Set)
        ]
    };
    let number = prop_oneof![
        any::<i64>().prop_map(Into::into),
        (-1.0..1.0).prop_map(|n: f64| n.to_string().parse().unwrap())
    ];
    (
        proptest::option::of("[A-C]{1,2}"),
        text(),
        text(),
        proptest::option::of(proptest::collection::vec("[a-c]", 0..3)),
        proptest::option::of(proptest::collection::btree_map("[a-c]", number, 0..3)),
    )
        .prop_map(|(display_name, role, persona_prompt, capabilities, parameters)| {
            AgentPatch::default()
                .display_name(display_name)
                .role(role)
                .persona_prompt(persona_prompt)
                .capabilities(capabilities)
                .parameters(parameters)
        })
}

pub fn any_step() -> impl Strategy<Value = Step> {
    let place = || (0..WORKSPACES, 0..5_usize);
    let condition = || {
        use Condition::{Current, Exists, None, Stale};
        prop_oneof![3 => Just(None), 1 => Just(Exists), 2 => Just(Current), 1 => Just(Stale)]
    };
    let report = prop_oneof![
        Just(StatusReport::idle()),
        Just(StatusReport::offline()),
        "[a-c]".prop_map(|task| StatusReport::working(task.clone(), task)),
    ];
    let time = prop_oneof![Just(0), Just(1), Just(TTL_MILLIS - 1), -5000_i64..90_000];
    prop_oneof![
        4 => (place(), proptest::option::of("[a-c]")).prop_map(|((w, a), role)| Step::Create(w, a, role)),
        4 => (place(), any_patch(), condition()).prop_map(|((w, a), patch, c)| Step::Update(w, a, patch, c)),
        3 => (place(), condition()).prop_map(|((w, a), c)| Step::Delete(w, a, c)),
        3 => (place(), condition()).prop_map(|((w, a), c)| Step::Restore(w, a, c)),
        2 => (place(), report).prop_map(|((w, a), report)| Step::Report(w, a, report)),
        2 => (0..WORKSPACES, 0..4_usize, 1..4_usize).prop_map(|(w, offset, limit)| Step::List(w, offset, limit)),
        1 => place().prop_map(|(w, a)| Step::ListOne(w, a)),
        1 => (0..WORKSPACES).prop_map(Step::Status),
        1 => (0..WORKSPACES, proptest::sample::select(Plan::ALL)).prop_map(|(w, plan)| Step::Plan(w, plan)),
        2 => time.prop_map(Step::Advance),
    ]
}
