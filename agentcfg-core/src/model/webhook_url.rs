//! The URLs that webhooks may have, and the exceptions that a deployment makes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::address::is_public;

/// The greatest number of characters of a webhook's URL.
pub(crate) const MAX_URL: usize = 2048;
const HTTP: u16 = 80;
const HTTPS: u16 = 443;

/// A URL that webhooks may have: absolute, `http` or `https`, in ASCII, without user information and without a fragment.
///
/// The host is a name or an IP address in its usual form. The forms in which some resolvers accept addresses besides, such
/// as `0x7f.1`, are refused.
///
/// ```
/// use agentcfg_core::model::WebhookUrl;
/// let url: WebhookUrl = "https://hooks.example.com/agentcfg".parse()?;
/// assert_eq!((url.host().to_string().as_str(), url.port()), ("hooks.example.com", 443));
/// assert!("https://user:password@example.com/".parse::<WebhookUrl>().is_err());
/// # Ok::<(), agentcfg_core::model::InvalidUrl>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookUrl {
    is_https: bool,
    host: Host,
    port: u16,
}

/// The host of a URL.
///
/// ```
/// use agentcfg_core::model::{Host, WebhookUrl};
/// let url: WebhookUrl = "https://[2606:4700:4700::1111]/".parse()?;
/// assert!(matches!(url.host(), Host::Address(_)));
/// # Ok::<(), agentcfg_core::model::InvalidUrl>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// An IP address.
    Address(IpAddr),
    /// A name, in lower case.
    Name(Box<str>),
}

/// Why a text is not a URL for a webhook.
///
/// ```
/// use agentcfg_core::model::WebhookUrl;
/// let invalid = "https://example.com/#top".parse::<WebhookUrl>().unwrap_err();
/// assert_eq!(invalid.to_string(), "must not have a fragment");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidUrl(&'static str);

const ABSOLUTE: InvalidUrl = InvalidUrl("must be an absolute https URL");
const CHARACTERS: InvalidUrl = InvalidUrl("must have only characters that a URL may have, others percent-encoded");
const FRAGMENT: InvalidUrl = InvalidUrl("must not have a fragment");
const USER: InvalidUrl = InvalidUrl("must not have user information");
const HOST: InvalidUrl = InvalidUrl("must have a host that is a name or an IP address in its usual form");
const PORT: InvalidUrl = InvalidUrl("must have a port from 1 to 65535");
const NOT_HTTPS: InvalidUrl = InvalidUrl("must be https");
const OTHER_PORT: InvalidUrl = InvalidUrl("must use port 443");
const NOT_PUBLIC: InvalidUrl = InvalidUrl("must not name an address that is not public");

impl WebhookUrl {
    /// The host.
    ///
    /// ```
    /// use agentcfg_core::model::WebhookUrl;
    /// let url: WebhookUrl = "https://Example.com/".parse()?;
    /// assert_eq!(url.host().to_string(), "example.com");
    /// # Ok::<(), agentcfg_core::model::InvalidUrl>(())
    /// ```
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The port: that of the URL, or the default one of its scheme.
    ///
    /// ```
    /// use agentcfg_core::model::WebhookUrl;
    /// let url: WebhookUrl = "http://localhost/".parse()?;
    /// assert_eq!(url.port(), 80);
    /// # Ok::<(), agentcfg_core::model::InvalidUrl>(())
    /// ```
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether requests may be sent there: by `https` to port 443, and not to a literal address that is not public. A host
    /// of `exceptions` is always fine.
    ///
    /// The addresses of a name are known only when a connection is made, and are checked there.
    ///
    /// # Errors
    ///
    /// [`InvalidUrl`] with the rule that is broken.
    ///
    /// ```
    /// use agentcfg_core::model::WebhookUrl;
    /// let url: WebhookUrl = "http://10.0.0.7:8080/hook".parse()?;
    /// assert_eq!(url.check(&[]).unwrap_err().to_string(), "must be https");
    /// url.check(&["10.0.0.7:8080".parse()?])?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check(&self, exceptions: &[AllowedHost]) -> Result<(), InvalidUrl> {
        if exceptions.iter().any(|allowed| allowed.includes(&self.host, self.port)) {
            return Ok(());
        }
        if !self.is_https {
            return Err(NOT_HTTPS);
        }
        if self.port != HTTPS {
            return Err(OTHER_PORT);
        }
        match self.host {
            Host::Address(address) if !is_public(address) => Err(NOT_PUBLIC),
            _ => Ok(()),
        }
    }
}

