//! Live status.

use agentcfg_core::model::{AgentStatus, Permission, StatusReport};
use agentcfg_core::validate::Valid;

use super::tags::AGENT_STATUS;
use crate::api::answer::{Json, LongList, StatusHistory, Written};
use crate::api::call::Call;
use crate::api::call::parameters::{AgentId, ChangedAgent, ChangedSince, WorkspaceId, WorkspaceIdOptional};
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Values};
use crate::api::route::{Needs, Route};
use crate::http::errors::Failure;
use crate::http::response::{Reply, ReplyBody};

const PATH: &str = "/api/agents/status";

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[
    Definition::of::<List>(),
    Definition::of::<History>(),
    Definition::of::<Report>(),
];

/// `GET /api/agents/status`
pub struct List;

impl Endpoint for List {
    const ROUTE: Route = Route::get(PATH, Needs::Permission(Permission::AgentsRead));

    const DOC: Doc = Doc::new(
        "listAgentStatus",
        AGENT_STATUS,
        "See what the agents are doing",
        "Returns an entry for each active agent, in the order of the agent list. An agent that has not reported \
         lately is `offline`.",
    )
    .answer(
        "One entry per active agent.",
        &[Example(
            "entries",
            r#"[
                {},
                {
                    "agent_id": "reviewer_2",
                    "display_name": "Ana",
                    "status": "offline",
                    "current_task_id": null,
                    "current_task_title": null
                }
            ]"#,
        )],
    );

    type Input = (WorkspaceId,);
    type Body = ();
    type Answer = Written<LongList<AgentStatus>>;

    async fn run(call: &Call<'_>, (workspace,): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        let list = call.service.status_list(call.caller, workspace).await?;
        Ok(Reply::ok(ReplyBody::Statuses(list)).into())
    }
}

/// `GET /api/agents/status/history`
pub struct History;

impl Endpoint for History {
    const ROUTE: Route = Route::get("/api/agents/status/history", Needs::Permission(Permission::AgentsRead));

    const DOC: Doc = Doc::new(
        "listStatusHistory",
        AGENT_STATUS,
        "See what the agents were doing",
        "Returns the changes of the live status of the last 24 hours, oldest first: a report that says something else than the one \
         before, and the moment at which the last report of an agent ceased to count. At most the last 288 changes of an agent are \
         kept, in memory by each server from what it sees; `History-Since` says since when.",
    )
    .answer("The changes, oldest first.", &[Example("changes", "[{}]")]);

    type Input = (WorkspaceId, ChangedAgent, ChangedSince);
    type Body = ();
    type Answer = Written<StatusHistory>;

    async fn run(
        call: &Call<'_>,
        (workspace, agent_id, since): Values<'_, Self>,
        (): (),
    ) -> Result<Self::Answer, Failure> {
        let history = call.service.status_history(call.caller, workspace, agent_id, since);
        let history = history.await?;
        Ok(Reply::json(&history.changes)?.of_history_since(history.since).into())
    }
}

/// `PUT /api/agents/status`
pub struct Report;

impl Endpoint for Report {
    const ROUTE: Route = Route::put(PATH, Needs::Permission(Permission::TasksUpdate));

    const DOC: Doc = Doc::new(
        "reportAgentStatus",
        AGENT_STATUS,
        "Report what an agent is doing",
        "Replaces the agent's last report. A report counts for a time that the deployment chooses, 120 seconds unless \
         configured; report again before it runs out. Reports are not audited and do not change the agent's record and \
         tags.",
    )
    .bodies(&[
        Example(
            "working",
            r#"{
                "status": "working",
                "current_task_id": "TASK-118",
                "current_task_title": "Draft the notes for 2.4"
            }"#,
        ),
        Example("idle", r#"{"status": "idle"}"#),
    ])
    .answer("The agent's entry.", &[Example("working", "{}")]);

    type Input = (AgentId, WorkspaceIdOptional);
    type Body = Valid<StatusReport>;
    type Answer = Json<AgentStatus>;

    async fn run(
        call: &Call<'_>,
        (agent_id, workspace): Values<'_, Self>,
        report: Valid<StatusReport>,
    ) -> Result<Self::Answer, Failure> {
        let status = call
            .service
            .report_status(call.caller, workspace, agent_id, report)
            .await?;
        Ok(Json(status))
    }
}
