"""The official Python client as a caller of /mcp, for tests/mcp/python.rs. It prints one line of JSON for each mode."""

import asyncio
import json
import os

from mcp import Client, MCPError
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client


async def visit(mode, number):
    http = create_mcp_http_client(headers={"Authorization": f"Bearer {os.environ['AGENTCFG_API_KEY']}"})
    transport = streamable_http_client(f"{os.environ['AGENTCFG_URL']}/mcp", http_client=http)
    async with http, Client(transport, mode=mode) as client:
        agent_id = f"writer-{number}"
        tools = await client.list_tools()
        new = {"agent_id": agent_id, "display_name": "Writer", "persona_prompt": "You write.", "message": "A new desk"}
        made = await client.call_tool("create_agent", new)
        etag = made.structured_content["etag"]
        update = {"agent_id": agent_id, "etag": etag, "role": "Author", "clear": ["color"]}
        changed = await client.call_tool("update_agent", update)
        stale = await client.call_tool("update_agent", update)
        listed = await client.call_tool("list_agents", {})
        await client.call_tool("get_agent", {"agent_id": agent_id})
        await client.call_tool("list_models", {})
        log = await client.call_tool("search_audit_log", {"target_id": agent_id, "action": "agent.created"})
        await client.call_tool("report_status", {"agent_id": agent_id, "status": "idle"})
        await client.call_tool("deactivate_agent", {"agent_id": agent_id})
        await client.call_tool("restore_agent", {"agent_id": agent_id})
        resources = await client.list_resources()
        templates = await client.list_resource_templates()
        read = await client.read_resource(f"agentcfg://agents/{agent_id}/prompt")
        prompts = await client.list_prompts()
        prompt = await client.get_prompt(agent_id, {"task": "Release 2.4"})
        try:
            await client.call_tool("no_such_tool", {})
            unknown = None
        except MCPError as error:
            unknown = error.code
        return {
            "protocol": client.protocol_version,
            "server": client.server_info and client.server_info.name,
            "tools": len(tools.tools),
            "role": changed.structured_content["role"],
            "stale": stale.is_error,
            "agents": len(listed.structured_content["agents"]),
            "messages": [entry["message"] for entry in log.structured_content["entries"]],
            "resources": len(resources.resources),
            "templates": len(templates.resource_templates),
            "read": read.contents[0].text,
            "prompts": len(prompts.prompts),
            "prompt": prompt.messages[0].content.text,
            "unknown": unknown,
        }


async def main():
    for number, mode in enumerate(json.loads(os.environ["MODES"])):
        print(json.dumps(await visit(mode, number)))


asyncio.run(main())
