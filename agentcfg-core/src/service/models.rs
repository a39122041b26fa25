//! Models: what a workspace can call, and which credential and model one call uses.

use std::sync::Arc;

use super::access::Access;
use super::{AgentCfg, Caller, no_member};
use super::{prompts, records};
use crate::error::{Error, ErrorKind};
use crate::model::into_field::settable;
use crate::model::{
    Actor, AgentId, CredentialSource, Definition, IdRef, ModelInfo, ModelSettings, Permission, Plan, Provider,
    VariableValues, VersionSelector, WorkspaceId,
};
use crate::routing::{self, CredentialFacts, Reason};
use crate::secret::ProviderCredential;
use crate::vault::{OpenError, Sealed};

settable! {
    /// The request of a model call, as far as routing needs it.
    ///
    /// ```
    /// use agentcfg_core::model::Provider;
    /// use agentcfg_core::service::ModelRequest;
    /// let request = ModelRequest::new(Provider::OpenAi, "v1/responses").model("gpt-5.5");
    /// assert_eq!(request.path, "v1/responses");
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    ModelRequest<'a> {
        /// The provider whose API is called.
        provider: Provider,
        /// The path below the provider's address, without a slash at either end.
        path: &'a str,
        /// The model that the request names.
        model: Option<&'a str>,
        /// Whether the agent's model can be filled in. Where it cannot, such as in a form with a file, the agent's model is
        /// ignored.
        takes_agent_model: bool,
        /// The version of the agent whose model and persona are filled in: the current one, or one by its number or a label.
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
    /// let request = ModelRequest::new(Provider::Anthropic, "v1/messages");
    /// assert_eq!(request.model, None);
    /// ```
    pub fn new(provider: Provider, path: &'a str) -> Self {
        Self {
            provider,
            path,
            model: None,
            takes_agent_model: true,
            version: VersionSelector::Current,
            takes_persona: true,
            variables: None,
        }
    }
}

/// Everything that a call to a provider needs to be sent.
///
/// `Debug` does not show the credential.
///
/// ```
/// use agentcfg_core::service::ModelCall;
/// fn address(call: &ModelCall, path: &str) -> String {
///     format!("{}/{path}", call.base_url)
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ModelCall {
    /// Whose API is called.
    pub provider: Provider,
    /// Where that API is, without a slash at the end. It comes from the deployment's catalogue alone.
    pub base_url: Arc<str>,
    /// The number of the version of the agent that the model and the persona are of.
    pub version: u64,
    /// The model to fill in: the agent's, when the request names none.
    pub model: Option<String>,
    /// The persona to fill in where the request has none: the agent's with the values of its variables, unless it is empty.
    pub persona_prompt: Option<String>,
    /// The members that the body gets where it lacks them.
    pub model_settings: ModelSettings,
    /// What the call authenticates with.
    pub credential: ProviderCredential,
    /// Whose credential that is.
    pub source: CredentialSource,
    /// The reason of that choice, for people.
    pub reason: Reason,
    /// The workspace of the agent.
    pub workspace: WorkspaceId,
    /// The agent that the call is made as.
    pub agent_id: String,
    /// Who calls.
    pub actor: Actor,
}

/// Which model and whose credential a call would use, and why; see
/// [`AgentCfg::explain_model_call`].
///
/// ```
/// use agentcfg_core::service::ModelRoute;
/// fn line(route: &ModelRoute) -> String {
///     format!("{} with the credential of {}: {}", route.provider, route.source, route.reason)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelRoute {
    /// Whose API would be called.
    pub provider: Provider,
    /// Where that API is, without a slash at the end.
    pub base_url: Arc<str>,
    /// The model: the one that the request names, else the agent's; `None` when neither names one.
    pub model: Option<String>,
    /// Whose credential it would take; [`CredentialSource::None`] when the call would be refused because
    /// there is none.
    pub source: CredentialSource,
    /// Why, for people.
    pub reason: Reason,
}

/// A decision, with the records that it was made on.
struct Decision {
    route: ModelRoute,
    version: u64,
    /// The agent's model, when the request names none.
    model: Option<String>,
    persona_prompt: Option<String>,
    definition: Option<Definition>,
    workspace: WorkspaceId,
    /// The workspace's own key with its version, when it is the one to use.
    sealed: Option<(Sealed, u64)>,
}

/// How often a key is read again because a rotation sealed it again meanwhile.
const ROUNDS: usize = 4;

