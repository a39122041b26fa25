//! The catalogue: the providers and the models that a deployment offers.

use super::base_url::{base_url, is_segment, path};
use super::invalid::{InvalidCatalogue, check_text};
use super::models::{self, CatalogueModel, EmbeddingModel};
use super::provider::CatalogueProvider;
use crate::model::{ModelPrices, ModelStatus, Provider, ProviderApi};

/// For which models managed credentials pay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ManagedModels {
    /// The available ones of the catalogue.
    #[default]
    Catalogue,
    /// Any that the provider has.
    Any,
}

/// The providers' addresses and the models that a deployment offers.
///
/// The default has three models of Anthropic and four of OpenAI, one of them coming soon.
///
/// ```
/// use agentcfg_core::model::Provider;
/// use agentcfg_core::routing::Catalogue;
/// let catalogue = Catalogue::default().with_base_url(Provider::OPENAI, "http://127.0.0.1:9000/proxy/")?;
/// assert_eq!(catalogue.base_url(Provider::OPENAI), Some("http://127.0.0.1:9000/proxy"));
/// assert_eq!(catalogue.base_url(Provider::ANTHROPIC), Some("https://api.anthropic.com"));
/// assert_eq!(catalogue.models().len(), 7);
/// # Ok::<(), agentcfg_core::routing::InvalidCatalogue>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    providers: Vec<CatalogueProvider>,
    models: Vec<CatalogueModel>,
    embedding_models: Vec<EmbeddingModel>,
    managed_paths: Vec<String>,
    managed_models: ManagedModels,
}

