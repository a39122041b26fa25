//! Checks of URLs to which requests are sent.

use hyper::Uri;

/// Whether a URL from the settings or a provider is acceptable: absolute, HTTP, without user information and without a
/// fragment.
pub fn is_plain_url(text: &str) -> bool {
    let Ok(url) = text.parse::<Uri>() else { return false };
    let http = matches!(url.scheme_str(), Some("http" | "https"));
    let host = url.host().is_some_and(|host| !host.is_empty());
    let credentials = url
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'));
    http && host && !credentials && !text.contains('#')
}

/// The URL of the discovery document of this issuer.
pub fn discovery_url(issuer: &str) -> Option<Uri> {
    if !is_plain_url(issuer) || issuer.contains('?') {
        return None;
    }
    format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
        .parse()
        .ok()
}
