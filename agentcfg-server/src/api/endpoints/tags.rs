//! The groups in which the OpenAPI document shows the endpoints.

use crate::api::endpoint::Tag;

pub(super) const AGENTS: Tag = Tag {
    name: "Agents",
    description: "Configurations of agents.",
};

pub(super) const AGENT_STATUS: Tag = Tag {
    name: "Agent status",
    description: "What agents are doing right now.",
};

pub(super) const VERSIONS: Tag = Tag {
    name: "Versions",
    description: "What agents were, and labels that release a version.",
};

pub(super) const SESSIONS: Tag = Tag {
    name: "Sessions",
    description: "Who the caller is, and sessions of browsers.",
};

pub(super) const WORKSPACES: Tag = Tag {
    name: "Workspaces",
    description: "Workspaces and their plans.",
};

pub(super) const MEMBERS: Tag = Tag {
    name: "Members",
    description: "Who may do what in a workspace.",
};

pub(super) const API_KEYS: Tag = Tag {
    name: "API keys",
    description: "Credentials for tools.",
};

pub(super) const AUDIT_LOG: Tag = Tag {
    name: "Audit log",
    description: "The changes in a workspace, with their actors.",
};

pub(super) const CHANGES: Tag = Tag {
    name: "Changes",
    description: "The changes in a workspace as they happen.",
};

pub(super) const MODELS: Tag = Tag {
    name: "Models",
    description: "Models on offer, and the workspace's own credentials for them.",
};

pub(super) const USAGE: Tag = Tag {
    name: "Usage",
    description: "What model calls use, and what that costs.",
};

pub(super) const WEBHOOKS: Tag = Tag {
    name: "Webhooks",
    description: "Events of a workspace, sent to URLs and signed as Standard Webhooks describes.",
};

pub(super) const OPERATORS: Tag = Tag {
    name: "Operators",
    description: "All workspaces of the deployment, for the users that its settings name as operators.",
};

pub(super) const MCP: Tag = Tag {
    name: "Model Context Protocol",
    description: "Agents, their prompts and their status as tools, resources and prompts of an AI client.",
};

pub(super) const SYSTEM: Tag = Tag {
    name: "System",
    description: "Health, readiness and this document; without credential.",
};
