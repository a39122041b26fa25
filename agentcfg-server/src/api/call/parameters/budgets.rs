//! The parameters that identify a budget.

use agentcfg_core::model;

use super::readers::{Parsed, RequiredParsed, parameters};
use crate::api::call::{ParameterDoc, Shape};

parameters! {
    /// Which calls the budget covers.
    BudgetScope: RequiredParsed<model::BudgetScope> = ParameterDoc::query(
        "BudgetScope",
        "scope",
        Shape::Field("Budget", "scope"),
        "Which calls the budget covers: all of the workspace, or those of one agent, API key or user.",
    )
    .required()
    .example("\"agent\"");

    /// After which time the budget begins again.
    BudgetPeriod: RequiredParsed<model::BudgetPeriod> = ParameterDoc::query(
        "BudgetPeriod",
        "period",
        Shape::Field("Budget", "period"),
        "After which time the budget begins again: each day or month in UTC, or never.",
    )
    .required()
    .example("\"month\"");

    /// What a budget covers.
    BudgetScopeId: Parsed<model::UserId> = ParameterDoc::query(
        "BudgetScopeId",
        "scope_id",
        Shape::Field("Member", "user_id"),
        "The agent's identifier, the `id` of the API key, or the user; it need not exist. It is required, unless the scope is \
         `workspace`, with which it must not be given.",
    )
    .example("\"release-writer\"");
}
