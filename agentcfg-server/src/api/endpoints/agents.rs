//! Agent configurations.

use agentcfg_core::model::{self, AgentFilter, AgentPatch, AgentState, AsOf, NewAgent, Permission, Success, Tagged};
use agentcfg_core::validate::Valid;

use super::tags::AGENTS;
use crate::api::answer::{AgentRecord, Agents, Created, Json, Written};
use crate::api::call::Call;
use crate::api::call::parameters::{
    AgentId, AgentIdFilter, At, IfMatch, IfNoneMatch, Limit, Message, Offset, Revision, StateFilter, WorkspaceId,
    WorkspaceIdOptional, as_of,
};
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Values};
use crate::api::route::{Needs, Route};
use crate::http::conditions::unmet;
use crate::http::errors::Failure;
use crate::http::response::Reply;

const PATH: &str = "/api/agents/configs";

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[
    Definition::of::<List>(),
    Definition::of::<Create>(),
    Definition::of::<Update>(),
    Definition::of::<Delete>(),
    Definition::of::<Restore>(),
];

/// `GET /api/agents/configs`
pub struct List;

impl Endpoint for List {
    const ROUTE: Route = Route::get(PATH, Needs::Permission(Permission::AgentsRead));

    const DOC: Doc = Doc::new(
        "listAgents",
        AGENTS,
        "List agents",
        "Returns the agents of a workspace, oldest first and in one response unless `limit` and `offset` choose a part \
         of it: the active ones, unless `state` chooses others.\n\n\
         The entity tag changes with every change in the workspace. With `agent_id` it is the tag of that \
         agent's record, for use in `If-Match`.\n\n\
         With `at` or `revision` the list is the one that was answered then. A list at a revision never changes.",
    )
    .answer(
        "The agents, in the order of `created_at` and then of `id`.",
        &[Example("agents", r"[{}]"), Example("none", r#"[]"#)],
    )
    .failures(&[410]);

    type Input = (
        WorkspaceId,
        AgentIdFilter,
        StateFilter,
        Limit,
        Offset,
        At,
        Revision,
        IfNoneMatch,
    );
    type Body = ();
    type Answer = Written<Agents>;

    async fn run(
        call: &Call<'_>,
        (workspace, agent_id, state, limit, offset, at, revision, known): Values<'_, Self>,
        (): (),
    ) -> Result<Self::Answer, Failure> {
        let wanted = agent_id.map(str::parse::<model::AgentId>);
        // A text that cannot be an identifier matches no agent, so the list is empty.
        let limit = match wanted {
            Some(Err(_)) => Some(0),
            _ => limit,
        };
        let as_of = as_of(at, revision)?;
        let filter = AgentFilter::default()
            .agent_id(wanted.and_then(Result::ok))
            .state(state.unwrap_or(AgentState::Active))
            .as_of(as_of)
            .offset(offset.unwrap_or(0))
            .limit(limit);
        let Tagged { value: list, tag } = call.service.list_agents(call.caller, workspace, &filter).await?;
        if let Some(agent_id) = agent_id {
            // The filter cannot name an agent that could never exist.
            call.caller.may_name(agent_id)?;
        }
        let version = list.version().filter(|_| !list.is_empty());
        // The revision of an earlier moment is not known here.
        let cursor = (!matches!(filter.as_of, Some(AsOf::At(_)))).then(|| list.cursor());
        let mut reply = Reply::list(list.into_text()).tagged(tag).with_cursor(cursor);
        if agent_id.is_some() {
            // The tag is that of the record, so it is the same for every request that answers with it.
            reply = reply.of_version(version);
        }
        if known.includes(tag) {
            reply = reply.not_modified();
        }
        Ok(reply.into())
    }
}

/// `POST /api/agents/configs`
pub struct Create;

impl Endpoint for Create {
    const ROUTE: Route = Route::post(PATH, Needs::Permission(Permission::AgentsConfigure));

    const DOC: Doc = Doc::new(
        "createAgent",
        AGENTS,
        "Create an agent",
        "Creates an active agent. Fields that are left out are null, an empty array or an empty object in the answer.\n\n\
         409 means that the `agent_id` is taken in the workspace, be it by a deleted agent, which can be restored. Of \
         several requests for the last place of the plan, one succeeds.",
    )
    .bodies(&[
        Example(
            "full",
            r##"{
                "workspace_id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
                "agent_id": "release-writer",
                "display_name": "Release writer",
                "role": "Technical author",
                "description": "Turns merged changes into release notes.",
                "agent_type": "ai",
                "model": "gpt-5.5",
                "color": "#7c3aed",
                "persona_prompt": "You write short, factual release notes.",
                "capabilities": ["writing", "changelog"],
                "parameters": {"creativity": 0.7, "formality": 70}
            }"##,
        ),
        Example(
            "minimal",
            r#"{
                "workspace_id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
                "agent_id": "reviewer_2",
                "display_name": "Ana"
            }"#,
        ),
    ])
    .answer(
        "The new agent.",
        &[Example(
            "created",
            r#"{"updated_at": "2026-11-20T09:30:00.123Z"}"#,
        )],
    )
    .failures(&[409, 422]);