impl Catalogue {
    /// The same catalogue with one more provider.
    ///
    /// # Errors
    ///
    /// [`InvalidCatalogue`] if there is one with this identifier.
    ///
    /// ```
    /// use agentcfg_core::model::ProviderApi;
    /// use agentcfg_core::routing::{Catalogue, CatalogueProvider};
    /// let local = CatalogueProvider::new("vllm".parse()?, ProviderApi::OpenAi, "http://10.0.0.7:8000")?;
    /// let catalogue = Catalogue::default().with_provider(local.clone())?;
    /// assert_eq!(catalogue.providers().len(), 3);
    /// assert!(catalogue.with_provider(local).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_provider(mut self, provider: CatalogueProvider) -> Result<Self, InvalidCatalogue> {
        if self.provider(provider.id).is_some() {
            return Err(InvalidCatalogue(format!("there is a provider {} already", provider.id)));
        }
        self.providers.push(provider);
        Ok(self)
    }

    /// The same addresses with other models, in the order in which they are listed.
    ///
    /// # Errors
    ///
    /// [`InvalidCatalogue`] if two models have the same identifier, a provider is not in the catalogue, or an
    /// identifier or a name is empty, has more than 100 characters or contains control characters.
    ///
    /// ```
    /// use agentcfg_core::model::Provider;
    /// use agentcfg_core::routing::{Catalogue, CatalogueModel};
    /// let catalogue = Catalogue::default().with_models(vec![CatalogueModel::new("gpt-5.5", Provider::OPENAI)])?;
    /// assert_eq!(catalogue.models().len(), 1);
    /// # Ok::<(), agentcfg_core::routing::InvalidCatalogue>(())
    /// ```
    pub fn with_models(mut self, models: Vec<CatalogueModel>) -> Result<Self, InvalidCatalogue> {
        self.check_ids("model", models.iter().map(|model| (&*model.id, model.provider)))?;
        for (i, model) in models.iter().enumerate() {
            check_text("display_name", &format_args!("model {}", i + 1), &model.display_name)?;
        }
        self.models = models;
        Ok(self)
    }

    /// The same catalogue with other models for embeddings.
    ///
    /// # Errors
    ///
    /// As [`Self::with_models`].
    ///
    /// ```
    /// use agentcfg_core::routing::Catalogue;
    /// let catalogue = Catalogue::default().with_embedding_models(Vec::new())?;
    /// assert!(catalogue.embedding_models().is_empty());
    /// # Ok::<(), agentcfg_core::routing::InvalidCatalogue>(())
    /// ```
    pub fn with_embedding_models(mut self, models: Vec<EmbeddingModel>) -> Result<Self, InvalidCatalogue> {
        let ids = models.iter().map(|model| (&*model.id, model.provider));
        self.check_ids("embedding model", ids)?;
        self.embedding_models = models;
        Ok(self)
    }

    fn check_ids<'a>(
        &self,
        kind: &str,
        models: impl Iterator<Item = (&'a str, Provider)>,
    ) -> Result<(), InvalidCatalogue> {
        let mut seen: Vec<&str> = Vec::new();
        for (i, (id, provider)) in models.enumerate() {
            check_text("id", &format_args!("{kind} {}", i + 1), id)?;
            if self.provider(provider).is_none() {
                return Err(InvalidCatalogue(format!(
                    "the provider {provider} of {kind} {} is not known, there are {}",
                    i + 1,
                    self.provider_names()
                )));
            }
            if seen.contains(&id) {
                return Err(InvalidCatalogue(format!("the {kind} {id:?} is listed twice")));
            }
            seen.push(id);
        }
        Ok(())
    }

    /// The same catalogue with another base URL of a provider: `http` or `https`, a host, and optionally a
    /// port and a path; trailing slashes are removed. For the two providers of the default, the path must not end in
    /// `/v1`, because the paths of calls begin with it.
    ///
    /// # Errors
    ///
    /// [`InvalidCatalogue`] if the text is not such a URL, or contains credentials, a query or a fragment, or the
    /// catalogue does not have the provider.
    ///
    /// ```
    /// use agentcfg_core::model::Provider;
    /// use agentcfg_core::routing::Catalogue;
    /// let catalogue = Catalogue::default().with_base_url(Provider::ANTHROPIC, "https://proxy.example.com/a/")?;
    /// assert_eq!(catalogue.base_url(Provider::ANTHROPIC), Some("https://proxy.example.com/a"));
    /// assert!(Catalogue::default().with_base_url(Provider::OPENAI, "https://api.openai.com/v1").is_err());
    /// # Ok::<(), agentcfg_core::routing::InvalidCatalogue>(())
    /// ```
    pub fn with_base_url(mut self, provider: Provider, url: &str) -> Result<Self, InvalidCatalogue> {
        let invalid = |rule: &str| InvalidCatalogue(rule.to_owned());
        let url = base_url(url).map_err(invalid)?;
        if [Provider::ANTHROPIC, Provider::OPENAI].contains(&provider) && path(url).rsplit('/').next() == Some("v1") {
            return Err(invalid(
                "must not end in /v1, because the paths of model calls begin with it",
            ));
        }
        let mut known = self.providers.iter_mut();
        match known.find(|known| known.id == provider) {
            Some(known) => known.base_url = url.into(),
            None => return Err(InvalidCatalogue(format!("there is no provider {provider}"))),
        }
        Ok(self)
    }

    /// The same catalogue with other paths that managed credentials pay for. Any other path needs the workspace's own
    /// provider key: a managed credential must not list files, start batches or train models for one workspace in the
    /// account that all of them share. A path counts with and without a leading `v1/`.
    ///
    /// # Errors
    ///
    /// When a path has a slash at either end, or an empty segment, or anything in it but letters, digits and `-._~`.
    ///
    /// ```
    /// use agentcfg_core::routing::Catalogue;
    /// let catalogue = Catalogue::default().with_managed_paths(vec!["v1/responses".into()])?;
    /// assert_eq!(catalogue.managed_paths(), ["v1/responses"]);
    /// # Ok::<(), agentcfg_core::routing::InvalidCatalogue>(())
    /// ```
    pub fn with_managed_paths(mut self, paths: Vec<String>) -> Result<Self, InvalidCatalogue> {
        if let Some(path) = paths.iter().find(|path| !path.split('/').all(is_segment)) {
            return Err(InvalidCatalogue(format!(
                "{path:?} must be a path such as v1/responses, without a slash at either end"
            )));
        }
        self.managed_paths = paths;
        Ok(self)
    }

    /// The same catalogue with another choice of the models that managed credentials pay for.
    ///
    /// ```
    /// use agentcfg_core::routing::{Catalogue, ManagedModels};
    /// let catalogue = Catalogue::default().with_managed_models(ManagedModels::Any);
    /// ```
    #[must_use]
    pub fn with_managed_models(mut self, models: ManagedModels) -> Self {
        self.managed_models = models;
        self
    }

    /// The paths below a provider's address that managed credentials pay for.
    ///
    /// ```
    /// use agentcfg_core::routing::Catalogue;
    /// assert!(Catalogue::default().managed_paths().contains(&"v1/responses".to_owned()));
    /// ```
    pub fn managed_paths(&self) -> &[String] {
        &self.managed_paths
    }

    /// The providers: the two of the default, and then the others in the order in which they were added.
    ///
    /// ```
    /// use agentcfg_core::routing::Catalogue;
    /// for provider in Catalogue::default().providers() {
    ///     println!("{} at {}", provider.name(), provider.base_url());
    /// }
    /// ```
    pub fn providers(&self) -> &[CatalogueProvider] {
        &self.providers
    }

    /// The provider with this identifier.
    ///
    /// ```
    /// use agentcfg_core::model::{Provider, ProviderApi};
    /// use agentcfg_core::routing::Catalogue;
    /// let catalogue = Catalogue::default();
    /// assert_eq!(catalogue.provider(Provider::OPENAI).map(|provider| provider.api()), Some(ProviderApi::OpenAi));
    /// ```
    pub fn provider(&self, id: Provider) -> Option<&CatalogueProvider> {
        self.providers.iter().find(|provider| provider.id == id)
    }

    /// The identifiers of the providers, for messages.
    pub(crate) fn provider_names(&self) -> String {
        let names: Vec<_> = self.providers.iter().map(|provider| provider.id.to_string()).collect();
        names.join(", ")
    }

    /// The base URL of a provider's API, without a trailing slash; `None` for a provider that the catalogue does not
    /// have.
    ///
    /// ```
    /// use agentcfg_core::model::Provider;
    /// use agentcfg_core::routing::Catalogue;
    /// assert_eq!(Catalogue::default().base_url(Provider::OPENAI), Some("https://api.openai.com"));
    /// ```
    pub fn base_url(&self, provider: Provider) -> Option<&str> {
        self.provider(provider).map(CatalogueProvider::base_url)
    }

    /// The models in the order in which they are listed.
    ///
    /// ```
    /// use agentcfg_core::routing::Catalogue;
    /// for model in Catalogue::default().models() {
    ///     println!("{} ({})", model.display_name, model.provider);
    /// }
    /// ```
    pub fn models(&self) -> &[CatalogueModel] {
        &self.models
    }

    /// The models for embeddings.
    ///
    /// ```
    /// use agentcfg_core::routing::Catalogue;
    /// assert_eq!(Catalogue::default().embedding_models()[0].id, "text-embedding-3-small");
    /// ```
    pub fn embedding_models(&self) -> &[EmbeddingModel] {
        &self.embedding_models
    }

    /// The model with this identifier.
    ///
    /// ```
    /// use agentcfg_core::routing::Catalogue;
    /// let catalogue = Catalogue::default();
    /// assert_eq!(catalogue.model("gpt-5.5").map(|model| model.display_name.as_str()), Some("GPT-5.5"));
    /// assert!(catalogue.model("gpt-0").is_none());
    /// ```
    pub fn model(&self, id: &str) -> Option<&CatalogueModel> {
        self.models.iter().find(|model| model.id == id)
    }

    /// What the tokens of a model cost, where that is known: of one that is listed, or of one for embeddings.
    ///
    /// ```
    /// use agentcfg_core::routing::Catalogue;
    /// let catalogue = Catalogue::default();
    /// let prices = catalogue.prices("text-embedding-3-small").ok_or("no price")?;
    /// assert_eq!((prices.input.to_string().as_str(), prices.output), ("0.02", None));
    /// assert!(catalogue.prices("gpt-0").is_none());
    /// # Ok::<(), &str>(())
    /// ```
    pub fn prices(&self, id: &str) -> Option<ModelPrices> {
        if let Some(model) = self.model(id) {
            return model.prices;
        }
        let model = self.embedding_models.iter().find(|model| model.id == id)?;
        Some(ModelPrices {
            input: model.input_price?,
            cached_input: None,
            cache_write: None,
            output: None,
        })
    }

    /// Whether a model is in the catalogue, also as one for embeddings.
    pub(crate) fn has_model(&self, id: &str) -> bool {
        self.offer(id).is_some()
    }

    /// Whose model this is, and whether it can be called; models for embeddings among them.
    pub(super) fn offer(&self, id: &str) -> Option<(Provider, ModelStatus)> {
        let listed = self.model(id).map(|model| (model.provider, model.status));
        let embedding = || self.embedding_models.iter().find(|model| model.id == id);
        listed.or_else(|| embedding().map(|model| (model.provider, ModelStatus::Available)))
    }

    /// Whether managed credentials pay for calls of this path.
    pub(super) fn pays_for_path(&self, path: &str) -> bool {
        let without_version = |path| str::strip_prefix(path, "v1/").unwrap_or(path);
        let path = without_version(path);
        self.managed_paths
            .iter()
            .any(|managed| without_version(managed) == path)
    }

    /// Whether managed credentials pay for models that are not in the catalogue.
    pub(super) fn pays_for_any_model(&self) -> bool {
        self.managed_models == ManagedModels::Any
    }

    /// Whether managed credentials pay for this model of a provider.
    pub(super) fn pays_for_model(&self, provider: Provider, model: Option<&str>) -> bool {
        self.pays_for_any_model() || model.and_then(|id| self.offer(id)) == Some((provider, ModelStatus::Available))
    }
}

impl Default for Catalogue {
    fn default() -> Self {
        const ANTHROPIC: Provider = Provider::ANTHROPIC;
        const OPENAI: Provider = Provider::OPENAI;
        let provider = |(id, api, base_url, name): (_, ProviderApi, &str, &str)| CatalogueProvider {
            id,
            api,
            base_url: base_url.into(),
            display_name: name.into(),
            credential_header: api.credential_header(),
        };
        Self {
            providers: [
                (
                    ANTHROPIC,
                    ProviderApi::Anthropic,
                    "https://api.anthropic.com",
                    "Anthropic",
                ),
                (OPENAI, ProviderApi::OpenAi, "https://api.openai.com", "OpenAI"),
            ]
            .map(provider)
            .into(),
            models: models::listed(),
            embedding_models: models::embedding(),
            managed_paths: MANAGED_PATHS.map(str::to_owned).into(),
            managed_models: ManagedModels::default(),
        }
    }
}

/// What managed credentials pay for by default: calls whose costs are those of their own tokens.
const MANAGED_PATHS: [&str; 5] = [
    "v1/chat/completions",
    "v1/responses",
    "v1/embeddings",
    "v1/messages",
    "v1/messages/count_tokens",
];
