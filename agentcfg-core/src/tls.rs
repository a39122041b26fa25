//! TLS to other services, set up in one place for the database, model and identity providers, and the client.
//!
//! The crypto provider is named here, so that none has to be installed for the whole process. The features `tls-ring`
//! and `tls-aws-lc` choose it.

use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme, WantsVerifier};

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
/// assert!(!agentcfg_core::tls::public_roots().is_empty());
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

/// There is no crypto provider, so that TLS cannot be spoken.
///
/// ```
/// assert!(agentcfg_core::tls::NoProvider.to_string().contains("tls-aws-lc"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no crypto provider: enable the feature tls-aws-lc or tls-ring of the crate, or install a provider for the whole process"
)]
pub struct NoProvider;

/// The crypto provider: the one that the app has installed for the whole process, or else the one that the features
/// `tls-ring` and `tls-aws-lc` choose. With both features it is *ring*. None is ever installed here.
///
/// # Errors
///
/// [`NoProvider`], within [`rustls::Error::Other`], if there is none.
///
/// ```
/// fn cipher_suites() -> Result<usize, rustls::Error> {
///     Ok(agentcfg_core::tls::provider()?.cipher_suites.len())
/// }
/// ```
pub fn provider() -> Result<Arc<CryptoProvider>, rustls::Error> {
    match CryptoProvider::get_default() {
        Some(installed) => Ok(installed.clone()),
        None => of_features(),
    }
}

cfg_if::cfg_if! {
    if #[cfg(feature = "tls-ring")] {
        fn of_features() -> Result<Arc<CryptoProvider>, rustls::Error> {
            Ok(Arc::new(rustls::crypto::ring::default_provider()))
        }
    } else if #[cfg(feature = "tls-aws-lc")] {
        fn of_features() -> Result<Arc<CryptoProvider>, rustls::Error> {
            Ok(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        }
    } else {
        fn of_features() -> Result<Arc<CryptoProvider>, rustls::Error> {
            Err(rustls::Error::Other(rustls::OtherError(Arc::new(NoProvider))))
        }
    }
}

/// A configuration that still lacks whom to trust.
///
/// # Errors
///
/// When there is no crypto provider, or it supports no version of TLS.
///
/// ```
/// use agentcfg_core::tls;
/// fn public_authorities() -> Result<rustls::ClientConfig, rustls::Error> {
///     Ok(tls::builder()?.with_root_certificates(tls::public_roots()).with_no_client_auth())
/// }
/// ```
pub fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, rustls::Error> {
    ClientConfig::builder_with_provider(provider()?).with_safe_default_protocol_versions()
}

/// A configuration for services that prove who they are to one of these authorities.
///
/// # Errors
///
/// As [`builder`].
///
/// ```
/// use agentcfg_core::tls::{client_config, public_roots};
/// fn public_authorities() -> Result<rustls::ClientConfig, rustls::Error> {
///     client_config(public_roots())
/// }
/// ```
pub fn client_config(roots: RootCertStore) -> Result<ClientConfig, rustls::Error> {
    Ok(builder()?.with_root_certificates(roots).with_no_client_auth())
}

/// A configuration that accepts the certificate of any server: it protects against passive eavesdropping only.
///
/// # Errors
///
/// As [`builder`].
///
/// ```
/// use agentcfg_core::tls;
/// fn any_server() -> Result<rustls::ClientConfig, rustls::Error> {
///     Ok(tls::unverified_builder()?.with_no_client_auth())
/// }
/// ```
pub fn unverified_builder() -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, rustls::Error> {
    let verifier = Arc::new(AcceptAnyCertificate(provider()?));
    Ok(builder()?.dangerous().with_custom_certificate_verifier(verifier))
}

/// Accepts every certificate, and checks that the server has its key.
#[derive(Debug)]
struct AcceptAnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
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
        assert_eq!(client_config(roots).is_ok(), provider().is_ok());
    }

    #[test]
    fn a_provider_is_used_without_being_installed() {
        let has_one = cfg!(any(feature = "tls-ring", feature = "tls-aws-lc"));
        assert_eq!(provider().is_ok(), has_one);
        assert!(CryptoProvider::get_default().is_none());
    }
}
