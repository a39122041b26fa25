"""The records and bodies of the API, as `TypedDict` classes.

Made by tools/generate.py from the OpenAPI document of the server; do not edit.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

Action = Literal[
    "workspace.created",
    "workspace.updated",
    "workspace.exported",
    "member.set",
    "member.removed",
    "api_key.created",
    "api_key.revoked",
    "api_key.rotated",
    "agent.created",
    "agent.updated",
    "agent.deactivated",
    "agent.restored",
    "agent.rolled_back",
    "label.set",
    "label.removed",
    "label.promoted",
    "label.restored",
    "agents.applied",
    "provider_key.saved",
    "provider_key.deleted",
    "webhook.created",
    "webhook.updated",
    "webhook.deleted",
    "webhook.disabled",
    "webhook.secret_rotated",
    "webhook.replayed",
    "budget.set",
    "budget.removed",
    "budget.settled",
    "budget.threshold_reached",
]
"""What was done."""


class Actor(TypedDict):
    """Who acted."""

    type: ActorType
    """What kind of caller acted."""
    id: str
    """Identifier of the key or of the user."""


ActorType = Literal["api_key", "user", "operator", "system"]
"""What kind of caller acted: an API key, a signed-in user, or an operator of the deployment."""


class AgentRequired(TypedDict):
    """What `Agent` always has."""

    id: str
    """Identifier of the record, a UUID of version 7."""
    workspace_id: str
    """The workspace that the agent belongs to."""
    agent_id: AgentId
    """Identifier within the workspace, fixed at creation."""
    display_name: str
    """Name for people. Something in it has to be visible."""
    role: str | None
    """Job title shown next to the name."""
    description: str | None
    """What the agent is for."""
    agent_type: AgentType
    """AI or human."""
    model: str | None
    """Name of the model that the agent runs on; it is not checked against any catalogue."""
    color: str | None
    """Avatar colour: a hash sign followed by 3, 4, 6 or 8 hexadecimal digits."""
    persona_prompt: str | None
    """System prompt that gives the agent its personality."""
    capabilities: Capabilities
    """Capability tags. Their order and any repetition are preserved."""
    parameters: Parameters
    """Personality sliders: a number under each name. Integers that fit into 64 bits stay integers."""
    is_active: bool
    """False once the agent was deleted, until it is restored."""
    created_at: Timestamp
    """Creation time."""
    updated_at: Timestamp
    """Time of the latest change; equals `created_at` until there is one."""


class Agent(AgentRequired, total=False):
    """An agent configuration."""

    definition: Definition
    """Tools, MCP servers, settings of the model and whatever else belongs to the agent, as a JSON object."""


class AgentConfigRequired(TypedDict):
    """What `AgentConfig` always has."""

    display_name: str
    """Name for people. Something in it has to be visible."""
    role: str | None
    """Job title shown next to the name."""
    description: str | None
    """What the agent is for."""
    agent_type: AgentType
    """AI or human."""
    model: str | None
    """Name of the model that the agent runs on; it is not checked against any catalogue."""
    color: str | None
    """Avatar colour: a hash sign followed by 3, 4, 6 or 8 hexadecimal digits."""
    persona_prompt: str | None
    """System prompt that gives the agent its personality."""
    capabilities: Capabilities
    """Capability tags. Their order and any repetition are preserved."""
    parameters: Parameters
    """Personality sliders: a number under each name. Integers that fit into 64 bits stay integers."""


class AgentConfig(AgentConfigRequired, total=False):
    """The content of an agent: the fields that a workspace configures. Each version of an agent has one."""

    definition: Definition
    """Tools, MCP servers, settings of the model and whatever else belongs to the agent, as a JSON object."""


AgentDiff = TypedDict(
    "AgentDiff",
    {"agent_id": "AgentId", "from": "int", "to": "int", "changes": "dict[str, Change]", "prompt_diff": "str | None"},
)
"""What differs between two versions of an agent."""

AgentId = str
"""Identifier of an agent within its workspace."""


class AgentLabel(TypedDict):
    """A label of an agent: which version it points at."""

    agent_id: AgentId
    """Identifier within the workspace, fixed at creation."""
    label: Label
    """The label."""
    version: int
    """The number of the version that it points at."""
    updated_at: Timestamp
    """When it was last moved."""
    actor: Actor
    """Who moved it."""


class AgentPatch(TypedDict, total=False):
    """The fields to change. A field that is given is replaced as a whole, one that is left out stays, and null empties
    a nullable one.
    """

    workspace_id: str
    """Accepted only with the value that the record has."""
    agent_id: AgentId
    """Accepted only with the value that the record has."""
    display_name: str
    """Name for people. Something in it has to be visible."""
    role: str | None
    """Job title shown next to the name."""
    description: str | None
    """What the agent is for."""
    agent_type: AgentType
    """AI or human."""
    model: str | None
    """Name of the model that the agent runs on; it is not checked against any catalogue."""
    color: str | None
    """Avatar colour: a hash sign followed by 3, 4, 6 or 8 hexadecimal digits."""
    persona_prompt: str | None
    """System prompt that gives the agent its personality."""
    capabilities: Capabilities
    """Capability tags. Their order and any repetition are preserved."""
    parameters: Parameters
    """Personality sliders: a number under each name. Integers that fit into 64 bits stay integers."""
    definition: Definition | None
    """Tools, MCP servers, settings of the model and whatever else belongs to the agent, as a JSON object."""


class AgentSet(TypedDict):
    """A set, and the agents that belong to it."""

    set: str
    """Name of the set."""
    agents: list[AgentId]
    """The agents that belong to it, in the order of their identifiers."""


class AgentSpecRequired(TypedDict):
    """What `AgentSpec` always has."""

    agent_id: AgentId
    """Identifier of the agent, which is created where there is none."""
    display_name: str
    """Name for people. Something in it has to be visible."""


class AgentSpec(AgentSpecRequired, total=False):
    """An agent as an apply wants it: what is left out is null, empty, or the default."""

    workspace_id: str
    """Accepted only with the workspace of the request."""
    role: str | None
    """Job title shown next to the name."""
    description: str | None
    """What the agent is for."""
    agent_type: AgentType
    """AI or human. Left out: `ai`."""
    model: str | None
    """Name of the model that the agent runs on; it is not checked against any catalogue."""
    color: str | None
    """Avatar colour: a hash sign followed by 3, 4, 6 or 8 hexadecimal digits."""
    persona_prompt: str | None
    """System prompt that gives the agent its personality."""
    capabilities: Capabilities
    """Capability tags. Their order and any repetition are preserved. Left out: `[]`."""
    parameters: Parameters
    """Personality sliders: a number under each name. Integers that fit into 64 bits stay integers. Left out: `{}`.
    """
    definition: Definition | None
    """Tools, MCP servers, settings of the model and whatever else belongs to the agent, as a JSON object."""


class AgentStatus(TypedDict):
    """What one agent is doing."""

    agent_id: AgentId
    """Identifier within the workspace, fixed at creation."""
    display_name: str
    """The agent's name for people."""
    status: LiveStatus
    """What the agent is doing."""
    current_task_id: str | None
    """Identifier of the task being worked on. Null unless the status is `working`."""
    current_task_title: str | None
    """Title of that task. Null unless the status is `working`."""