impl AgentCfg {
    /// The models of the catalogue, each with the credential that the workspace's next call would take.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `agents:read` in the workspace.
    ///
    /// ```
    /// use agentcfg_core::model::{CredentialSource, NewWorkspace};
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// let ada = service.trusted_user("ada")?;
    /// let studio = service.create_workspace(&ada, NewWorkspace::new("Studio")).await?;
    /// let models = service.list_models(&ada, studio.id).await?;
    /// assert_eq!(models.len(), 7);
    /// assert!(models.iter().all(|model| model.credential == CredentialSource::None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn list_models(&self, caller: &Caller, workspace: WorkspaceId) -> Result<Vec<ModelInfo>, Error> {
        let access = self.access(caller, workspace, Permission::AgentsRead).await?;
        let provider_keys: Vec<_> = Provider::ALL
            .iter()
            .map(|provider| records::provider_key(access.workspace(), *provider).encoded())
            .collect();
        let plan = records::workspace_plan(access.workspace());
        let (plan, provider_keys) = self.read((plan, provider_keys)).await?;
        let plan = plan.ok_or_else(no_member)?.value.plan;
        let mut sources = [CredentialSource::None; Provider::COUNT];
        for (provider, key) in Provider::ALL.iter().zip(&provider_keys) {
            let facts = self.facts(*provider, plan, key.is_some());
            sources[*provider as usize] = routing::credential(facts).0;
        }
        let models = self.catalogue().models().iter().map(|model| ModelInfo {
            id: model.id.clone(),
            provider: model.provider,
            display_name: model.display_name.clone(),
            status: model.status,
            credential: sources[model.provider as usize],
            input_price: model.prices.map(|prices| prices.input),
            cached_input_price: model.prices.and_then(|prices| prices.cached_input),
            cache_write_price: model.prices.and_then(|prices| prices.cache_write),
            output_price: model.prices.and_then(|prices| prices.output),
            max_output_tokens: model.max_output_tokens,
        });
        Ok(models.collect())
    }

    /// Decides on current state what a model call of an agent needs: address, credential, and the
    /// agent's model and persona to fill in.
    ///
    /// `workspace` may be left out where the caller has just one. A workspace key that does not open is an error, never a reason to take
    /// another credential.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `models:invoke`, [`ErrorKind::NotFound`] for an unknown or
    /// deleted agent and for an unknown version or label, [`ErrorKind::Invalid`] for a model that is coming soon or another provider's,
    /// [`ErrorKind::NotConfigured`] when there is no credential, [`ErrorKind::Forbidden`] also for a path
    /// that needs the workspace's own key when there is none, [`ErrorKind::Internal`] when the
    /// workspace's key does not open.
    ///
    /// ```
    /// use agentcfg_core::model::{CredentialSource, NewAgent, NewWorkspace, Provider};
    /// use agentcfg_core::secret::ProviderCredential;
    /// use agentcfg_core::service::ModelRequest;
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let service = AgentCfg::builder(MemoryStore::new())
    ///     .managed_credential(Provider::OpenAi, ProviderCredential::new("sk-managed")?)
    ///     .build();
    /// let ada = service.trusted_user("ada")?;
    /// let studio = service.create_workspace(&ada, NewWorkspace::new("Studio")).await?;
    /// let mut writer = NewAgent::new(studio.id, "writer".parse()?, "Writer");
    /// writer.model = Some("gpt-5.5".into());
    /// service.create_agent(&ada, writer).await?;
    ///
    /// let call = service.resolve_model_call(&ada, None, "writer", &ModelRequest::new(Provider::OpenAi, "v1/responses")).await?;
    /// assert_eq!(call.model.as_deref(), Some("gpt-5.5"));
    /// assert_eq!(call.source, CredentialSource::Managed);
    /// assert_eq!(call.credential.expose(), "sk-managed");
    ///
    /// let other = service.resolve_model_call(&ada, None, "writer", &ModelRequest::new(Provider::Anthropic, "v1/messages")).await;
    /// assert!(other.is_err(), "the agent's model is not one of Anthropic");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn resolve_model_call(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        request: &ModelRequest<'_>,
    ) -> Result<ModelCall, Error> {
        let access = self.access_default(caller, workspace, Permission::ModelsInvoke).await?;
        let agent_id = agent_id.into();
        let mut rounds = ROUNDS;
        let mut last_version = None;
        loop {
            let decision = self.decide(&access, agent_id, request).await?;
            let version = decision.sealed.as_ref().map(|(_, version)| *version);
            match self.credential(&decision) {
                Ok(credential) => return Ok(decision.into_call(credential, agent_id, access.actor())),
                // A rotation may have sealed the key again between the read of the record and that of the keyring.
                Err(_) if rounds > 0 && version.is_some() && version != last_version => {
                    rounds -= 1;
                    last_version = version;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Checks that the caller may call models in a workspace, before the call itself is read.
    ///
    /// An app calls it before it receives a long body. [`Self::resolve_model_call`] decides again: the rights may have changed
    /// by the time the body is there.
    ///
    /// # Errors
    ///
    /// [`Forbidden`](ErrorKind::Forbidden) without [`Permission::ModelsInvoke`] in the workspace, and
    /// [`Invalid`](ErrorKind::Invalid) where the workspace must be named and is not.
    pub async fn check_model_caller(&self, caller: &Caller, workspace: Option<WorkspaceId>) -> Result<(), Error> {
        self.access_default(caller, workspace, Permission::ModelsInvoke).await?;
        Ok(())
    }

    /// Explains which model and whose credential [`Self::resolve_model_call`] would use now, and why,
    /// without opening any credential.
    ///
    /// # Errors
    ///
    /// As [`Self::resolve_model_call`], except that a missing credential is an answer here.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// use agentcfg_core::service::ModelRequest;
    /// let request = ModelRequest::new(Provider::OpenAi, "v1/responses");
    /// let route = service.explain_model_call(&ada, Some(studio), "writer", &request).await?;
    /// assert_eq!(route.source, CredentialSource::None);
    /// println!("{}", route.reason);
    /// # Ok(()) }) }
    /// ```
    pub async fn explain_model_call(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        request: &ModelRequest<'_>,
    ) -> Result<ModelRoute, Error> {
        let access = self.access_default(caller, workspace, Permission::ModelsInvoke).await?;
        let agent_id = agent_id.into();
        // The route does not depend on the persona, whose variables need no values therefore.
        let request = request.takes_persona(false);
        let decision = self.decide(&access, agent_id, &request).await?;
        Ok(decision.route)
    }

    async fn decide(
        &self,
        access: &Access,
        agent_id: IdRef<'_, AgentId>,
        request: &ModelRequest<'_>,
    ) -> Result<Decision, Error> {
        let provider = request.provider;
        let more = (
            records::workspace_plan(access.workspace()),
            records::provider_key(access.workspace(), provider).encoded(),
        );
        let (version, model, persona_prompt, definition, plan, own_key) = if request.version == VersionSelector::Current
        {
            let (agent, plan, own_key) = self.called_agent_and(access, agent_id, more).await?;
            (
                agent.version(),
                agent.model,
                agent.persona_prompt,
                agent.definition,
                plan,
                own_key,
            )
        } else {
            let (agent, plan, own_key) = self.active_agent_and(access, agent_id, more).await?;
            let (version, config) = self.selected_content(access, &agent, request.version).await?;
            let config = config.unwrap_or_else(|| agent.agent.config());
            (
                version,
                config.model,
                config.persona_prompt,
                config.definition,
                plan,
                own_key,
            )
        };
        let persona_prompt = persona_prompt.filter(|_| request.takes_persona);
        let persona_prompt = prompts::render(persona_prompt, definition.as_ref(), request.variables)?;
        let agent_model = model.filter(|model| request.takes_agent_model && !model.is_empty());
        let model = request.model.or(agent_model.as_deref());
        routing::check_model(self.catalogue(), provider, model)?;

        let plan = plan.ok_or_else(no_member)?.value.plan;
        let facts = self.facts(provider, plan, own_key.is_some());
        let (source, reason) = routing::credential_for(self.catalogue(), facts, request.path)?;
        let sealed = match (own_key, source) {
            (Some(own_key), CredentialSource::Workspace) => Some((own_key.value()?.sealed, own_key.version())),
            _ => None,
        };
        Ok(Decision {
            route: ModelRoute {
                provider,
                base_url: self.catalogue().shared_base_url(provider),
                model: model.map(str::to_owned),
                source,
                reason,
            },
            version,
            model: agent_model.filter(|_| request.model.is_none()),
            persona_prompt,
            definition,
            workspace: access.workspace(),
            sealed,
        })
    }

    fn credential(&self, decision: &Decision) -> Result<ProviderCredential, Error> {
        let provider = decision.route.provider;
        let none = || {
            Error::new(
                ErrorKind::NotConfigured,
                format!("no credential: {}", decision.route.reason),
            )
        };
        match &decision.sealed {
            None if decision.route.source == CredentialSource::Managed => {
                self.managed(provider).cloned().ok_or_else(none)
            }
            None => Err(none()),
            Some((sealed, _)) => {
                // The keyring is read after the record, so that it holds every key that
                // a running rotation had sealed with by then.
                let opened = match self.vault() {
                    Some(vault) => vault.open(decision.workspace, provider, sealed),
                    None => Err(OpenError::UnknownKey(sealed.key_id())),
                };
                opened.map_err(|error| unopened(provider, error))
            }
        }
    }

    fn facts(&self, provider: Provider, plan: Plan, has_key: bool) -> CredentialFacts {
        CredentialFacts {
            provider,
            plan,
            has_key,
            is_managed: self.managed(provider).is_some(),
        }
    }
}

impl Decision {
    fn into_call(self, credential: ProviderCredential, agent_id: IdRef<'_, AgentId>, actor: Actor) -> ModelCall {
        ModelCall {
            provider: self.route.provider,
            base_url: self.route.base_url,
            version: self.version,
            model: self.model,
            persona_prompt: self.persona_prompt,
            model_settings: self
                .definition
                .map(|definition| definition.model_settings())
                .unwrap_or_default(),
            credential,
            source: self.route.source,
            reason: self.route.reason,
            workspace: self.workspace,
            agent_id: agent_id.as_str().to_owned(),
            actor,
        }
    }
}

/// The error of a saved workspace key that does not open.
fn unopened(provider: Provider, error: OpenError) -> Error {
    Error::new(
        ErrorKind::Internal,
        format!(
            "the workspace's key for {provider} is saved but cannot be decrypted with the master keys of this server, and \
             no other credential is used in its place: save the key again, or delete it"
        ),
    )
    .because(error)
}
