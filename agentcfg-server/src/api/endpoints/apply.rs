//! Apply: many agents in one change.

use agentcfg_core::model::{AppliedAgents, ApplyAgents, Permission};
use agentcfg_core::validate::Valid;

use super::tags::AGENTS;
use crate::api::answer::Json;
use crate::api::call::Call;
use crate::api::call::parameters::{DryRun, Message, WorkspaceId};
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Guarded, Values};
use crate::api::route::{Needs, Route};
use crate::http::errors::Failure;

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[Definition::guarded::<Apply>()];

/// `POST /api/agents/apply`
pub struct Apply;

impl Endpoint for Apply {
    const ROUTE: Route = Route::post(
        "/api/agents/apply",
        Needs::PermissionUnlessDryRun(Permission::AgentsConfigure),
    );

    const DOC: Doc = Doc::new(
        "applyAgents",
        AGENTS,
        "Apply agents",
        "Brings up to 1,000 agents to the state that the body names, all in one change or none: agents are created, changed \
         and, where they were deleted, restored. A field that is left out gets its default, so the outcome depends on the body \
         alone.\n\n\
         A `set` remembers its agents. With `prune`, those of the set that the body does not name are deactivated and leave \
         the set; no other agents are.\n\n\
         409 means that an agent belongs to another set. 412 means that an agent of the body or of the set has changed since \
         `base`, or that storage was restored since. 422 means that more agents would be active than before and than the plan \
         allows.",
    )
    .bodies(&[
        Example(
            "set",
            r#"{
                "agents": [
                    {"agent_id": "release-writer", "display_name": "Release writer", "model": "gpt-5.5"},
                    {"agent_id": "reviewer_2", "display_name": "Ana"}
                ],
                "set": "docs",
                "prune": true
            }"#,
        ),
        Example(
            "based",
            r#"{
                "agents": [{"agent_id": "reviewer_2", "display_name": "Ana"}],
                "base": "k3j9x0ab-0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05-c41"
            }"#,
        ),
    ])
    .answer(
        "What was done to each agent, in the order of the body, and then to those that were pruned.",
        &[Example(
            "applied",
            r#"{
                "cursor": "k3j9x0ab-0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05-c42",
                "results": [
                    {
                        "agent_id": "release-writer",
                        "action": "update",
                        "version": 4,
                        "changes": {"model": {"from": null, "to": "gpt-5.5"}}
                    },
                    {"agent_id": "reviewer_2", "action": "none", "version": 1, "changes": {}},
                    {
                        "agent_id": "translator",
                        "action": "deactivate",
                        "version": 2,
                        "changes": {"is_active": {"from": true, "to": false}}
                    }
                ]
            }"#,
        )],
    )
    .failures(&[409, 412, 422]);

    type Input = (WorkspaceId, DryRun, Message);
    type Body = Valid<ApplyAgents>;
    type Answer = Json<AppliedAgents>;

    async fn run(
        call: &Call<'_>,
        (workspace, dry_run, message): Values<'_, Self>,
        body: Valid<ApplyAgents>,
    ) -> Result<Self::Answer, Failure> {
        let caller = call.caller.with_message(message);
        let applied = call.service.apply_agents(&caller, workspace, body, dry_run);
        Ok(Json(applied.await?))
    }
}

impl Guarded for Apply {
    async fn guard(call: &Call<'_>, (workspace, dry_run, _): Values<'_, Self>) -> Result<(), Failure> {
        let permission = Permission::AgentsConfigure.unless_dry_run(dry_run);
        Ok(call.service.authorize(call.caller, workspace, permission).await?)
    }
}