    type Input = (Message,);
    type Body = Valid<NewAgent>;
    type Answer = Created<AgentRecord>;

    async fn run(call: &Call<'_>, (message,): Values<'_, Self>, new: Valid<NewAgent>) -> Result<Self::Answer, Failure> {
        let caller = call.caller.with_message(message);
        Ok(Created(AgentRecord(call.service.create_agent(&caller, new).await?)))
    }
}

/// `PATCH /api/agents/configs`
pub struct Update;

impl Endpoint for Update {
    const ROUTE: Route = Route::patch(PATH, Needs::Permission(Permission::AgentsConfigure));

    const DOC: Doc = Doc::new(
        "updateAgent",
        AGENTS,
        "Change an agent",
        "Replaces the given fields of an active agent and keeps the others. `updated_at` moves forward every \
         time, even for an empty object. A change of the content makes a new version.",
    )
    .bodies(&[
        Example(
            "some_fields",
            r#"{"model": "claude-sonnet-5-5", "role": null, "parameters": {"creativity": 0.4}}"#,
        ),
        Example("nothing", r#"{}"#),
    ])
    .answer(
        "The agent after the change.",
        &[Example(
            "changed",
            r#"{"role": null, "model": "claude-sonnet-5-5", "parameters": {"creativity": 0.4}}"#,
        )],
    );

    type Input = (AgentId, WorkspaceIdOptional, Message, IfMatch);
    type Body = Valid<AgentPatch>;
    type Answer = AgentRecord;

    async fn run(
        call: &Call<'_>,
        (agent_id, workspace, message, condition): Values<'_, Self>,
        patch: Valid<AgentPatch>,
    ) -> Result<Self::Answer, Failure> {
        let agent = call
            .service
            .update_agent(
                &call.caller.with_message(message),
                workspace,
                agent_id,
                patch,
                &condition,
            )
            .await
            .map_err(|error| unmet(&condition, error))?;
        Ok(AgentRecord(agent))
    }
}

/// `DELETE /api/agents/configs`
pub struct Delete;

impl Endpoint for Delete {
    const ROUTE: Route = Route::delete(PATH, Needs::Permission(Permission::AgentsConfigure));

    const DOC: Doc = Doc::new(
        "deleteAgent",
        AGENTS,
        "Delete an agent",
        "Deactivates an agent: lists no longer show it, its record is kept, and its `agent_id` stays taken.",
    )
    .answer(
        "The agent is no longer active.",
        &[Example("done", r#"{"success": true}"#)],
    );

    type Input = (AgentId, WorkspaceIdOptional, Message, IfMatch);
    type Body = ();
    type Answer = Json<Success>;

    async fn run(
        call: &Call<'_>,
        (agent_id, workspace, message, condition): Values<'_, Self>,
        (): (),
    ) -> Result<Self::Answer, Failure> {
        let deleted = call
            .service
            .delete_agent(&call.caller.with_message(message), workspace, agent_id, &condition)
            .await
            .map_err(|error| unmet(&condition, error))?;
        Ok(Json(deleted))
    }
}

/// `POST /api/agents/configs/restore`
pub struct Restore;

impl Endpoint for Restore {
    const ROUTE: Route = Route::post(
        "/api/agents/configs/restore",
        Needs::Permission(Permission::AgentsConfigure),
    );

    const DOC: Doc = Doc::new(
        "restoreAgent",
        AGENTS,
        "Restore a deleted agent",
        "Makes a deleted agent active again, unchanged. No body is read.\n\n\
         409 means that the agent is active.",
    )
    .answer("The agent, active again.", &[Example("restored", r"{}")])
    .failures(&[409, 422]);

    type Input = (AgentId, WorkspaceIdOptional, Message, IfMatch);
    type Body = ();
    type Answer = AgentRecord;

    async fn run(
        call: &Call<'_>,
        (agent_id, workspace, message, condition): Values<'_, Self>,
        (): (),
    ) -> Result<Self::Answer, Failure> {
        let agent = call
            .service
            .restore_agent(&call.caller.with_message(message), workspace, agent_id, &condition)
            .await
            .map_err(|error| unmet(&condition, error))?;
        Ok(AgentRecord(agent))
    }
}
