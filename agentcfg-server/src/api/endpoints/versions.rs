//! Versions of agents.

use agentcfg_core::model::{
    AgentVersion, AgentVersionDetail, Comparison, Label, Permission, PromptValues, RenderedPrompt, Rollback,
    VersionPage, VersionSelector,
};
use agentcfg_core::validate::{Fault, Valid};

use super::tags::VERSIONS;
use crate::api::answer::{AgentRecord, Json, LongList, Written};
use crate::api::call::parameters::{
    AgentId, At, BeforeVersion, ComparedAgent, DiffFrom, DiffTo, IfMatch, Message, Revision, SelectedLabel,
    VersionLimit, VersionNumber, VersionsOf, WorkspaceIdOptional, as_of, selector,
};
use crate::api::call::{Call, Optional, Parameter};
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Values};
use crate::api::route::{Needs, Route};
use crate::http::conditions::unmet;
use crate::http::errors::Failure;
use crate::http::response::Reply;

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[
    Definition::of::<List>(),
    Definition::of::<Get>(),
    Definition::of::<Diff>(),
    Definition::of::<RollBack>(),
    Definition::of::<Prompt>(),
];

/// `GET /api/agents/versions`
pub struct List;

impl Endpoint for List {
    const ROUTE: Route = Route::get("/api/agents/versions", Needs::Permission(Permission::AgentsRead));

    const DOC: Doc = Doc::new(
        "listAgentVersions",
        VERSIONS,
        "List the versions of an agent",
        "Returns the versions of an agent without their content, newest first. Deactivated agents have versions too. \
         Without `agent_id` it returns the current version of each active agent instead.\n\n\
         Each change of an agent's content is a version: 1, 2, 3, … without gaps. A version never changes.",
    )
    .answer(
        "The versions.",
        &[Example(
            "versions",
            r#"[
                {
                    "version": 2,
                    "actor": {"type": "user", "id": "user_71"},
                    "labels": ["staging"]
                },
                {
                    "version": 1,
                    "created_at": "2026-11-20T09:30:00.123Z",
                    "actor": {"type": "api_key", "id": "4fQ8mZr2LkV7xN0bTy6W"},
                    "message": null,
                    "labels": ["production"]
                }
            ]"#,
        )],
    )
    .failures(&[404]);

    type Input = (VersionsOf, WorkspaceIdOptional, VersionLimit, BeforeVersion);
    type Body = ();
    type Answer = Written<LongList<AgentVersion>>;

    async fn run(
        call: &Call<'_>,
        (agent_id, workspace, limit, before): Values<'_, Self>,
        (): (),
    ) -> Result<Self::Answer, Failure> {
        if let Some(agent_id) = agent_id {
            let page = VersionPage::default().before(before).limit(limit);
            let versions = call.service.list_versions(call.caller, workspace, agent_id, page);
            return Ok(Reply::json(&versions.await?)?.into());
        }
        if before.is_some() {
            return Err(Failure::bad_request(
                "the query parameter before needs agent_id: it is the number of a version of one agent",
            ));
        }
        let Some(workspace) = workspace else {
            return Err(named_workspace());
        };
        let list = call.service.current_versions(call.caller, Some(workspace)).await?;
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        Ok(Reply::list(list.first(limit.unwrap_or(usize::MAX)).into_text()).into())
    }
}

/// `GET /api/agents/version`
pub struct Get;

impl Endpoint for Get {
    const ROUTE: Route = Route::get("/api/agents/version", Needs::Permission(Permission::AgentsRead));

    const DOC: Doc = Doc::new(
        "getAgentVersion",
        VERSIONS,
        "Read a version of an agent",
        "Returns one version with its content: that of the number `version`, the one that `label` points at, or the one that \
         was current at a time or a revision; without any of them the current one. Where there is none the answer is 404, \
         never another version.",
    )
    .answer(
        "The version.",
        &[Example(
            "version",
            r#"{"version": 2, "labels": ["staging"]}"#,
        )],
    )
    .failures(&[410]);

    type Input = (AgentId, WorkspaceIdOptional, VersionNumber, SelectedLabel, At, Revision);
    type Body = ();
    type Answer = Json<AgentVersionDetail>;

    async fn run(
        call: &Call<'_>,
        (agent_id, workspace, version, label, at, revision): Values<'_, Self>,
        (): (),
    ) -> Result<Self::Answer, Failure> {
        let selector = selector(version, label, as_of(at, revision)?)?;
        Ok(Json(
            call.service
                .get_version(call.caller, workspace, agent_id, selector)
                .await?,
        ))
    }
}

/// `GET /api/agents/diff`
pub struct Diff;

impl Endpoint for Diff {
    const ROUTE: Route = Route::get("/api/agents/diff", Needs::Permission(Permission::AgentsRead));

