//! Routing of model calls: the catalogue of models, and the choice of a credential, as pure functions.

mod defaults;

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::model::word_enum::OpenSet;
use crate::model::{CredentialSource, ModelPrices, ModelStatus, Plan, Price, Provider};

/// A model of the catalogue.
///
/// ```
/// use agentcfg_core::model::{ModelPrices, ModelStatus, Provider};
/// use agentcfg_core::routing::CatalogueModel;
/// let model = CatalogueModel {
///     id: "gpt-5.5".into(),
///     provider: Provider::OpenAi,
///     display_name: "GPT-5.5".into(),
///     status: ModelStatus::Available,
///     prices: Some(ModelPrices::of("5".parse()?, "30".parse()?)),
///     max_output_tokens: Some(128_000),
/// };
/// # Ok::<(), agentcfg_core::model::InvalidAmount>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueModel {
    /// The identifier of the model at its provider.
    pub id: String,
    /// The provider that serves the model.
    pub provider: Provider,
    /// The display name.
    pub display_name: String,
    /// Whether the model can be called.
    pub status: ModelStatus,
    /// What its tokens cost, where that is known (extension, chapter 25).
    pub prices: Option<ModelPrices>,
    /// The most tokens of an answer, where that is known (extension, chapter 25).
    pub max_output_tokens: Option<u64>,
}

/// A model of embeddings. It is part of the catalogue, and `GET /api/models` does not list it (extension, chapter 24).
///
/// ```
/// use agentcfg_core::model::Provider;
/// use agentcfg_core::routing::EmbeddingModel;
/// let model = EmbeddingModel {
///     id: "text-embedding-3-small".into(),
///     provider: Provider::OpenAi,
///     input_price: Some("0.02".parse()?),
/// };
/// # Ok::<(), agentcfg_core::model::InvalidAmount>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingModel {
    /// The identifier of the model at its provider.
    pub id: String,
    /// The provider that serves the model.
    pub provider: Provider,
    /// What its tokens cost, where that is known.
    pub input_price: Option<Price>,
}

/// The providers' addresses and the models that a deployment offers.
///
/// The default has three models of Anthropic and four of OpenAI, one of them coming soon.
///
/// ```
/// use agentcfg_core::model::Provider;
/// use agentcfg_core::routing::Catalogue;
/// let catalogue = Catalogue::default().with_base_url(Provider::OpenAi, "http://127.0.0.1:9000/proxy/")?;
/// assert_eq!(catalogue.base_url(Provider::OpenAi), "http://127.0.0.1:9000/proxy");
/// assert_eq!(catalogue.base_url(Provider::Anthropic), "https://api.anthropic.com");
/// assert_eq!(catalogue.models().len(), 7);
/// # Ok::<(), agentcfg_core::routing::InvalidCatalogue>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    base_urls: [Arc<str>; Provider::COUNT],
    models: Vec<CatalogueModel>,
    embedding_models: Vec<EmbeddingModel>,
    managed_paths: Vec<String>,
}

/// Why a catalogue is invalid.
///
/// ```
/// use agentcfg_core::model::Provider;
/// use agentcfg_core::routing::Catalogue;
/// let invalid = Catalogue::default().with_base_url(Provider::OpenAi, "api.example.com").unwrap_err();
/// println!("the address of openai {invalid}");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidCatalogue(String);

impl Catalogue {
    /// The same addresses with other models, in the order in which they are listed.
    ///
    /// # Errors
    ///
    /// [`InvalidCatalogue`] if two models have the same identifier, or an identifier or a name is empty,
    /// has more than 100 characters or contains control characters.
    ///
    /// ```
    /// use agentcfg_core::model::{ModelStatus, Provider};
    /// use agentcfg_core::routing::{Catalogue, CatalogueModel};
    /// let catalogue = Catalogue::default().with_models(vec![CatalogueModel {
    ///     id: "gpt-5.5".into(),
    ///     provider: Provider::OpenAi,
    ///     display_name: "GPT-5.5".into(),
    ///     status: ModelStatus::Available,
    ///     prices: None,
    ///     max_output_tokens: None,
    /// }])?;
    /// assert_eq!(catalogue.models().len(), 1);
    /// # Ok::<(), agentcfg_core::routing::InvalidCatalogue>(())
    /// ```
    pub fn with_models(mut self, models: Vec<CatalogueModel>) -> Result<Self, InvalidCatalogue> {
        for (i, model) in models.iter().enumerate() {
            for (what, text) in [("id", &model.id), ("display_name", &model.display_name)] {
                check_name(format_args!("the {what} of model {}", i + 1), text)?;
            }
            if !model.provider.is_known() {
                return Err(InvalidCatalogue(format!(
                    "the provider of model {} is not known",
                    i + 1
                )));
            }
            if models[..i].iter().any(|other| other.id == model.id) {
                return Err(InvalidCatalogue(format!("the model {:?} is listed twice", model.id)));
            }
        }
        self.models = models;
        Ok(self)
    }

