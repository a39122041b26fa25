//! The parameters of usage.

use agentcfg_core::model::{CallId, UsageColumn};
use agentcfg_core::validate::{DEFAULT_LIMIT, Faults, MAX_LIMIT};

use super::declare::{moments, texts};
use super::history::{MOMENT, MOMENT_EXAMPLE};
use super::{AGENT_EXAMPLE, LIMIT, LIMIT_EXAMPLE, refuse};
use crate::api::call::{Parameter, ParameterDoc, Received, Shape};
use crate::http::errors::Failure;

moments! {
    /// The beginning of the time that sums are of.
    UsageFrom, "UsageFrom", "from", "Only calls that ended from this moment on, rounded down to the hour. Left out: 30 days before `to`.";

    /// The end of the time that sums are of.
    UsageTo, "UsageTo", "to", "Only calls that ended before this moment, rounded down to the hour. Left out: the end of the running hour.";
}

texts! {
    /// The agent whose calls count.
    UsageAgent, "UsageAgent", "agent_id", "Only calls as this agent.", AGENT_EXAMPLE;

    /// The model whose calls count.
    UsageModel, "UsageModel", "model", "Only calls of this model.", r#""claude-sonnet-5-5""#;

    /// The provider whose calls count.
    UsageProvider, "UsageProvider", "provider", "Only calls to this provider.", r#""openai""#;

    /// The API key whose calls count.
    UsageKey, "UsageKey", "key", "Only calls with the API key of this `id`. It needs `audit_log:read` too.", r#""4fQ8mZr2LkV7xN0bTy6W""#;

    /// The label whose calls count.
    UsageLabel, "UsageLabel", "label", "Only calls whose version of the agent this label selected.", r#""production""#;
}

/// What sums are grouped by.
pub struct UsageBy;

impl Parameter for UsageBy {
    type Value<'a> = Vec<UsageColumn>;

    const DOC: ParameterDoc = ParameterDoc::query(
        "UsageBy",
        "by",
        Shape::Pattern {
            length: None,
            pattern: "^(?:(?:hour|day|agent|version|label|model|provider|key|user|credential|status)(?:,(?!$)|$)){1,4}$",
        },
        "What the sums are grouped by: up to 4 of `hour`, `day`, `agent`, `version`, `label`, `model`, `provider`, `key`, `user`, \
         `credential` and `status`, with commas between them. `key` and `user` need `audit_log:read` too.",
    )
    .example(r#""agent,model""#);

    fn read(request: &Received<'_>, faults: &mut Faults) -> Result<Vec<UsageColumn>, Failure> {
        let text = request.optional(&Self::DOC).unwrap_or_default();
        let mut columns = Vec::new();
        for word in text.split(',').map(str::trim).filter(|_| !text.is_empty()) {
            match word.parse() {
                Ok(column) => columns.push(column),
                Err(rule) => {
                    refuse(&Self::DOC, format!("{rule}, got {word:?}"), faults);
                    break;
                }
            }
        }
        Ok(columns)
    }
}

/// How many values are shown by themselves.
pub struct UsageTop;

impl Parameter for UsageTop {
    type Value<'a> = Option<u32>;

    const DOC: ParameterDoc = ParameterDoc::query(
        "UsageTop",
        "top",
        Shape::Number {
            minimum: 1,
            maximum: Some(50),
            default: None,
        },
        "Shows only this many values of the first grouping that is neither `hour` nor `day`, those that cost most. All others are \
         added up in rows with `other: true` and null in place of the value.",
    )
    .example("10");

    fn read(request: &Received<'_>, faults: &mut Faults) -> Result<Option<u32>, Failure> {
        Ok(request.limit(&Self::DOC, faults))
    }
}

/// The status of the calls to list.
pub struct UsageStatus;

impl Parameter for UsageStatus {
    type Value<'a> = Option<u32>;

    const DOC: ParameterDoc = ParameterDoc::query(
        "UsageStatus",
        "status",
        Shape::Number {
            minimum: 100,
            maximum: Some(599),
            default: None,
        },
        "Only calls with this status.",
    )
    .example("502");

    fn read(request: &Received<'_>, faults: &mut Faults) -> Result<Option<u32>, Failure> {
        Ok(request.limit(&Self::DOC, faults))
    }
}

/// The limit of the list of calls.
pub struct UsageLimit;

impl Parameter for UsageLimit {
    type Value<'a> = Option<u32>;

    const DOC: ParameterDoc = ParameterDoc::query(
        "UsageLimit",
        LIMIT,
        Shape::Number {
            minimum: 1,
            maximum: Some(MAX_LIMIT),
            default: Some(DEFAULT_LIMIT),
        },
        "Most calls to return.",
    )
    .example(LIMIT_EXAMPLE);

    fn read(request: &Received<'_>, faults: &mut Faults) -> Result<Option<u32>, Failure> {
        Ok(request.limit(&Self::DOC, faults))
    }
}

/// The call before which a list begins.
pub struct BeforeCall;

impl Parameter for BeforeCall {
    type Value<'a> = Option<CallId>;

    const DOC: ParameterDoc = ParameterDoc::query(
        "BeforeCall",
        "before",
        Shape::Field("UsageCall", "id"),
        "Only calls before the one with this `id`: the last one of a page, for the next page.",
    )
    .example(r#""0192f0a4-10bc-7044-b1d7-9e2c4a6f8b10""#);

    fn read(request: &Received<'_>, faults: &mut Faults) -> Result<Option<CallId>, Failure> {
        let id = request.optional(&Self::DOC).map(str::parse).transpose();
        Ok(id.unwrap_or_else(|rule| {
            refuse(&Self::DOC, rule, faults);
            None
        }))
    }
}
