//! The parameters that identify a budget.

use agentcfg_core::model;
use agentcfg_core::validate::{Faults, Invalid};

use super::refuse;
use crate::api::call::{Parameter, ParameterDoc, Received, Shape};
use crate::http::errors::Failure;

/// Declares required words.
macro_rules! required_words {
    ($($(#[doc = $doc:literal])+ $type:ident: $value:ty, $component:literal, $name:literal of $field:literal, $about:literal, $example:literal;)+) => {$(
        $(#[doc = $doc])+
        pub struct $type;

        impl Parameter for $type {
            type Value<'a> = $value;

            const DOC: ParameterDoc = ParameterDoc::query($component, $name, Shape::Field("Budget", $field), $about)
                .required()
                .example($example);

            fn read(request: &Received<'_>, _: &mut Faults) -> Result<$value, Failure> {
                let text = request.required(&Self::DOC)?;
                text.parse()
                    .map_err(|rule| Failure::parameter($name, rule))
            }
        }
    )+};
}

required_words! {
    /// Which calls the budget covers.
    BudgetScope: model::BudgetScope, "BudgetScope", "scope" of "scope",
        "Which calls the budget covers: all of the workspace, or those of one agent, API key or user.", "\"agent\"";

    /// After which time the budget begins again.
    BudgetPeriod: model::BudgetPeriod, "BudgetPeriod", "period" of "period",
        "After which time the budget begins again: each day or month in UTC, or never.", "\"month\"";
}

/// What a budget covers.
pub struct BudgetScopeId;

impl Parameter for BudgetScopeId {
    type Value<'a> = Option<model::UserId>;

    const DOC: ParameterDoc = ParameterDoc::query(
        "BudgetScopeId",
        "scope_id",
        Shape::Field("Member", "user_id"),
        "The agent's identifier, the `id` of the API key, or the user; it need not exist. It is required, unless the scope is \
         `workspace`, with which it must not be given.",
    )
    .example("\"release-writer\"");

    fn read(request: &Received<'_>, faults: &mut Faults) -> Result<Option<model::UserId>, Failure> {
        let id = request.optional(&Self::DOC).map(str::parse).transpose();
        Ok(id.unwrap_or_else(|invalid: Invalid| {
            for fault in invalid.faults() {
                refuse(&Self::DOC, fault.rule(), faults);
            }
            None
        }))
    }
}
