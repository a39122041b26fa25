// The official TypeScript client as a caller of /mcp. `MODES` is a list of the modes to connect with; standard output is one
// line of JSON for each.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const { AGENTCFG_URL, AGENTCFG_API_KEY, MODES } = process.env;

async function visit(mode, number) {
  const client = new Client({ name: 'agentcfg-tests', version: '1.0.0' }, { versionNegotiation: { mode } });
  await client.connect(
    new StreamableHTTPClientTransport(new URL('/mcp', AGENTCFG_URL), {
      requestInit: { headers: { Authorization: `Bearer ${AGENTCFG_API_KEY}` } },
    }),
  );
  const call = (name, args) => client.callTool({ name, arguments: args });
  const { tools } = await client.listTools();
  const agent_id = `writer-${number}`;
  const made = await call('create_agent', { agent_id, display_name: 'Writer', persona_prompt: 'You write.' });
  const { etag } = made.structuredContent;
  const changed = await call('update_agent', { agent_id, etag, role: 'Author', clear: ['color'] });
  const stale = await call('update_agent', { agent_id, etag, role: 'Editor' });
  const listed = await call('list_agents', {});
  await call('get_agent', { agent_id });
  await call('list_models', {});
  await call('search_audit_log', { limit: 3 });
  await call('report_status', { agent_id, status: 'idle' });
  await call('deactivate_agent', { agent_id });
  await call('restore_agent', { agent_id });
  const { resources } = await client.listResources();
  const read = await client.readResource({ uri: `agentcfg://agents/${agent_id}/prompt` });
  const { prompts } = await client.listPrompts();
  const prompt = await client.getPrompt({ name: agent_id, arguments: { task: 'Release 2.4' } });
  await client.close();
  return {
    tools: tools.length,
    role: changed.structuredContent.role,
    stale: stale.isError,
    agents: listed.structuredContent.agents.length,
    resources: resources.length,
    read: read.contents[0].text,
    prompts: prompts.length,
    prompt: prompt.messages[0].content.text,
  };
}

for (const [number, mode] of JSON.parse(MODES).entries()) {
  console.log(JSON.stringify(await visit(mode, number)));
}