AgentType = Literal["ai", "human"]
"""Whether a software agent or a person does the work."""


class AgentVersion(TypedDict):
    """One version of an agent, without its content."""

    agent_id: AgentId
    """Identifier within the workspace, fixed at creation."""
    version: int
    """The number of the version: 1, 2, 3, … for each agent."""
    created_at: Timestamp
    """When the version was made."""
    actor: Actor | None
    """Who made it. Null for a version from before versions were kept."""
    message: str | None
    """Why, as the request gave it."""
    restored_from: int | None
    """The number of the version whose content a rollback restored."""
    labels: list[Label]
    """The labels that point at this version. The reserved label `latest` is not among them."""


class AgentVersionDetail(TypedDict):
    """One version of an agent with its content."""

    agent_id: AgentId
    """Identifier within the workspace, fixed at creation."""
    version: int
    """The number of the version: 1, 2, 3, … for each agent."""
    created_at: Timestamp
    """When the version was made."""
    actor: Actor | None
    """Who made it. Null for a version from before versions were kept."""
    message: str | None
    """Why, as the request gave it."""
    restored_from: int | None
    """The number of the version whose content a rollback restored."""
    labels: list[Label]
    """The labels that point at this version. The reserved label `latest` is not among them."""
    is_active: bool
    """Whether the agent is active now, whichever version this is."""
    config: AgentConfig
    """The content."""


class ApiKeyRequired(TypedDict):
    """What `ApiKey` always has."""

    id: str
    """Key identifier. It is also part of the plaintext, right behind the prefix."""
    workspace_id: str
    """The workspace that the key opens."""
    name: str
    """Label for people."""
    environment: Environment
    """Where the key is used."""
    scope: Scope
    """How much the key may do."""
    rate_limit: int
    """Requests that the key may make per minute."""
    expires_at: Timestamp | None
    """When the key stops working by itself; null for never."""
    created_at: Timestamp
    """Creation time."""
    last_used_at: Timestamp | None
    """Latest known use, up to a minute behind; null when it was never used."""
    revoked_at: Timestamp | None
    """When the key was revoked; null while it was not."""


class ApiKey(ApiKeyRequired, total=False):
    """An API key without its secret."""

    permissions: list[Permission]
    """The permissions of the scope that the key has, if it has not all of them."""
    agents: list[AgentId]
    """The agents that the key is limited to, if it is."""
    label: Label
    """The label that its model calls, prompts and releases are pinned to, if they are."""


class AppliedAgent(TypedDict):
    """What an apply did to one agent."""

    agent_id: AgentId
    """Identifier of the agent."""
    action: ApplyAction
    """What was done."""
    version: int
    """The number of the agent's current version after it."""
    changes: dict[str, Change]
    """The fields that changed, by name."""


class AppliedAgents(TypedDict):
    """The outcome of an apply."""

    cursor: str
    """The cursor of the state after the change; where nothing was changed, the one that the decision is based on.
    """
    results: list[AppliedAgent]
    """What was done to each agent, in the order of the body, and then to those that were pruned."""


ApplyAction = Literal["create", "update", "restore", "deactivate", "none"]
"""What an apply does to an agent."""


class ApplyAgentsRequired(TypedDict):
    """What `ApplyAgents` always has."""

    agents: list[AgentSpec]
    """The agents, each of them once. There may be none if `prune` is true."""


