//! Calls over TLS to a server whose certificate the authority in `tls/` has signed.

use std::sync::Arc;

use agentcfg_core::tls;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use super::server::{Server, answer};
use crate::{Builder, Client, RetryPolicy};

pub(super) const AUTHORITY: &str = include_str!("tls/ca.pem");

pub(super) async fn server() -> Server {
    server_with(include_bytes!("tls/localhost.pem"), include_bytes!("tls/localhost.key")).await
}

async fn server_with(certificate: &[u8], key: &[u8]) -> Server {
    let chain = vec![CertificateDer::from_pem_slice(certificate).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let script = (0..2).map(|_| answer(200, "", "[]"));
    Server::start_with(script, Some(TlsAcceptor::from(Arc::new(config)))).await
}

pub(super) fn builder(server: &Server) -> Builder {
    Client::builder(format!("https://{}", server.address())).retry(RetryPolicy::NEVER)
}

#[tokio::test]
async fn a_private_authority_is_trusted_when_configured() {
    let server = server().await;
    let client = builder(&server).root_certificates(AUTHORITY).build().unwrap();
    for _ in 0..2 {
        assert_eq!(client.list_workspaces().await.unwrap(), []);
    }
    assert_eq!(server.connections(), 1);
    assert!(CryptoProvider::get_default().is_none());
}

#[tokio::test]
async fn a_refused_certificate_ends_the_call_without_a_retry() {
    let server = server().await;
    let client = builder(&server).retry(RetryPolicy::default()).build().unwrap();
    let error = client.list_workspaces().await.unwrap_err();
    assert!(error.is_connect() && !error.is_timeout(), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the server's certificate is of an authority that is not trusted here"
    );
    assert_eq!((server.connections(), server.requests().len()), (1, 0));
}

#[tokio::test]
async fn a_server_with_the_certificate_of_an_authority_is_refused_in_plain_words() {
    let own = include_str!("tls/self-signed.pem");
    let server = server_with(own.as_bytes(), include_bytes!("tls/self-signed.key")).await;
    let client = builder(&server).root_certificates(own).build().unwrap();
    let error = client.list_workspaces().await.unwrap_err();
    let wanted = "the server's certificate is one of an authority (CA:TRUE), which no server may use";
    assert_eq!(error.to_string(), wanted);
}

#[tokio::test]
async fn an_own_configuration_replaces_roots_and_provider() {
    let server = server().await;
    let mut roots = RootCertStore::empty();
    tls::add_pem(&mut roots, AUTHORITY.as_bytes()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let build = || builder(&server).tls_config(config.clone());
    let client = build().build().unwrap();
    assert_eq!(client.list_workspaces().await.unwrap(), []);
    let both = build().root_certificates(AUTHORITY).build().unwrap_err();
    assert!(both.to_string().contains("exclude each other"), "{both}");
}

#[test]
fn pem_text_without_a_certificate_is_refused() {
    let build = |pem: &str| Client::builder("https://host").root_certificates(pem).build();
    let none = "the root certificates hold no certificate in PEM";
    assert_eq!(build("").unwrap_err().to_string(), none);
    assert_eq!(build(include_str!("tls/localhost.key")).unwrap_err().to_string(), none);
    assert!(build(&AUTHORITY.replace("END", "FIN")).is_err());
    assert!(build(AUTHORITY).is_ok());
}
