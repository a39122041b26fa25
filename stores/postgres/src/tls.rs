//! TLS for connections to the database.

use std::fmt;
use std::fs;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use agentcfg_core::tls;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use super::error::ConnectError;
use super::options::Target;

/// Makes TLS sessions. It has its own crypto provider, because a library must not install a global one.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

impl Tls {
    /// Where the target verifies its server, that needs a certificate of the target's authorities, or of the public
    /// ones; otherwise any certificate is accepted.
    pub(super) fn new(target: &Target) -> Result<Self, ConnectError> {
        let failed = |error: rustls::Error| ConnectError::Options(error.to_string());
        let builder = match target.verify {
            true => {
                let roots = roots(target.authorities.as_deref())?;
                tls::builder().map_err(failed)?.with_root_certificates(roots)
            }
            // For `sslmode=prefer`. That mode protects against passive eavesdropping only: a man in the middle could
            // also disable TLS altogether.
            false => tls::unverified_builder().map_err(failed)?,
        };
        let config = match &target.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let (chain, private) = (certificates(certificate)?, private_key(key)?);
                let unfit = |error| unusable("sslcert", certificate, format_args!("does not fit sslkey: {error}"));
                builder.with_client_auth_cert(chain, private).map_err(unfit)?
            }
        };
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }
}

fn unusable(parameter: &str, path: &Path, why: impl fmt::Display) -> ConnectError {
    ConnectError::Options(format!("{parameter} {}: {why}", path.display()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = read.map_err(|error| unusable("sslcert", path, error))?;
    match chain.is_empty() {
        true => Err(unusable("sslcert", path, "holds no certificate in PEM")),
        false => Ok(chain),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, ConnectError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| unusable("sslkey", path, error))
}

fn roots(authorities: Option<&Path>) -> Result<RootCertStore, ConnectError> {
    let Some(path) = authorities else {
        return Ok(tls::public_roots());
    };
    let mut roots = RootCertStore::empty();
    let pem = fs::read(path).map_err(|error| unusable("sslrootcert", path, error))?;
    tls::add_pem(&mut roots, &pem).map_err(|error| unusable("sslrootcert", path, error))?;
    Ok(roots)
}

impl<S> MakeTlsConnect<S> for Tls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type TlsConnect = Handshake;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Handshake, Self::Error> {
        // A Unix socket has no host name, and never uses TLS.
        let name = if domain.is_empty() { "localhost" } else { domain };
        Ok(Handshake {
            connector: self.0.clone(),
            name: ServerName::try_from(name.to_owned())?,
        })
    }
}

/// The parameters of one TLS handshake.
pub(super) struct Handshake {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl<S> TlsConnect<S> for Handshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let session = self.connector.connect(self.name, stream).await?;
            Ok(Stream(Box::new(session)))
        })
    }
}

/// A TLS connection.
pub(super) struct Stream<S>(Box<tokio_rustls::client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
