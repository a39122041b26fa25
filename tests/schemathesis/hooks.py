"""What Schemathesis must know of this API beyond its document: credentials, and rules that a schema cannot express."""

import json
import os
import re

import schemathesis
from schemathesis.core.parameters import ParameterLocation

OWNER = os.environ["OWNER_TOKEN"]
OWNER_ID = os.environ["OWNER_ID"]
FOUNDER = os.environ["FOUNDER_TOKEN"]
RECEIVER = os.environ["RECEIVER"]

# Another user makes and deletes workspaces, so that the owner stays in one workspace, which then need not be named.
FOUNDERS = {"createWorkspace", "deleteWorkspace"}


def operation_id(operation):
    return operation.definition.raw.get("operationId")


@schemathesis.auth(refresh_interval=None)
class Bearer:
    """The session token of the user who may do the most."""

    def get(self, case, context):
        return FOUNDER if operation_id(case.operation) in FOUNDERS else OWNER

    def set(self, case, token, context):
        case.headers["Authorization"] = f"Bearer {token}"


# Parameters that exclude each other, which a document cannot say. Good requests keep the first one.
EXCLUSIVE = ["label", "version", "revision", "at"]

# Refusals with 400 or 415 of requests that are good by their schema, by operation: each fault of the message, and why a schema cannot tell.
MOMENT = r"the query parameter (at|since|until) must be an RFC 3339 timestamp such as \S+"
PAST = [MOMENT, r"at must not be before the workspace existed, .*", r"revision must be 1 to \d+, .*"]
OTHER_MODEL = r"the model \".*\" is one of \w+, this call goes to \w+"
# The values of variables are JSON within a header field, and which there are is in the agent's definition.
VARIABLES = [
    r"the header Agent-Variables must .*",
    r"variables\..* (is not a variable of the agent|is required)( \(the header Agent-Variables has the values\))?",
]
# Rules for a whole definition, and for names and texts at any depth.
DEFINITION = [
    r"(the name of )?(agents\[\d+\]\.)?definition\W.* must not contain a NUL character",
    r"(agents\[\d+\]\.)?definition\.mcp_servers\[\d+\]\.name must not be that of another server",
    r"(agents\[\d+\]\.)?definition\.mcp_servers\[\d+\] must have a url or a command",
    r"(agents\[\d+\]\.)?definition\.model_settings\.\w+ is no setting: .*",
    r"(agents\[\d+\]\.)?definition.* must be (at most 65536 bytes as compact JSON|within 32 levels).*",
]
# A limited API key knows its agent and its label; other callers name them.
NO_AGENT = r"the query parameter agent_id is required"
NO_LABEL = r"the query parameter label is required"
LABEL = r"label must be 1 to 36 of a-z, .*"
SCOPE_ID = r"scope_id (must not be given with the scope workspace|is required unless the scope is workspace)"
# The greatest limit, which a pattern of a text does not say, and the decimals of a number, which no keyword says without error.
LIMIT = r"limit_usd must (be at most 1000000000|have at most 9 decimals)"
# The agent of the examples has a model of one provider.
OTHER_API = r"the agent's model \".*\" is one of .*, which does not speak the API of this path: .*"

