//! The records of the usage of model calls. Their fields have short names, because there are many.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::budgets::ProcessTag;
use super::entity::{Entity, EntityKey, NumberKey};
use super::read::Entries;
use crate::clock::{DAY, HOUR};
use crate::error::Error;
use crate::model::{Actor, CallId, CredentialSource, Provider, Timestamp, TokenUsage, UsageCall, Usd, WorkspaceId};
use crate::store::{Key, Kind};

/// Of which calls a sum is: the facts that sums can be grouped by, apart from the time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(in crate::service) struct CallGroup {
    #[serde(rename = "a")]
    pub(in crate::service) agent_id: String,
    #[serde(rename = "v")]
    pub(in crate::service) version: u64,
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::service) label: Option<String>,
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::service) key: Option<String>,
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::service) user: Option<String>,
    #[serde(rename = "p")]
    pub(in crate::service) provider: Provider,
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::service) model: Option<String>,
    #[serde(rename = "c")]
    pub(in crate::service) credential: CredentialSource,
    #[serde(rename = "s")]
    pub(in crate::service) status: u16,
}

impl CallGroup {
    /// Who called.
    pub(in crate::service) fn actor(&self) -> Option<Actor> {
        let key = self.key.as_deref().map(Actor::api_key);
        key.or_else(|| self.user.as_deref().map(Actor::user))
    }
}

pub(super) fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Counts of tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::service) struct StoredTokens {
    #[serde(rename = "i", default, skip_serializing_if = "is_zero")]
    pub(in crate::service) input: u64,
    #[serde(rename = "ci", default, skip_serializing_if = "is_zero")]
    pub(in crate::service) cached_input: u64,
    #[serde(rename = "cw", default, skip_serializing_if = "is_zero")]
    pub(in crate::service) cache_write: u64,
    #[serde(rename = "o", default, skip_serializing_if = "is_zero")]
    pub(in crate::service) output: u64,
    #[serde(rename = "r", default, skip_serializing_if = "is_zero")]
    pub(in crate::service) reasoning: u64,
}

impl From<TokenUsage> for StoredTokens {
    fn from(usage: TokenUsage) -> Self {
        Self {
            input: usage.input,
            cached_input: usage.cached_input,
            cache_write: usage.cache_write,
            output: usage.output,
            reasoning: usage.reasoning,
        }
    }
}

impl StoredTokens {
    pub(in crate::service) fn add(&mut self, other: &Self) {
        self.input = self.input.saturating_add(other.input);
        self.cached_input = self.cached_input.saturating_add(other.cached_input);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

/// A model call that has ended. Its identifier is beside it.
#[derive(Debug, Clone)]
pub(in crate::service) struct StoredCall {
    pub(in crate::service) ended_at: i64,
    /// Shared with the sums that it counts in.
    pub(in crate::service) group: Arc<CallGroup>,
    pub(in crate::service) path: String,
    pub(in crate::service) stream: bool,
    pub(in crate::service) attempts: u32,
    pub(in crate::service) estimated: bool,
    pub(in crate::service) tokens: StoredTokens,
    /// `None` where the model has no price and there are tokens.
    pub(in crate::service) cost: Option<Usd>,
    pub(in crate::service) first_byte_ms: Option<u64>,
    pub(in crate::service) duration_ms: u64,
    pub(in crate::service) request_id: String,
    /// The process that made it.
    pub(in crate::service) process: ProcessTag,
}

impl StoredCall {
    /// When the call began, in milliseconds since 1970.
    pub(in crate::service) fn began_at(&self) -> i64 {
        let millis = i64::try_from(self.duration_ms).unwrap_or(i64::MAX);
        self.ended_at.saturating_sub(millis)
    }

    /// What it shares with calls of the same process, the longest texts first.
    pub(super) fn shared(&self) -> impl Ord + '_ {
        let CallGroup {
            agent_id,
            key,
            user,
            model,
            ..
        } = &*self.group;
        (self.process, agent_id, key, user, &self.path, model)
    }

    /// The call as the API shows it.
    pub(in crate::service) fn shown(self, id: CallId, with_actor: bool) -> UsageCall {
        let tokens = self.tokens;
        let group = Arc::unwrap_or_clone(self.group);
        UsageCall {
            id,
            ended_at: Timestamp::from_unix_millis(self.ended_at),
            actor: group.actor().filter(|_| with_actor),
            agent_id: group.agent_id,
            version: group.version,
            label: group.label,
            provider: group.provider,
            model: group.model,
            path: self.path,
            credential: group.credential,
            status: group.status.into(),
            stream: self.stream,
            attempts: self.attempts,
            estimated: self.estimated,
            input_tokens: tokens.input,
            cached_input_tokens: tokens.cached_input,
            cache_write_tokens: tokens.cache_write,
            output_tokens: tokens.output,
            reasoning_tokens: tokens.reasoning,
            cost_usd: self.cost,
            first_byte_ms: self.first_byte_ms,
            duration_ms: self.duration_ms,
            request_id: self.request_id,
        }
    }
}

/// The sum over calls of one group that ended on one day or in one hour, as one process has counted them. Each process
/// counts into records of its own, and writes the whole sum each time. So processes do not conflict, and a write whose
/// outcome is unknown is repeated without counting twice.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::service) struct StoredSum {
    #[serde(rename = "g")]
    pub(in crate::service) group: CallGroup,
    #[serde(rename = "y")]
    pub(in crate::service) sums: Sums,
}

