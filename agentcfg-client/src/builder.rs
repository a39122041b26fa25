//! Settings of a client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use rustls::ClientConfig;

use crate::client::{ClientShared, Credential, OnRetry};
use crate::connect::{self, Trust};
use crate::proxy::ProxyChoice;
use crate::{Client, Error, RetryPolicy, Timeouts};

/// Settings for a new [`Client`], created by [`Client::builder`].
///
/// ```
/// use agentcfg_client::{Client, RetryPolicy};
/// let client = Client::builder("https://agents.example.com")
///     .session_token("eyJhbGciOi")
///     .retry(RetryPolicy::NEVER)
///     .build()?;
/// # Ok::<(), agentcfg_client::Error>(())
/// ```
#[derive(Clone)]
pub struct Builder {
    url: String,
    credential: Option<(&'static str, String)>,
    timeouts: Timeouts,
    retry: RetryPolicy,
    max_response_bytes: usize,
    trust: Trust,
    proxy: ProxyChoice,
    on_retry: Option<OnRetry>,
}

impl Client {
    /// Starts to build a client for the server at this URL, which may contain a path prefix under
    /// which the server is mounted, such as `https://host/agentcfg`.
    ///
    /// ```
    /// use agentcfg_client::Client;
    /// let client = Client::builder("http://127.0.0.1:7420").build()?;
    /// # Ok::<(), agentcfg_client::Error>(())
    /// ```
    pub fn builder(url: impl Into<String>) -> Builder {
        Builder::new(url.into())
    }
}

impl Builder {
    fn new(url: String) -> Self {
        Self {
            url,
            credential: None,
            timeouts: Timeouts::default(),
            retry: RetryPolicy::default(),
            max_response_bytes: 64 * 1024 * 1024,
            trust: Trust::default(),
            proxy: ProxyChoice::default(),
            on_retry: None,
        }
    }

    /// Authenticates with an API key.
    ///
    /// ```no_run
    /// use agentcfg_client::Client;
    /// let client = Client::builder("https://agents.example.com").api_key(std::env::var("AGENTCFG_API_KEY")?).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.credential = Some(("API key", key.into()));
        self
    }

    /// Authenticates with a session token of the identity provider.
    ///
    /// Session tokens expire after an hour; [`Client::with_session_token`] takes the next one.
    ///
    /// ```
    /// use agentcfg_client::Client;
    /// let client = Client::builder("https://agents.example.com").session_token("eyJhbGciOi").build()?;
    /// # Ok::<(), agentcfg_client::Error>(())
    /// ```
    #[must_use]
    pub fn session_token(mut self, token: impl Into<String>) -> Self {
        self.credential = Some(("session token", token.into()));
        self
    }

    /// Sets the time limits of calls.
    ///
    /// ```
    /// use std::time::Duration;
    /// use agentcfg_client::{Client, Timeouts};
    /// let patient = Timeouts::default().attempt(Duration::from_secs(60)).total(Duration::from_secs(180));
    /// let client = Client::builder("https://agents.example.com").timeouts(patient).build()?;
    /// # Ok::<(), agentcfg_client::Error>(())
    /// ```
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets how failed calls are retried; [`RetryPolicy::NEVER`] turns retries off.
    ///
    /// ```
    /// use agentcfg_client::{Client, RetryPolicy};
    /// let client = Client::builder("https://agents.example.com").retry(RetryPolicy::NEVER).build()?;
    /// # Ok::<(), agentcfg_client::Error>(())
    /// ```
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Sets the maximum size of a response; the default is 64 MiB.
    ///
    /// ```
    /// use agentcfg_client::Client;
    /// let client = Client::builder("https://agents.example.com").max_response_bytes(1 << 20).build()?;
    /// # Ok::<(), agentcfg_client::Error>(())
    /// ```
    #[must_use]
    pub fn max_response_bytes(mut self, bytes: usize) -> Self {
        self.max_response_bytes = bytes;
        self
    }