class ApplyAgents(ApplyAgentsRequired, total=False):
    """The agents as they are to be, all in one change."""

    set: str | None
    """The set that the agents belong to from now on. An agent belongs to one set at most."""
    prune: bool
    """Whether to deactivate the agents of the set that are not among the agents, and to take them out of it. Left out:
    `false`.
    """
    base: str | None
    """The cursor of the state that the change is based on: it is refused if one of its agents has changed since.
    """


class AuditEntry(TypedDict):
    """The record of one change."""

    id: str
    """Identifier of the entry."""
    workspace_id: str
    """The workspace in which it happened."""
    actor: Actor
    """Who acted."""
    action: Action
    """What was done."""
    target: Target
    """What was acted on."""
    created_at: Timestamp
    """When it happened."""
    changes: dict[str, Change | None]
    """The fields that changed, by name. Credentials are never among them."""
    revision: int
    """The number of the entry in its workspace, which is the workspace's revision after the change."""
    message: str | None
    """Why, as the request gave it."""
    request_id: str | None
    """The `X-Request-Id` of the request; none for what this service has done by itself."""


class Budget(TypedDict):
    """A limit of what model calls may cost in a period, and what is spent of it."""

    id: str
    """Identifier of the budget."""
    scope: BudgetScope
    """Which calls it covers."""
    scope_id: str | None
    """The agent, the API key or the user; null for the whole workspace."""
    period: BudgetPeriod
    """After which time it begins again."""
    limit_usd: str
    """What the calls of a period may cost, in USD."""
    action: BudgetAction
    """What happens to calls that it does not pay for."""
    spent_usd: str
    """What the calls of this period have cost."""
    reserved_usd: str
    """What calls in flight may cost at most."""
    unsettled_usd: str
    """What servers had taken of it that ended without giving it back. It counts as spent until the period ends, or it
    is settled.
    """
    resets_at: Timestamp | None
    """When it begins again; null for a total."""
    created_at: Timestamp
    """Creation time."""
    updated_at: Timestamp
    """Time of the latest change of limit or action."""


BudgetAction = Literal["refuse", "warn"]
"""What happens to calls that a budget does not pay for."""


class BudgetLimitRequired(TypedDict):
    """What `BudgetLimit` always has."""

    limit_usd: str | float
    """What the calls of a period may cost, in USD: a decimal text or a number with at most 9 decimals, up to
    1,000,000,000.
    """


class BudgetLimit(BudgetLimitRequired, total=False):
    """The limit of a budget."""

    action: BudgetAction | None
    """What happens to calls that it does not pay for; left out, they are refused."""


BudgetPeriod = Literal["day", "month", "total"]
"""After which time a budget begins again."""

BudgetScope = Literal["workspace", "agent", "key", "user"]
"""Which calls a budget covers."""

CallerType = Literal["api_key", "user"]
"""What kind of credential a request has."""


class CallerWorkspace(TypedDict):
    """A workspace as its caller sees it."""

    id: str
    """The id of the workspace."""
    name: str
    """Name for people."""
    plan: Plan
    """The plan."""
    role: Role | None
    """The user's role; null for an API key."""
    scope: Scope | None
    """The key's scope; null for a user."""
    permissions: list[Permission]
    """What the caller may do."""
    active_agents: int
    """How many agents are active."""
    agent_limit: int | None
    """How many agents may be active; null for any number."""
    limits: Limits
    """The limits of the deployment. A server that does not say has the default ones."""


Capabilities = list[str]
"""Capability tags. Their order and any repetition are preserved."""

Change = TypedDict("Change", {"from": "Any", "to": "Any"})
"""One field before and after. Either side may be any JSON value."""


class ChangeEventRequired(TypedDict):
    """What `ChangeEvent` always has."""

    cursor: str
    """The position after this event. A reader that has handled the event goes on from here."""
    revision: int
    """The number of the event in the workspace, from 1."""
    id: str
    """Identifier of the audit entry."""
    type: Action
    """What was done."""
    created_at: Timestamp
    """When it happened."""
    actor: Actor
    """Who acted."""
    target: Target
    """What was acted on."""
    message: str | None
    """The message that the caller gave with the change."""
    version: int | None
    """The version of the agent's configuration that the change made."""
    changes: dict[str, Change]
    """The fields that changed, by name. Credentials are never among them."""


class ChangeEvent(ChangeEventRequired, total=False):
    """One change in a workspace, as the change feed shows it."""

    released: list[ReleasedAgent]
    """In a stream that follows a label, where the event does nothing but move it: the versions that it points at from
    then on, with their content. It is left out where it would be long, and where a version is no longer kept: read
    what the label releases.
    """


Comparison: TypeAlias = "AgentDiff | list[LabelDiff]"
"""A comparison: of two versions of an agent, or of two labels of all agents."""


class CreatedApiKeyRequired(TypedDict):
    """What `CreatedApiKey` always has."""

    id: str
    """Key identifier. It is also part of the plaintext, right behind the prefix."""
    workspace_id: str
    """The workspace that the key opens."""
    name: str
    """Label for people."""
    environment: Environment
    """Where the key is used."""
    scope: Scope
    """How much the key may do."""
    rate_limit: int
    """Requests that the key may make per minute."""
    expires_at: Timestamp | None
    """When the key stops working by itself; null for never."""
    created_at: Timestamp
    """Creation time."""
    last_used_at: Timestamp | None
    """Latest known use, up to a minute behind; null when it was never used."""
    revoked_at: Timestamp | None
    """When the key was revoked; null while it was not."""
    key: str
    """The plaintext to send as bearer credential. Only a hash of it is kept."""


