//! The parameters of usage.

use agentcfg_core::model::{CallId, UsageColumn};
use agentcfg_core::validate::{DEFAULT_LIMIT, Faults};

use super::pages::limit;
use super::readers::{Moment, Parsed, SmallNumber, Text, parameters, refuse};
use super::{AGENT_EXAMPLE, moment, text};
use crate::api::call::{Parameter, ParameterDoc, Received, Shape};
use crate::http::errors::Failure;

parameters! {
    /// The beginning of the time that sums are of.
    UsageFrom: Moment = moment(
        "UsageFrom",
        "from",
        "Only calls that ended from this moment on, rounded down to the hour. Left out: 30 days before `to`.",
    );

    /// The end of the time that sums are of.
    UsageTo: Moment = moment(
        "UsageTo",
        "to",
        "Only calls that ended before this moment, rounded down to the hour. Left out: the end of the running \
         hour.",
    );

    /// The agent whose calls count.
    UsageAgent: Text = text("UsageAgent", "agent_id", "Only calls as this agent.", AGENT_EXAMPLE);

    /// The model whose calls count.
    UsageModel: Text = text("UsageModel", "model", "Only calls of this model.", r#""claude-sonnet-5-5""#);

    /// The provider whose calls count.
    UsageProvider: Text = text("UsageProvider", "provider", "Only calls to this provider.", r#""openai""#);

    /// The API key whose calls count.
    UsageKey: Text = text(
        "UsageKey",
        "key",
        "Only calls with the API key of this `id`. It needs `audit_log:read` too.",
        r#""4fQ8mZr2LkV7xN0bTy6W""#,
    );

    /// The label whose calls count.
    UsageLabel: Text = text(
        "UsageLabel",
        "label",
        "Only calls whose version of the agent this label selected.",
        r#""production""#,
    );

    /// How many values are shown by themselves.
    UsageTop: SmallNumber = ParameterDoc::query(
        "UsageTop",
        "top",
        Shape::Number { minimum: 1, maximum: Some(50), default: None },
        "Shows only this many values of the first grouping that is neither `hour` nor `day`, those that cost most. All others are \
         added up in rows with `other: true` and null in place of the value.",
    )
    .example("10");

    /// The status of the calls to list.
    UsageStatus: SmallNumber = ParameterDoc::query(
        "UsageStatus",
        "status",
        Shape::Number { minimum: 100, maximum: Some(599), default: None },
        "Only calls with this status.",
    )
    .example("502");

    /// The limit of the list of calls.
    UsageLimit: SmallNumber = limit("UsageLimit", Some(DEFAULT_LIMIT), "Most calls to return.");

    /// The call before which a list begins.
    BeforeCall: Parsed<CallId> = ParameterDoc::query(
        "BeforeCall",
        "before",
        Shape::Field("UsageCall", "id"),
        "Only calls before the one with this `id`: the last one of a page, for the next page.",
    )
    .example(r#""0192f0a4-10bc-7044-b1d7-9e2c4a6f8b10""#);
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
