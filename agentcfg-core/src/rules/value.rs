//! Rules for numbers, moments, labels and lists of agents and permissions.

use std::collections::HashSet;

use crate::body::Rule;
use crate::model::{AgentId, Label, Permission, Timestamp, Usd};
use crate::validate::{Faults, MAX_KEY_AGENTS, MAX_OVERLAP, MAX_PROMOTED, MAX_RATE_LIMIT};

/// The requests per minute of an API key: 1–1000000.
pub(crate) struct RequestsPerMinute;

/// The seconds that a replaced API key still works: 0–2592000, which is 30 days.
pub(crate) struct Overlap;

/// A revision of a workspace, from 1.
pub(crate) struct Revision;

impl Rule for Revision {
    type Value = u64;

    fn check(revision: &u64, field: &str, faults: &mut Faults) {
        if *revision == 0 {
            faults.push(field, "must be an integer from 1");
        }
    }
}

/// A moment with any UTC offset. The service, which has the clock, compares it with the current time.
pub(crate) struct Moment;

impl Rule for RequestsPerMinute {
    type Value = u32;

    fn check(limit: &u32, field: &str, faults: &mut Faults) {
        if !(1..=MAX_RATE_LIMIT).contains(limit) {
            faults.push(field, format_args!("must be an integer from 1 to {MAX_RATE_LIMIT}"));
        }
    }
}

impl Rule for Overlap {
    type Value = u32;

    fn check(seconds: &u32, field: &str, faults: &mut Faults) {
        if *seconds > MAX_OVERLAP {
            faults.push(field, format_args!("must be an integer from 0 to {MAX_OVERLAP}"));
        }
    }
}

impl Rule for Moment {
    type Value = Timestamp;

    fn check(_: &Timestamp, _: &str, _: &mut Faults) {}
}

/// A label that a change moves: not the reserved one.
pub(crate) struct TargetLabel;

impl Rule for TargetLabel {
    type Value = Label;

    fn check(label: &Label, field: &str, faults: &mut Faults) {
        if label.is_latest() {
            faults.push(field, "must not be latest, which is always the current version");
        }
    }
}

/// 1–1000 identifiers of agents.
pub(crate) struct AgentIds;

impl Rule for AgentIds {
    type Value = Vec<AgentId>;

    fn check(ids: &Vec<AgentId>, field: &str, faults: &mut Faults) {
        if !(1..=MAX_PROMOTED).contains(&ids.len()) {
            faults.push(
                field,
                format_args!("must name 1 to {MAX_PROMOTED} agents, got {}", ids.len()),
            );
        }
    }
}

/// 1–100 identifiers of agents; repeated ones count once.
pub(crate) struct KeyAgents;

impl Rule for KeyAgents {
    type Value = Vec<AgentId>;

    fn check(ids: &Vec<AgentId>, field: &str, faults: &mut Faults) {
        let count = ids.iter().collect::<HashSet<_>>().len();
        if !(1..=MAX_KEY_AGENTS).contains(&count) {
            faults.push(
                field,
                format_args!("must name 1 to {MAX_KEY_AGENTS} agents, got {count}"),
            );
        }
    }
}

/// The limit of a budget: 0–10⁹ USD.
pub(crate) struct UsdLimit;

impl UsdLimit {
    /// The greatest limit in USD.
    pub(crate) const MOST: u64 = 1_000_000_000;
}

impl Rule for UsdLimit {
    type Value = Usd;

    fn check(limit: &Usd, field: &str, faults: &mut Faults) {
        if limit.nanos() > u128::from(Self::MOST) * 1_000_000_000 {
            faults.push(field, format_args!("must be at most {}", Self::MOST));
        }
    }
}

/// At least one permission.
pub(crate) struct KeyPermissions;

impl Rule for KeyPermissions {
    type Value = Vec<Permission>;

    fn check(permissions: &Vec<Permission>, field: &str, faults: &mut Faults) {
        if permissions.is_empty() {
            faults.push(field, "must name at least one permission");
        }
    }
}