class CreatedApiKey(CreatedApiKeyRequired, total=False):
    """A new API key together with its plaintext, which no other answer ever shows."""

    permissions: list[Permission]
    """The permissions of the scope that the key has, if it has not all of them."""
    agents: list[AgentId]
    """The agents that the key is limited to, if it is."""
    label: Label
    """The label that its model calls, prompts and releases are pinned to, if they are."""


CredentialSource = Literal["workspace", "managed", "none"]
"""Whose credential a model call uses."""


class Definition(TypedDict, total=False):
    """The definition of an agent: at most 64 KiB as compact JSON, and 32 levels deep. The members that are described
    here are checked; every other one is kept as it is.
    """

    tools: list[str | dict[str, Any]]
    """Names or descriptions of tools."""
    mcp_servers: list[dict[str, Any]]
    """MCP servers, each with a url or a command, or both."""
    skills: list[str | dict[str, Any]]
    """Names or descriptions of skills."""
    output_schema: dict[str, Any]
    """The schema of what the agent answers."""
    model_settings: dict[str, Any]
    """Members that the body of a model call gets where it lacks them. It must not have model, messages, input, system,
    instructions, prompt and stream.
    """
    fallback_models: list[str]
    """Models to ask where the agent's cannot be."""
    variables: dict[str, dict[str, Any]]
    """The variables of the persona, by name."""
    metadata: dict[str, str]
    """Texts by name."""


DisabledReason = Literal["gone", "failing"]
"""Why this service disabled a webhook."""

Environment = Literal["development", "production"]
"""Where an API key is used. Plaintexts begin with `svc_test_` for development and with `svc_live_` for production.
"""


class Error(TypedDict):
    """Body of every answer that reports a failure."""

    error: str
    """What went wrong, for people to read. The wording may change between releases: rely on the status code."""


EventTypes = list[str]
"""Types of events: actions of the audit log, or `agent.*` for all of a family."""


class ExportLineWorkspace(TypedDict):
    """A line of the kind `workspace`."""

    kind: Literal["workspace"]
    record: Workspace


class ExportLineMember(TypedDict):
    """A line of the kind `member`."""

    kind: Literal["member"]
    record: Member


class ExportLineAgent(TypedDict):
    """A line of the kind `agent`."""

    kind: Literal["agent"]
    record: Agent


class ExportLineVersion(TypedDict):
    """A line of the kind `version`."""

    kind: Literal["version"]
    record: ExportedVersion


class ExportLineLabel(TypedDict):
    """A line of the kind `label`."""

    kind: Literal["label"]
    record: AgentLabel


class ExportLineSet(TypedDict):
    """A line of the kind `set`."""

    kind: Literal["set"]
    record: AgentSet


class ExportLineStatus(TypedDict):
    """A line of the kind `status`."""

    kind: Literal["status"]
    record: ReportedStatus


class ExportLineApiKey(TypedDict):
    """A line of the kind `api_key`."""

    kind: Literal["api_key"]
    record: ApiKey


class ExportLineProviderKey(TypedDict):
    """A line of the kind `provider_key`."""

    kind: Literal["provider_key"]
    record: ProviderKeyInfo


class ExportLineWebhook(TypedDict):
    """A line of the kind `webhook`."""

    kind: Literal["webhook"]
    record: Webhook


class ExportLineBudget(TypedDict):
    """A line of the kind `budget`."""

    kind: Literal["budget"]
    record: Budget


class ExportLineUsage(TypedDict):
    """A line of the kind `usage`."""

    kind: Literal["usage"]
    record: UsageRow


class ExportLineAudit(TypedDict):
    """A line of the kind `audit`."""

    kind: Literal["audit"]
    record: AuditEntry


ExportLine = (
    ExportLineWorkspace
    | ExportLineMember
    | ExportLineAgent
    | ExportLineVersion
    | ExportLineLabel
    | ExportLineSet
    | ExportLineStatus
    | ExportLineApiKey
    | ExportLineProviderKey
    | ExportLineWebhook
    | ExportLineBudget
    | ExportLineUsage
    | ExportLineAudit
)
"""One record of a workspace, with its kind."""


class ExportedVersion(TypedDict):
    """A version of an agent, as an export has it."""

    agent_id: AgentId
    """Identifier within the workspace, fixed at creation."""
    version: int
    """The number of the version: 1, 2, 3, … for each agent."""
    created_at: Timestamp
    """When the version was made."""
    actor: Actor | None
    """Who made it. Null for a version from before versions were kept."""
    message: str | None
    """Why, as the request gave it."""
    restored_from: int | None
    """The number of the version whose content a rollback restored."""
    config: AgentConfig
    """The content."""


class Health(TypedDict):
    """The process is up."""

    status: Literal["ok"]
    """Always `ok`."""


Label = str
"""A name that points at a version of an agent."""

LabelDiff = TypedDict(
    "LabelDiff",
    {
        "agent_id": "AgentId",
        "from": "int",
        "to": "int",
        "versions": "int",
        "fields": "list[str]",
        "lines_added": "int",
        "lines_removed": "int",
    },
)
"""What moving a label of an agent to where another one points would change."""

