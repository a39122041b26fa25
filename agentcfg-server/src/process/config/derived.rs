//! Values that are derived from several settings: the place of the store, and the URLs of the server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use agentcfg_core::model::Provider;
use agentcfg_core::routing::{Catalogue, InvalidCatalogue};

use super::otlp::Tracing;
use super::settings::Config;
use crate::secret::Secret;

impl Config {
    /// Whether the store is in a database that servers share instead of the data directory.
    pub(in crate::process) fn is_shared(&self) -> bool {
        self.database_url.is_some() || self.etcd_endpoints.is_some()
    }

    /// Where spans are sent, if they are.
    pub fn tracing(&self) -> Option<Tracing> {
        Tracing::of(self.otlp_endpoint.as_ref(), self.otlp_headers.as_ref(), &self.otel)
    }

    /// The providers and the models that the settings name.
    pub(in crate::process) fn catalogue(&self) -> Result<Catalogue, InvalidCatalogue> {
        let two = Catalogue::default()
            .with_base_url(Provider::OPENAI, &self.openai_base_url)?
            .with_base_url(Provider::ANTHROPIC, &self.anthropic_base_url)?;
        let with_others = self.providers.iter().cloned().try_fold(two, Catalogue::with_provider)?;
        Ok(with_others
            .with_models(self.models.clone())?
            .with_embedding_models(self.embedding_models.clone())?
            .with_managed_paths(self.managed_paths.clone())?
            .with_managed_models(self.managed_models))
    }

    /// The managed credentials by provider.
    pub(in crate::process) fn managed_credentials(&self) -> impl Iterator<Item = (Provider, &Secret)> {
        let two = [
            (Provider::OPENAI, &self.openai_api_key),
            (Provider::ANTHROPIC, &self.anthropic_api_key),
        ];
        let two = two
            .into_iter()
            .filter_map(|(provider, key)| Some((provider, key.as_ref()?)));
        two.chain(self.provider_api_keys.iter().map(|(provider, key)| (*provider, key)))
    }

    /// The scheme of the server's URLs.
    pub(in crate::process) fn scheme(&self) -> &'static str {
        if self.tls_cert.is_some() { "https" } else { "http" }
    }

    /// The URL of the server as browsers see it, or one with this address. Browsers cannot use the address that stands
    /// for all addresses of the machine, so it becomes that of the machine itself.
    pub(in crate::process) fn base_url(&self, address: SocketAddr) -> String {
        let own = || format!("{}://{}", self.scheme(), on_this_machine(address));
        self.public_url.clone().unwrap_or_else(own)
    }

    /// The login link with this code, at a server that listens on this address.
    pub(in crate::process) fn login_link(&self, address: SocketAddr, code: &str) -> String {
        format!("{}/#login={code}", self.base_url(address))
    }
}

/// An address that a client on this machine can use for one that a server listens on.
pub(in crate::process) fn on_this_machine(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}
