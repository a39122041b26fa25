//! Builds the parts of a server from its settings.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use agentcfg_core::Settings;
use agentcfg_core::model::{PlanLimits, Provider};
use agentcfg_core::secret::ProviderCredential;
use agentcfg_core::session::LocalSessions;

use super::config::Config;
use super::datadir::DataDir;
use super::outbound_options::outbound_options;
use super::start_error::StartError;
use crate::http::{Browser, TrustedProxies};
use crate::identity::Identity;
use crate::listen::Limits;

/// How browsers reach a server that listens on this address.
///
/// # Errors
///
/// When `public_url` is none.
pub(super) fn browser(config: &Config, address: SocketAddr) -> Result<Browser, StartError> {
    let browser = Browser::default()
        .listening_on_loopback(address.ip().is_loopback())
        .over_tls(config.tls_cert.is_some());
    Ok(match &config.public_url {
        Some(url) => browser.public_url(url).map_err(std::io::Error::other)?,
        None => browser,
    })
}

/// The identity provider.
///
/// # Errors
///
/// When its settings, or those of outbound requests, cannot be used.
pub(super) fn identity(config: &Config, dir: Option<&DataDir>) -> Result<Identity, StartError> {
    Ok(match config.provider()? {
        None => Identity::local(local_sessions(config, dir)?),
        Some(provider) => Identity::remote(provider, &outbound_options(config)?)?,
    })
}

/// The local identity provider with the deployment's secret.
///
/// # Errors
///
/// When there is neither a secret in the configuration nor a data directory, or the file there cannot be used.
pub fn local_sessions(config: &Config, dir: Option<&DataDir>) -> Result<LocalSessions, StartError> {
    Ok(match (&config.session_secret, dir) {
        (Some(secret), _) => LocalSessions::new(secret.expose().as_bytes())?,
        (None, Some(dir)) => LocalSessions::new(dir.session_secret()?.as_bytes())?,
        (None, None) => return Err(StartError::NoSessionSecret),
    })
}

/// The limits of the listener.
pub(super) fn limits_of(config: &Config) -> Limits {
    Limits {
        max_connections: config.max_connections,
        header_timeout: config.header_timeout,
        body_timeout: config.body_timeout,
        min_body_rate: config.min_body_rate,
        write_timeout: config.body_timeout,
        idle_timeout: config.idle_timeout,
        shutdown_timeout: config.shutdown_timeout,
        proxy_protocol: match config.proxy_protocol {
            true => trusted_proxies(config),
            false => TrustedProxies::default(),
        },
        ..Limits::default()
    }
}

/// The proxies in front.
pub(super) fn trusted_proxies(config: &Config) -> TrustedProxies {
    TrustedProxies::new(config.trusted_proxies.clone())
}

/// The managed credentials.
///
/// # Errors
///
/// [`StartError::ManagedCredential`] for one that breaks a rule.
pub(super) fn managed_credentials(config: &Config) -> Result<Vec<(Provider, ProviderCredential)>, StartError> {
    let given = config.managed_credentials();
    given
        .map(|(provider, secret)| {
            let credential = ProviderCredential::new(secret.expose());
            credential
                .map(|credential| (provider, credential))
                .map_err(|_| StartError::ManagedCredential(provider))
        })
        .collect()
}

/// The settings of the core.
pub(super) fn settings(config: &Config) -> Settings {
    let limit = |agents: u64| (agents > 0).then(|| u32::try_from(agents).unwrap_or(u32::MAX));
    Settings::default()
        .plan_limits(
            PlanLimits::default()
                .free(limit(config.plan_limit_free))
                .pro(limit(config.plan_limit_pro))
                .team(limit(config.plan_limit_team))
                .enterprise(limit(config.plan_limit_enterprise)),
        )
        .default_plan(config.default_plan)
        .session_rate_limit(config.session_rate_limit)
        .max_persona_prompt(config.max_persona_prompt)
        .usage_retention_days(config.usage_retention_days)
        .audit_retention_days(limit(config.audit_retention_days.into()))
        .version_retention_days(limit(config.version_retention_days.into()))
        .status_ttl_seconds(u32::try_from(config.status_ttl.as_secs()).unwrap_or(u32::MAX))
        .write_scope_configures_agents(config.write_scope_configures_agents)
        .workspace_creation(config.workspace_creation)
        .max_workspaces_per_user(limit(config.max_workspaces_per_user.into()))
        .required_claims(config.oidc_required_claims.clone())
        .groups_claim(config.oidc_groups_claim.clone())
        .operators(config.operators.iter().cloned().collect::<BTreeSet<_>>())
        .webhook_allowed_hosts(config.webhook_allowed_hosts.clone())
}