LabelMove = TypedDict("LabelMove", {"agent_id": "AgentId", "from": "int | None", "to": "int | None"})
"""The move of a label of one agent."""


class LabelMoves(TypedDict):
    """A commit that moved a label, of one agent or of several."""

    revision: int
    """The workspace's revision that the commit made."""
    created_at: Timestamp
    """When the label was moved."""
    actor: Actor
    """Who moved it."""
    message: str | None
    """Why, as the request gave it."""
    moves: list[LabelMove]
    """The moves, by agent."""


class LabelRestoreRequired(TypedDict):
    """What `LabelRestore` always has."""

    label: Label
    """The label."""
    revision: int
    """The workspace's revision at which the label pointed where it is to point again."""


class LabelRestore(LabelRestoreRequired, total=False):
    """The moment to which a label of all agents goes back."""

    base: str | None
    """The cursor of the state that the change is based on: it is refused if the label has moved since."""


class LabelTarget(TypedDict, total=False):
    """The version that a label is to point at."""

    version: int | None
    """The number of the version."""
    label: Label | None
    """Another label, whose version is taken. `latest` is the current version."""
    expected_version: int | None
    """The number of the version that the label must point at now; null when it must not exist."""


class Limits(TypedDict):
    """The limits of the deployment that bodies are checked by."""

    persona_prompt: int
    """The greatest length of a `persona_prompt`, in Unicode scalar values."""


LiveStatus = Literal["idle", "working", "offline"]
"""What an agent is doing at the moment."""


class MemberRequired(TypedDict):
    """What `Member` always has."""

    user_id: str
    """The user: the `sub` of the user's session tokens."""
    role: Role
    """What the member may do."""
    created_at: Timestamp
    """When the user became a member."""


class Member(MemberRequired, total=False):
    """A user's membership in a workspace."""

    name: str
    """The claim `name` of the user's token at the last sign-in, if it had one."""
    email: str
    """The claim `email` of the user's token at the last sign-in, if it had one."""


class ModelInfo(TypedDict):
    """A model on offer."""

    id: str
    """What requests name."""
    provider: Provider
    """The provider that runs the model."""
    provider_name: str
    """The provider's name for people."""
    provider_api: ProviderApi
    """The API that the provider speaks."""
    display_name: str
    """The name for people."""
    status: ModelStatus
    """Whether the model can be called."""
    credential: CredentialSource
    """Whose credential the workspace's next call to this provider uses."""
    input_price: float | None
    """USD per million input tokens; null where the price is not known."""
    cached_input_price: float | None
    """USD per million input tokens that are read from a cache; null where they cost what input does."""
    cache_write_price: float | None
    """USD per million input tokens that are written to a cache; null where they cost what input does."""
    output_price: float | None
    """USD per million output tokens."""
    max_output_tokens: int | None
    """The most tokens of an answer, where that is known."""


ModelStatus = Literal["available", "coming_soon"]
"""Whether a model can be called."""


class NewAgentRequired(TypedDict):
    """What `NewAgent` always has."""

    agent_id: AgentId
    """Identifier for the agent. One that a deleted agent had is not free again."""
    display_name: str
    """Name for people. Something in it has to be visible."""


class NewAgent(NewAgentRequired, total=False):
    """What a new agent starts with. Null in a nullable field means the same as leaving it out."""

    workspace_id: str
    """The workspace to create the agent in."""
    role: str | None
    """Job title shown next to the name."""
    description: str | None
    """What the agent is for."""
    agent_type: AgentType
    """AI or human. Left out: `ai`."""
    model: str | None
    """Name of the model that the agent runs on; it is not checked against any catalogue."""
    color: str | None
    """Avatar colour: a hash sign followed by 3, 4, 6 or 8 hexadecimal digits."""
    persona_prompt: str | None
    """System prompt that gives the agent its personality."""
    capabilities: Capabilities
    """Capability tags. Their order and any repetition are preserved. Left out: `[]`."""
    parameters: Parameters
    """Personality sliders: a number under each name. Integers that fit into 64 bits stay integers. Left out: `{}`.
    """
    definition: Definition | None
    """Tools, MCP servers, settings of the model and whatever else belongs to the agent, as a JSON object."""


class NewApiKeyRequired(TypedDict):
    """What `NewApiKey` always has."""

    name: str
    """Label for people."""
    environment: Environment
    """Where the key is to be used."""
    scope: Scope
    """How much the key may do."""


class NewApiKey(NewApiKeyRequired, total=False):
    """What a new API key is to be."""

    workspace_id: str
    """The workspace that the key is to open."""
    permissions: list[Permission] | None
    """The permissions of the scope that the key has. Null or left out: all of them."""
    agents: list[AgentId] | None
    """The agents that the key is limited to, which need not exist yet. Null or left out: all agents and the workspace
    itself.
    """
    label: Label | None
    """The label that its model calls, prompts and releases are pinned to. Null or left out: none."""
    expires_at: str | None
    """When the key is to stop working: a moment in the future, with any UTC offset. Null or left out: never."""
    rate_limit: int | None
    """Requests per minute. Null or left out: 100."""


class NewProviderKey(TypedDict):
    """A credential to save."""

    api_key: str
    """The provider's key: visible ASCII characters."""


