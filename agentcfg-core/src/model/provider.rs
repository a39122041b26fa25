//! Model providers: whose models agents call, and with whose credential.

use serde::{Deserialize, Serialize};

use super::Timestamp;
use super::named::named;

named! {
    /// A model provider. (Interface specification, *Provider key*.)
    Provider {
        /// Anthropic.
        Anthropic = "anthropic",
        /// OpenAI.
        OpenAi = "openai",
    }
}

named! {
    /// Whether a model can be called.
    ModelStatus {
        /// It can.
        Available = "available",
        /// Not yet: calls of it are refused.
        ComingSoon = "coming_soon",
    }
}

named! {
    /// Whose credential a model call takes.
    CredentialSource {
        /// The workspace's own provider key.
        Workspace = "workspace",
        /// The credential that the deployment provides for all workspaces.
        Managed = "managed",
        /// There is none, so calls are refused.
        None = "none",
    }
}

/// A model as a workspace sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// The identifier that the provider knows it by, and that an agent's `model` names.
    pub id: String,
    /// Who runs it.
    pub provider: Provider,
    /// The name for people.
    pub display_name: String,
    /// Whether it can be called.
    pub status: ModelStatus,
    /// Whose credential the workspace's next call to this provider takes.
    pub credential: CredentialSource,
}

/// A saved provider key as it is listed: everything but the key. (Interface specification, *Provider
/// key*: its plaintext is never shown again.)
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderKeyInfo {
    /// Whose key it is.
    pub provider: Provider,
    /// When a key for this provider was first saved.
    pub created_at: Timestamp,
    /// When the key was last replaced.
    pub updated_at: Timestamp,
}
