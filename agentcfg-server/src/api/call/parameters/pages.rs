//! The parameters that select a page of a list.

use agentcfg_core::validate::{DEFAULT_LIMIT, Faults, MAX_LIMIT};

use super::readers::{Number, SmallNumber, parameters};
use crate::api::call::{Parameter, ParameterDoc, Received, Shape};
use crate::http::errors::Failure;

/// The greatest number of rows to return.
pub(super) const fn limit(component: &'static str, default: Option<u64>, description: &'static str) -> ParameterDoc {
    let shape = Shape::Number {
        minimum: 1,
        maximum: Some(MAX_LIMIT),
        default,
    };
    ParameterDoc::query(component, "limit", shape, description).example("50")
}

parameters! {
    /// The limit of the list of agents.
    Limit: SmallNumber = limit("Limit", None, "The greatest number of agents to return. Left out, all are returned.");

    /// The limit of the audit log.
    AuditLimit: SmallNumber = limit("AuditLimit", Some(DEFAULT_LIMIT), "Most entries to return.");

    /// How many elements of a list to skip.
    Offset: Number = ParameterDoc::query(
        "Offset",
        "offset",
        Shape::Number { minimum: 0, maximum: None, default: Some(0) },
        "How many elements to skip at the start. An offset beyond the last element gives an empty array; one that \
         does not fit into 64 bits is refused.",
    )
    .example("0");
}

/// Whether entries are listed without the values.
pub struct AuditView;

impl Parameter for AuditView {
    type Value<'a> = bool;

    const DOC: ParameterDoc = ParameterDoc::query(
        "AuditView",
        "view",
        Shape::Word {
            words: &["full", "summary"],
            default: "full",
        },
        "A summary has the paths of what changed without the values.",
    )
    .example(r#""summary""#);

    fn read(request: &Received<'_>, faults: &mut Faults) -> Result<bool, Failure> {
        let is_summary = |text: &str| match text {
            "full" => Ok(false),
            "summary" => Ok(true),
            _ => Err("must be one of full, summary".to_owned()),
        };
        Ok(request.parsed(&Self::DOC, is_summary, faults).unwrap_or_default())
    }
}