class NewWebhookRequired(TypedDict):
    """What `NewWebhook` always has."""

    url: str
    """Where the events are sent to, by `https` and port 443 unless the deployment makes an exception for the host.
    """


class NewWebhook(NewWebhookRequired, total=False):
    """A webhook to create."""

    workspace_id: str
    """The workspace whose events it gets."""
    types: EventTypes
    """Which events it gets. Types other than `agent.*`, `agents.*` and `label.*` need `audit_log:read`. Left out:
    `["agent.*","agents.*","label.*"]`.
    """
    description: str | None
    """Note for people."""
    ordered: bool
    """Whether each event waits until the one before it was delivered or given up. Left out: `false`."""


class NewWorkspace(TypedDict):
    """What a new workspace starts with."""

    name: str
    """Name for people."""


NoFields = dict[str, Any]
"""An object without fields."""

Parameters = dict[str, float]
"""Personality sliders: a number under each name. Integers that fit into 64 bits stay integers."""

Permission = Literal[
    "tasks:create",
    "tasks:read",
    "tasks:update",
    "tasks:delete",
    "projects:create",
    "projects:read",
    "projects:update",
    "projects:delete",
    "agents:configure",
    "agents:read",
    "users:read",
    "settings:read",
    "analytics:read",
    "webhooks:manage",
    "webhooks:read",
    "api_keys:read",
    "audit_log:read",
    "models:invoke",
    "agents:release",
    "budgets:manage",
    "api_keys:manage",
    "members:manage",
    "provider_keys:manage",
    "workspace:manage",
]
"""What a caller may do."""

Plan = Literal["free", "pro", "team", "enterprise"]
"""What a workspace subscribes to. The plan limits how many agents may be active."""


class PromotedLabel(TypedDict):
    """A label after a promotion."""

    agent_id: AgentId
    """Identifier within the workspace, fixed at creation."""
    label: Label
    """The label that was moved."""
    version: int
    """The number of the version that it points at."""
    previous_version: int | None
    """The number of the version that it pointed at before; null when it did not exist."""


PromotionRequired = TypedDict("PromotionRequired", {"from": "Label", "to": "Label"})
"""What `Promotion` always has."""


class Promotion(PromotionRequired, total=False):
    """Moves a label to the version that another label points at, for several agents in one commit."""

    agent_ids: list[AgentId] | None
    """The agents; left out, each active agent that has the label `from`."""
    set: str | None
    """The set whose agents are promoted, those that have the label `from`; not together with `agent_ids`."""
    base: str | None
    """The cursor of the state that the change is based on: it is refused if `from` or `to` has moved since."""


class PromptValues(TypedDict, total=False):
    """The values to render a prompt with."""

    variables: dict[str, str] | None
    """The values of the variables, by name."""


Provider = str
"""A model provider: `openai`, `anthropic`, or one that the deployment has configured."""

ProviderApi = Literal["anthropic", "openai"]
"""The API that a provider speaks."""


class ProviderKeyInfo(TypedDict):
    """A saved provider key, without the key."""

    provider: Provider
    """The provider that the key is for."""
    created_at: Timestamp
    """When a key for this provider was first saved."""
    updated_at: Timestamp
    """When the key was last replaced."""
    fingerprint: str
    """The beginning of a keyed hash of the key, 8 hexadecimal digits: the same key has the same in this workspace
    until the master key is another.
    """


class ProviderKeyTest(TypedDict):
    """What a provider says of a saved key."""

    ok: bool
    """Whether the provider takes it."""
    status: int | None
    """The status that the provider answered; null when it did not answer."""
    message: str
    """What the provider said, or why it could not be asked."""


class ReadinessRequired(TypedDict):
    """What `Readiness` always has."""

    status: Literal["ready", "degraded"]
    """`ready`, or `degraded` while the server serves less than everything."""


class Readiness(ReadinessRequired, total=False):
    """Storage answers."""

    reason: Literal["read-only"]
    """With `degraded` only. `read-only`: reads are served and changes are answered 503."""
    sessions: Literal["unavailable"]
    """Only while the identity provider cannot be reached. API keys work; session tokens may be answered 503."""


class ReleasedAgent(TypedDict):
    """The version of an active agent that a label points at, with its content."""

    agent_id: AgentId
    """Identifier within the workspace, fixed at creation."""
    label: Label
    """The label."""
    version: int
    """The number of the version that the label points at."""
    updated_at: Timestamp
    """When the label was last moved; for `latest`, when the version was made."""
    config: AgentConfig
    """The content of the version."""


class RenderedPrompt(TypedDict):
    """What a model call as an agent would fill in."""

    agent_id: AgentId
    """Identifier of the agent."""
    version: int
    """The number of the version that it is of."""
    model: str | None
    """The agent's model; null if it has none."""
    prompt: str | None
    """The persona with the values of the variables; null if there is none."""
    model_settings: dict[str, Any]
    """The settings of model calls; an empty object if there are none."""


class ReportedStatus(TypedDict):
    """The last report of an agent, with its time. It may be too old to be live."""

    agent_id: AgentId
    """Identifier within the workspace, fixed at creation."""
    status: LiveStatus
    """What the agent was doing."""
    current_task_id: str | None
    """Identifier of the task. Null unless the status is `working`."""
    current_task_title: str | None
    """Title of that task. Null unless the status is `working`."""
    reported_at: Timestamp
    """Time of the report."""