impl FromStr for WebhookUrl {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let (scheme, rest) = text.split_once("://").ok_or(ABSOLUTE)?;
        let is_https = scheme.eq_ignore_ascii_case("https");
        if !is_https && !scheme.eq_ignore_ascii_case("http") {
            return Err(ABSOLUTE);
        }
        if rest.contains('#') {
            return Err(FRAGMENT);
        }
        if !has_url_characters(rest) {
            return Err(CHARACTERS);
        }
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(USER);
        }
        let (host, port) = host_and_port(authority)?;
        let default = if is_https { HTTPS } else { HTTP };
        Ok(Self {
            is_https,
            host,
            port: port.unwrap_or(default),
        })
    }
}

/// Whether all characters are those of RFC 3986, and each `%` begins an encoded byte.
fn has_url_characters(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let fits = match byte {
            b'%' => {
                let mut digit = || bytes.next().is_some_and(|byte| byte.is_ascii_hexdigit());
                digit() && digit()
            }
            _ => byte.is_ascii_alphanumeric() || b"-._~:/?[]@!$&'()*+,;=".contains(&byte),
        };
        if !fits {
            return false;
        }
    }
    true
}

fn host_and_port(authority: &str) -> Result<(Host, Option<u16>), InvalidUrl> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (address, rest) = rest.split_once(']').ok_or(HOST)?;
        let address = address.parse::<Ipv6Addr>().map_err(|_| HOST)?;
        let port = match rest {
            "" => None,
            _ => Some(port(rest.strip_prefix(':').ok_or(HOST)?)?),
        };
        return Ok((Host::Address(address.into()), port));
    }
    match authority.split_once(':') {
        Some((name, number)) => Ok((host(name)?, Some(port(number)?))),
        None => Ok((host(authority)?, None)),
    }
}

fn port(text: &str) -> Result<u16, InvalidUrl> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(PORT);
    }
    text.parse().ok().filter(|port| *port > 0).ok_or(PORT)
}

/// Reads a host: a name of labels, or an IPv4 address.
fn host(text: &str) -> Result<Host, InvalidUrl> {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if text.len() > 253 || !text.split('.').all(is_label) {
        return Err(HOST);
    }
    let last = text.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    // Resolvers take a host for an IPv4 address when its last part is a number in C notation.
    let digits = last.strip_prefix("0x").unwrap_or(&last);
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || digits.len() < last.len() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_number {
        return Ok(Host::Name(text.to_ascii_lowercase().into()));
    }
    let address = text.parse::<Ipv4Addr>().map_err(|_| HOST)?;
    Ok(Host::Address(address.into()))
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// A host that webhooks may be sent to although it is not public: `host` for ports 80 and 443, or `host:port`. The setting
/// `webhook_allowed_hosts` of the server lists such hosts.
///
/// ```
/// use agentcfg_core::model::AllowedHost;
/// let allowed: AllowedHost = "hooks.internal:8080".parse()?;
/// assert_eq!(allowed.to_string(), "hooks.internal:8080");
/// assert!("http://hooks.internal".parse::<AllowedHost>().is_err());
/// # Ok::<(), agentcfg_core::model::InvalidUrl>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    host: Host,
    port: Option<u16>,
}

impl AllowedHost {
    /// Whether the exception covers this host and port.
    ///
    /// ```
    /// use agentcfg_core::model::{AllowedHost, Host};
    /// let allowed: AllowedHost = "hooks.internal".parse()?;
    /// let host = Host::Name("hooks.internal".into());
    /// assert!(allowed.includes(&host, 80) && allowed.includes(&host, 443));
    /// assert!(!allowed.includes(&host, 8080));
    /// # Ok::<(), agentcfg_core::model::InvalidUrl>(())
    /// ```
    pub fn includes(&self, host: &Host, port: u16) -> bool {
        let fits = match self.port {
            Some(only) => port == only,
            None => [HTTP, HTTPS].contains(&port),
        };
        fits && *host == self.host
    }
}

impl FromStr for AllowedHost {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        if let Ok(address) = text.parse::<IpAddr>() {
            let host = Host::Address(address);
            return Ok(Self { host, port: None });
        }
        let (host, port) = host_and_port(text)?;
        Ok(Self { host, port })
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
            host => host.fmt(f)?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Result<WebhookUrl, String> {
        text.parse().map_err(|invalid: InvalidUrl| invalid.to_string())
    }

