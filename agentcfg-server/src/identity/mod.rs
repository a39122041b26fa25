//! The identity providers that a server can have: its own, or one elsewhere that publishes keys or answers questions.

mod asked;
mod published;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_core::session::{JwksSessions, LocalSessions, SessionVerifier};
use hyper::Uri;

use self::asked::{AskedProvider, Question, basic, sensitive};
use self::published::PublishedKeys;
use crate::outbound::{Options, Outbound};
use crate::process::config::{Config, IdentityProvider};
use crate::process::datadir::DataDir;
use crate::process::server::{StartError, local_sessions};

/// How often it is looked whether keys are due.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// The first pause after a first fetch that failed; it doubles up to [`LOOK_EVERY`].
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
    Asked(Arc<AskedProvider>),
}

impl Identity {
    /// The provider that the settings name. Nothing is connected to yet.
    ///
    /// # Errors
    ///
    /// When settings are missing, or the secret of the local provider cannot be had.
    pub fn new(config: &Config, dir: Option<&DataDir>) -> Result<Self, StartError> {
        let outbound = || Outbound::new(&Options::default());
        let kind = match config.provider()? {
            IdentityProvider::Local => Kind::Local(Arc::new(local_sessions(config, dir)?)),
            IdentityProvider::Jwks {
                issuer,
                audience,
                jwks_url,
            } => {
                let keys = match jwks_url {
                    Some(url) => PublishedKeys::at(outbound()?, url),
                    None => PublishedKeys::discovered(outbound()?, issuer),
                };
                Kind::Published(JwksSessions::new(issuer, audience, keys))
            }
            IdentityProvider::Introspection {
                url,
                client_id,
                client_secret,
                issuer,
                audience,
            } => {
                let question = Question::Introspection {
                    url: url.clone(),
                    authorization: basic(client_id, client_secret),
                    issuer: issuer.map(str::to_owned),
                    audience: audience.map(str::to_owned),
                };
                Kind::Asked(Arc::new(AskedProvider::new(outbound()?, question)))
            }
            IdentityProvider::UserInfo { url, apikey } => {
                let question = Question::User {
                    url: url.clone(),
                    apikey: apikey.and_then(|apikey| sensitive(apikey.expose())),
                };
                Kind::Asked(Arc::new(AskedProvider::new(outbound()?, question)))
            }
        };
        Ok(Self { kind })
    }

    /// Who verifies session tokens.
    pub fn verifier(&self) -> Arc<dyn SessionVerifier> {
        match &self.kind {
            Kind::Local(sessions) => Arc::clone(sessions) as _,
            Kind::Published(sessions) => Arc::new(sessions.clone()),
            Kind::Asked(provider) => Arc::clone(provider) as _,
        }
    }

    /// The local provider, where that is the one: nobody else's tokens can be issued here.
    pub fn local(&self) -> Option<&LocalSessions> {
        match &self.kind {
            Kind::Local(sessions) => Some(sessions),
            _ => None,
        }
    }

    /// Fetches keys at the start and whenever they are due, until told to stop.
    pub async fn keep(self, stopped: impl Future<Output = ()>) {
        let Kind::Published(sessions) = self.kind else { return };
        let keeping = async {
            let mut pause = FIRST_PAUSE;
            loop {
                sessions.refresh(SystemClock.now()).await;
                if sessions.ready().is_ok() {
                    pause = LOOK_EVERY;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LOOK_EVERY);
            }
        };
        tokio::select! {
            () = stopped => {}
            () = keeping => {}
        }
    }
}

/// Whether requests may go to this URL as a setting or a provider gives it: absolute, HTTP, and with nothing in it that
/// would be sent along unseen.
pub fn is_plain_url(text: &str) -> bool {
    let Ok(url) = text.parse::<Uri>() else { return false };
    let http = matches!(url.scheme_str(), Some("http" | "https"));
    let host = url.host().is_some_and(|host| !host.is_empty());
    let credentials = url
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'));
    http && host && !credentials && !text.contains('#')
}

/// Where a provider with this issuer describes itself.
pub fn discovery_url(issuer: &str) -> Option<Uri> {
    if !is_plain_url(issuer) || issuer.contains('?') {
        return None;
    }
    format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
        .parse()
        .ok()
}
