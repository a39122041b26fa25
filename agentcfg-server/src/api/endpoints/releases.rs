//! Releases: what a label releases, how it moved, and putting it back.

use agentcfg_core::model::{LabelHistoryFilter, LabelMoves, LabelRestore, Permission, RestoredLabel, Tagged};
use agentcfg_core::validate::Valid;

use super::tags::VERSIONS;
use crate::api::answer::{List, LongList, Releases, Written};
use crate::api::call::parameters::{
    BeforeMove, DryRun, IfNoneMatch, Message, MoveLimit, MovedAgent, MovedLabel, ReleasedAgent, ReleasedLabel,
    WorkspaceId,
};
use crate::api::call::{Call, Parameter};
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Values};
use crate::api::paged_array;
use crate::api::route::{Needs, Route};
use crate::http::errors::Failure;
use crate::http::response::Reply;

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[
    Definition::of::<Released>(),
    Definition::of::<History>(),
    Definition::of::<Restore>(),
];

/// `GET /api/agents/released`
pub struct Released;

impl Endpoint for Released {
    const ROUTE: Route = Route::get("/api/agents/released", Needs::Permission(Permission::AgentsRead));

    const DOC: Doc = Doc::new(
        "listReleasedAgents",
        VERSIONS,
        "Read what a label releases",
        "Returns the version of each active agent that the label points at, with its content, in the order of the list of \
         agents. A label that no agent has releases nothing.\n\n\
         The entity tag changes only when the answer does. A reader keeps its copy current with `If-None-Match`, or with the \
         change feed after the cursor of the answer.",
    )
    .answer(
        "The released versions.",
        &[Example("released", r"[{}]"), Example("none", r#"[]"#)],
    );

    type Input = (WorkspaceId, ReleasedLabel, ReleasedAgent, IfNoneMatch);
    type Body = ();
    type Answer = Written<Releases>;

    async fn run(
        call: &Call<'_>,
        (workspace, label, agent_id, known): Values<'_, Self>,
        (): (),
    ) -> Result<Self::Answer, Failure> {
        let label = label.or(call.caller.pinned_label().map(|label| label.as_str()));
        let label = label.ok_or_else(|| Failure::required(ReleasedLabel::DOC.name))?;
        let released = call.service.released(call.caller, workspace, label, agent_id);
        let Tagged { value: list, tag } = released.await?;
        let cursor = list.cursor();
        let reply = Reply::list(list.into_text()).tagged(tag).with_cursor(Some(cursor));
        Ok(match known.includes(tag) {
            true => reply.not_modified(),
            false => reply,
        }
        .into())
    }
}

/// `GET /api/agents/labels/history`
pub struct History;

impl Endpoint for History {
    const ROUTE: Route = Route::get("/api/agents/labels/history", Needs::Permission(Permission::AgentsRead));

    const DOC: Doc = Doc::new(
        "listLabelMoves",
        VERSIONS,
        "List the moves of a label",
        "Returns the commits that moved the label, newest first, each with the agents whose label it moved. To page, pass the \
         last `revision` as `before`.",
    )
    .answer("The commits that moved the label, newest first.", &[Example("moves", "[{}]")]);

    type Input = (WorkspaceId, MovedLabel, MovedAgent, MoveLimit, BeforeMove);
    type Body = ();
    type Answer = Written<LongList<LabelMoves>>;

    async fn run(
        call: &Call<'_>,
        (workspace, label, agent_id, limit, before): Values<'_, Self>,
        (): (),
    ) -> Result<Self::Answer, Failure> {
        let filter = LabelHistoryFilter::default()
            .agent_id(agent_id)
            .before(before)
            .limit(u32::try_from(limit).ok());
        let history = call
            .service
            .label_history(call.caller, workspace, label, filter)
            .await?;
        paged_array::answer(call, history).await
    }
}

/// `POST /api/agents/labels/restore`
pub struct Restore;

impl Endpoint for Restore {
    const ROUTE: Route = Route::post(
        "/api/agents/labels/restore",
        Needs::PermissionUnlessDryRun(Permission::AgentsRelease),
    );

    const DOC: Doc = Doc::new(
        "restoreAgentLabels",
        VERSIONS,
        "Put a label back to where it was",
        "The label of every agent goes to where it was at the revision: it is moved, set again or removed, all in one commit. \
         Deactivated agents are among them. Where nothing has moved, nothing is recorded.\n\n\
         With `base` the answer is 412 if the label of any agent has moved since. 422 means that more than 1,000 labels would \
         move, or that an agent has 20 labels.",
    )
    .bodies(&[
        Example("back", r#"{"label": "production", "revision": 2}"#),
        Example(
            "based",
            r#"{
                "label": "production",
                "revision": 42,
                "base": "k3j9x0ab-0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05-c51"
            }"#,
        ),
    ])
    .answer(
        "The labels that moved, by agent. `version` is null where the label is removed.",
        &[Example("restored", "[{}]"), Example("nothing_to_do", "[]")],
    )
    .failures(&[410, 412, 422]);

    type Input = (WorkspaceId, DryRun, Message);
    type Body = Valid<LabelRestore>;
    type Answer = List<RestoredLabel>;

    async fn run(
        call: &Call<'_>,
        (workspace, dry_run, message): Values<'_, Self>,
        restore: Valid<LabelRestore>,
    ) -> Result<Self::Answer, Failure> {
        let caller = call.caller.with_message(message);
        Ok(List(
            call.service.restore_label(&caller, workspace, restore, dry_run).await?,
        ))
    }
}
