//! Model calls: where a call goes, with which model and whose credential.

mod call;

pub use self::call::{ModelAttempt, ModelCall, ModelRequest};
use super::access::Access;
use super::prompts;
use super::records::{self, Encoded, Lookup, StoredProviderKey};
use super::{AgentCfg, Caller, known_provider, no_member};
use crate::error::{Error, ErrorKind};
use crate::model::{
    Actor, AgentId, CredentialSource, Definition, IdRef, ModelSettings, Permission, Plan, Provider, ProviderApi,
    VersionSelector, WorkspaceId,
};
use crate::routing::{self, Asked, CatalogueProvider, Purchase, Reason};
use crate::secret::ProviderCredential;
use crate::vault::{OpenError, Sealed};

/// What a call is made with, before any credential is opened.
struct Decision {
    first: Route,
    fallbacks: Vec<Route>,
    agent_name: String,
    version: u64,
    label: Option<String>,
    persona_prompt: Option<String>,
    settings: ModelSettings,
    lists_models: bool,
    workspace: WorkspaceId,
    /// The revision of the workspace's budgets.
    budgets: u64,
}

/// A provider that the call can go to.
struct Route {
    provider: CatalogueProvider,
    model: Option<String>,
    source: CredentialSource,
    reason: Reason,
    /// The workspace's own key with its version, when it is the one to use.
    sealed: Option<(Sealed, u64)>,
}

/// The content of an agent that a call needs.
struct Content {
    name: String,
    version: u64,
    model: Option<String>,
    persona_prompt: Option<String>,
    definition: Option<Definition>,
}

/// How often a key is read again because a rotation sealed it again meanwhile.
const ROUNDS: usize = 4;

type OwnKey = Option<Encoded<StoredProviderKey>>;