    #[test]
    fn a_url_has_a_host_and_a_port() {
        for (text, host, port) in [
            ("https://example.com", "example.com", 443),
            ("HTTPS://Example.COM:443/a/b?c=d%20e", "example.com", 443),
            ("http://a_b-c.example?x", "a_b-c.example", 80),
            ("https://93.184.215.14:8443/", "93.184.215.14", 8443),
            ("https://[2606:4700:4700::1111]:1/", "2606:4700:4700::1111", 1),
            ("https://xn--bcher-kva.example/", "xn--bcher-kva.example", 443),
            ("https://1.example/", "1.example", 443),
        ] {
            let url = rule(text).unwrap();
            assert_eq!((url.host().to_string().as_str(), url.port()), (host, port), "{text}");
        }
    }

    #[test]
    fn other_texts_break_a_rule() {
        for (text, broken) in [
            ("", ABSOLUTE),
            ("example.com", ABSOLUTE),
            ("//example.com", ABSOLUTE),
            ("ftp://example.com", ABSOLUTE),
            ("file:///etc/passwd", ABSOLUTE),
            (" https://example.com", ABSOLUTE),
            ("https://example.com/#a", FRAGMENT),
            ("https://exa mple.com", CHARACTERS),
            ("https://example.com/\r\nX: y", CHARACTERS),
            ("https://example.com\\@127.0.0.1/", CHARACTERS),
            ("https://bücher.example/", CHARACTERS),
            ("https://①②⑦.⓪.⓪.①/", CHARACTERS),
            ("https://example.com/%zz", CHARACTERS),
            ("https://user@example.com/", USER),
            ("https://user:password@example.com/", USER),
            ("https://@example.com/", USER),
            ("https://127.0.0.1@example.com/", USER),
            ("https:///path", HOST),
            ("https://", HOST),
            ("https://example..com", HOST),
            ("https://-/", HOST),
            ("https://-example.com/", HOST),
            ("https://example-.com/", HOST),
            ("https://example.com./", HOST),
            ("https://.example.com", HOST),
            ("https://127.1/", HOST),
            ("https://127.0.0.1./", HOST),
            ("https://0x7f.0.0.1/", HOST),
            ("https://0x7f000001/", HOST),
            ("https://2130706433/", HOST),
            ("https://0177.0.0.1/", HOST),
            ("https://127.0.0.0x1/", HOST),
            ("https://%31%32%37.0.0.1/", HOST),
            ("https://[::1%25lo]/", HOST),
            ("https://[::1", HOST),
            ("https://[127.0.0.1]/", HOST),
            ("https://[::1]443/", HOST),
            ("https://::1/", HOST),
            ("https://example.com:0/", PORT),
            ("https://example.com:65536/", PORT),
            ("https://example.com:+443/", PORT),
            ("https://example.com:/", PORT),
        ] {
            assert_eq!(rule(text), Err(broken.to_string()), "{text}");
        }
    }

    #[test]
    fn only_exceptions_may_be_plain_private_or_on_another_port() {
        let exceptions: Vec<AllowedHost> = ["hooks.internal", "127.0.0.1:9000", "[::1]:9000", "fd00::1"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        for (text, without, with) in [
            ("https://example.com/", Ok(()), Ok(())),
            ("https://93.184.215.14/", Ok(()), Ok(())),
            ("https://localhost/", Ok(()), Ok(())),
            ("http://example.com/", Err(NOT_HTTPS), Err(NOT_HTTPS)),
            ("https://example.com:8443/", Err(OTHER_PORT), Err(OTHER_PORT)),
            ("https://127.0.0.1/", Err(NOT_PUBLIC), Err(NOT_PUBLIC)),
            ("https://[::ffff:10.0.0.1]/", Err(NOT_PUBLIC), Err(NOT_PUBLIC)),
            ("http://127.0.0.1:9000/", Err(NOT_HTTPS), Ok(())),
            ("https://127.0.0.1:9001/", Err(OTHER_PORT), Err(OTHER_PORT)),
            ("http://[0:0::1]:9000/", Err(NOT_HTTPS), Ok(())),
            ("http://HOOKS.internal/", Err(NOT_HTTPS), Ok(())),
            ("https://hooks.internal:80/", Err(OTHER_PORT), Ok(())),
            ("https://hooks.internal:81/", Err(OTHER_PORT), Err(OTHER_PORT)),
            ("https://[fd00::1]/", Err(NOT_PUBLIC), Ok(())),
            ("http://a.hooks.internal/", Err(NOT_HTTPS), Err(NOT_HTTPS)),
        ] {
            let url = rule(text).unwrap();
            assert_eq!(url.check(&[]), without, "{text}");
            assert_eq!(url.check(&exceptions), with, "{text}");
        }
        for text in ["", "a:b", "a:0", "*.example.com", "http://a", "a/b", "a@b"] {
            assert!(text.parse::<AllowedHost>().is_err(), "{text}");
        }
    }
}
