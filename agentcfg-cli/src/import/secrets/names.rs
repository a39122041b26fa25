//! What the name of a setting says about its value.

/// Parts of names of credentials.
const NAMES: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "api_key",
    "apikey",
    "api-key",
    "authorization",
    "cookie",
    "credential",
];

/// The last words of names of something else than the credential itself, such as `token_budget`.
const OTHERS: &[&str] = &[
    "algorithm",
    "audience",
    "backend",
    "budget",
    "count",
    "dir",
    "domain",
    "enabled",
    "endpoint",
    "env",
    "expiry",
    "file",
    "format",
    "header",
    "host",
    "interval",
    "issuer",
    "length",
    "lifetime",
    "limit",
    "manager",
    "mode",
    "name",
    "path",
    "policy",
    "port",
    "prefix",
    "provider",
    "region",
    "required",
    "scope",
    "scopes",
    "seconds",
    "size",
    "store",
    "timeout",
    "ttl",
    "type",
    "uri",
    "url",
    "var",
    "version",
    "window",
];

/// The last words of names of values that look like tokens.
const IDENTIFIERS: &[&str] = &["id", "sha", "hash", "commit", "digest", "revision", "version", "tag"];

/// The ends of names of which the value alone can be meant.
const WHOLE: &[&str] = &[
    "secret",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "api_key",
    "api-key",
    "private_key",
    "privatekey",
    "access_token",
    "accesstoken",
    "refresh_token",
    "refreshtoken",
];

/// Names of variables, headers and parameters of URLs that have a credential.
const SENT: &[&str] = &["jwt", "bearer", "accesskey"];

/// Those that have a credential, or a mode, a name or the address of something.
const OFTEN_SENT: &[&str] = &[
    "auth",
    "auth_header",
    "connection_string",
    "connectionstring",
    "session",
    "session_id",
    "sessionid",
];

/// What the place of a text says about it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Expected {
    Anything,
    /// Among the variables of a program or the headers of a request.
    Value,
    /// A name among them that credentials often have.
    Likely,
    /// The name of a credential, among other settings.
    Credential,
    /// The name of a credential and nothing else, among other settings.
    Named,
    /// The name of a credential, where only its value can be.
    Secret,
}

pub fn expected(key: &str, is_map: bool) -> Expected {
    match (is_of_credential(key), is_map) {
        // A key of some kind may be one for sorting.
        (true, true) if !names_a_credential(key) => Expected::Credential,
        (true, true) => Expected::Secret,
        (true, false) if is_whole(key) => Expected::Named,
        (true, false) => Expected::Credential,
        (false, true) if is_sent(key, SENT) => Expected::Secret,
        (false, true) if is_sent(key, OFTEN_SENT) || key.eq_ignore_ascii_case("key") => Expected::Likely,
        (false, true) if is_of_identifier(key) => Expected::Anything,
        (false, true) => Expected::Value,
        (false, false) => Expected::Anything,
    }
}

/// What is expected of a parameter of a URL.
pub fn expected_in_url(name: &str) -> Expected {
    let name = name.to_lowercase();
    match name.as_str() {
        "key" | "sig" | "signature" => Expected::Secret,
        // It may be that of a state or of a language.
        "code" => Expected::Likely,
        _ if is_of_credential(&name) => Expected::Secret,
        _ => match expected(&name, true) {
            Expected::Value => Expected::Anything,
            expects => expects,
        },
    }
}

/// Whether a name is one of these, or ends with one as a word of its own.
fn is_sent(name: &str, names: &[&str]) -> bool {
    let name = name.to_lowercase().replace('-', "_");
    let before = |one: &&str| name.strip_suffix(*one);
    names
        .iter()
        .filter_map(before)
        .any(|before| before.is_empty() || before.ends_with('_'))
}

fn is_whole(key: &str) -> bool {
    let key = key.to_lowercase();
    WHOLE.iter().any(|end| key.ends_with(end))
}

fn is_of_identifier(key: &str) -> bool {
    let key = key.to_lowercase();
    key.rsplit(['-', '_'])
        .next()
        .is_some_and(|last| IDENTIFIERS.contains(&last))
}

/// Whether a name is one of a credential. Names of variables and counts of tokens are none.
pub fn is_of_credential(name: &str) -> bool {
    let name = name.to_lowercase();
    let last = name.rsplit(['-', '_']).next().unwrap_or_default();
    let is_other = name.ends_with("tokens") || (last.len() < name.len() && OTHERS.contains(&last));
    let is_key = last == "key" && name != "key";
    !is_other && !name.contains("max_token") && !name.contains("tokenizer") && (is_key || names_a_credential(&name))
}

fn names_a_credential(name: &str) -> bool {
    let name = name.to_lowercase();
    let last = name.rsplit(['-', '_']).next().unwrap_or_default();
    NAMES.iter().any(|part| name.contains(part)) || ["pass", "passphrase", "pwd", "pat"].contains(&last)
}
