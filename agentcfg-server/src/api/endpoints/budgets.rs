//! Budgets of model calls.

use agentcfg_core::model::{Budget, BudgetLimit, NoFields, Permission, Success};
use agentcfg_core::validate::Valid;

use super::tags::USAGE;
use crate::api::answer::{Json, List as Array};
use crate::api::call::parameters::{BudgetPeriod, BudgetScope, BudgetScopeId, WorkspaceId};
use crate::api::call::{Call, Optional};
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Values};
use crate::api::route::{Needs, Route};
use crate::http::errors::Failure;

const PATH: &str = "/api/budgets";

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[
    Definition::of::<List>(),
    Definition::of::<Set>(),
    Definition::of::<Remove>(),
    Definition::of::<Settle>(),
];

/// `GET /api/budgets`
pub struct List;

impl Endpoint for List {
    const ROUTE: Route = Route::get(PATH, Needs::Permission(Permission::AnalyticsRead));

    const DOC: Doc = Doc::new(
        "listBudgets",
        USAGE,
        "List budgets",
        "Returns the budgets of a workspace with what is spent and reserved of each in its current period. What another server has \
         spent is there within a second. `unsettled_usd` is what servers had taken that ended without giving it back; it counts as \
         spent until the period ends, or it is settled.",
    )
    .answer("The budgets, by scope, what they cover, and period.", &[Example("budgets", "[{}]")]);

    type Input = (WorkspaceId,);
    type Body = ();
    type Answer = Array<Budget>;

    async fn run(call: &Call<'_>, (workspace,): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        Ok(Array(call.service.list_budgets(call.caller, workspace).await?))
    }
}

/// `PUT /api/budgets`
pub struct Set;

impl Endpoint for Set {
    const ROUTE: Route = Route::put(PATH, Needs::Permission(Permission::BudgetsManage));

    const DOC: Doc = Doc::new(
        "setBudget",
        USAGE,
        "Make a budget or change its limit",
        "Model calls of all servers are held to it from then on. Before a call is sent, each budget that covers it reserves what the \
         call can cost at most; its end replaces that by the cost. Where the rest is smaller, the cap of the body on output tokens is \
         lowered to what the rest pays for, if that is at least 256 tokens; otherwise the call is 402. Under `warn` all calls are \
         made, and the events of the thresholds say how much is spent. A new budget counts what its current period has spent \
         already. A workspace has at most 500 budgets.",
    )
    .bodies(&[
        Example("refuse", r#"{"limit_usd": "250"}"#),
        Example("warn", r#"{"limit_usd": "12.5", "action": "warn"}"#),
    ])
    .answer("The budget.", &[Example("budget", "{}")])
    .failures(&[422]);

    type Input = (WorkspaceId, BudgetScope, BudgetScopeId, BudgetPeriod);
    type Body = Valid<BudgetLimit>;
    type Answer = Json<Budget>;

    async fn run(
        call: &Call<'_>,
        (workspace, scope, scope_id, period): Values<'_, Self>,
        limit: Valid<BudgetLimit>,
    ) -> Result<Self::Answer, Failure> {
        let set = call
            .service
            .set_budget(call.caller, workspace, scope, scope_id.as_ref(), period, limit);
        Ok(Json(set.await?))
    }
}

/// `DELETE /api/budgets`
pub struct Remove;

impl Endpoint for Remove {
    const ROUTE: Route = Route::delete(PATH, Needs::Permission(Permission::BudgetsManage));

    const DOC: Doc = Doc::new(
        "removeBudget",
        USAGE,
        "Remove a budget",
        "Calls in flight end as they would have. A budget that does not exist is 404.",
    )
    .answer("The budget is removed.", &[Example("done", r#"{"success": true}"#)])
    .failures(&[404]);

    type Input = (WorkspaceId, BudgetScope, BudgetScopeId, BudgetPeriod);
    type Body = ();
    type Answer = Json<Success>;

    async fn run(
        call: &Call<'_>,
        (workspace, scope, scope_id, period): Values<'_, Self>,
        (): (),
    ) -> Result<Self::Answer, Failure> {
        let removed = call
            .service
            .remove_budget(call.caller, workspace, scope, scope_id.as_ref(), period);
        Ok(Json(removed.await?))
    }
}

/// `POST /api/budgets/settle`
pub struct Settle;

impl Endpoint for Settle {
    const ROUTE: Route = Route::post("/api/budgets/settle", Needs::Permission(Permission::BudgetsManage));

    const DOC: Doc = Doc::new(
        "settleBudgets",
        USAGE,
        "Settle what ended servers had taken of budgets",
        "A server takes slices of a budget, so that a call costs no round trip of its own. One that is killed cannot give them back. \
         This sets `unsettled_usd` of each budget to 0, and adds to `spent_usd` what the usage says that the server has spent of it.",
    )
    .bodies(&[Example("empty", "{}")])
    .answer("The budgets, as `GET /api/budgets` lists them.", &[Example("budgets", "[{}]")]);

    type Input = (WorkspaceId,);
    type Body = Optional<Valid<NoFields>>;
    type Answer = Array<Budget>;

    async fn run(call: &Call<'_>, (workspace,): Values<'_, Self>, _: Self::Body) -> Result<Self::Answer, Failure> {
        Ok(Array(call.service.settle_budgets(call.caller, workspace).await?))
    }
}
