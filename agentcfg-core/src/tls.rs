//! TLS to other services, set up in one place for the database, model and identity providers, and the client.
//!
//! The crypto provider is named here, so that none has to be installed for the whole process.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};

/// Why certificates cannot be trusted.
///
/// ```
/// use agentcfg_core::tls::{RootsError, add_pem, public_roots};
/// assert!(matches!(add_pem(&mut public_roots(), b"no certificate"), Err(RootsError::None)));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RootsError {
    /// The text is not PEM.
    #[error("the root certificates are not PEM: {0}")]
    Pem(rustls::pki_types::pem::Error),
    /// A certificate is damaged, or is not one of an authority.
    #[error("a root certificate cannot be used: {0}")]
    Unusable(rustls::Error),
    /// The text has no certificate in it.
    #[error("the root certificates hold no certificate in PEM")]
    None,
}

/// The public certificate authorities.
///
/// ```
/// use agentcfg_core::tls::{client_config, public_roots};
/// let config = client_config(public_roots())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn public_roots() -> RootCertStore {
    RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned())
}

/// Trusts the certificates in a PEM text besides those in `roots`.
///
/// # Errors
///
/// When the text is not PEM, or holds no certificate, or one that cannot be used.
///
/// ```no_run
/// use agentcfg_core::tls::{add_pem, client_config, public_roots};
/// let mut roots = public_roots();
/// add_pem(&mut roots, &std::fs::read("/etc/ssl/private-authority.pem")?)?;
/// let config = client_config(roots)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn add_pem(roots: &mut RootCertStore, pem: &[u8]) -> Result<(), RootsError> {
    let before = roots.len();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots
            .add(certificate.map_err(RootsError::Pem)?)
            .map_err(RootsError::Unusable)?;
    }
    match roots.len() > before {
        true => Ok(()),
        false => Err(RootsError::None),
    }
}

/// The crypto provider.
///
/// ```
/// assert!(!agentcfg_core::tls::provider().cipher_suites.is_empty());
/// ```
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// A configuration that still lacks whom to trust.
///
/// # Errors
///
/// When the crypto provider supports no version of TLS, which this one does.
///
/// ```
/// use agentcfg_core::tls;
/// let config = tls::builder()?.with_root_certificates(tls::public_roots()).with_no_client_auth();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, rustls::Error> {
    ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()
}

/// A configuration for services that prove who they are to one of these authorities.
///
/// # Errors
///
/// As [`builder`].
///
/// ```
/// use agentcfg_core::tls::{client_config, public_roots};
/// let config = client_config(public_roots())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn client_config(roots: RootCertStore) -> Result<ClientConfig, rustls::Error> {
    Ok(builder()?.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_certificates_is_refused() {
        let mut roots = public_roots();
        for text in ["", "no certificate"] {
            assert!(
                matches!(add_pem(&mut roots, text.as_bytes()), Err(RootsError::None)),
                "{text}"
            );
        }
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(
            add_pem(&mut roots, broken.as_bytes()),
            Err(RootsError::Unusable(_))
        ));
        assert_eq!(roots.len(), public_roots().len());
        assert!(client_config(roots).is_ok());
    }
}