    /// Trusts the certificates in this PEM text in addition to the public roots, for a server whose
    /// certificate a private authority has signed.
    ///
    /// ```no_run
    /// use agentcfg_client::Client;
    /// let authority = std::fs::read("/etc/ssl/private-authority.pem")?;
    /// let client = Client::builder("https://agents.internal").root_certificates(authority).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn root_certificates(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.trust.roots.extend_from_slice(pem.as_ref());
        self.trust.roots.push(b'\n');
        self
    }

    /// Uses this configuration of TLS, for example with the roots of the system, a certificate of the client, or
    /// another crypto provider. Its protocols for ALPN are ignored: the client speaks HTTP/1.1.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use agentcfg_client::Client;
    /// use rustls::{ClientConfig, RootCertStore};
    ///
    /// let provider = Arc::new(rustls::crypto::ring::default_provider());
    /// let tls = ClientConfig::builder_with_provider(provider)
    ///     .with_safe_default_protocol_versions()?
    ///     .with_root_certificates(RootCertStore::empty())
    ///     .with_no_client_auth();
    /// let client = Client::builder("https://agents.internal").tls_config(tls).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn tls_config(mut self, config: ClientConfig) -> Self {
        self.trust.config = Some(config);
        self
    }

    /// Sends all calls through an HTTP proxy: `http://host:port`, with `user:password@` before the host if it needs
    /// them.
    ///
    /// To an `https` server the proxy makes a tunnel (`CONNECT`), so that it sees the name of the server alone.
    /// Requests to an `http` server are forwarded by it. Without this setting and [`Self::proxy_from_env`] no proxy is
    /// used.
    ///
    /// ```
    /// use agentcfg_client::Client;
    /// let client = Client::builder("https://agents.example.com").proxy("http://proxy.internal:3128").build()?;
    /// # Ok::<(), agentcfg_client::Error>(())
    /// ```
    #[must_use]
    pub fn proxy(mut self, url: impl Into<String>) -> Self {
        self.proxy = ProxyChoice::Url(url.into());
        self
    }

    /// Sends all calls through the proxy that the environment names for the server, if any, by the rules of curl:
    /// `HTTPS_PROXY` or `HTTP_PROXY` by the scheme of the server's URL, else `ALL_PROXY`, unless the server is one of
    /// the hosts, domains and networks in `NO_PROXY`. The names may be in lower case. The environment is read by
    /// [`Self::build`].
    ///
    /// ```
    /// use agentcfg_client::Client;
    /// let client = Client::builder("https://agents.example.com").proxy_from_env().build()?;
    /// # Ok::<(), agentcfg_client::Error>(())
    /// ```
    #[must_use]
    pub fn proxy_from_env(mut self) -> Self {
        self.proxy = ProxyChoice::Environment;
        self
    }

    /// Calls this before the client waits to retry a failed call, with the failure and the delay. An app shows its user
    /// with it that, and how long, a rate limit holds the call.
    ///
    /// ```
    /// use agentcfg_client::Client;
    /// let client = Client::builder("https://agents.example.com")
    ///     .on_retry(|error, delay| eprintln!("{error}; the next attempt is in {} s", delay.as_secs()))
    ///     .build()?;
    /// # Ok::<(), agentcfg_client::Error>(())
    /// ```
    #[must_use]
    pub fn on_retry(mut self, call: impl Fn(&Error, Duration) + Send + Sync + 'static) -> Self {
        self.on_retry = Some(Arc::new(call));
        self
    }

    /// Builds the client. It connects with the first call, not here.
    ///
    /// Without a credential, only [`Client::healthy`] and [`Client::ready`] succeed.
    ///
    /// # Errors
    ///
    /// For a URL that is not `http` or `https` with a host and an optional path, for a credential
    /// that is empty or cannot be sent in a header, for PEM text without a valid certificate, for a
    /// proxy whose URL is not `http` with a host, and for `https` without a crypto provider.
    ///
    /// ```
    /// use agentcfg_client::Client;
    /// let client = Client::builder("https://agents.example.com/agentcfg").build()?;
    /// assert!(Client::builder("agents.example.com").build().is_err());
    /// # Ok::<(), agentcfg_client::Error>(())
    /// ```
    pub fn build(self) -> Result<Client, Error> {
        let base = base_url(&self.url)?;
        let credential = match &self.credential {
            Some((kind, secret)) => Credential::new(kind, secret)?,
            None => Credential::none(),
        };
        let encrypted = base.starts_with("https:");
        let server: Uri = base.parse().map_err(|error| Error::input(format!("{error}")))?;
        let proxy = self.proxy.for_server(&server)?;
        // A tunnel has the credential of its proxy, and the requests in it must not have it.
        let forwarder_auth = proxy
            .as_ref()
            .filter(|_| !encrypted)
            .and_then(|proxy| proxy.auth().cloned());
        let shared = ClientShared {
            http: connect::http(self.timeouts.connect, self.trust, encrypted, proxy)?,
            base,
            forwarder_auth,
            on_retry: self.on_retry,
            timeouts: self.timeouts,
            retry: self.retry,
            max_response_bytes: self.max_response_bytes,
        };
        Ok(Client::assemble(Arc::new(shared), credential))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL is not validated yet and may contain a password.
        f.debug_struct("Builder")
            .field(
                "credential",
                &self.credential.as_ref().map(|(kind, _)| format!("{kind} [redacted]")),
            )
            .field("timeouts", &self.timeouts)
            .field("retry", &self.retry)
            .field("max_response_bytes", &self.max_response_bytes)
            .finish_non_exhaustive()
    }
}

