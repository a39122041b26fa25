//! What a model call asks for, and what it needs to be sent.

use std::sync::Arc;

use crate::model::into_field::settable;
use crate::model::{
    Actor, CredentialHeader, CredentialSource, ModelSettings, Provider, ProviderApi, VariableValues, VersionSelector,
    WorkspaceId,
};
use crate::routing::Reason;
use crate::secret::ProviderCredential;

settable! {
    /// The request of a model call, as far as routing needs it.
    ///
    /// ```
    /// use agentcfg_core::model::Provider;
    /// use agentcfg_core::service::ModelRequest;
    /// let request = ModelRequest::new(Provider::OPENAI, "v1/responses").model("gpt-5.5");
    /// assert_eq!(request.path, "v1/responses");
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    ModelRequest<'a> {
        /// The provider whose API is called.
        provider: Provider,
        /// The path below the provider's address, without a slash at either end.
        path: &'a str,
        /// Whether the method is `POST`, the only one that managed credentials pay for.
        is_post: bool,
        /// The model that the request names.
        model: Option<&'a str>,
        /// Whether the request has a list of further models, of which a gateway may choose: managed credentials do not
        /// pay for that, and budgets that refuse calls do not either.
        lists_models: bool,
        /// Whether the agent's settings can put in such a list: settings are filled in, and the body has no member of that
        /// name.
        takes_list_of_models: bool,
        /// Whether the agent's model can be filled in. Where it cannot, such as in a form with a file, the agent's
        /// model is ignored.
        takes_agent_model: bool,
        /// The version of the agent whose model and persona are filled in: the current one, or one by its number or a
        /// label.
        version: VersionSelector<'a>,
        /// Whether the agent's persona can be filled in, so that its required variables need values.
        takes_persona: bool,
        /// The values of variables that the call gives.
        variables: Option<&'a VariableValues>,
    }
}

impl<'a> ModelRequest<'a> {
    /// A request that names no model and takes the agent's.
    ///
    /// ```
    /// use agentcfg_core::model::Provider;
    /// use agentcfg_core::service::ModelRequest;
    /// let request = ModelRequest::new(Provider::ANTHROPIC, "v1/messages");
    /// assert_eq!(request.model, None);
    /// ```
    pub fn new(provider: Provider, path: &'a str) -> Self {
        Self {
            provider,
            path,
            is_post: true,
            model: None,
            lists_models: false,
            takes_list_of_models: true,
            takes_agent_model: true,
            version: VersionSelector::Current,
            takes_persona: true,
            variables: None,
        }
    }
}

/// Everything that a model call needs to be sent.
///
/// ```
/// use agentcfg_core::service::ModelCall;
/// fn models(call: &ModelCall) -> Vec<Option<&str>> {
///     call.attempts().map(|attempt| attempt.model.as_deref()).collect()
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ModelCall {
    /// Where the call goes.
    pub first: ModelAttempt,
    /// What is tried in turn when the one before fails before it answers. There are some only where the agent's model
    /// is filled in and its definition has `fallback_models`.
    pub fallbacks: Vec<ModelAttempt>,
    /// The number of the version of the agent that the model and the persona are of.
    pub version: u64,
    /// The persona to fill in where the request has none: the agent's with the values of its variables, unless it is
    /// empty.
    pub persona_prompt: Option<String>,
    /// The members that the body gets where it lacks them.
    pub model_settings: ModelSettings,
    /// The label that selected the version of the agent: the one that the request names, or the API key is pinned to.
    pub label: Option<String>,
    /// The workspace of the agent.
    pub workspace: WorkspaceId,
    /// The agent that the call is made as.
    pub agent_id: String,
    /// The name of the agent in that version.
    pub agent_name: String,
    /// Who calls.
    pub actor: Actor,
    /// Whether the body as it is sent has a list of models, of which a gateway may choose.
    pub(in crate::service) lists_models: bool,
    /// The revision of the workspace's budgets when the call was decided; 0 where it never had any.
    pub(in crate::service) budgets: u64,
}

/// One provider that a model call can go to, with the model and the credential for it.
///
/// `Debug` does not show the credential.
///
/// ```
/// use agentcfg_core::service::ModelAttempt;
/// fn address(attempt: &ModelAttempt, path: &str) -> String {
///     format!("{}/{path}", attempt.base_url)
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ModelAttempt {
    /// Whose API is called.
    pub provider: Provider,
    /// Where that API is, without a slash at the end. It comes from the deployment's catalogue alone.
    pub base_url: Arc<str>,
    /// The API that the provider speaks.
    pub api: ProviderApi,
    /// The header field for the credential.
    pub credential_header: CredentialHeader,
    /// The model to fill in: the agent's, or one of its fallbacks; `None` when the request names one, or none is known.
    pub model: Option<String>,
    /// What the call authenticates with.
    pub credential: ProviderCredential,
    /// Whose credential that is.
    pub source: CredentialSource,
    /// The reason of that choice, for people.
    pub reason: Reason,
}

impl ModelCall {
    /// How many models are asked for one call at most. Those that a budget does not pay for are passed over and do not
    /// count.
    pub const MAX_ATTEMPTS: usize = 3;

    /// Whether the workspace has, or had, budgets, so that the call must [reserve](crate::AgentCfg::reserve) what it
    /// can cost.
    pub fn may_have_budgets(&self) -> bool {
        self.budgets != 0
    }

    /// The first attempt and the fallbacks, in order. Of these at most [`Self::MAX_ATTEMPTS`] are to be sent.
    pub fn attempts(&self) -> impl Iterator<Item = &ModelAttempt> {
        std::iter::once(&self.first).chain(&self.fallbacks)
    }
}