REFUSALS = {
    # Days that a month does not have, times before the workspace, and revisions that are not there yet.
    "listAgents": PAST,
    "getAgentVersion": PAST,
    "listAuditLog": [MOMENT],
    # Parameters that need each other.
    "listAgentVersions": [
        r"the query parameter workspace_id is required unless agent_id is given",
        r"the query parameter before needs agent_id: .*",
    ],
    # The catalogue knows the models of each provider.
    "callChatCompletions": [NO_AGENT, OTHER_MODEL, *VARIABLES],
    "callResponses": [NO_AGENT, OTHER_MODEL, *VARIABLES],
    "callEmbeddings": [NO_AGENT, OTHER_MODEL, *VARIABLES],
    "callMessages": [NO_AGENT, OTHER_MODEL, OTHER_API, *VARIABLES],
    "callCountTokens": [NO_AGENT, OTHER_MODEL, OTHER_API, *VARIABLES],
    # Most paths of a provider take a body, but not all, and only those of which some is known refuse one that is missing.
    "callModel": [NO_AGENT, OTHER_MODEL, *VARIABLES, r"the body must (be (a JSON object|valid JSON)|have the header Content-Type).*"],
    # Header fields that must agree with the message; and to a schema, `1.0` is an integer.
    "exchangeMcp": [r"Unsupported protocol version", r"Header mismatch: .*", r"id must be a string or an integer"],
    # A session token ends by itself; the requests have no cookie.
    "closeSession": [r"the request has no browser session to end: a session token ends by itself"],
    # The name that is to be confirmed is in the store.
    "deleteWorkspace": [r"confirm must be the exact name of the workspace"],
    # What cannot be changed is accepted if it is what is stored.
    "updateAgent": [r"(workspace_id|agent_id) cannot be changed after creation", *DEFINITION],
    "createAgent": DEFINITION,
    "renderAgentPrompt": VARIABLES,
    # Elements that must differ, or agree with the query.
    "applyAgents": [
        *DEFINITION,
        r"base .*cursor.*",
        r"set is required when prune is true",
        r"agents must have at least one element unless prune is true",
        r"agents\[\d+\]\.workspace_id must be the workspace of the request, or be left out",
        r"agents\[\d+\]\.agent_id must not name the agent of agents\[\d+\] again",
    ],
    "promoteAgentLabels": [r"to must be another label than from", r"base .*cursor.*"],
    "restoreAgentLabels": [r"revision must be 1 to \d+, .*", r"base .*cursor.*"],
    # Only this service gives out cursors, for one workspace each.
    "readChanges": [r"(the query parameter after|the header Last-Event-ID|after) .*cursor.*", r"or send Last-Event-ID"],
    "replayWebhook": [r"after .*cursor.*"],
    "listReleasedAgents": [NO_LABEL, LABEL],
    # What a budget covers is named unless it is the workspace.
    "setBudget": [SCOPE_ID, LIMIT],
    "removeBudget": [SCOPE_ID],
    # Times that have passed, and permissions that the scope does not grant.
    "createApiKey": [
        r"expires_at must be in the future",
        r"permissions\[\d+\] must be a permission of the scope \w+, got .*",
        r"agents must name 1 to 100 agents, got \d+",
    ],
    # No claim names groups.
    "setMember": [r"user_id must not begin with group:.*"],
    "removeMember": [r"user_id must not begin with group:.*"],
}


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Drops a refusal that a rule beyond the schema demands, and no other."""
    if type(failure).__name__ != "RejectedPositiveData" or response.status_code not in (400, 415):
        return True
    name = operation_id(case.operation)
    error = json.loads(response.content)["error"]
    message = error["message"] if isinstance(error, dict) else error
    rules = REFUSALS.get(name, [])
    return not all(any(re.fullmatch(rule, fault) for rule in rules) for fault in message.split("; "))


@schemathesis.hook
def before_call(context, case, kwargs):
    """Keeps requests from waiting, from reaching other machines, and from taking the tests' own rights away."""
    name = operation_id(case.operation)
    good = case.meta is None or case.meta.generation.mode.is_positive
    has_good_body = case.meta is None or not case.meta.is_negative_at(ParameterLocation.BODY)
    if good:
        for parameter in [each for each in EXCLUSIVE if each in case.query][1:]:
            del case.query[parameter]
    if name == "readChanges":
        # A stream has no end, and the wait for an event would only cost time.
        if "event-stream" in str(case.headers.get("Accept", "")):
            case.headers["Accept"] = "application/json"
        if good and "wait" in case.query:
            case.query["wait"] = 0
    if name in {"createWebhook", "updateWebhook"} and has_good_body and isinstance(case.body, dict) and "url" in case.body:
        case.body["url"] = RECEIVER
    if name in {"setMember", "removeMember"} and case.query.get("user_id") == OWNER_ID:
        case.query["user_id"] = "somebody-else"
