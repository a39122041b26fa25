//! The address of a client, also behind proxies that name it in a header field.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use hyper::header::{FORWARDED, HeaderMap, HeaderName};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The address that a request came from, in its extensions where its connection has no
/// [`Disconnect`](super::Disconnect).
///
/// ```
/// let mut request = hyper::Request::new(());
/// let peer = agentcfg_server::PeerAddress("192.0.2.7".parse()?);
/// request.extensions_mut().insert(peer);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAddress(pub IpAddr);

/// Proxies whose forwarding headers are trusted for the client address.
///
/// ```
/// use agentcfg_server::TrustedProxies;
/// use hyper::HeaderMap;
/// let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse()?]);
/// let mut headers = HeaderMap::new();
/// headers.insert("x-forwarded-for", "192.0.2.7".parse()?);
/// assert_eq!(proxies.client("10.1.2.3".parse()?, &headers).to_string(), "192.0.2.7");
/// assert_eq!(proxies.client("198.51.100.1".parse()?, &headers).to_string(), "198.51.100.1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<Network>);

impl TrustedProxies {
    /// The proxies with addresses in these networks.
    ///
    /// ```
    /// let proxy = agentcfg_server::TrustedProxies::new(vec!["127.0.0.1".parse()?]);
    /// # Ok::<(), agentcfg_server::InvalidNetwork>(())
    /// ```
    pub fn new(networks: Vec<Network>) -> Self {
        Self(networks)
    }

    /// The address of the client of a request that came from `peer`. A proxy appends the address that it was called
    /// from, so the client is the last address that is not that of a trusted proxy: what is before it may be invented.
    ///
    /// ```
    /// use agentcfg_server::TrustedProxies;
    /// let peer = "192.0.2.7".parse()?;
    /// assert_eq!(TrustedProxies::default().client(peer, &hyper::HeaderMap::new()), peer);
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        if !self.has(client) {
            return client;
        }
        for named in named(headers).into_iter().rev() {
            // What is no address ends the chain: what is before it is not the word of a trusted proxy.
            let Some(address) = named else { break };
            client = address;
            if !self.has(client) {
                break;
            }
        }
        client
    }

    /// Whether this is the address of a trusted proxy.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.has(address))
    }
}

/// The addresses that proxies have named, in the order of the fields: those of `X-Forwarded-For`, else of `Forwarded`
/// (RFC 7239).
fn named(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    let texts = |name: &HeaderName| headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?"));
    if headers.contains_key(&X_FORWARDED_FOR) {
        let elements = texts(&X_FORWARDED_FOR).flat_map(|text| text.split(','));
        return elements.map(address).collect();
    }
    let elements = texts(&FORWARDED).flat_map(|text| unquoted(text, ','));
    elements.map(of_forwarded).collect()
}

/// The address in an element of `Forwarded`.
fn of_forwarded(element: &str) -> Option<IpAddr> {
    let pairs = unquoted(element, ';');
    let mut pairs = pairs.into_iter().filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
    address(value.trim().trim_matches('"'))
}

/// Splits a text at a separator that is in no quoted string.
///
/// An unterminated quote is treated as plain text, so that a client cannot hide the entry that the proxy appended.
fn unquoted(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut begin, mut is_quoted, mut is_escaped) = (0, false, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ if character == separator && !is_quoted => {
                parts.push(&text[begin..at]);
                begin = at + character.len_utf8();
            }
            _ => {}
        }
    }
    if is_quoted {
        return text.split(separator).collect();
    }
    parts.push(&text[begin..]);
    parts
}

/// An address with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let found = bare.unwrap_or(text).parse::<IpAddr>().ok();
    let found = found.or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    found.map(|address| address.to_canonical())
}

/// An address, or a network of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// The text is no address and no network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an address or a network, such as 10.0.0.0/8")]
pub struct InvalidNetwork;