class RestoredLabel(TypedDict):
    """A label after it was put back."""

    agent_id: AgentId
    """Identifier within the workspace, fixed at creation."""
    label: Label
    """The label."""
    version: int | None
    """The number of the version that it points at; null when it is removed."""
    previous_version: int | None
    """The number of the version that it pointed at before; null when it did not exist."""


Role = Literal["viewer", "member", "admin", "owner"]
"""What a member may do in a workspace, from the least to the most."""


class RoleChange(TypedDict):
    """The role to give."""

    role: Role
    """The new role."""


class Rollback(TypedDict, total=False):
    """The version to go back to: its number, or a label that points at it."""

    version: int | None
    """The number of the version."""
    label: Label | None
    """A label that points at the version."""


class RotateApiKey(TypedDict, total=False):
    """How an API key is replaced by a new one."""

    overlap_seconds: int
    """How many seconds the old key still works. Left out: 0, it ends at once. Left out: `0`."""


Scope = Literal["read", "write", "admin"]
"""How much an API key may do."""


class SignIn(TypedDict):
    """A login code that a browser redeems for a session."""

    code: str
    """The code of a login link, the part behind `#login=`."""


class StatusChange(TypedDict):
    """A change of what an agent is doing."""

    agent_id: AgentId
    """Identifier within the workspace, fixed at creation."""
    at: Timestamp
    """When it was reported, or when the last report ceased to count."""
    status: LiveStatus
    """What the agent is doing from then on."""
    current_task_id: str | None
    """Identifier of the task being worked on. Null unless the status is `working`."""
    current_task_title: str | None
    """Title of that task. Null unless the status is `working`."""


class StatusReportRequired(TypedDict):
    """What `StatusReport` always has."""

    status: LiveStatus
    """What the agent is doing."""


class StatusReport(StatusReportRequired, total=False):
    """What an agent does now. `working` names a task by both fields; `idle` and `offline` name none."""

    current_task_id: str | None
    """Identifier of the task being worked on."""
    current_task_title: str | None
    """Title of that task."""


class Success(TypedDict):
    """Says that it is done, where there is no record to show."""

    success: Literal[True]
    """Always true."""


class Target(TypedDict):
    """What was acted on."""

    type: TargetType
    """What kind of thing was acted on."""
    id: str
    """Its identifier: a workspace's UUID, a user's or a key's identifier, or an agent's `agent_id`."""


TargetType = Literal["workspace", "member", "api_key", "agent", "provider_key", "webhook", "budget"]
"""What kind of thing was acted on."""

Timestamp = str
"""A moment in UTC with milliseconds."""


class UsageCall(TypedDict):
    """One model call, or one attempt of it."""

    id: str
    """Identifier of the call. Later ones are greater."""
    ended_at: Timestamp
    """When it ended."""
    agent_id: str
    """The agent that it was made as."""
    version: int
    """The version of the agent."""
    label: str | None
    """The label that selected the version."""
    actor: Actor | None
    """Who called; null without the permission `audit_log:read`."""
    provider: Provider
    """The provider."""
    model: str | None
    """The model, where it is known."""
    path: str
    """The path at the provider."""
    credential: CredentialSource
    """Whose credential paid."""
    status: int
    """The status of the answer. 502 and 504 are answers of this service, and 499 is a caller that left before the
    answer.
    """
    stream: bool
    """Whether a stream was asked for or answered."""
    attempts: int
    """Which attempt of its request it was."""
    estimated: bool
    """Whether tokens were estimated."""
    input_tokens: int
    """Input tokens, with those of caches."""
    cached_input_tokens: int
    """Input tokens that were read from a cache."""
    cache_write_tokens: int
    """Input tokens that were written to a cache."""
    output_tokens: int
    """Output tokens, with those of reasoning."""
    reasoning_tokens: int
    """Output tokens of reasoning."""
    cost_usd: str | None
    """The cost in USD; null where the model has no price."""
    first_byte_ms: int | None
    """Milliseconds until the answer began; null where there was none."""
    duration_ms: int
    """Milliseconds in all."""
    request_id: str
    """The `X-Request-Id` of the request."""


class UsageRowRequired(TypedDict):
    """What `UsageRow` always has."""

    calls: int
    """Calls, each attempt of one as a call of its own."""
    errors: int
    """Calls with a status of 400 and above."""
    input_tokens: int
    """Input tokens, with those of caches."""
    cached_input_tokens: int
    """Input tokens that were read from a cache."""
    cache_write_tokens: int
    """Input tokens that were written to a cache."""
    output_tokens: int
    """Output tokens, with those of reasoning."""
    reasoning_tokens: int
    """Output tokens of reasoning."""
    cost_usd: str
    """The cost in USD, exact to a billionth."""
    unpriced_calls: int
    """Calls with tokens whose model has no price."""
    estimated_calls: int
    """Calls whose tokens were estimated."""
    duration_ms: int
    """Milliseconds of all calls together."""
    first_byte_ms: int
    """Milliseconds until the answers began, of all calls together."""
    p50_ms: int
    """Half of the calls took at most this many milliseconds, within 10 %."""
    p95_ms: int
    """95 % of the calls took at most this many milliseconds, within 10 %."""


