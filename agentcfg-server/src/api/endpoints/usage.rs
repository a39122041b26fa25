//! The usage of model calls.

use agentcfg_core::model::{Permission, UsageCall, UsageCallFilter, UsageFilter, UsageRow};

use super::tags::USAGE;
use crate::api::answer::List as Array;
use crate::api::call::Call;
use crate::api::call::parameters::{
    BeforeCall, UsageAgent, UsageBy, UsageFrom, UsageKey, UsageLabel, UsageLimit, UsageModel, UsageProvider,
    UsageStatus, UsageTo, UsageTop, WorkspaceId,
};
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Values};
use crate::api::route::{Needs, Route};
use crate::http::errors::Failure;

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[Definition::of::<Read>(), Definition::of::<ListCalls>()];

/// `GET /api/usage`
pub struct Read;

impl Endpoint for Read {
    const ROUTE: Route = Route::get("/api/usage", Needs::Permission(Permission::AnalyticsRead));

    const DOC: Doc = Doc::new(
        "getUsage",
        USAGE,
        "Read the usage of models",
        "Adds up the model calls of a workspace: tokens as the providers report them, and their cost by the prices of the \
         catalogue. A call is there within a second of its end. What a provider did not report is estimated by a quarter of the \
         bytes, and counts in `estimated_calls`. Without `by` there is one row, or none without calls. An answer of more than \
         10,000 rows is refused.",
    )
    .answer(
        "The sums, ordered by what they are grouped by; null comes first.",
        &[Example("by agent and model", "[{}]")],
    );

    type Input = (
        WorkspaceId,
        UsageFrom,
        UsageTo,
        UsageBy,
        UsageAgent,
        UsageModel,
        UsageProvider,
        UsageKey,
        UsageLabel,
        UsageTop,
    );
    type Body = ();
    type Answer = Array<UsageRow>;

    async fn run(
        call: &Call<'_>,
        (workspace, from, to, by, agent_id, model, provider, key, label, top): Values<'_, Self>,
        (): (),
    ) -> Result<Self::Answer, Failure> {
        let filter = UsageFilter::default()
            .from(from)
            .to(to)
            .by(by)
            .agent_id(agent_id.map(str::to_owned))
            .model(model.map(str::to_owned))
            .provider(provider.map(str::to_owned))
            .key(key.map(str::to_owned))
            .label(label.map(str::to_owned))
            .top(top);
        let read = call.service.usage(call.caller, workspace, &filter);
        Ok(Array(call.while_connected(read).await?))
    }
}

/// `GET /api/usage/calls`
pub struct ListCalls;

impl Endpoint for ListCalls {
    const ROUTE: Route = Route::get("/api/usage/calls", Needs::Permission(Permission::AnalyticsRead));

    const DOC: Doc = Doc::new(
        "listUsageCalls",
        USAGE,
        "List model calls",
        "Returns single model calls, newest first, for as long as the deployment keeps them. Nothing of prompts and answers is \
         among it. `actor` is null without the permission `audit_log:read`.",
    )
    .answer("The calls, newest first.", &[Example("calls", "[{}]")]);

    type Input = (
        WorkspaceId,
        UsageLimit,
        BeforeCall,
        UsageAgent,
        UsageKey,
        UsageModel,
        UsageStatus,
    );
    type Body = ();
    type Answer = Array<UsageCall>;

    async fn run(
        call: &Call<'_>,
        (workspace, limit, before, agent_id, key, model, status): Values<'_, Self>,
        (): (),
    ) -> Result<Self::Answer, Failure> {
        let filter = UsageCallFilter::default()
            .before(before)
            .agent_id(agent_id.map(str::to_owned))
            .key(key.map(str::to_owned))
            .model(model.map(str::to_owned))
            .status(status)
            .limit(limit);
        let read = call.service.usage_calls(call.caller, workspace, &filter);
        Ok(Array(call.while_connected(read).await?))
    }
}