impl Network {
    fn has(&self, address: IpAddr) -> bool {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        };
        let ((ours, width), (other, other_width)) = (bits(self.address), bits(address));
        let differ = (ours ^ other).checked_shr(128 - u32::from(self.prefix)).unwrap_or(0);
        width == other_width && differ == 0
    }
}

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| InvalidNetwork)?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let prefix: u8 = prefix.map_or(Ok(width), str::parse).map_err(|_| InvalidNetwork)?;
        // An address of IPv4 that is written as one of IPv6 is compared as one of IPv4, as the addresses of clients are.
        let mapped = 128 - 32;
        match (address.to_canonical(), prefix) {
            (_, prefix) if prefix > width => Err(InvalidNetwork),
            (canonical, prefix) if canonical != address && prefix >= mapped => Ok(Self {
                address: canonical,
                prefix: prefix - mapped,
            }),
            _ => Ok(Self { address, prefix }),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(trusted: &[&str], peer: &str, fields: &[(&'static str, &'static str)]) -> String {
        let networks = trusted.iter().map(|text| text.parse().unwrap()).collect();
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        TrustedProxies::new(networks)
            .client(peer.parse().unwrap(), &headers)
            .to_string()
    }

    const X: &str = "x-forwarded-for";

    #[test]
    fn the_word_of_a_stranger_does_not_count() {
        assert_eq!(client(&[], "198.51.100.1", &[(X, "192.0.2.7")]), "198.51.100.1");
        assert_eq!(client(&["10.0.0.0/8"], "11.0.0.1", &[(X, "192.0.2.7")]), "11.0.0.1");
        // A client that invents addresses in front of its own.
        let invented = &[(X, "203.0.113.9, 192.0.2.7")];
        assert_eq!(client(&["10.0.0.0/8"], "10.0.0.1", invented), "192.0.2.7");
    }

    #[test]
    fn a_chain_of_trusted_proxies_is_followed_to_the_client() {
        let trusted = &["10.0.0.0/8", "127.0.0.1", "2001:db8::/32"];
        for (peer, fields, expected) in [
            ("127.0.0.1", &[][..], "127.0.0.1"),
            ("127.0.0.1", &[(X, "192.0.2.7, 10.0.0.2")], "192.0.2.7"),
            ("127.0.0.1", &[(X, "192.0.2.7"), (X, "10.0.0.2")], "192.0.2.7"),
            ("127.0.0.1", &[(X, "192.0.2.7:4711")], "192.0.2.7"),
            ("127.0.0.1", &[(X, "[2001:db9::1]:4711")], "2001:db9::1"),
            ("127.0.0.1", &[(X, "192.0.2.7, unknown, 10.0.0.2")], "10.0.0.2"),
            ("127.0.0.1", &[(X, "10.0.0.3, 10.0.0.2")], "10.0.0.3"),
            ("::ffff:127.0.0.1", &[(X, "::ffff:192.0.2.7")], "192.0.2.7"),
            (
                "2001:db8::1",
                &[("forwarded", "for=192.0.2.7;proto=https")],
                "192.0.2.7",
            ),
            (
                "10.1.1.1",
                &[("forwarded", "for=192.0.2.7, For=\"[2001:db8::9]:80\"")],
                "192.0.2.7",
            ),
            ("10.1.1.1", &[("forwarded", "for=_hidden")], "10.1.1.1"),
            // One of the two, since a proxy that writes one may pass the other on as it came.
            (
                "10.1.1.1",
                &[(X, "192.0.2.7"), ("forwarded", "for=203.0.113.9")],
                "192.0.2.7",
            ),
        ] {
            assert_eq!(client(trusted, peer, fields), expected, "{peer} {fields:?}");
        }
    }

    #[test]
    fn separators_in_quoted_strings_of_forwarded_separate_nothing() {
        for (field, expected) in [
            (r#"for=192.0.2.1;host="a,b""#, "192.0.2.1"),
            (
                r#"host="a;for=203.0.113.9";for="192.0.2.1:80", for=10.0.0.2"#,
                "192.0.2.1",
            ),
            (r#"for=192.0.2.1;host="a\",for=203.0.113.9""#, "192.0.2.1"),
            (r#"for=203.0.113.9, for=192.0.2.1;host="a,b""#, "192.0.2.1"),
            // A client that sends a quote without an end, to which the proxy has appended its address.
            (r#"for=203.0.113.9;a=", for=192.0.2.1"#, "192.0.2.1"),
            (r#"for=203.0.113.9;a="\, for=192.0.2.1;host="x""#, "192.0.2.1"),
        ] {
            assert_eq!(
                client(&["10.0.0.0/8"], "10.1.1.1", &[("forwarded", field)]),
                expected,
                "{field}"
            );
        }
    }

    #[test]
    fn networks_are_read() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("192.0.2.0/31", "192.0.2.1", "192.0.2.2"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"),
            ("0.0.0.0/0", "203.0.113.9", "::1"),
            ("::1", "::1", "0.0.0.1"),
            ("::ffff:127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("::ffff:10.0.0.0/104", "10.255.0.1", "11.0.0.1"),
        ] {
            let network: Network = network.parse().unwrap();
            assert!(network.has(inside.parse().unwrap()), "{network} {inside}");
            assert!(!network.has(outside.parse().unwrap()), "{network} {outside}");
        }
        for bad in [
            "",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "::/129",
            "proxy.internal",
            "10.0.0.0/8/8",
        ] {
            assert_eq!(bad.parse::<Network>(), Err(InvalidNetwork), "{bad}");
        }
    }
}