class UsageRow(UsageRowRequired, total=False):
    """Sums over model calls. A field of a grouping is there where it was asked for."""

    hour: Timestamp | None
    """The beginning of the hour in which the calls ended."""
    day: str | None
    """The day in UTC on which the calls ended, such as `2026-11-20`."""
    agent: str | None
    """Identifier of the agent."""
    version: int | None
    """The number of the agent's version."""
    label: str | None
    """The label that selected the version; null where none did."""
    model: str | None
    """The model; null where the call named none."""
    provider: Provider | None
    """The provider."""
    key: str | None
    """Identifier of the API key; null for a user's calls."""
    user: str | None
    """Identifier of the user; null for calls with an API key."""
    credential: CredentialSource | None
    """Whose credential paid."""
    status: int | None
    """The status of the answers. 502 and 504 are answers of this service, and 499 is a caller that left before the
    answer.
    """
    other: bool
    """There, and true, where the row is that of all values beyond `top`."""


class Webhook(TypedDict):
    """A webhook without its secret."""

    id: str
    """Identifier of the webhook."""
    workspace_id: str
    """The workspace whose events it gets."""
    url: str
    """Where the events are sent to."""
    types: EventTypes
    """Which events it gets."""
    description: str | None
    """Note for people."""
    ordered: bool
    """Whether each event waits until the one before it was delivered or given up."""
    enabled: bool
    """Whether events are sent."""
    disabled_reason: DisabledReason | None
    """Why this service disabled the webhook; null while it is enabled, and when it was disabled by hand."""
    cursor: str
    """Position in the log up to which every event was delivered or given up."""
    created_at: Timestamp
    """Creation time."""
    updated_at: Timestamp
    """Time of the last change."""


class WebhookDelivery(TypedDict):
    """An attempt to deliver an event to a webhook."""

    id: str
    """The `webhook-id` that was sent, the same for each attempt at an event."""
    type: str
    """Type of the event."""
    revision: int | None
    """The event's revision; null for the event of a test."""
    attempt: int
    """Number of the attempt, from 1."""
    at: Timestamp
    """When the attempt began."""
    status: int | None
    """Status code of the answer; null without one."""
    error: str | None
    """Why the attempt failed; null when it did not."""
    duration_ms: int
    """How long the attempt took, in milliseconds."""
    response: str | None
    """The first KiB of the answer's body; null without an answer."""
    next_attempt_at: Timestamp | None
    """When the next attempt follows; null when none does."""


class WebhookPatch(TypedDict, total=False):
    """Changes to a webhook; absent fields stay."""

    url: str
    """Where the events are sent to."""
    types: EventTypes
    """Which events it gets."""
    description: str | None
    """Note for people."""
    ordered: bool
    """Whether each event waits until the one before it was delivered or given up."""
    enabled: bool
    """Whether events are sent. A webhook that is enabled again goes on from its cursor."""


class WebhookReplay(TypedDict):
    """Moves the cursor of a webhook back, so that the events after it are sent again."""

    after: str
    """A cursor, not later than the webhook's own, or `start`."""


class WebhookWithSecret(TypedDict):
    """A webhook together with its new secret, which no other answer ever shows."""

    id: str
    """Identifier of the webhook."""
    workspace_id: str
    """The workspace whose events it gets."""
    url: str
    """Where the events are sent to."""
    types: EventTypes
    """Which events it gets."""
    description: str | None
    """Note for people."""
    ordered: bool
    """Whether each event waits until the one before it was delivered or given up."""
    enabled: bool
    """Whether events are sent."""
    disabled_reason: DisabledReason | None
    """Why this service disabled the webhook; null while it is enabled, and when it was disabled by hand."""
    cursor: str
    """Position in the log up to which every event was delivered or given up."""
    created_at: Timestamp
    """Creation time."""
    updated_at: Timestamp
    """Time of the last change."""
    secret: str
    """The secret that signs the deliveries, for a verifier of Standard Webhooks."""


class WhoAmI(TypedDict):
    """Who the caller is, and what it may do where."""

    type: CallerType
    """What kind of credential the request has."""
    id: str
    """The id of the API key or of the user."""
    expires_at: Timestamp | None
    """When the credential ends; null for never."""
    workspaces: list[CallerWorkspace]
    """The workspaces that the credential opens, oldest first."""


class Workspace(TypedDict):
    """What all other records belong to."""

    id: str
    """Workspace identifier."""
    name: str
    """Name for people."""
    plan: Plan
    """What the workspace subscribes to."""
    created_at: Timestamp
    """Creation time."""
    updated_at: Timestamp
    """Time of the latest change of name or plan."""


class WorkspacePatch(TypedDict, total=False):
    """The fields to change; what is left out stays."""

    name: str
    """New name."""
    plan: Plan
    """New plan. Operators of the deployment alone may set it."""


class WorkspaceViewRequired(TypedDict):
    """What `WorkspaceView` always has."""

    id: str
    """Workspace identifier."""
    name: str
    """Name for people."""
    plan: Plan
    """What the workspace subscribes to."""
    created_at: Timestamp
    """Creation time."""
    updated_at: Timestamp
    """Time of the latest change of name or plan."""


class WorkspaceView(WorkspaceViewRequired, total=False):
    """A workspace as the caller sees it."""

    role: Role
    """The calling user's role. Absent when an API key calls."""
