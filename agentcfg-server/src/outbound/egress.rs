//! Outbound connections, direct or through the configured proxy.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper::header::HeaderValue;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

/// An error of any kind.
pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// The proxy that requests go out through, and the hosts that are reached directly.
///
/// ```
/// use agentcfg_server::Egress;
/// let egress = Egress::through("http://proxy.internal:3128", "localhost,.internal,10.0.0.0/8")?;
/// # Ok::<(), agentcfg_server::InvalidProxy>(())
/// ```
#[derive(Clone, Default)]
pub struct Egress(Option<Arc<Matcher>>);

/// The text is no URL of a proxy. It may have a password, so that the error does not quote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be http://host:port, with or without user:password@")]
pub struct InvalidProxy;

impl Egress {
    /// Through a proxy, except to these hosts: names, domains with a dot in front, addresses and networks, separated by
    /// commas. A `*` alone stands for all hosts, as for curl.
    ///
    /// # Errors
    ///
    /// When the text is no URL of a proxy that is reached by `http`.
    pub fn through(proxy: &str, except: &str) -> Result<Self, InvalidProxy> {
        let of_any = Matcher::builder().all(proxy.trim()).build();
        let found = of_any.intercept(&Uri::from_static("https://example.com"));
        let uri = found.as_ref().map(Intercept::uri).ok_or(InvalidProxy)?;
        if uri.scheme_str() != Some("http") || uri.host().is_none_or(str::is_empty) || has_path(proxy.trim()) {
            return Err(InvalidProxy);
        }
        // The matcher takes it for all names alone, and would send requests to addresses through the proxy.
        if except.trim() == "*" {
            return Ok(Self::default());
        }
        let matcher = Matcher::builder().all(proxy.trim()).no(except).build();
        Ok(Self(Some(Arc::new(matcher))))
    }

    /// The proxy for a URL, if it is not reached directly.
    fn proxy(&self, url: &Uri) -> Option<Intercept> {
        self.0.as_ref()?.intercept(url)
    }

    /// What a request to a `http` URL that goes through a proxy has in addition: the proxy reads it. A `https` URL is
    /// reached by a tunnel, whose request has it.
    pub(super) fn forwarding(&self, url: &Uri) -> Option<Forwarding> {
        let is_plain = url.scheme_str() == Some("http");
        let proxy = is_plain.then(|| self.proxy(url)).flatten()?;
        Some(Forwarding {
            authorization: proxy.basic_auth().cloned(),
        })
    }

    /// A tunnel through the proxy for this URL; `None` where it is reached directly.
    pub(super) async fn tunnel(&self, url: &Uri) -> Option<Result<TokioIo<TcpStream>, BoxError>> {
        let proxy = self.proxy(url)?;
        Some(open(proxy, HttpConnector::new(), with_port(url)).await)
    }
}

/// A `http` URL with its port: a tunnel is one to port 443 where the URL has none.
fn with_port(url: &Uri) -> Uri {
    let host = url
        .host()
        .filter(|_| url.scheme_str() == Some("http") && url.port().is_none());
    let authority = host.and_then(|host| format!("{host}:80").parse().ok());
    let mut parts = url.clone().into_parts();
    parts.authority = authority.or(parts.authority);
    Uri::from_parts(parts).unwrap_or_else(|_| url.clone())
}

/// Whether a URL has more than its root, which the matcher drops.
fn has_path(url: &str) -> bool {
    let written: Result<Uri, _> = url.parse();
    written.is_ok_and(|url| {
        url.path_and_query()
            .is_some_and(|path| !matches!(path.as_str(), "" | "/"))
    })
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Egress").field("has_proxy", &self.0.is_some()).finish()
    }
}

/// What a forwarded request has for the proxy.
pub(super) struct Forwarding {
    pub(super) authorization: Option<HeaderValue>,
}

/// Connects to the server of a URL, or to the proxy for it.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) tcp: HttpConnector,
    pub(super) egress: Egress,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        let mut tcp = self.tcp.clone();
        match self.egress.proxy(&url) {
            None => Box::pin(async move { Ok(tcp.call(url).await?) }),
            Some(proxy) if url.scheme_str() == Some("http") => {
                Box::pin(async move { Ok(tcp.call(proxy.uri().clone()).await?) })
            }
            Some(proxy) => Box::pin(open(proxy, tcp, url)),
        }
    }
}

/// Opens a tunnel to the server of a URL.
async fn open(proxy: Intercept, tcp: HttpConnector, url: Uri) -> Result<TokioIo<TcpStream>, BoxError> {
    let mut tunnel = Tunnel::new(proxy.uri().clone(), tcp);
    if let Some(authorization) = proxy.basic_auth() {
        tunnel = tunnel.with_auth(authorization.clone());
    }
    Ok(tunnel.call(url).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_named_by_its_host_alone() {
        for good in [
            "http://proxy.internal:3128",
            "http://u:p@proxy.internal:3128/",
            "proxy.internal:3128",
        ] {
            assert!(Egress::through(good, "").is_ok(), "{good}");
        }
        for bad in [
            "",
            "https://proxy.internal",
            "socks5://proxy.internal",
            "http://proxy.internal:3128/path",
            "http://proxy.internal:3128/?a=b",
        ] {
            assert_eq!(Egress::through(bad, "").unwrap_err(), InvalidProxy, "{bad}");
        }
    }

    #[test]
    fn a_tunnel_goes_to_the_port_of_the_scheme() {
        for (url, expected) in [
            ("http://plain.test/x?y=1", "http://plain.test:80/x?y=1"),
            ("http://[2001:db8::1]/", "http://[2001:db8::1]:80/"),
            ("http://plain.test:8080/x", "http://plain.test:8080/x"),
            ("https://secret.test/x", "https://secret.test/x"),
        ] {
            assert_eq!(with_port(&Uri::from_static(url)), expected);
        }
    }

    #[test]
    fn a_star_stands_for_names_and_addresses() {
        for (except, url, is_direct) in [
            ("", "https://api.example.com", false),
            ("*", "https://api.example.com", true),
            ("*", "http://10.0.0.7", true),
            ("*", "http://[2001:db8::1]", true),
            ("example.com", "https://api.example.com", true),
            ("10.0.0.0/8", "http://10.0.0.7", true),
            ("10.0.0.0/8", "http://11.0.0.7", false),
        ] {
            let egress = Egress::through("http://proxy.internal:3128", except).unwrap();
            assert_eq!(
                egress.proxy(&Uri::from_static(url)).is_none(),
                is_direct,
                "{except} {url}"
            );
        }
    }
}
