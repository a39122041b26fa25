//! The options of a store, and their rules.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_core::tls;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use super::error::ConnectError;

agentcfg_core::__settable! {
    /// The addresses of the cluster, and limits of its use.
    ///
    /// ```
    /// use agentcfg_etcd::EtcdOptions;
    /// let options = EtcdOptions::new("https://etcd-1:2379,https://etcd-2:2379,https://etcd-3:2379")
    ///     .user(("agentcfg".to_owned(), "secret".to_owned()));
    /// assert!(!format!("{options:?}").contains("secret"));
    /// ```
    #[derive(Clone)]
    EtcdOptions {
        /// The addresses of the members, separated by commas: `http://host:port` or `https://host:port`. The port is
        /// 2379 where it is left out. Name all members, because the store uses those alone.
        endpoints: String,
        /// The name and the password of a user, for a cluster with authentication.
        user: Option<(String, String)>,
        /// A PEM file of authorities to trust instead of the public ones, for `https`.
        tls_ca: Option<PathBuf>,
        /// A PEM file of a certificate that the cluster asks for, and one of its key.
        tls_identity: Option<(PathBuf, PathBuf)>,
        /// What the name of each key begins with, followed by a slash: 1 to 40 letters, digits, dots, hyphens and
        /// underscores. Stores with different prefixes share a cluster.
        prefix: String,
        /// How long the first connection is retried while the cluster does not answer.
        connect_wait: Duration,
        /// The time limit of a read, over all members that it is tried on.
        read_timeout: Duration,
        /// The time limit of a commit, with the search for its outcome. After it, the outcome is unknown.
        commit_timeout: Duration,
        /// The clock of the rate windows.
        clock: Arc<dyn Clock>,
    }
}

impl EtcdOptions {
    /// The default options for these addresses.
    ///
    /// ```
    /// use agentcfg_etcd::EtcdOptions;
    /// assert_eq!(EtcdOptions::new("http://127.0.0.1:2379").prefix, "agentcfg");
    /// ```
    pub fn new(endpoints: impl Into<String>) -> Self {
        Self {
            endpoints: endpoints.into(),
            user: None,
            tls_ca: None,
            tls_identity: None,
            prefix: "agentcfg".to_owned(),
            connect_wait: Duration::ZERO,
            read_timeout: Duration::from_secs(8),
            commit_timeout: Duration::from_secs(15),
            clock: Arc::new(SystemClock),
        }
    }

    /// Checks all that a connection needs of these options, without one: the addresses, the prefix, and the files of
    /// certificates.
    ///
    /// # Errors
    ///
    /// [`ConnectError::Options`].
    ///
    /// ```
    /// use agentcfg_etcd::EtcdOptions;
    /// assert!(EtcdOptions::new("http://127.0.0.1:2379").check().is_ok());
    /// assert!(EtcdOptions::new("127.0.0.1").check().is_err());
    /// ```
    pub fn check(&self) -> Result<(), ConnectError> {
        self.key_prefix()?;
        self.members().map(drop)
    }

    /// The addresses of the members.
    pub(super) fn members(&self) -> Result<Vec<Endpoint>, ConnectError> {
        const CONNECT: Duration = Duration::from_secs(1);
        const WINDOW: u32 = 4 << 20;
        let addresses = addresses(&self.endpoints).map_err(ConnectError::Options)?;
        let tls = match addresses.iter().any(|address| address.starts_with("https://")) {
            true => Some(self.tls()?),
            false => None,
        };
        let mut members = Vec::with_capacity(addresses.len());
        for address in addresses {
            let invalid = |error: tonic::transport::Error| ConnectError::Options(format!("{address}: {error}"));
            let mut endpoint = Endpoint::from_shared(address.clone())
                .map_err(invalid)?
                .connect_timeout(CONNECT)
                .initial_stream_window_size(WINDOW)
                .initial_connection_window_size(WINDOW)
                .tcp_keepalive(Some(Duration::from_secs(10)));
            if let Some(tls) = tls.as_ref().filter(|_| address.starts_with("https://")) {
                endpoint = endpoint.tls_config(tls.clone()).map_err(invalid)?;
            }
            members.push(endpoint);
        }
        Ok(members)
    }

