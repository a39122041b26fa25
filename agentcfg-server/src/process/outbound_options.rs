//! What everything that goes out has in common: further certificate authorities, and a proxy.

use std::fs;
use std::path::Path;

use agentcfg_core::tls;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::config::Config;
use super::start_error::StartError;
use crate::outbound::{Egress, Options};

/// The options of the HTTP clients.
///
/// # Errors
///
/// When the file of the authorities cannot be used, or the proxy is none.
pub(super) fn outbound_options(config: &Config) -> Result<Options, StartError> {
    let mut options = Options::default();
    if let Some(path) = &config.outbound_ca_file {
        options.extra_roots = authorities(path).map_err(|why| StartError::Authorities {
            path: path.clone(),
            why,
        })?;
    }
    if let Some(proxy) = &config.outbound_proxy {
        let egress = Egress::through(proxy.expose(), &config.no_proxy.join(","));
        options.egress = egress.map_err(StartError::OutboundProxy)?;
    }
    Ok(options)
}

fn authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = fs::read(path).map_err(|error| error.to_string())?;
    tls::add_pem(&mut RootCertStore::empty(), &pem).map_err(|error| error.to_string())?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    read.map_err(|error| error.to_string())
}
