//! Values that are derived from several settings: the place of the store, and the URLs of the server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::settings::Config;

impl Config {
    /// Whether the store is in a database that servers share instead of the data directory.
    pub(in crate::process) fn is_shared(&self) -> bool {
        self.database_url.is_some() || self.etcd_endpoints.is_some()
    }

    /// The scheme of the server's URLs.
    pub(in crate::process) fn scheme(&self) -> &'static str {
        if self.tls_cert.is_some() { "https" } else { "http" }
    }

    /// The URL of the server as browsers see it, or one with this address. Browsers cannot use the address that stands
    /// for all addresses of the machine, so it becomes that of the machine itself.
    pub(in crate::process) fn base_url(&self, mut address: SocketAddr) -> String {
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        let own = || format!("{}://{address}", self.scheme());
        self.public_url.clone().unwrap_or_else(own)
    }

    /// The login link with this code, at a server that listens on this address.
    pub(in crate::process) fn login_link(&self, address: SocketAddr, code: &str) -> String {
        format!("{}/#login={code}", self.base_url(address))
    }
}
