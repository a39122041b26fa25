//! The addresses of providers, and paths below them.

/// Whether this can be a segment of a path that every parser of URLs takes as it is: neither a dot segment nor an
/// escape.
pub(super) fn is_segment(part: &str) -> bool {
    part.bytes().any(|byte| byte != b'.')
        && part
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
}

/// Validates and normalises a provider's base URL; the error is the rule that it breaks.
///
/// The accepted characters have one meaning for every URL parser, so an accepted URL that is joined with
/// a path always leads to its own host.
pub(super) fn base_url(text: &str) -> Result<&str, &'static str> {
    const RULE: &str = "must be http:// or https://, a host, perhaps a port and a path, with no credentials, query or \
                        fragment";
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))
        .ok_or(RULE)?;
    let trimmed = rest.trim_end_matches('/');
    let (authority, path) = trimmed.split_once('/').unwrap_or((trimmed, ""));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let is_name = !host.is_empty()
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    let is_v6 = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .is_some_and(|host| host.parse::<std::net::Ipv6Addr>().is_ok());
    let port_fits = port.is_none_or(|port| {
        port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    let path_fits = path.is_empty() || path.split('/').all(is_segment);
    if (is_name || is_v6) && port_fits && path_fits {
        Ok(&text[..text.len() - (rest.len() - trimmed.len())])
    } else {
        Err(RULE)
    }
}

/// The path of a base URL, without the slash before it.
pub(super) fn path(url: &str) -> &str {
    let (_, rest) = url.split_once("://").unwrap_or_default();
    rest.split_once('/').unwrap_or_default().1
}
