//! The parameters that select a page of a list.

use agentcfg_core::validate::{DEFAULT_LIMIT, Faults, MAX_LIMIT};

use super::refuse;
use crate::api::call::{Parameter, ParameterDoc, Received, Shape};
use crate::http::errors::Failure;

pub(super) const LIMIT: &str = "limit";
pub(super) const LIMIT_EXAMPLE: &str = "50";

/// The limit of the list of agents.
pub struct Limit;

impl Parameter for Limit {
    type Value<'a> = Option<u32>;

    const DOC: ParameterDoc = ParameterDoc::query(
        "Limit",
        LIMIT,
        Shape::Number {
            minimum: 1,
            maximum: Some(MAX_LIMIT),
            default: None,
        },
        "The greatest number of agents to return. Left out, all are returned.",
    )
    .example(LIMIT_EXAMPLE);

    fn read(request: &Received<'_>, faults: &mut Faults) -> Result<Option<u32>, Failure> {
        Ok(request.limit(&Self::DOC, faults))
    }
}

/// The limit of the audit log.
pub struct AuditLimit;

impl Parameter for AuditLimit {
    type Value<'a> = usize;

    const DOC: ParameterDoc = ParameterDoc::query(
        "AuditLimit",
        LIMIT,
        Shape::Number {
            minimum: 1,
            maximum: Some(MAX_LIMIT),
            default: Some(DEFAULT_LIMIT),
        },
        "Most entries to return.",
    )
    .example(LIMIT_EXAMPLE);

    fn read(request: &Received<'_>, faults: &mut Faults) -> Result<usize, Failure> {
        let limit = request.number(&Self::DOC, faults).unwrap_or(DEFAULT_LIMIT);
        Ok(usize::try_from(limit).unwrap_or(usize::MAX))
    }
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
        match request.optional(&Self::DOC) {
            None | Some("full") => {}
            Some("summary") => return Ok(true),
            Some(_) => refuse(&Self::DOC, "must be one of full, summary", faults),
        }
        Ok(false)
    }
}

/// How many elements of a list to skip.
pub struct Offset;

impl Parameter for Offset {
    type Value<'a> = Option<u64>;

    const DOC: ParameterDoc = ParameterDoc::query(
        "Offset",
        "offset",
        Shape::Number {
            minimum: 0,
            maximum: None,
            default: Some(0),
        },
        "How many elements to skip at the start. An offset beyond the last element gives an empty array; one that \
         does not fit into 64 bits is refused.",
    )
    .example("0");

    fn read(request: &Received<'_>, faults: &mut Faults) -> Result<Option<u64>, Failure> {
        Ok(request.number(&Self::DOC, faults))
    }
}
