//! Requests from browsers: the cookies of this service, and the checks that a request comes from its own pages.
//!
//! A browser sends cookies by itself, so a page of another origin could make it send a request with them (cross-site
//! request forgery). `SameSite=Strict` is the first defence, and [`Browser::check_same_origin`] the second.

use std::net::{Ipv4Addr, Ipv6Addr};

use hyper::Uri;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::http::errors::Failure;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// How browsers reach this server. Its cookies and origin follow from that.
///
/// ```
/// use agentcfg_server::Browser;
/// // Behind a proxy that ends TLS.
/// let browser = Browser::default().public_url("https://example.com/agentcfg")?;
/// # Ok::<(), agentcfg_server::InvalidPublicUrl>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Browser {
    public: Option<Public>,
    listens_on_loopback: bool,
    speaks_tls: bool,
}

#[derive(Debug, Clone)]
struct Public {
    origin: String,
    /// The URL without a slash at the end.
    url: String,
}

/// A text that cannot be the public URL of a server.
///
/// ```
/// use agentcfg_server::Browser;
/// assert!(Browser::default().public_url("example.com").is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be an http or https URL such as https://example.com or https://example.com/agentcfg, without credentials, query and fragment"
)]
pub struct InvalidPublicUrl;

/// A cookie of this service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cookie {
    /// The session of a user.
    Session,
    /// The state of a sign-in at the identity provider.
    #[cfg_attr(not(feature = "dashboard"), allow(dead_code))]
    SignIn,
}

impl Cookie {
    const fn name(self) -> &'static str {
        match self {
            Self::Session => "agentcfg-session",
            Self::SignIn => "agentcfg-sign-in",
        }
    }

    /// The identity provider redirects the browser from another site, and a strict cookie would be missing then.
    const fn same_site(self) -> &'static str {
        match self {
            Self::Session => "Strict",
            Self::SignIn => "Lax",
        }
    }
}

impl Browser {
    /// Browsers reach the server at this URL, for example through a proxy.
    ///
    /// # Errors
    ///
    /// [`InvalidPublicUrl`] for any other text than an absolute HTTP URL.
    ///
    /// ```
    /// use agentcfg_server::Browser;
    /// let browser = Browser::default().public_url("https://agents.example.com/")?;
    /// # Ok::<(), agentcfg_server::InvalidPublicUrl>(())
    /// ```
    pub fn public_url(self, url: &str) -> Result<Self, InvalidPublicUrl> {
        let uri: Uri = url.parse().map_err(|_| InvalidPublicUrl)?;
        let (Some(scheme @ ("http" | "https")), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(InvalidPublicUrl);
        };
        let has_more = authority.as_str().contains('@') || uri.query().is_some() || url.contains('#');
        // The port may be left out, but not be empty or too large.
        let is_port_bad = !authority.as_str().ends_with(authority.host()) && authority.port_u16().is_none();
        if has_more || authority.host().is_empty() || is_port_bad {
            return Err(InvalidPublicUrl);
        }
        // A browser leaves the default port of a scheme out of an origin.
        let default = if scheme == "https" { ":443" } else { ":80" };
        let host = authority.as_str().strip_suffix(default).unwrap_or(authority.as_str());
        let origin = format!("{scheme}://{}", host.to_ascii_lowercase());
        let url = format!("{origin}{}", uri.path().trim_end_matches('/'));
        Ok(Self {
            public: Some(Public { origin, url }),
            ..self
        })
    }

    /// Says whether the server listens on a loopback address, so that pages without TLS on this machine may use it.
    ///
    /// ```
    /// use agentcfg_server::Browser;
    /// let browser = Browser::default().listening_on_loopback(true);
    /// ```
    #[must_use]
    pub fn listening_on_loopback(self, listens_on_loopback: bool) -> Self {
        Self {
            listens_on_loopback,
            ..self
        }
    }