/// The base URL without trailing slashes; the path of each call is appended to it.
fn base_url(url: &str) -> Result<String, Error> {
    let fault = |what: &str| Error::input(format!("the server's URL {what}"));
    let uri: Uri = url
        .trim()
        .parse()
        .map_err(|error| fault(&format!("is not valid: {error}")))?;
    let scheme = match uri.scheme_str() {
        Some(scheme @ ("http" | "https")) => scheme,
        _ => {
            return Err(fault(
                "must start with http:// or https://, such as http://127.0.0.1:7420",
            ));
        }
    };
    let authority = uri.authority().ok_or_else(|| fault("must name a host"))?;
    if authority.as_str().contains('@') {
        return Err(fault("must not hold a user or password: set the credential apart"));
    }
    if authority.host().is_empty() {
        return Err(fault("must name a host"));
    }
    if authority.as_str().len() > authority.host().len() && authority.port_u16().is_none() {
        return Err(fault("must have a port from 0 to 65535, or none"));
    }
    if url.contains(['?', '#']) {
        return Err(fault("must not have a query or fragment"));
    }
    Ok(format!("{scheme}://{authority}{}", uri.path().trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_loses_its_trailing_slashes() {
        for (given, kept) in [
            ("http://127.0.0.1:7420", "http://127.0.0.1:7420"),
            (" https://host/ \n", "https://host"),
            ("HTTPS://Host/agentcfg/v1/", "https://Host/agentcfg/v1"),
            ("http://[::1]:80/", "http://[::1]:80"),
        ] {
            assert_eq!(base_url(given).unwrap(), kept, "{given}");
        }
    }

    #[test]
    fn each_kind_of_bad_url_has_its_own_message() {
        for (given, expected_text) in [
            ("", "is not valid"),
            ("host.example", "must start with http://"),
            ("ftp://host", "must start with http://"),
            ("/api", "must start with http://"),
            ("http://", "is not valid"),
            ("http://u:secret@host", "must not hold a user or password"),
            ("http://host:99999", "port"),
            ("http://host?x=1", "query or fragment"),
            ("http://host/#top", "query or fragment"),
            ("http://höst", "is not valid"),
        ] {
            let error = base_url(given).unwrap_err().to_string();
            assert!(
                error.contains(expected_text) && !error.contains("secret"),
                "{given}: {error}"
            );
        }
    }

    #[test]
    fn a_client_is_built_without_a_runtime_and_shows_no_secret() {
        let secret = "svc_live_canary";
        let builder = Client::builder("https://host/agentcfg").api_key(secret);
        assert!(!format!("{builder:?}").contains(secret));
        let client = builder.build().unwrap();
        let shown = format!("{client:?}");
        assert!(
            shown.contains("https://host/agentcfg") && shown.contains("API key"),
            "{shown}"
        );
        assert!(!shown.contains(secret), "{shown}");
        let client = client.with_session_token("canary").unwrap();
        assert!(format!("{client:?}").contains("session token"));
        assert!(!format!("{client:?}").contains("canary"));
    }

    #[test]
    fn credentials_that_no_header_can_carry_are_refused() {
        let build = |secret: &str| Client::builder("http://host").api_key(secret).build();
        assert_eq!(build("").unwrap_err().to_string(), "the API key is empty");
        for secret in ["zebra\n", "zeb ra", "zebrä"] {
            let error = build(secret).unwrap_err();
            assert_eq!(
                error.to_string(),
                "the API key holds a space, a line break or another character that cannot be sent"
            );
            assert!(!format!("{error:?}").contains("zeb"), "{error:?}");
        }
    }
}