    fn tls(&self) -> Result<ClientTlsConfig, ConnectError> {
        // The connector would panic without one.
        tls::provider().map_err(|error| ConnectError::Options(error.to_string()))?;
        let invalid = |what: &str, path: &Path, why: &dyn fmt::Display| {
            ConnectError::Options(format!("the {what} at {} cannot be used: {why}", path.display()))
        };
        let read = |what, path: &Path| std::fs::read(path).map_err(|error| invalid(what, path, &error));
        let mut config = match &self.tls_ca {
            Some(path) => {
                const WHAT: &str = "file of authorities (tls_ca)";
                let pem = read(WHAT, path)?;
                tls::add_pem(&mut RootCertStore::empty(), &pem).map_err(|error| invalid(WHAT, path, &error))?;
                ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem))
            }
            None => ClientTlsConfig::new().with_webpki_roots(),
        };
        if let Some((certificate, key)) = &self.tls_identity {
            let (chain, pem) = (
                read("certificate (tls_cert)", certificate)?,
                read("key (tls_key)", key)?,
            );
            let certificates: Vec<_> = CertificateDer::pem_slice_iter(&chain)
                .collect::<Result<_, _>>()
                .map_err(|error| invalid("certificate (tls_cert)", certificate, &error))?;
            let private = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| invalid("key (tls_key)", key, &error))?;
            // The connector would tell no more than that it failed.
            tls::builder()
                .and_then(|builder| {
                    let builder = builder.with_root_certificates(RootCertStore::empty());
                    builder.with_client_auth_cert(certificates, private)
                })
                .map_err(|error| invalid("key (tls_key) for the certificate (tls_cert)", key, &error))?;
            config = config.identity(Identity::from_pem(chain, pem));
        }
        Ok(config)
    }

    /// What each key begins with.
    pub(super) fn key_prefix(&self) -> Result<String, ConnectError> {
        match is_prefix(&self.prefix) {
            true => Ok(format!("{}/", self.prefix)),
            false => Err(ConnectError::Options(format!(
                "the prefix {:?} must be 1 to 40 letters, digits, dots, hyphens or underscores",
                self.prefix
            ))),
        }
    }
}

/// Omits the password.
impl fmt::Debug for EtcdOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdOptions")
            .field("endpoints", &self.endpoints)
            .field("user", &self.user.as_ref().map(|(name, _)| name))
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// Whether this may be the prefix of a store's keys.
///
/// ```
/// use agentcfg_etcd::is_prefix;
/// assert!(is_prefix("agentcfg-2"));
/// assert!(!is_prefix("a/b"));
/// ```
pub fn is_prefix(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    (1..=40).contains(&text.len()) && text.bytes().all(allowed)
}

/// Whether these are addresses of members as [`EtcdOptions::endpoints`] describes them.
///
/// ```
/// use agentcfg_etcd::are_endpoints;
/// assert!(are_endpoints("http://a:2379,http://b:2379"));
/// assert!(!are_endpoints("http://user:password@a"));
/// ```
pub fn are_endpoints(text: &str) -> bool {
    addresses(text).is_ok()
}

fn addresses(text: &str) -> Result<Vec<String>, String> {
    const RULE: &str = "the endpoints must be addresses such as http://etcd-1:2379, separated by commas";
    let mut addresses = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (scheme, rest) = part.split_once("://").ok_or(RULE)?;
        let host = rest.strip_suffix('/').unwrap_or(rest);
        // An @ would separate a user from the host. The text in front of it may be a password, so that no message shows
        // it.
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
        if !["http", "https"].contains(&scheme) || host.is_empty() || !host.bytes().all(is_host) {
            return Err(RULE.to_owned());
        }
        let has_port = host
            .rsplit_once(':')
            .is_some_and(|(name, port)| port.parse::<u16>().is_ok() && (name.ends_with(']') || !name.contains(':')));
        addresses.push(match has_port {
            true => format!("{scheme}://{host}"),
            false => format!("{scheme}://{host}:2379"),
        });
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_get_the_port_that_is_left_out() {
        assert_eq!(
            addresses("http://a, https://b:1/,http://[::1]").unwrap(),
            ["http://a:2379", "https://b:1", "http://[::1]:2379"]
        );
        for text in [
            "",
            "a:2379",
            "ftp://a",
            "http://",
            "http://a,,http://b",
            "http://a/x",
            "http://u:p@a",
        ] {
            assert!(addresses(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_option_that_breaks_a_rule_is_named() {
        let wrong = EtcdOptions::new("http://a").prefix("a/b");
        assert!(wrong.key_prefix().unwrap_err().to_string().contains("a/b"));
        let lacks_file = EtcdOptions::new("https://a").tls_ca("/no/such/file.pem");
        let refused = lacks_file.members().map(drop).unwrap_err().to_string();
        assert!(refused.contains("/no/such/file.pem"), "{refused}");
    }
}
