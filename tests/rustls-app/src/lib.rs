//! An app that uses rustls with its default features beside the client with its default features.
#![cfg(test)]

use agentcfg_client::Client;
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};

fn config() -> ClientConfig {
    ClientConfig::builder()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth()
}

#[test]
fn the_client_leaves_the_choice_of_the_provider_to_rustls() {
    let client = || Client::builder("https://agents.example.com");
    client().build().expect("the client has a provider");
    assert!(CryptoProvider::get_default().is_none(), "the client installs none");
    // It panics if the features of the client bring a second provider.
    let config = config();
    client().tls_config(config).build().expect("the configuration of the app");
    // The app's configuration has installed one for the process.
    client().build().expect("the provider of the process");
}