    /// Says whether the server uses TLS itself.
    ///
    /// ```
    /// use agentcfg_server::Browser;
    /// let browser = Browser::default().over_tls(true);
    /// ```
    #[must_use]
    pub fn over_tls(self, speaks_tls: bool) -> Self {
        Self { speaks_tls, ..self }
    }

    /// Whether browsers always reach the server by HTTPS, under a name that is not a loopback name. Then they may be
    /// told to use nothing else. A browser applies that to all ports of a name, so `localhost` is left out.
    #[cfg(feature = "dashboard")]
    pub(crate) fn is_always_https(&self, headers: &HeaderMap) -> bool {
        match &self.public {
            Some(public) => public.origin.starts_with("https://"),
            None => self.speaks_tls && host(headers).is_some_and(|host| !is_loopback(name_of(host))),
        }
    }

    /// Whether the browser is on this machine and uses no TLS. Then not every browser accepts cookies with `Secure`.
    fn is_plain_loopback(&self, headers: &HeaderMap) -> bool {
        self.public.is_none()
            && !self.speaks_tls
            && self.listens_on_loopback
            && host(headers).is_some_and(|host| is_loopback(name_of(host)))
    }

    /// The name of a cookie. On plain loopback it contains the port, because browsers share cookies among all ports of
    /// a host.
    fn cookie_name(&self, cookie: Cookie, headers: &HeaderMap) -> String {
        if self.is_plain_loopback(headers) {
            let port = host(headers).and_then(port_of).unwrap_or("80");
            return format!("{}-{port}", cookie.name());
        }
        format!("__Host-{}", cookie.name())
    }

    /// The value of a cookie of the request.
    pub(crate) fn cookie<'a>(&self, cookie: Cookie, headers: &'a HeaderMap) -> Option<&'a str> {
        if !headers.contains_key(header::COOKIE) {
            return None;
        }
        let name = self.cookie_name(cookie, headers);
        headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|field| field.to_str().ok())
            .flat_map(|field| field.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .find_map(|(found, value)| (found == name).then_some(value))
    }

    /// The field `Set-Cookie` that sets a cookie for this many seconds.
    ///
    /// # Errors
    ///
    /// 500 when the value cannot be sent, which none of this server is.
    pub(crate) fn set_cookie(
        &self,
        cookie: Cookie,
        value: &str,
        seconds: i64,
        headers: &HeaderMap,
    ) -> Result<HeaderValue, Failure> {
        let name = self.cookie_name(cookie, headers);
        let secure = if self.is_plain_loopback(headers) {
            ""
        } else {
            "; Secure"
        };
        let same_site = cookie.same_site();
        let text = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite={same_site}{secure}");
        let mut field = HeaderValue::from_str(&text).map_err(Failure::internal)?;
        field.set_sensitive(true);
        Ok(field)
    }

    /// The field `Set-Cookie` that removes a cookie.
    ///
    /// # Errors
    ///
    /// As [`Self::set_cookie`].
    pub(crate) fn remove_cookie(&self, cookie: Cookie, headers: &HeaderMap) -> Result<HeaderValue, Failure> {
        self.set_cookie(cookie, "", 0, headers)
    }

    /// The URL of the server as the browser sees it, without a slash at the end.
    pub(crate) fn base_url(&self, headers: &HeaderMap) -> String {
        match &self.public {
            Some(public) => public.url.clone(),
            None => {
                let scheme = if self.is_plain_loopback(headers) {
                    "http"
                } else {
                    "https"
                };
                format!("{scheme}://{}", host(headers).unwrap_or_default())
            }
        }
    }

    /// Refuses a request with a cookie that does not come from a page of this server.
    ///
    /// # Errors
    ///
    /// 403, unless `Sec-Fetch-Site` is `same-origin` or, without that field, `Origin` is that of this server.
    pub(crate) fn check_same_origin(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let is_own = match site(headers) {
            Some(is_same) => is_same,
            None => self.origin(headers) == Some(true),
        };
        is_own.then_some(()).ok_or_else(|| {
            Failure::forbidden(
                "a request with a cookie must come from a page of this server: Sec-Fetch-Site must be same-origin, or else \
                 Origin that of this server",
            )
        })
    }

    /// Refuses a request that says it comes from a page of another origin.
    ///
    /// # Errors
    ///
    /// 403 with another `Origin`, or with a `Sec-Fetch-Site` that is not `same-origin`.
    pub(crate) fn check_not_foreign(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let is_foreign = site(headers) == Some(false) || self.origin(headers) == Some(false);
        if is_foreign {
            return Err(Failure::forbidden(
                "the request comes from a page of another origin; behind a proxy, public_url must be what browsers see",
            ));
        }
        Ok(())
    }

    /// Whether the request comes from a page of another origin.
    pub(crate) fn has_foreign_origin(&self, headers: &HeaderMap) -> bool {
        self.origin(headers) == Some(false)
    }

    /// Whether `Origin` is that of this server; `None` without that field.
    fn origin(&self, headers: &HeaderMap) -> Option<bool> {
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let origin = origins.next()?;
        let Ok(origin) = origin.to_str() else {
            return Some(false);
        };
        if origins.next().is_some() {
            return Some(false);
        }
        Some(match &self.public {
            Some(public) => origin.eq_ignore_ascii_case(&public.origin),
            None => {
                let own = self.base_url(headers);
                // A browser leaves the default port of a scheme out of an origin.
                let port = if own.starts_with("https:") { ":443" } else { ":80" };
                origin.eq_ignore_ascii_case(own.strip_suffix(port).unwrap_or(&own))
            }
        })
    }
}