    const DOC: Doc = Doc::new(
        "diffAgentVersions",
        VERSIONS,
        "Compare two versions of an agent, or two labels",
        "Returns the fields that differ, and the difference of the personas as a unified diff. The answer names the versions by \
         their numbers.\n\n\
         Without `agent_id`, `from` and `to` are labels, `latest` among them: the answer has an element for each active agent that \
         has both, in the order of the list of agents, with how many versions they are apart, the names of the fields that differ, \
         and how many lines the persona gains and loses. All of it is of one moment.",
    )
    .answer(
        "The difference.",
        &[Example(
            "diff",
            r#"{
                "agent_id": "release-writer",
                "from": 1,
                "to": 2,
                "changes": {
                    "persona_prompt": {"from": "You write release notes.", "to": "You write short, factual release notes."}
                },
                "prompt_diff": "--- version 1\n+++ version 2\n@@ -1 +1 @@\n-You write release notes.\n\\ No newline at end of file\n+You write short, factual release notes.\n\\ No newline at end of file\n"
            }"#,
        )],
    )
    .failures(&[404, 410]);

    type Input = (ComparedAgent, WorkspaceIdOptional, DiffFrom, DiffTo);
    type Body = ();
    type Answer = Json<Comparison>;

    async fn run(
        call: &Call<'_>,
        (agent_id, workspace, from, to): Values<'_, Self>,
        (): (),
    ) -> Result<Self::Answer, Failure> {
        let Some(agent_id) = agent_id else {
            let Some(workspace) = workspace else {
                return Err(named_workspace());
            };
            let (from, to) = (label(from, DiffFrom::DOC.name)?, label(to, DiffTo::DOC.name)?);
            let diff = call
                .service
                .compare_labels(call.caller, workspace, from.as_str(), to.as_str());
            return Ok(Json(Comparison::Labels(diff.await?)));
        };
        let diff = call.service.diff_versions(call.caller, workspace, agent_id, from, to);
        Ok(Json(Comparison::Versions(diff.await?)))
    }
}

/// 400: what is about all agents of a workspace names the workspace.
fn named_workspace() -> Failure {
    Failure::parameter("workspace_id", "is required unless agent_id is given")
}

/// The label that is compared for all agents.
///
/// # Errors
///
/// 400 for the number of a version, which means another one for each agent, and for what is no label.
fn label(selector: VersionSelector<'_>, parameter: &str) -> Result<Label, Failure> {
    let text = match selector {
        VersionSelector::Label(label) => label,
        VersionSelector::Current => Label::LATEST,
        _ => {
            let rule = "must be a label: without agent_id, from and to are labels, because the number of a version \
                        means another one for each agent";
            return Err(Failure::parameter(parameter, rule));
        }
    };
    let label = text.parse::<Label>();
    label.map_err(|invalid| Failure::parameter(parameter, invalid.faults().first().map_or("", Fault::rule)))
}

/// `POST /api/agents/rollback`
pub struct RollBack;

impl Endpoint for RollBack {
    const ROUTE: Route = Route::post("/api/agents/rollback", Needs::Permission(Permission::AgentsConfigure));

    const DOC: Doc = Doc::new(
        "rollBackAgent",
        VERSIONS,
        "Give an agent the content of an earlier version",
        "Makes a new version with the content of the version that the body names, by its number or a label. Where the agent has \
         that content already nothing changes.",
    )
    .bodies(&[
        Example("version", r#"{"version": 1}"#),
        Example("label", r#"{"label": "production"}"#),
    ])
    .answer(
        "The agent.",
        &[Example(
            "restored",
            r#"{"persona_prompt": "You write release notes.", "updated_at": "2026-11-20T11:12:00.480Z"}"#,
        )],
    )
    .failures(&[410]);

    type Input = (AgentId, WorkspaceIdOptional, Message, IfMatch);
    type Body = Valid<Rollback>;
    type Answer = AgentRecord;

    async fn run(
        call: &Call<'_>,
        (agent_id, workspace, message, condition): Values<'_, Self>,
        to: Valid<Rollback>,
    ) -> Result<Self::Answer, Failure> {
        let agent = call
            .service
            .roll_back_agent(&call.caller.with_message(message), workspace, agent_id, to, &condition)
            .await
            .map_err(|error| unmet(&condition, error))?;
        Ok(AgentRecord(agent))
    }
}

/// `POST /api/agents/prompt`
pub struct Prompt;

impl Endpoint for Prompt {
    const ROUTE: Route = Route::post("/api/agents/prompt", Needs::Permission(Permission::AgentsRead));

    const DOC: Doc = Doc::new(
        "renderAgentPrompt",
        VERSIONS,
        "Render the prompt of an agent",
        "Returns what a model call with these values of variables would fill in: the model, the persona with the values in place, \
         and the settings. Where the agent's definition declares `variables`, each `{{name}}` of a declared one is replaced by the \
         value, else by the default, else by nothing. With `version` or `label` all of it is that of that version of the agent. \
         A required variable without a value is answered with 400, and so is a value of a variable that is not declared.",
    )
    .bodies(&[Example("values", r#"{"variables": {}}"#)])
    .answer(
        "The prompt.",
        &[Example(
            "rendered",
            r#"{"prompt": "You write short, factual release notes."}"#,
        )],
    )
    .failures(&[410]);

    type Input = (AgentId, WorkspaceIdOptional, VersionNumber, SelectedLabel);
    type Body = Optional<Valid<PromptValues>>;
    type Answer = Json<RenderedPrompt>;

    async fn run(
        call: &Call<'_>,
        (agent_id, workspace, version, label): Values<'_, Self>,
        Optional(values): Self::Body,
    ) -> Result<Self::Answer, Failure> {
        let version = selector(version, label, None)?;
        let values = values.map_or_else(PromptValues::default, Valid::into_inner);
        let rendered = call
            .service
            .render_prompt(call.caller, workspace, agent_id, version, values);
        Ok(Json(rendered.await?))
    }
}
