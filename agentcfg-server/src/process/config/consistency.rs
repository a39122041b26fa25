//! Settings that contradict each other, and settings that have no effect beside others.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use agentcfg_core::model::{Provider, WorkspaceCreation};

use super::choices::SessionProvider;
use super::flags::Flags;
use super::layers::Given;
use super::settings::Config;

/// The least number of days that audit entries are kept. An event is sent again for three days, and a webhook to which none was
/// delivered is disabled after five more.
const LEAST_RETENTION: u32 = 8;

impl Config {
    /// The contradictions between settings.
    pub(super) fn contradictions(&self, given: &Given) -> Vec<String> {
        let mut faults = Vec::new();
        match (&self.tls_cert, &self.tls_key) {
            (Some(_), None) => faults.push("tls_cert is set, which needs tls_key, the file of its key".to_owned()),
            (None, Some(_)) => {
                faults.push("tls_key is set, which needs tls_cert, the file of its certificate".to_owned())
            }
            _ => {}
        }
        if let Some(metrics) = self.metrics_listen.filter(|metrics| overlap(*metrics, self.listen)) {
            faults.push(format!(
                "listen ({}) and metrics_listen ({metrics}) are the same port: choose another for one of them",
                self.listen
            ));
        }
        if self.database_url.is_some() && self.etcd_endpoints.is_some() {
            faults.push(
                "database_url and etcd_endpoints are set, and the store is in one of them: unset the other".to_owned(),
            );
        }
        if self.proxy_protocol && self.trusted_proxies.is_empty() {
            faults.push("proxy_protocol needs trusted_proxies, the addresses of the proxies that speak it".to_owned());
        }
        if self.etcd_user.is_some() != self.etcd_password.is_some() {
            faults.push("etcd_user and etcd_password belong together: set both or none".to_owned());
        }
        if self.etcd_tls_cert.is_some() != self.etcd_tls_key.is_some() {
            faults.push("etcd_tls_cert and etcd_tls_key belong together: set both or none".to_owned());
        }
        if (1..LEAST_RETENTION).contains(&self.audit_retention_days) {
            faults.push(format!(
                "audit_retention_days must be 0 or at least {LEAST_RETENTION}, got {}: webhooks are sent events of the last days",
                self.audit_retention_days
            ));
        }
        if self.version_retention_days > 0 && self.audit_retention_days == 0 {
            faults.push(
                "version_retention_days needs audit_retention_days: a version stays as long as the audit log shows it"
                    .to_owned(),
            );
        }
        match self.catalogue() {
            Err(fault) => {
                let setting = self.setting_of_unknown_provider();
                faults.push(format!(
                    "{}: {fault}",
                    given.get(setting).map_or(setting, String::as_str)
                ));
            }
            Ok(catalogue) => {
                let mut seen = BTreeSet::new();
                for (provider, _) in self.managed_credentials() {
                    if catalogue.provider(provider).is_none() {
                        faults.push(format!(
                            "provider_api_keys has a key for {provider}, which providers does not list"
                        ));
                    }
                    if !seen.insert(provider) {
                        faults.push(format!(
                            "{provider}_api_key and provider_api_keys both have a key for {provider}: keep one"
                        ));
                    }
                }
            }
        }
        faults
    }

    /// Warns of settings that have no effect beside the others.
    pub(super) fn warn_of_unused(&mut self, flags: &Flags, given: &Given) {
        let mut unused = Vec::new();
        if let (true, Some(data)) = (self.is_shared(), &flags.data) {
            unused.push(format!(
                "--data {} is not used: the store is in the database that the settings name",
                data.display()
            ));
        }
        let of_settings = given.keys().filter_map(|name| Some((name, self.why_unused(name)?)));
        unused.extend(of_settings.map(|(name, why)| format!("{name} is not used: {why}")));
        self.warnings.extend(unused);
        self.warnings.extend(self.doubts(given));
    }

    /// Settings that have an effect which is hardly meant.
    fn doubts(&self, given: &Given) -> Vec<String> {
        let mut doubts = Vec::new();
        if self.session_provider == SessionProvider::Local {
            for (name, consequence) in [
                ("oidc_required_claims", "and are refused"),
                ("oidc_groups_claim", "and give no groups"),
            ] {
                if given.contains_key(name) {
                    doubts.push(format!(
                        "{name} is set and session_provider is local: tokens of `agentcfg-server token` have no such claims \
                         {consequence}; only tokens that an app makes with the same session_secret can have them"
                    ));
                }
            }
        }
        if self.workspace_creation == WorkspaceCreation::Operators && self.operators.is_empty() {
            doubts.push(
                "workspace_creation is operators, and operators names none: no user can create a workspace".into(),
            );
        }
        doubts
    }

    /// The setting whose models name a provider that no setting lists: it is known when all settings are read.
    fn setting_of_unknown_provider(&self) -> &'static str {
        let known = |provider| {
            [Provider::ANTHROPIC, Provider::OPENAI].contains(&provider)
                || self.providers.iter().any(|other| other.id() == provider)
        };
        match self.models.iter().all(|model| known(model.provider)) {
            true => "embedding_models",
            false => "models",
        }
    }

    /// Why a setting has no effect beside the others; `None` if it has one.
    fn why_unused(&self, name: &str) -> Option<&'static str> {
        let is_of = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let of_sign_in = ["oidc_client_id", "oidc_client_secret", "oidc_scope", "oidc_resource"];
        // Tokens of any provider can have claims.
        if ["oidc_required_claims", "oidc_groups_claim"].contains(&name) {
            return None;
        }
        match self.session_provider {
            SessionProvider::Local if is_of(&["oidc_", "introspection_", "userinfo_"]) => {
                return Some("session_provider is local, so this server issues the session tokens itself");
            }
            SessionProvider::Jwks if is_of(&["introspection_", "userinfo_"]) => {
                return Some("session_provider is jwks, so the keys of the provider verify the session tokens");
            }
            SessionProvider::Jwks if self.oidc_client_id.is_none() && of_sign_in.contains(&name) => {
                return Some("oidc_client_id is not set, so the dashboard has no sign-in by this provider");
            }
            SessionProvider::Introspection if of_sign_in.contains(&name) || name == "oidc_jwks_url" => {
                return Some(
                    "session_provider is introspection; the dashboard signs in by a provider with session_provider = jwks alone",
                );
            }
            SessionProvider::Introspection
                if self.userinfo_url.is_some() && is_of(&["oidc_", "introspection_client_"]) =>
            {
                return Some("userinfo_url is asked about each token");
            }
            SessionProvider::Introspection if self.introspection_url.is_some() && name == "userinfo_apikey" => {
                return Some("introspection_url is asked about each token");
            }
            SessionProvider::Jwks | SessionProvider::Introspection if name == "session_secret" => {
                return Some("session_provider is not local, so this server issues no session tokens");
            }
            SessionProvider::Local | SessionProvider::Jwks | SessionProvider::Introspection => {}
        }
        if is_of(&["otlp_"]) && self.otlp_endpoint.is_none() && self.otel.traces_url.is_none() {
            return Some("otlp_endpoint is not set");
        }
        if is_of(&["etcd_"]) && self.etcd_endpoints.is_none() {
            return Some("etcd_endpoints is not set");
        }
        if is_of(&["database_pool_size", "database_statements"]) && self.database_url.is_none() {
            return Some("database_url is not set");
        }
        (name == "database_wait" && !self.is_shared()).then_some("the store is in the data directory")
    }
}

/// Whether two addresses cannot both be listened on.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let is_same = one.ip() == other.ip() || one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && is_same
}
