//! Which URLs requests may go to.

use hyper::Uri;

/// Whether requests may go to this URL as a setting or a provider gives it: absolute, HTTP, and with nothing in it that
/// would be sent along unseen.
pub fn is_plain_url(text: &str) -> bool {
    let Ok(url) = text.parse::<Uri>() else { return false };
    let http = matches!(url.scheme_str(), Some("http" | "https"));
    let host = url.host().is_some_and(|host| !host.is_empty());
    let credentials = url
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'));
    http && host && !credentials && !text.contains('#')
}

/// Where a provider with this issuer describes itself.
pub fn discovery_url(issuer: &str) -> Option<Uri> {
    if !is_plain_url(issuer) || issuer.contains('?') {
        return None;
    }
    format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
        .parse()
        .ok()
}
