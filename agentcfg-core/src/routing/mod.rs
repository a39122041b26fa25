//! Routing of model calls: the catalogue of models, and the choice of a provider and a credential, as pure functions.

mod base_url;
mod catalogue;
mod invalid;
mod models;
mod provider;

use std::fmt;

pub use self::catalogue::{Catalogue, ManagedModels};
pub use self::invalid::InvalidCatalogue;
pub use self::models::{CatalogueModel, EmbeddingModel};
pub use self::provider::CatalogueProvider;
use crate::error::{Error, ErrorKind};
use crate::model::{CredentialSource, ModelStatus, Plan, Provider, ProviderApi};

/// Why a call uses the credential that it does: a text for people, which is written when it is shown.
///
/// ```
/// use agentcfg_core::service::ModelAttempt;
/// fn why(attempt: &ModelAttempt) -> String {
///     attempt.reason.to_string()
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

/// A model that a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked<'a> {
    /// The request names it.
    Named(&'a str),
    /// It is the agent's, which is filled in.
    FilledIn(&'a str),
    /// None is known.
    Nothing,
}

impl<'a> Asked<'a> {
    pub(crate) fn model(self) -> Option<&'a str> {
        match self {
            Self::Named(model) | Self::FilledIn(model) => Some(model),
            Self::Nothing => None,
        }
    }
}

/// The provider of a call, whose path names one: where the agent's model is filled in, the one that has it and speaks
/// the same API. A model that is not in the catalogue passes: the provider decides about it.
///
/// # Errors
///
/// [`ErrorKind::Invalid`] for a model that is coming soon or another provider's.
pub(crate) fn provider_of(
    catalogue: &Catalogue,
    named: &CatalogueProvider,
    asked: Asked<'_>,
) -> Result<Provider, Error> {
    let invalid = |message| Err(Error::new(ErrorKind::Invalid, message));
    let Some((model, (provider, status))) = asked.model().and_then(|id| Some((id, catalogue.offer(id)?))) else {
        return Ok(named.id());
    };
    if status == ModelStatus::ComingSoon {
        return invalid(format!("the model {model:?} is coming soon and cannot be called yet"));
    }
    if provider == named.id() {
        return Ok(provider);
    }
    match asked {
        Asked::FilledIn(_) if speaks(catalogue, provider, named.api()) => Ok(provider),
        Asked::FilledIn(_) => invalid(format!(
            "the agent's model {model:?} is one of {provider}, which does not speak the API of this path: it is that of {}",
            named.api()
        )),
        _ => invalid(format!(
            "the model {model:?} is one of {provider}, this call goes to {}",
            named.id()
        )),
    }
}

/// The provider of a model that may stand in for another: it is available, and of the same API.
pub(crate) fn provider_of_fallback(catalogue: &Catalogue, api: ProviderApi, model: &str) -> Option<Provider> {
    let offered = catalogue.model(model)?;
    (offered.status == ModelStatus::Available && speaks(catalogue, offered.provider, api)).then_some(offered.provider)
}

fn speaks(catalogue: &Catalogue, provider: Provider, api: ProviderApi) -> bool {
    catalogue
        .provider(provider)
        .is_some_and(|provider| provider.api() == api)
}

/// What managed credentials are asked to pay for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Purchase<'a> {
    /// Whether the method is `POST`.
    pub(crate) is_post: bool,
    /// The path at the provider.
    pub(crate) path: &'a str,
    /// The model, if it is known.
    pub(crate) model: Option<&'a str>,
    /// Whether the request has a list of further models.
    pub(crate) lists_models: bool,
}

/// Decides whose credential a call takes, and says why.
///
/// # Errors
///
/// [`ErrorKind::Forbidden`] for what managed credentials do not pay for, without a key of the workspace.
pub(crate) fn credential_for(
    catalogue: &Catalogue,
    facts: CredentialFacts,
    purchase: Purchase<'_>,
) -> Result<(CredentialSource, Reason), Error> {
    let (source, reason) = credential(facts);
    if source == CredentialSource::Workspace {
        return Ok((source, reason));
    }
    let provider = facts.provider;
    let refused = |what: fmt::Arguments<'_>, paid: fmt::Arguments<'_>| {
        let why = own_key(facts);
        let message =
            format!("{what} the workspace's own key for {provider}, managed access is for {paid} alone: {why}");
        Err(Error::new(ErrorKind::Forbidden, message))
    };
    if !purchase.is_post || !catalogue.pays_for_path(purchase.path) {
        let what = if purchase.is_post {
            "calls"
        } else {
            "other methods than POST"
        };
        return refused(
            format_args!("{what} of {} need", purchase.path),
            format_args!("POST of {}", catalogue.managed_paths().join(", ")),
        );
    }
    if source == CredentialSource::Managed && purchase.lists_models && !catalogue.pays_for_any_model() {
        let paid = format_args!("the available models of the catalogue");
        return refused(format_args!("a call with a list of models needs"), paid);
    }
    if source == CredentialSource::Managed && !catalogue.pays_for_model(provider, purchase.model) {
        let paid = format_args!("the available models of the catalogue");
        return match purchase.model {
            Some(model) => refused(format_args!("the model {model:?} needs"), paid),
            None => refused(format_args!("a call that names no model needs"), paid),
        };
    }
    Ok((source, reason))
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
