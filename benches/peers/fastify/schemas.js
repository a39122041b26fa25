// The schemas of the create request and of the responses.
const text = { type: ["string", "null"] };

export const failure = { type: "object", properties: { error: { type: "string" } } };

const fields = {
  workspace_id: { type: "string" },
  agent_id: { type: "string", pattern: "^[a-z0-9_-]{1,50}$" },
  display_name: { type: "string", minLength: 1, maxLength: 100 },
  role: { ...text, maxLength: 100 },
  description: { ...text, maxLength: 2000 },
  agent_type: { type: "string", enum: ["ai", "human"], default: "ai" },
  model: { ...text, maxLength: 100 },
  color: { ...text, pattern: "^#([0-9a-fA-F]{3,4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})$" },
  persona_prompt: { ...text, maxLength: 5000 },
  capabilities: { type: "array", maxItems: 100, items: { type: "string", minLength: 1, maxLength: 100 }, default: [] },
  parameters: { type: "object", maxProperties: 100, additionalProperties: { type: "number" }, default: {} },
};

export const newAgent = {
  type: "object",
  required: ["workspace_id", "agent_id", "display_name"],
  additionalProperties: false,
  properties: fields,
};

export const agent = {
  type: "object",
  properties: {
    id: { type: "string" },
    ...fields,
    is_active: { type: "boolean" },
    created_at: { type: "string" },
    updated_at: { type: "string" },
  },
};
