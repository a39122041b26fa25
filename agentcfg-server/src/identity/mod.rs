//! The identity providers that a server can have: its own, or an external one that publishes keys or is asked about
//! tokens.

#[cfg(feature = "dashboard")]
mod code_flow;
mod discovery;
mod introspection;
mod jwks;
mod remote;
#[cfg(test)]
mod tests;
mod url;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_core::session::{JwksSessions, LocalSessions, SessionVerifier};

#[cfg(feature = "dashboard")]
pub use self::code_flow::{CodeFlow, CodeFlowError, OidcClient};
use self::introspection::{RemoteCheck, RemoteVerifier, basic, sensitive};
use self::jwks::PublishedKeys;
pub use self::remote::RemoteProvider;
pub use self::url::{discovery_url, is_plain_url};
use crate::outbound::{Options, Outbound};

/// The pause between two attempts to reach the provider, of which readiness tells.
const PROBE_EVERY: Duration = Duration::from_secs(10);
/// The first pause after a failed first attempt. It doubles up to [`PROBE_EVERY`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The identity provider of a server, as the settings choose it.
#[derive(Clone)]
pub struct Identity {
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Local(Arc<LocalSessions>),
    Published(JwksSessions),
    Remote(Arc<RemoteVerifier>),
}

impl Identity {
    /// This server issues and verifies tokens itself.
    pub fn local(sessions: LocalSessions) -> Self {
        Self {
            kind: Kind::Local(Arc::new(sessions)),
        }
    }

    /// An external provider. No connection is made yet.
    ///
    /// # Errors
    ///
    /// When TLS cannot be set up.
    pub fn remote(provider: RemoteProvider<'_>, options: &Options) -> io::Result<Self> {
        let outbound = Outbound::new(options)?;
        let kind = match provider {
            RemoteProvider::Jwks {
                issuer,
                audience,
                jwks_url,
            } => {
                let keys = match jwks_url {
                    Some(url) => PublishedKeys::at(outbound, url),
                    None => PublishedKeys::discovered(outbound, issuer),
                };
                Kind::Published(JwksSessions::new(issuer, audience, keys))
            }
            RemoteProvider::Introspection {
                url,
                client_id,
                client_secret,
                issuer,
                audience,
            } => {
                let check = RemoteCheck::Introspection {
                    url: url.clone(),
                    authorization: basic(client_id, client_secret),
                    issuer: issuer.map(str::to_owned),
                    audience: audience.map(str::to_owned),
                };
                Kind::Remote(Arc::new(RemoteVerifier::new(outbound, check)))
            }
            RemoteProvider::UserInfo { url, apikey } => {
                let check = RemoteCheck::User {
                    url: url.clone(),
                    apikey: apikey.and_then(|apikey| sensitive(apikey.expose())),
                };
                Kind::Remote(Arc::new(RemoteVerifier::new(outbound, check)))
            }
        };
        Ok(Self { kind })
    }

    /// The verifier of session tokens.
    pub fn verifier(&self) -> Arc<dyn SessionVerifier> {
        match &self.kind {
            Kind::Local(sessions) => Arc::clone(sessions) as _,
            Kind::Published(sessions) => Arc::new(sessions.clone()),
            Kind::Remote(provider) => Arc::clone(provider) as _,
        }
    }

    /// The local provider, if it is configured. Tokens of other providers cannot be issued here.
    pub fn sessions(&self) -> Option<&LocalSessions> {
        match &self.kind {
            Kind::Local(sessions) => Some(sessions),
            _ => None,
        }
    }

    /// Asks an external provider at the start and periodically whether it can be reached, until `stopped` resolves.
    /// Published keys are fetched with that.
    pub async fn keep(self, stopped: impl Future<Output = ()>) {
        let verifier = match &self.kind {
            Kind::Local(_) => return,
            Kind::Published(_) | Kind::Remote(_) => self.verifier(),
        };
        let keeping = async {
            let mut pause = FIRST_PAUSE;
            loop {
                match &self.kind {
                    Kind::Local(_) => {}
                    Kind::Published(sessions) => sessions.probe(SystemClock.now()).await,
                    Kind::Remote(provider) => provider.probe(SystemClock.now()).await,
                }
                if verifier.ready().is_ok() {
                    pause = PROBE_EVERY;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PROBE_EVERY);
            }
        };
        tokio::select! {
            () = stopped => {}
            () = keeping => {}
        }
    }
}
