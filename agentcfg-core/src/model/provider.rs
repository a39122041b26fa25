//! Model providers: whose models agents call, and with whose credential.

use super::Timestamp;
use super::price::Price;
use super::word_enum::word_enum;
use crate::body::record;

word_enum! {
    /// A model provider.
    Provider {
        /// Anthropic.
        Anthropic = "anthropic",
        /// OpenAI.
        OpenAi = "openai",
    } or Unknown
}

word_enum! {
    /// Whether a model can be called.
    ModelStatus {
        /// Calls are accepted.
        Available = "available",
        /// The model is announced; calls are refused.
        ComingSoon = "coming_soon",
    } or Unknown
}

word_enum! {
    /// Whose credential a model call uses.
    CredentialSource {
        /// The workspace's own provider key.
        Workspace = "workspace",
        /// The credential that the deployment provides for all workspaces.
        Managed = "managed",
        /// There is none, so calls are refused.
        None = "none",
    } or Unknown
}

impl Provider {
    /// The number of values, [`Provider::Unknown`] included.
    pub(crate) const COUNT: usize = Self::ALL.len() + 1;

    /// All of them, in the order of their discriminants.
    pub(crate) const IN_ORDER: [Self; Self::COUNT] = [Self::Unknown, Self::Anthropic, Self::OpenAi];
}

record! {
    /// A model on offer.
    ///
    /// ```
    /// use agentcfg_core::model::{CredentialSource, ModelInfo, ModelStatus};
    /// fn can_be_called(model: &ModelInfo) -> bool {
    ///     model.status == ModelStatus::Available && model.credential != CredentialSource::None
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    ModelInfo {
        /// What requests name.
        id: required String,
        /// The provider that runs the model.
        provider: required Provider,
        /// The name for people.
        display_name: required String,
        /// Whether the model can be called.
        status: required ModelStatus,
        /// Whose credential the workspace's next call to this provider uses.
        credential: required CredentialSource,
        /// USD per million input tokens; null where the price is not known.
        input_price: nullable Price,
        /// USD per million input tokens that are read from a cache; null where they cost what input does.
        cached_input_price: nullable Price,
        /// USD per million input tokens that are written to a cache; null where they cost what input does.
        cache_write_price: nullable Price,
        /// USD per million output tokens.
        output_price: nullable Price,
        /// The most tokens of an answer, where that is known.
        max_output_tokens: nullable u64,
    }
    examples: [],
}

record! {
    /// A saved provider key, without the key.
    ///
    /// The plaintext of a saved key is never shown again.
    ///
    /// ```
    /// use agentcfg_core::model::ProviderKeyInfo;
    /// fn line(key: &ProviderKeyInfo) -> String {
    ///     format!("{}, replaced at {}", key.provider, key.updated_at)
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    ProviderKeyInfo {
        /// The provider that the key is for.
        provider: required Provider,
        /// When a key for this provider was first saved.
        created_at: required Timestamp,
        /// When the key was last replaced.
        updated_at: required Timestamp,
    }
    examples: [],
}
