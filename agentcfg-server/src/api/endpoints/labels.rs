//! Labels of versions.

use agentcfg_core::model::{self, AgentLabel, LabelTarget, Permission, PromotedLabel, Promotion, Success};
use agentcfg_core::validate::Valid;

use super::tags::VERSIONS;
use crate::api::answer::{Json, List as Array, LongList, Written};
use crate::api::call::Call;
use crate::api::call::parameters::{
    AgentId, DryRun, LabelFilter, LabelledAgent, Message, MovedLabel, WorkspaceId, WorkspaceIdOptional,
};
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Values};
use crate::api::route::{Needs, Route};
use crate::http::errors::Failure;
use crate::http::response::Reply;

const PATH: &str = "/api/agents/labels";

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[
    Definition::of::<List>(),
    Definition::of::<Set>(),
    Definition::of::<Remove>(),
    Definition::of::<Promote>(),
];

/// `GET /api/agents/labels`
pub struct List;

impl Endpoint for List {
    const ROUTE: Route = Route::get(PATH, Needs::Permission(Permission::AgentsRead));

    const DOC: Doc = Doc::new(
        "listAgentLabels",
        VERSIONS,
        "List labels",
        "Returns the labels of a workspace, those of deactivated agents too, by agent and label. The reserved label `latest` is \
         not listed.",
    )
    .answer(
        "The labels.",
        &[Example(
            "labels",
            r#"[{"version": 1}]"#,
        )],
    );

    type Input = (WorkspaceId, LabelledAgent, LabelFilter);
    type Body = ();
    type Answer = Written<LongList<AgentLabel>>;

    async fn run(
        call: &Call<'_>,
        (workspace, agent_id, label): Values<'_, Self>,
        (): (),
    ) -> Result<Self::Answer, Failure> {
        let filter = model::LabelFilter::default().agent_id(agent_id).label(label);
        let list = call.service.list_labels(call.caller, workspace, filter).await?;
        Ok(Reply::list(list.into_text()).into())
    }
}

/// `PUT /api/agents/labels`
pub struct Set;

impl Endpoint for Set {
    const ROUTE: Route = Route::put(PATH, Needs::Permission(Permission::AgentsRelease));

    const DOC: Doc = Doc::new(
        "setAgentLabel",
        VERSIONS,
        "Move a label to a version",
        "Makes the label if the agent does not have it; an agent has at most 20. With `expected_version` the label is moved only \
         if it points at that version now, or does not exist for null; otherwise the answer is 412. The same version again \
         changes nothing.",
    )
    .bodies(&[
        Example("version", r#"{"version": 2}"#),
        Example("only_if", r#"{"version": 2, "expected_version": 1}"#),
        Example("only_new", r#"{"version": 2, "expected_version": null}"#),
    ])
    .answer(
        "The label.",
        &[Example(
            "label",
            r#"{"version": 2}"#,
        )],
    )
    .failures(&[410, 412, 422]);

    type Input = (AgentId, MovedLabel, WorkspaceIdOptional, Message);
    type Body = Valid<LabelTarget>;
    type Answer = Json<AgentLabel>;

    async fn run(
        call: &Call<'_>,
        (agent_id, label, workspace, message): Values<'_, Self>,
        target: Valid<LabelTarget>,
    ) -> Result<Self::Answer, Failure> {
        let caller = call.caller.with_message(message);
        Ok(Json(
            call.service
                .set_label(&caller, workspace, agent_id, label, target)
                .await?,
        ))
    }
}

/// `DELETE /api/agents/labels`
pub struct Remove;

impl Endpoint for Remove {
    const ROUTE: Route = Route::delete(PATH, Needs::Permission(Permission::AgentsRelease));

    const DOC: Doc = Doc::new(
        "removeAgentLabel",
        VERSIONS,
        "Remove a label",
        "The version that it points at stays. A label that the agent does not have is 404.",
    )
    .answer("The label is removed.", &[Example("done", r#"{"success": true}"#)]);

    type Input = (AgentId, MovedLabel, WorkspaceIdOptional, Message);
    type Body = ();
    type Answer = Json<Success>;

    async fn run(
        call: &Call<'_>,
        (agent_id, label, workspace, message): Values<'_, Self>,
        (): (),
    ) -> Result<Self::Answer, Failure> {
        let caller = call.caller.with_message(message);
        Ok(Json(
            call.service.remove_label(&caller, workspace, agent_id, label).await?,
        ))
    }
}

/// `POST /api/agents/labels/promote`
pub struct Promote;

impl Endpoint for Promote {
    const ROUTE: Route = Route::post(
        "/api/agents/labels/promote",
        Needs::PermissionUnlessDryRun(Permission::AgentsRelease),
    );

    const DOC: Doc = Doc::new(
        "promoteAgentLabels",
        VERSIONS,
        "Move a label of several agents to where another one points",
        "Each active agent that has the label `from`, those of a `set`, or each one that `agent_ids` names, gets the label `to` on \
         the same version, in one commit. An agent that is named and lacks `from` is 404, and nothing changes. At most 1,000 \
         agents are moved. With `base` the answer is 412 if a label `from` or `to` has moved since; an edit of an agent moves \
         `latest`.",
    )
    .bodies(&[
        Example("all", r#"{"from": "staging", "to": "production"}"#),
        Example("some", r#"{"from": "latest", "to": "staging", "agent_ids": ["release-writer"]}"#),
        Example("set", r#"{"from": "staging", "to": "production", "set": "docs"}"#),
    ])
    .answer(
        "The labels, by agent. One that pointed there already has its version as `previous_version`.",
        &[Example(
            "promoted",
            r#"[{"version": 2, "previous_version": 1}]"#,
        )],
    )
    .failures(&[404, 412, 422]);

    type Input = (WorkspaceId, DryRun, Message);
    type Body = Valid<Promotion>;
    type Answer = Array<PromotedLabel>;

    async fn run(
        call: &Call<'_>,
        (workspace, dry_run, message): Values<'_, Self>,
        promotion: Valid<Promotion>,
    ) -> Result<Self::Answer, Failure> {
        let caller = call.caller.with_message(message);
        let promoted = call.service.promote_labels(&caller, workspace, promotion, dry_run);
        Ok(Array(promoted.await?))
    }
}