impl Entity for StoredSum {
    const KIND: Kind = Kind::UsageSum;
}

/// Sums over calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::service) struct Sums {
    #[serde(rename = "n")]
    pub(in crate::service) calls: u64,
    #[serde(rename = "er", default, skip_serializing_if = "is_zero")]
    pub(in crate::service) errors: u64,
    #[serde(rename = "t")]
    pub(in crate::service) tokens: StoredTokens,
    #[serde(rename = "usd")]
    pub(in crate::service) cost: Usd,
    #[serde(rename = "up", default, skip_serializing_if = "is_zero")]
    pub(in crate::service) unpriced: u64,
    #[serde(rename = "es", default, skip_serializing_if = "is_zero")]
    pub(in crate::service) estimated: u64,
    #[serde(rename = "d")]
    pub(in crate::service) duration_ms: u64,
    #[serde(rename = "f", default, skip_serializing_if = "is_zero")]
    pub(in crate::service) first_byte_ms: u64,
    /// How many calls have a duration in each range, by the number of the range.
    #[serde(rename = "b")]
    pub(in crate::service) durations: std::collections::BTreeMap<u16, u64>,
}

/// The time that a sum is of, since the Unix epoch. Each call counts in one of each unit, which are written together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::service) enum SumTime {
    Day(i64),
    Hour(i64),
}

impl SumTime {
    /// Whether the time is over at this moment, in milliseconds.
    pub(in crate::service) fn is_over(self, now: i64) -> bool {
        match self {
            Self::Day(day) => day < now.div_euclid(DAY),
            Self::Hour(hour) => hour < now.div_euclid(HOUR),
        }
    }

    /// Its part of the key. The days are before the hours.
    fn item(self) -> String {
        match self {
            Self::Day(day) => format!("d{:08}", day.max(0)),
            Self::Hour(hour) => format!("h{:010}", hour.max(0)),
        }
    }
}

/// The key of a sum, by its time and an identifier of its own.
pub(in crate::service) fn usage_sum(workspace: WorkspaceId, time: SumTime, id: Uuid) -> EntityKey<StoredSum> {
    EntityKey::in_workspace(workspace, format!("{}/{}", time.item(), id.simple()))
}

/// The sums from this time on, in the order of the times; after those of the last day come those of hours.
pub(in crate::service) fn usage_sums_from(workspace: WorkspaceId, time: SumTime) -> Entries<StoredSum> {
    Entries::in_workspace(workspace).after_item(Some(time.item().into()))
}

impl EntityKey<StoredSum> {
    /// The time of the sum, from the key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) when it names none.
    pub(in crate::service) fn time(&self) -> Result<SumTime, Error> {
        let time = self.item().split('/').next().unwrap_or_default();
        let number = |digits: &str| digits.parse::<i64>().map_err(|error| self.unreadable(error));
        match (time.strip_prefix('d'), time.strip_prefix('h')) {
            (Some(day), _) => Ok(SumTime::Day(number(day)?)),
            (None, Some(hour)) => Ok(SumTime::Hour(number(hour)?)),
            (None, None) => Err(self.unreadable("it is neither of a day nor of an hour")),
        }
    }
}

/// How often the usage of a workspace was written. What is read of it is whole as long as the number stays.
pub(in crate::service) fn usage_writes(workspace: WorkspaceId) -> NumberKey {
    NumberKey::of(Key::in_workspace(workspace, Kind::Counter, "usage_writes"))
}

/// How often the usage of a workspace was written with a sum of a day that was over. As long as the number stays, so do the
/// sums of days that had been over before.
pub(in crate::service) fn late_usage_writes(workspace: WorkspaceId) -> NumberKey {
    NumberKey::of(Key::in_workspace(workspace, Kind::Counter, "late_usage_writes"))
}