impl AgentCfg {
    /// Decides on current state what a model call of an agent needs: address, credential, and the
    /// agent's model and persona to fill in.
    ///
    /// `workspace` may be left out where the caller has just one. A workspace key that does not open is an error, never
    /// a reason to take another credential.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `models:invoke`, [`ErrorKind::NotFound`] for an unknown or
    /// deleted agent and for an unknown version or label, [`ErrorKind::Invalid`] for a model that is coming soon or
    /// another provider's, [`ErrorKind::NotConfigured`] when there is no credential, [`ErrorKind::Forbidden`] also for
    /// a path that needs the workspace's own key when there is none, [`ErrorKind::Internal`] when the workspace's key
    /// does not open.
    ///
    /// ```
    /// use agentcfg_core::model::{CredentialSource, NewAgent, NewWorkspace, Provider};
    /// use agentcfg_core::secret::ProviderCredential;
    /// use agentcfg_core::service::ModelRequest;
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let service = AgentCfg::builder(MemoryStore::new())
    ///     .managed_credential(Provider::OPENAI, ProviderCredential::new("sk-managed")?)
    ///     .build();
    /// let ada = service.trusted_user("ada")?;
    /// let studio = service.create_workspace(&ada, NewWorkspace::new("Studio")).await?;
    /// let mut writer = NewAgent::new(studio.id, "writer".parse()?, "Writer");
    /// writer.model = Some("gpt-5.5".into());
    /// service.create_agent(&ada, writer).await?;
    ///
    /// let call = service.resolve_model_call(&ada, None, "writer", &ModelRequest::new(Provider::OPENAI, "v1/responses")).await?;
    /// assert_eq!(call.first.model.as_deref(), Some("gpt-5.5"));
    /// assert_eq!(call.first.source, CredentialSource::Managed);
    /// assert_eq!(call.first.credential.expose(), "sk-managed");
    ///
    /// let other = service.resolve_model_call(&ada, None, "writer", &ModelRequest::new(Provider::ANTHROPIC, "v1/messages")).await;
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
            let version = decision.first.sealed.as_ref().map(|(_, version)| *version);
            match self.open(decision.workspace, &decision.first) {
                Ok(credential) => {
                    let call = self.with_credentials(decision, credential, agent_id.as_str(), access.actor());
                    return Ok(call);
                }
                // A rotation may have sealed the key again between the read of the record and that of the keyring.
                Err(_) if rounds > 0 && version.is_some() && version != last_version => {
                    rounds -= 1;
                    last_version = version;
                }
                Err(error) => return Err(error.of_model(decision.first.model.as_deref())),
            }
        }
    }

    /// Checks that the caller may call models in a workspace, before the call itself is read.
    ///
    /// An app calls it before it receives a long body. [`Self::resolve_model_call`] decides again: the rights may have
    /// changed by the time the body is there.
    ///
    /// # Errors
    ///
    /// [`Forbidden`](ErrorKind::Forbidden) without [`Permission::ModelsInvoke`] in the workspace, and
    /// [`Invalid`](ErrorKind::Invalid) where the workspace must be named and is not.
    pub async fn check_model_caller(&self, caller: &Caller, workspace: Option<WorkspaceId>) -> Result<(), Error> {
        self.access_default(caller, workspace, Permission::ModelsInvoke).await?;
        Ok(())
    }

    async fn decide(
        &self,
        access: &Access,
        agent_id: IdRef<'_, AgentId>,
        request: &ModelRequest<'_>,
    ) -> Result<Decision, Error> {
        let catalogue = self.catalogue();
        let named = known_provider(&catalogue, request.provider)?;
        let more = (
            records::workspace_plan(access.workspace()),
            records::provider_key(access.workspace(), named.id()).encoded(),
            records::budgets_head(access.workspace()),
        );
        let version = access.limits().select(request.version)?;
        let (content, (plan, own_key, budgets)) = self.called_content(access, agent_id, version, more).await?;
        let plan = plan.ok_or_else(no_member)?.value.plan;
        let persona_prompt = content.persona_prompt.filter(|_| request.takes_persona);
        let persona_prompt = prompts::render(persona_prompt, content.definition.as_ref(), request.variables)?;

        let agents_model = content
            .model
            .filter(|model| request.takes_agent_model && !model.is_empty());
        let asked = match (request.model, &agents_model) {
            (Some(model), _) => Asked::Named(model),
            (None, Some(model)) => Asked::FilledIn(model),
            (None, None) => Asked::Nothing,
        };
        let filled_in = asked.model().filter(|_| request.model.is_none()).map(str::to_owned);
        let refused = |error: Error| error.of_model(filled_in.as_deref());
        let provider = routing::provider_of(&catalogue, named, asked).map_err(refused)?;
        let fallbacks = match (asked, &content.definition) {
            (Asked::FilledIn(model), Some(definition)) => self.fallbacks(named.api(), model, definition),
            _ => Vec::new(),
        };
        let mut own_keys = vec![(named.id(), own_key)];
        let others = fallbacks.iter().map(|(provider, _)| *provider).chain([provider]);
        self.read_other_keys(access, others, &mut own_keys).await?;

        let settings = content.definition.map(|definition| definition.model_settings());
        let settings = settings.unwrap_or_default();
        let lists_models = request.lists_models || (request.takes_list_of_models && settings.lists_models());
        let route = |provider, asked: Option<&str>, filled_in| {
            let own_key = own_keys.iter().find(|(of, _)| *of == provider);
            self.route(
                &request.lists_models(lists_models),
                plan,
                provider,
                asked,
                own_key.and_then(|(_, key)| key.as_ref()),
            )
            .map(|route| Route {
                model: filled_in,
                ..route
            })
        };
        let first = route(provider, asked.model(), filled_in.clone()).map_err(refused)?;
        let fallbacks = fallbacks.into_iter().filter_map(|(provider, model)| {
            let route = route(provider, Some(&model), Some(model.clone()));
            route.ok().filter(|route| route.source != CredentialSource::None)
        });
        Ok(Decision {
            first,
            fallbacks: fallbacks.collect(),
            agent_name: content.name,
            version: content.version,
            label: match version {
                VersionSelector::Label(label) => Some(label.to_owned()),
                _ => None,
            },
            persona_prompt,
            settings,
            lists_models,
            workspace: access.workspace(),
            budgets: budgets.map_or(0, |head| head.value.revision),
        })
    }

    /// The content of the agent with three other records: the current one in one read, an earlier one in two.
    async fn called_content<A: Lookup, B: Lookup, C: Lookup>(
        &self,
        access: &Access,
        agent_id: IdRef<'_, AgentId>,
        version: VersionSelector<'_>,
        more: (A, B, C),
    ) -> Result<(Content, (A::Found, B::Found, C::Found)), Error> {
        if version == VersionSelector::Current {
            let (agent, more) = self.called_agent_and(access, agent_id, more).await?;
            let content = Content {
                version: agent.version(),
                name: agent.display_name,
                model: agent.model,
                persona_prompt: agent.persona_prompt,
                definition: agent.definition,
            };
            return Ok((content, more));
        }
        let (agent, more) = self.active_agent_and(access, agent_id, more).await?;
        let (version, config) = self.selected_content(access, &agent, version).await?;
        let config = config.unwrap_or_else(|| agent.agent.config());
        let content = Content {
            name: config.display_name,
            version,
            model: config.model,
            persona_prompt: config.persona_prompt,
            definition: config.definition,
        };
        Ok((content, more))
    }

    /// The models that may stand in for an agent's, with their providers, in the order of the definition.
    fn fallbacks(&self, api: ProviderApi, model: &str, definition: &Definition) -> Vec<(Provider, String)> {
        let mut fallbacks: Vec<(Provider, String)> = Vec::new();
        for fallback in definition.fallback_models() {
            let is_new = fallback != model && fallbacks.iter().all(|(_, known)| *known != fallback);
            let provider = routing::provider_of_fallback(&self.catalogue(), api, &fallback);
            if let (Some(provider), true) = (provider, is_new) {
                fallbacks.push((provider, fallback));
            }
        }
        fallbacks
    }

    /// Reads the workspace's keys for providers that have none in the list yet.
    async fn read_other_keys(
        &self,
        access: &Access,
        providers: impl Iterator<Item = Provider>,
        keys: &mut Vec<(Provider, OwnKey)>,
    ) -> Result<(), Error> {
        let mut missing: Vec<_> = providers
            .filter(|provider| keys.iter().all(|(known, _)| known != provider))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        missing.sort_unstable();
        missing.dedup();
        let lookups = missing
            .iter()
            .map(|provider| records::provider_key(access.workspace(), *provider).encoded());
        let found = self.read(lookups.collect::<Vec<_>>()).await?;
        keys.extend(missing.into_iter().zip(found));
        Ok(())
    }

    /// Whose credential a call to a provider takes.
    fn route(
        &self,
        request: &ModelRequest<'_>,
        plan: Plan,
        provider: Provider,
        model: Option<&str>,
        own_key: Option<&Encoded<StoredProviderKey>>,
    ) -> Result<Route, Error> {
        let facts = self.facts(provider, plan, own_key.is_some());
        let purchase = Purchase {
            is_post: request.is_post,
            path: request.path,
            model,
            lists_models: request.lists_models,
        };
        let catalogue = self.catalogue();
        let (source, reason) = routing::credential_for(&catalogue, facts, purchase)?;
        let sealed = match (own_key, source) {
            (Some(own_key), CredentialSource::Workspace) => Some((own_key.value()?.sealed, own_key.version())),
            _ => None,
        };
        Ok(Route {
            provider: known_provider(&catalogue, provider)?.clone(),
            model: None,
            source,
            reason,
            sealed,
        })
    }

    /// The credential of a route.
    fn open(&self, workspace: WorkspaceId, route: &Route) -> Result<ProviderCredential, Error> {
        let provider = route.provider.id();
        match &route.sealed {
            Some((sealed, _)) => self.open_provider_key(workspace, provider, sealed),
            None => {
                let managed = self
                    .managed(provider)
                    .filter(|_| route.source == CredentialSource::Managed);
                let none = || Error::new(ErrorKind::NotConfigured, format!("no credential: {}", route.reason));
                managed.cloned().ok_or_else(none)
            }
        }
    }

    /// The saved key of a workspace in plaintext.
    pub(super) fn open_provider_key(
        &self,
        workspace: WorkspaceId,
        provider: Provider,
        sealed: &Sealed,
    ) -> Result<ProviderCredential, Error> {
        // The keyring is read after the record, so that it holds every key that a running rotation had sealed with by
        // then.
        let opened = match self.vault() {
            Some(vault) => vault.open(workspace, provider, sealed),
            None => Err(OpenError::UnknownKey(sealed.key_id())),
        };
        opened.map_err(|error| unopened(provider, error))
    }

    /// The call with the credential of its first route. A fallback whose credential does not open is passed over.
    fn with_credentials(
        &self,
        decision: Decision,
        first: ProviderCredential,
        agent_id: &str,
        actor: Actor,
    ) -> ModelCall {
        let mut fallbacks = Vec::new();
        for route in decision.fallbacks {
            match self.open(decision.workspace, &route) {
                Ok(credential) => fallbacks.push(route.with(credential)),
                Err(error) => tracing::error!(%error, "a fallback model is passed over"),
            }
        }
        ModelCall {
            first: decision.first.with(first),
            fallbacks,
            version: decision.version,
            label: decision.label,
            persona_prompt: decision.persona_prompt,
            model_settings: decision.settings,
            lists_models: decision.lists_models,
            workspace: decision.workspace,
            budgets: decision.budgets,
            agent_id: agent_id.to_owned(),
            agent_name: decision.agent_name,
            actor,
        }
    }
}

impl Route {
    fn with(self, credential: ProviderCredential) -> ModelAttempt {
        ModelAttempt {
            provider: self.provider.id(),
            base_url: self.provider.shared_base_url(),
            api: self.provider.api(),
            credential_header: self.provider.header(),
            model: self.model,
            credential,
            source: self.source,
            reason: self.reason,
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