    /// The same catalogue with other models of embeddings (extension, chapter 24).
    ///
    /// # Errors
    ///
    /// [`InvalidCatalogue`] as for [`Self::with_models`].
    ///
    /// ```
    /// use agentcfg_core::routing::Catalogue;
    /// let catalogue = Catalogue::default().with_embedding_models(Vec::new())?;
    /// assert!(catalogue.embedding_models().is_empty());
    /// # Ok::<(), agentcfg_core::routing::InvalidCatalogue>(())
    /// ```
    pub fn with_embedding_models(mut self, models: Vec<EmbeddingModel>) -> Result<Self, InvalidCatalogue> {
        for (i, model) in models.iter().enumerate() {
            check_name(format_args!("the id of embedding model {}", i + 1), &model.id)?;
            if models[..i].iter().any(|other| other.id == model.id) {
                return Err(InvalidCatalogue(format!(
                    "the embedding model {:?} is listed twice",
                    model.id
                )));
            }
        }
        self.embedding_models = models;
        Ok(self)
    }

    /// The same catalogue with another base URL of a provider: `http` or `https`, a host, and optionally a
    /// port and a path; trailing slashes are removed. The path must not end in `/v1`, because the paths of
    /// calls begin with it.
    ///
    /// # Errors
    ///
    /// [`InvalidCatalogue`] if the text is not such a URL, or contains credentials, a query or a fragment.
    ///
    /// ```
    /// use agentcfg_core::model::Provider;
    /// use agentcfg_core::routing::Catalogue;
    /// let catalogue = Catalogue::default().with_base_url(Provider::Anthropic, "https://proxy.example.com/a/")?;
    /// assert_eq!(catalogue.base_url(Provider::Anthropic), "https://proxy.example.com/a");
    /// assert!(Catalogue::default().with_base_url(Provider::OpenAi, "https://api.openai.com/v1").is_err());
    /// # Ok::<(), agentcfg_core::routing::InvalidCatalogue>(())
    /// ```
    pub fn with_base_url(mut self, provider: Provider, url: &str) -> Result<Self, InvalidCatalogue> {
        provider
            .known("provider")
            .map_err(|invalid| InvalidCatalogue(invalid.to_string()))?;
        self.base_urls[provider as usize] = base_url(url).map_err(|rule| InvalidCatalogue(rule.into()))?.into();
        Ok(self)
    }

    /// The same catalogue with other paths that managed credentials pay for. Any other path needs the workspace's own
    /// provider key: a managed credential must not list files, start batches or train models for one workspace in the
    /// account that all of them share.
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

    /// The paths below a provider's address that managed credentials pay for.
    ///
    /// ```
    /// use agentcfg_core::routing::Catalogue;
    /// assert!(Catalogue::default().managed_paths().contains(&"v1/responses".to_owned()));
    /// ```
    pub fn managed_paths(&self) -> &[String] {
        &self.managed_paths
    }

    /// The base URL of a provider's API, without a trailing slash. It is empty for [`Provider::Unknown`].
    ///
    /// ```
    /// use agentcfg_core::model::Provider;
    /// use agentcfg_core::routing::Catalogue;
    /// assert_eq!(Catalogue::default().base_url(Provider::OpenAi), "https://api.openai.com");
    /// ```
    pub fn base_url(&self, provider: Provider) -> &str {
        &self.base_urls[provider as usize]
    }

