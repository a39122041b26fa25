//! The errors of a server's start.

use std::io;
use std::path::PathBuf;

use agentcfg_core::model::Provider;
use agentcfg_core::routing::InvalidCatalogue;
use agentcfg_core::session::ShortSecret;
use agentcfg_core::validate::Invalid;

use crate::outbound::InvalidProxy;
use crate::process::backend::BackendError;
use crate::process::certificate::CertificateError;
use crate::process::config::ConfigError;
use crate::process::datadir::DataDirError;
use crate::process::master_keys::MasterKeyFault;

/// Why the server did not start, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Settings contradict each other.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The settings break a rule of the core.
    #[error("the settings: {0}")]
    Settings(#[from] Invalid),
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The store cannot be used.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// Several servers must agree on the secret of session tokens.
    #[error(
        "session_secret is required with database_url or etcd_endpoints, because there is no data directory to keep one in: write 32 \
         random bytes or more to a file, the same for every server, and name it in AGENTCFG_SESSION_SECRET_FILE"
    )]
    NoSessionSecret,
    /// The certificate and its key cannot be used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The secret of session tokens is too short.
    #[error(transparent)]
    ShortSecret(#[from] ShortSecret),
    /// The master keys cannot be used, or are not those of the store.
    #[error(transparent)]
    MasterKeys(#[from] MasterKeyFault),
    /// The models or the addresses of the providers break a rule.
    #[error("the configuration of the models: {0}")]
    Models(#[from] InvalidCatalogue),
    /// The certificate authorities of outbound requests cannot be used.
    #[error("outbound_ca_file {}: {why}", .path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The proxy of outbound requests is none.
    #[error("outbound_proxy {0}")]
    OutboundProxy(InvalidProxy),
    /// A managed credential breaks a rule.
    #[error("the managed credential for {0} must be 1 to 500 visible ASCII characters")]
    ManagedCredential(Provider),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}; {}choose another with {setting}", if_used(.source))]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The setting that chooses it.
        setting: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// Another call of the system failed.
    #[error("cannot start: {0}")]
    Io(#[from] io::Error),
}

fn if_used(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "stop what uses it, or ",
        _ => "",
    }
}