/// Whether `Sec-Fetch-Site` is `same-origin`; `None` without that field.
fn site(headers: &HeaderMap) -> Option<bool> {
    let mut sites = headers.get_all(SEC_FETCH_SITE).iter().peekable();
    sites.peek()?;
    Some(sites.all(|site| site == "same-origin"))
}

fn host(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::HOST)?.to_str().ok()
}

fn port_of(host: &str) -> Option<&str> {
    let (_, port) = host.rsplit_once(':')?;
    (!port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())).then_some(port)
}

fn name_of(host: &str) -> &str {
    let name = match port_of(host) {
        Some(port) => &host[..host.len() - port.len() - 1],
        None => host,
    };
    name.strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name)
}

fn is_loopback(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        || name.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        fields.iter().map(field).collect()
    }

    fn here() -> Browser {
        Browser::default().listening_on_loopback(true)
    }

    #[test]
    fn cookies_are_secure_except_on_plain_loopback() {
        let set = |browser: &Browser, host: &str| {
            let set = browser.set_cookie(Cookie::Session, "x", 60, &headers(&[("host", host)]));
            set.unwrap().to_str().unwrap().to_owned()
        };
        for host in [
            "127.0.0.1:7420",
            "localhost:7420",
            "[::1]:7420",
            "agents.localhost:7420",
            "127.8.8.8:7420",
        ] {
            assert_eq!(
                set(&here(), host),
                "agentcfg-session-7420=x; Path=/; Max-Age=60; HttpOnly; SameSite=Strict",
                "{host}"
            );
        }
        assert!(set(&here(), "localhost").starts_with("agentcfg-session-80=x; "));
        let secure = "__Host-agentcfg-session=x; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure";
        for (browser, host) in [
            (Browser::default(), "127.0.0.1:7420"),
            (here(), "agents.example.com"),
            (here(), "localhost.example.com"),
            (here(), "10.0.0.1:7420"),
            (here().public_url("https://example.com").unwrap(), "127.0.0.1:7420"),
            (here().over_tls(true), "localhost:7420"),
        ] {
            assert_eq!(set(&browser, host), secure, "{host}");
        }
    }

    #[test]
    fn a_cookie_is_found_by_its_exact_name() {
        let browser = here();
        for (sent, value) in [
            ("agentcfg-session-7420=x", Some("x")),
            ("a=b; agentcfg-session-7420=x; c=d", Some("x")),
            ("agentcfg-session-7421=x", None),
            ("__Host-agentcfg-session=x", None),
            ("agentcfg-session-7420", None),
        ] {
            let headers = headers(&[("host", "localhost:7420"), ("cookie", sent)]);
            assert_eq!(browser.cookie(Cookie::Session, &headers), value, "{sent}");
        }
    }

    #[test]
    fn a_cookie_needs_a_page_of_this_server() {
        let public = Browser::default().public_url("https://example.com/agentcfg/").unwrap();
        let host = ("host", "localhost:7420");
        for (browser, fields, is_good) in [
            (here(), vec![("sec-fetch-site", "same-origin")], true),
            (
                here(),
                vec![("sec-fetch-site", "same-origin"), ("origin", "https://evil.example")],
                true,
            ),
            (
                here(),
                vec![("sec-fetch-site", "cross-site"), ("origin", "http://localhost:7420")],
                false,
            ),
            (
                here(),
                vec![("sec-fetch-site", "same-site"), ("origin", "http://localhost:7420")],
                false,
            ),
            (here(), vec![("sec-fetch-site", "none")], false),
            (
                here(),
                vec![("sec-fetch-site", "same-origin"), ("sec-fetch-site", "none")],
                false,
            ),
            (here(), vec![("origin", "http://localhost:7420")], true),
            (here(), vec![("origin", "http://localhost:7421")], false),
            (here(), vec![("origin", "null")], false),
            (
                here(),
                vec![("origin", "http://localhost:7420"), ("origin", "http://evil")],
                false,
            ),
            (here(), vec![], false),
            // The scheme counts: plain HTTP on loopback, and HTTPS elsewhere, where the cookie is secure.
            (here(), vec![("origin", "https://localhost:7420")], false),
            (Browser::default(), vec![("origin", "https://localhost:7420")], true),
            (Browser::default(), vec![("origin", "http://localhost:7420")], false),
            (here().over_tls(true), vec![("origin", "https://localhost:7420")], true),
            (here().over_tls(true), vec![("origin", "http://localhost:7420")], false),
            (public.clone(), vec![("origin", "https://example.com")], true),
            (public.clone(), vec![("origin", "http://example.com")], false),
            (public.clone(), vec![("origin", "http://localhost:7420")], false),
        ] {
            let mut sent = headers(&[host]);
            for (name, value) in &fields {
                sent.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
            }
            assert_eq!(browser.check_same_origin(&sent).is_ok(), is_good, "{fields:?}");
        }
    }

    #[test]
    fn a_login_code_is_refused_from_other_origins_alone() {
        let host = ("host", "localhost:7420");
        for (field, is_good) in [
            (("accept", "*/*"), true),
            (("origin", "http://localhost:7420"), true),
            (("sec-fetch-site", "same-origin"), true),
            (("origin", "https://evil.example"), false),
            (("origin", "null"), false),
            (("sec-fetch-site", "cross-site"), false),
            (("sec-fetch-site", "none"), false),
        ] {
            let sent = headers(&[host, field]);
            assert_eq!(here().check_not_foreign(&sent).is_ok(), is_good, "{field:?}");
        }
    }

    #[test]
    fn public_urls() {
        let base = |url: &str| Some(Browser::default().public_url(url).ok()?.base_url(&HeaderMap::new()));
        assert_eq!(base("https://Example.com:443/"), Some("https://example.com".to_owned()));
        assert_eq!(
            base("http://example.com:8080/a/"),
            Some("http://example.com:8080/a".to_owned())
        );
        for bad in [
            "",
            "example.com",
            "/a",
            "ftp://a",
            "https://u@a",
            "https://a?x",
            "https://a#x",
            "https://",
            "https://:",
            "https://a:",
            "https://a:99999",
        ] {
            assert_eq!(base(bad), None, "{bad}");
        }
        assert_eq!(
            here().base_url(&headers(&[("host", "localhost:1")])),
            "http://localhost:1"
        );
        assert_eq!(here().base_url(&headers(&[("host", "a.example")])), "https://a.example");
    }
}
