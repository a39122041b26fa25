//! What would refuse a start, found without one.

use std::fmt::Display;
use std::io;
use std::sync::Arc;

use super::backend::{self, DatabaseLocation};
use super::certificate::Certificate;
use super::config::{Config, SessionProvider};
use super::datadir;
use super::outbound_options::outbound_options;
use super::parts::{browser, identity, managed_credentials};
use super::server::{StartError, bind};
#[cfg(feature = "dashboard")]
use super::sign_in;
use super::{master_keys, telemetry};
use crate::api::{CallTimeouts, ModelCalls};
use crate::listen::Tls;
use crate::outbound::WebhookTransport;

/// Everything for which a server with these settings would not start, one sentence each. Nothing is created or changed,
/// and no database is asked. An address that is in use is no fault, since the server itself may have it.
pub(super) async fn start_faults(config: &Config) -> Vec<String> {
    let mut faults = Faults::default();
    faults.note(telemetry::check(config));
    faults.note(check_certificate(config));
    faults.note(managed_credentials(config));
    faults.note(browser(config, config.listen));
    faults.note(master_keys::configured(config));
    if faults.note(outbound_options(config)).is_some() {
        faults.note(check_clients(config));
    }
    let is_local = config.session_provider == SessionProvider::Local;
    match DatabaseLocation::of(config) {
        Some(location) => {
            faults.note(backend::check_options(config, &location));
            if is_local && config.session_secret.is_none() {
                faults.note(Err::<(), _>(StartError::NoSessionSecret));
            }
        }
        None => {
            let of_directory = datadir::faults(&config.data, backend::expected_keys(config));
            // Others would hide what the store itself has.
            if of_directory.is_empty() && config.data.exists() {
                faults.note(backend::check_store(config).await);
            }
            for fault in of_directory {
                faults.note(Err::<(), _>(fault));
            }
        }
    }
    let metrics = config.metrics_listen.map(|address| (address, "metrics_listen"));
    for (address, setting) in [(config.listen, "listen")].into_iter().chain(metrics) {
        match bind(address, setting).await {
            Err(StartError::Listen { source, .. }) if source.kind() == io::ErrorKind::AddrInUse => {}
            bound => drop(faults.note(bound)),
        }
    }
    faults.0
}

#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    /// Adds the fault of a check, once.
    fn note<T>(&mut self, checked: Result<T, impl Display>) -> Option<T> {
        match checked {
            Ok(value) => Some(value),
            Err(error) => {
                let text = error.to_string();
                if !self.0.contains(&text) {
                    self.0.push(text);
                }
                None
            }
        }
    }
}

fn check_certificate(config: &Config) -> Result<(), StartError> {
    if let Some(certificate) = Certificate::load(config)? {
        Tls::new(Arc::clone(&certificate) as _)?;
    }
    Ok(())
}

/// The HTTP clients of a server: of model calls, webhooks and the identity provider.
fn check_clients(config: &Config) -> Result<(), StartError> {
    let options = outbound_options(config)?;
    let timeouts = CallTimeouts {
        first_byte: config.model_call_first_byte_timeout,
        idle: config.model_call_idle_timeout,
    };
    ModelCalls::with_options(timeouts, options.clone())?;
    WebhookTransport::with_options(&config.webhook_allowed_hosts, &options)?;
    // The secret of the local provider may be in the data directory, where this makes no file.
    if config.session_provider != SessionProvider::Local || config.session_secret.is_some() {
        identity(config, None)?;
    }
    #[cfg(feature = "dashboard")]
    if config.dashboard {
        sign_in::provider(config, &options)?;
    }
    Ok(())
}
