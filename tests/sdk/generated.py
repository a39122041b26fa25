"""A client that openapi-python-client generated from /openapi.json, as its users write it: for tests/clients/python.rs."""

import json
import os
from uuid import UUID

from agentcfg_client import AuthenticatedClient
from agentcfg_client.api.agents import create_agent, list_agents, update_agent
from agentcfg_client.api.models import call_chat_completions, call_model
from agentcfg_client.api.sessions import who_am_i
from agentcfg_client.models import (
    Agent,
    AgentPatch,
    CallChatCompletionsBody,
    Error,
    NewAgent,
    Parameters,
    Scope,
)

workspace = UUID(os.environ["WORKSPACE_ID"])
client = AuthenticatedClient(base_url=os.environ["AGENTCFG_URL"], token=os.environ["AGENTCFG_API_KEY"])


def outcome(answer):
    if isinstance(answer.parsed, Error):
        return {"status": answer.status_code, "error": answer.parsed.error}
    # The refusal of a model call has the form of the provider.
    return {"status": answer.status_code, "error": answer.parsed.error.message}


made = create_agent.sync_detailed(
    client=client, body=NewAgent(workspace_id=workspace, agent_id="writer", display_name="Writer")
)
agent = made.parsed
assert isinstance(agent, Agent), agent
listed = list_agents.sync(client=client, workspace_id=workspace, limit=10)
parameters = Parameters()
parameters["creativity"] = 0.4
patch = AgentPatch(role="Author", model=None, parameters=parameters)
etag = made.headers["ETag"]
changed = update_agent.sync_detailed(client=client, body=patch, agent_id="writer", if_match=etag)
stale = update_agent.sync_detailed(client=client, body=patch, agent_id="writer", if_match=etag)
refused = create_agent.sync_detailed(
    client=client, body=NewAgent(workspace_id=workspace, agent_id="Writer!", display_name="Writer")
)
body = CallChatCompletionsBody.from_dict({"messages": [{"role": "user", "content": "Hello"}]})
chat = call_chat_completions.sync_detailed(client=client, body=body, agent_id="writer")
# The generator encodes the slash of the path.
other = call_model.sync_detailed(
    "openai", "v1/chat/completions", client=client, body={"messages": []}, agent_id="writer"
)
who = who_am_i.sync(client=client)
assert who.workspaces[0].scope is Scope.ADMIN

print(
    json.dumps(
        {
            "made": {"type": agent.agent_type, "role": agent.role, "capabilities": agent.capabilities},
            "names": [agent.agent_id for agent in listed],
            "changed": {"role": changed.parsed.role, "parameters": changed.parsed.parameters.to_dict()},
            "stale": outcome(stale),
            "refused": outcome(refused),
            "chat": outcome(chat),
            "other": outcome(other),
            "scope": who.workspaces[0].scope,
        }
    )
)
