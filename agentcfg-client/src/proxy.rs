//! The proxy between a client and its server: which one, and what its failures mean.

use std::env;
use std::fmt;

use hyper::header::HeaderValue;
use hyper::{StatusCode, Uri};
use hyper_util::client::proxy::matcher::Matcher;

use crate::Error;
use crate::error::BoxError;

/// What the settings of a client name.
#[derive(Clone, Default)]
pub(crate) enum ProxyChoice {
    #[default]
    Direct,
    Url(String),
    Environment,
}

/// The proxy of a client.
#[derive(Clone)]
pub(crate) struct Proxy {
    uri: Uri,
    /// The user and the password as the value of a header.
    auth: Option<HeaderValue>,
}

impl ProxyChoice {
    /// The proxy for the server at this URL; `None` where calls go to the server itself.
    pub(crate) fn for_server(&self, base: &Uri) -> Result<Option<Proxy>, Error> {
        match self {
            Self::Direct => Ok(None),
            Self::Url(url) => Proxy::parse("the proxy", url, "", base),
            Self::Environment => Proxy::of_variables(base, |name| env::var(name).ok()),
        }
    }
}

impl Proxy {
    /// The proxy that environment variables name for a URL, by the rules of curl.
    fn of_variables(base: &Uri, variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, Error> {
        let first = |names: &[&'static str]| {
            names.iter().find_map(|name| {
                let value = variable(name)?.trim().to_owned();
                (!value.is_empty()).then_some((*name, value))
            })
        };
        let of_scheme: &[&str] = match base.scheme_str() {
            Some("https") => &["HTTPS_PROXY", "https_proxy"],
            // In a CGI program, HTTP_PROXY is a header of the request.
            _ if variable("REQUEST_METHOD").is_some() => &["http_proxy"],
            _ => &["HTTP_PROXY", "http_proxy"],
        };
        let Some((name, url)) = first(of_scheme).or_else(|| first(&["ALL_PROXY", "all_proxy"])) else {
            return Ok(None);
        };
        let except = first(&["NO_PROXY", "no_proxy"]).map_or(String::new(), |(_, except)| except);
        Self::parse(name, &url, &except, base)
    }

    /// Parses a proxy's URL, which may be `host:port` alone. `None` if the server is one of the exceptions.
    fn parse(name: &str, url: &str, except: &str, base: &Uri) -> Result<Option<Self>, Error> {
        // The URL may have a password, so that no message quotes it.
        let refused = || {
            Error::input(format!(
                "{name} must be http://host:port, with or without user:password@"
            ))
        };
        let found = Matcher::builder().all(url.trim()).build().intercept(base);
        let found = found.ok_or_else(refused)?;
        if found.uri().scheme_str() != Some("http") || found.uri().host().is_none_or(str::is_empty) {
            return Err(refused());
        }
        // The matcher takes a `*` for all names, and not for addresses.
        let is_for_all = except.trim() == "*";
        let excepting = Matcher::builder().all(url.trim()).no(except).build();
        if is_for_all || excepting.intercept(base).is_none() {
            return Ok(None);
        }
        Ok(Some(Self {
            uri: found.uri().clone(),
            auth: found.basic_auth().cloned(),
        }))
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    pub(crate) fn auth(&self) -> Option<&HeaderValue> {
        self.auth.as_ref()
    }
}

/// Without the user and the password.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        write!(f, "http://{authority}")
    }
}

/// Why there is no connection through the proxy.
#[derive(Debug)]
pub(crate) struct ProxyFailure {
    message: String,
    is_final: bool,
    source: BoxError,
}

impl ProxyFailure {
    pub(crate) fn new(proxy: &Proxy, source: BoxError) -> Self {
        let (message, is_final) = match source.downcast_ref() {
            Some(Refused(StatusCode::PROXY_AUTHENTICATION_REQUIRED)) => {
                (format!("the proxy {proxy} needs a user and a password"), true)
            }
            Some(Refused(status)) => {
                let message = format!("the proxy {proxy} makes no connection to the server, and answers {status}");
                (message, status.is_client_error())
            }
            None => (format!("no connection could be made through the proxy {proxy}"), false),
        };
        Self {
            message,
            is_final,
            source,
        }
    }

    /// Whether another attempt would fail too.
    pub(crate) fn is_final(&self) -> bool {
        self.is_final
    }
}

impl fmt::Display for ProxyFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ProxyFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The message has the status of a refusal already.
        match self.source.is::<Refused>() {
            true => None,
            false => Some(&*self.source),
        }
    }
}

/// The proxy has answered with this status, and makes no tunnel.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) StatusCode);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the proxy answered {}", self.0)
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(base: &'static str, variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        };
        match Proxy::of_variables(&Uri::from_static(base), variable) {
            Ok(proxy) => Ok(proxy.map(|proxy| proxy.to_string())),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn the_environment_names_a_proxy_for_each_scheme() {
        let both = [
            ("HTTPS_PROXY", "http://s:1"),
            ("HTTP_PROXY", "p:2"),
            ("ALL_PROXY", "a:3"),
        ];
        let proxy = |url: &str| Ok(Some(url.to_owned()));
        assert_eq!(chosen("https://host/agentcfg", &both), proxy("http://s:1"));
        assert_eq!(chosen("http://host", &both), proxy("http://p:2"));
        assert_eq!(chosen("http://host", &both[2..]), proxy("http://a:3"));
        assert_eq!(chosen("http://host", &both[..1]), Ok(None));
        assert_eq!(
            chosen("https://host", &[("https_proxy", "http://u:p@low:1/")]),
            proxy("http://low:1")
        );
        assert_eq!(
            chosen("https://host", &[("HTTPS_PROXY", " "), ("https_proxy", "low:1")]),
            proxy("http://low:1")
        );
        assert_eq!(chosen("http://host", &[both[1], ("REQUEST_METHOD", "GET")]), Ok(None));
        assert_eq!(chosen("https://host", &[]), Ok(None));
    }

    #[test]
    fn exceptions_are_hosts_domains_and_networks() {
        for (base, except, is_direct) in [
            ("https://host", "host", true),
            ("https://a.example.com:8443", "other, .example.com", true),
            ("https://a.example.com", "example.com", true),
            ("https://anexample.com", "example.com", false),
            ("https://10.1.2.3", "10.0.0.0/8", true),
            ("https://[::1]", "::1", true),
            ("https://host", "*", true),
            ("https://10.1.2.3", "*", true),
            ("https://[::1]", " * ", true),
            ("https://host", "", false),
        ] {
            let found = chosen(base, &[("HTTPS_PROXY", "p:1"), ("NO_PROXY", except)]).unwrap();
            assert_eq!(found.is_none(), is_direct, "{base} {except}");
        }
    }

    #[test]
    fn a_proxy_of_another_kind_is_refused_without_its_password() {
        for url in [
            "socks5://u:canary@p:1",
            "https://u:canary@p:1",
            "http://u:canary@",
            "ftp://canary",
            "a b",
        ] {
            let refused = chosen("https://host", &[("HTTPS_PROXY", url)]).unwrap_err();
            assert_eq!(
                refused, "HTTPS_PROXY must be http://host:port, with or without user:password@",
                "{url}"
            );
        }
    }
}