    pub(crate) fn shared_base_url(&self, provider: Provider) -> Arc<str> {
        Arc::clone(&self.base_urls[provider as usize])
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

    /// The models of embeddings (extension, chapter 24).
    ///
    /// ```
    /// use agentcfg_core::routing::Catalogue;
    /// assert_eq!(Catalogue::default().embedding_models()[0].id, "text-embedding-3-small");
    /// ```
    pub fn embedding_models(&self) -> &[EmbeddingModel] {
        &self.embedding_models
    }

    /// Whether a model is in the catalogue, also as one of embeddings.
    pub(crate) fn has_model(&self, id: &str) -> bool {
        self.model(id).is_some() || self.embedding_models.iter().any(|model| model.id == id)
    }

    /// What the tokens of a model cost, where that is known: of one that is listed, or of embeddings (extension, chapter 25).
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
}

impl Default for Catalogue {
    fn default() -> Self {
        Self {
            base_urls: Provider::IN_ORDER.map(|provider| match provider {
                Provider::Anthropic => "https://api.anthropic.com".into(),
                Provider::OpenAi => "https://api.openai.com".into(),
                Provider::Unknown => "".into(),
            }),
            models: defaults::models(),
            embedding_models: defaults::embedding_models(),
            managed_paths: MANAGED_PATHS.map(str::to_owned).into(),
        }
    }
}

fn check_name(what: fmt::Arguments<'_>, text: &str) -> Result<(), InvalidCatalogue> {
    let (length, max) = (text.chars().count(), crate::validate::MAX_MODEL);
    if (1..=max).contains(&length) && !text.chars().any(char::is_control) {
        return Ok(());
    }
    Err(InvalidCatalogue(format!(
        "{what} must be 1 to {max} characters without control characters, got {length}"
    )))
}

/// What managed credentials pay for by default: calls whose costs are those of their own tokens.
const MANAGED_PATHS: [&str; 5] = [
    "v1/chat/completions",
    "v1/responses",
    "v1/embeddings",
    "v1/messages",
    "v1/messages/count_tokens",
];

/// Whether this can be a segment of a path that every parser of URLs takes as it is: neither a dot segment nor an escape.
fn is_segment(part: &str) -> bool {
    part.bytes().any(|byte| byte != b'.')
        && part
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
}

/// Validates and normalises a provider's base URL; the error is the rule that it breaks.
///
/// The accepted characters have one meaning for every URL parser, so an accepted URL that is joined with
/// a path always leads to its own host.
fn base_url(text: &str) -> Result<&str, &'static str> {
    const RULE: &str = "must be http:// or https://, a host, perhaps a port and a path, with no credentials, query or \
                        fragment";
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))
        .ok_or(RULE)?;
    let trimmed = rest.trim_end_matches('/');
    let (authority, path) = trimmed.split_once('/').unwrap_or((trimmed, ""));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let is_name = !host.is_empty()
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    let is_v6 = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .is_some_and(|host| host.parse::<std::net::Ipv6Addr>().is_ok());
    let port_fits = port.is_none_or(|port| {
        port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    let path_fits = path.is_empty() || path.split('/').all(is_segment);
    if path.rsplit('/').next() == Some("v1") {
        return Err("must not end in /v1, because the paths of model calls begin with it");
    }
    if (is_name || is_v6) && port_fits && path_fits {
        Ok(&text[..text.len() - (rest.len() - trimmed.len())])
    } else {
        Err(RULE)
    }
}

/// Why a call uses the credential that it does: a text for people, which is written when it is shown.
///
/// ```
/// use agentcfg_core::service::ModelRoute;
/// fn why(route: &ModelRoute) -> String {
///     route.reason.to_string()
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Reason(CredentialFacts);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = self.0;
        let CredentialFacts { provider, plan, .. } = facts;
        match facts.source() {
            CredentialSource::Workspace => write!(
                f,
                "the workspace has saved a key for {provider} and its plan {plan} allows that"
            ),
            CredentialSource::Managed => write!(f, "{}; managed access is used", own_key(facts)),
            _ => write!(
                f,
                "{}, and this server has no managed access to {provider}",
                own_key(facts)
            ),
        }
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

/// The input of the choice of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CredentialFacts {
    pub(crate) provider: Provider,
    pub(crate) plan: Plan,
    /// Whether the workspace has saved a key for the provider.
    pub(crate) has_key: bool,
    /// Whether the deployment has a credential for the provider.
    pub(crate) is_managed: bool,
}

/// Refuses a model that cannot be called through this provider. A model that is not in the catalogue
/// passes: the provider decides about it.
pub(crate) fn check_model(catalogue: &Catalogue, provider: Provider, model: Option<&str>) -> Result<(), Error> {
    let Some(known) = model.and_then(|id| catalogue.model(id)) else {
        return Ok(());
    };
    if known.status == ModelStatus::ComingSoon {
        return Err(Error::new(
            ErrorKind::Invalid,
            format!("the model {:?} is coming soon and cannot be called yet", known.id),
        ));
    }
    if known.provider != provider {
        return Err(Error::new(
            ErrorKind::Invalid,
            format!(
                "the model {:?} is one of {}, this call goes to {provider}",
                known.id, known.provider
            ),
        ));
    }
    Ok(())
}

/// Decides whose credential the call of a path takes, and says why.
///
/// # Errors
///
/// [`ErrorKind::Forbidden`] for a path that managed credentials do not pay for, without a key of the workspace.
pub(crate) fn credential_for(
    catalogue: &Catalogue,
    facts: CredentialFacts,
    path: &str,
) -> Result<(CredentialSource, Reason), Error> {
    let (source, reason) = credential(facts);
    if source == CredentialSource::Workspace || catalogue.managed_paths().iter().any(|managed| managed == path) {
        return Ok((source, reason));
    }
    Err(Error::new(
        ErrorKind::Forbidden,
        format!(
            "calls of {path} need the workspace's own key for {}, managed access is for {} alone: {}",
            facts.provider,
            catalogue.managed_paths().join(", "),
            own_key(facts)
        ),
    ))
}

/// Chooses whose credential the next call uses, and returns the reason.
pub(crate) fn credential(facts: CredentialFacts) -> (CredentialSource, Reason) {
    (facts.source(), Reason(facts))
}

impl CredentialFacts {
    fn source(self) -> CredentialSource {
        if self.has_key && self.plan.allows_provider_keys() {
            CredentialSource::Workspace
        } else if self.is_managed {
            CredentialSource::Managed
        } else {
            CredentialSource::None
        }
    }
}

/// Why the workspace's own key is not used.
fn own_key(facts: CredentialFacts) -> String {
    let CredentialFacts { provider, plan, .. } = facts;
    match facts.has_key {
        true => format!("the workspace has saved a key for {provider}, but its plan {plan} does not allow to use it"),
        false => format!("the workspace has saved no key for {provider}"),
    }
}
