//! The providers of the catalogue.

use std::sync::Arc;

use super::base_url::base_url;
use super::invalid::{InvalidCatalogue, check_text};
use crate::model::{CredentialHeader, Provider, ProviderApi};

/// A provider of the catalogue: where it is, and which API it speaks.
///
/// ```
/// use agentcfg_core::model::{CredentialHeader, ProviderApi};
/// use agentcfg_core::routing::CatalogueProvider;
/// let azure = CatalogueProvider::new("azure".parse()?, ProviderApi::OpenAi, "https://studio.openai.azure.com/openai/v1")?
///     .display_name("Azure OpenAI")?
///     .credential_header(CredentialHeader::ApiKey);
/// assert_eq!(azure.base_url(), "https://studio.openai.azure.com/openai/v1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueProvider {
    pub(super) id: Provider,
    pub(super) api: ProviderApi,
    pub(super) base_url: Arc<str>,
    pub(super) display_name: String,
    pub(super) credential_header: CredentialHeader,
}

impl CatalogueProvider {
    /// A provider at a base URL, which may end in any path: the paths of calls are appended. Its display name is its
    /// identifier, and its credential goes into the usual header field of its API.
    ///
    /// # Errors
    ///
    /// [`InvalidCatalogue`] if the text is no such URL, or contains credentials, a query or a fragment.
    ///
    /// ```
    /// use agentcfg_core::model::ProviderApi;
    /// use agentcfg_core::routing::CatalogueProvider;
    /// let local = CatalogueProvider::new("vllm".parse()?, ProviderApi::OpenAi, "http://10.0.0.7:8000/")?;
    /// assert_eq!(local.base_url(), "http://10.0.0.7:8000");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(id: Provider, api: ProviderApi, url: &str) -> Result<Self, InvalidCatalogue> {
        Ok(Self {
            id,
            api,
            base_url: base_url(url).map_err(|rule| InvalidCatalogue(rule.into()))?.into(),
            display_name: id.to_string(),
            credential_header: api.credential_header(),
        })
    }

    /// The same provider with another name for people.
    ///
    /// # Errors
    ///
    /// [`InvalidCatalogue`] if it is empty, has more than 100 characters or contains control characters.
    pub fn display_name(mut self, name: &str) -> Result<Self, InvalidCatalogue> {
        check_text("display_name", &format_args!("provider {}", self.id), name)?;
        name.clone_into(&mut self.display_name);
        Ok(self)
    }

    /// The same provider with another header field for its credential.
    #[must_use]
    pub fn credential_header(mut self, header: CredentialHeader) -> Self {
        self.credential_header = header;
        self
    }

    /// Its identifier.
    pub fn id(&self) -> Provider {
        self.id
    }

    /// The API that it speaks.
    pub fn api(&self) -> ProviderApi {
        self.api
    }

    /// Where its API is, without a slash at the end.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Its name for people.
    pub fn name(&self) -> &str {
        &self.display_name
    }

    /// The header field of its credential.
    pub fn header(&self) -> CredentialHeader {
        self.credential_header
    }

    pub(crate) fn shared_base_url(&self) -> Arc<str> {
        Arc::clone(&self.base_url)
    }
}
