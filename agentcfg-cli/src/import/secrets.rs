//! Literal secrets in a source, which must not be stored with an agent.

use super::node::{Entry, Node, Value};
use crate::agent_file::Place;

/// Maps whose values are often credentials.
const MAPS: &[&str] = &["env", "environment", "headers", "http_headers", "sensitive_headers"];

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
    "credential",
];

/// What well-known tokens begin with.
const PREFIXES: &[&str] = &[
    "sk-",
    "sk_live_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "eyJhbGci",
    "lsv2_",
    "svc_",
    "sk-lf-",
    "hf_",
    "npm_",
    "ya29.",
];

/// A literal secret: where it is, and the path to it.
#[derive(Debug)]
pub struct Secret {
    pub place: Place,
    pub path: String,
}

/// The secrets in entries, but for those in texts of these keys, which are prose.
pub fn secrets(entries: &[Entry], prose: &[&str]) -> Vec<Secret> {
    let mut found = Vec::new();
    for entry in entries.iter().filter(|entry| !prose.contains(&entry.key.as_str())) {
        search(&entry.node, &entry.key, is_of_credential(&entry.key), &mut found);
    }
    found
}

fn search(node: &Node, path: &str, is_named: bool, found: &mut Vec<Secret>) {
    match &node.value {
        Value::Text(text) if is_secret(text, is_named) => found.push(Secret {
            place: node.place,
            path: path.to_owned(),
        }),
        Value::List(items) => {
            // An option such as --token is followed by its value.
            let mut is_next = is_named;
            for (i, item) in items.iter().enumerate() {
                search(item, &format!("{path}[{i}]"), is_next, found);
                let is_option = item
                    .as_text()
                    .is_some_and(|text| text.starts_with("--") && !text.contains('='));
                is_next = is_named || (is_option && item.as_text().is_some_and(is_of_credential));
            }
        }
        Value::Map(entries) => {
            // The nodes of manifests name secrets by the variable that has them.
            if node.text_of("type") == Some("secret") {
                return;
            }
            let is_map = MAPS.contains(&path.rsplit('.').next().unwrap_or_default());
            for entry in entries {
                let is_named = is_of_credential(&entry.key) && (is_map || entry.node.as_text().is_some());
                search(&entry.node, &format!("{path}.{}", entry.key), is_named, found);
            }
        }
        _ => {}
    }
}

/// Whether a name is one of a credential. Names of variables and counts of tokens are none.
fn is_of_credential(name: &str) -> bool {
    let name = name.to_lowercase();
    let is_reference = ["_env", "_var", "env_var", "tokens", "_file"]
        .iter()
        .any(|end| name.ends_with(end));
    !is_reference && !name.contains("max_token") && NAMES.iter().any(|part| name.contains(part))
}

/// Whether a text is a secret by itself, or by the name that it has.
fn is_secret(text: &str, is_named: bool) -> bool {
    if is_reference(text) {
        return has_password(text);
    }
    let bare = text
        .strip_prefix("Bearer ")
        .or_else(|| text.strip_prefix("Basic "))
        .unwrap_or(text);
    let is_word = !bare.is_empty() && !bare.contains(char::is_whitespace);
    let is_long = bare.len() >= 16 && is_word;
    (is_long && PREFIXES.iter().any(|prefix| bare.starts_with(prefix)))
        || (is_named && is_word && bare.len() >= 6 && !is_plain_word(bare))
        || has_password(text)
}

/// `none`, `required`, `true`: a setting and no credential.
fn is_plain_word(text: &str) -> bool {
    [
        "required", "optional", "enabled", "disabled", "bearer", "oauth2", "api_key",
    ]
    .contains(&text.to_lowercase().as_str())
}

/// Whether a text stands for a value that is elsewhere: `${X}`, `$X`, `{{x}}`, `{env:X}`, `<your-key>`.
fn is_reference(text: &str) -> bool {
    ["${", "{{", "{env:", "{file:"].iter().any(|mark| text.contains(mark))
        || text.starts_with('$')
        || text.starts_with('<')
}

/// Whether a URL has a password, or a credential among its parameters.
fn has_password(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
    let of_user = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
    let parameters = rest.split_once('?').map(|(_, query)| query).unwrap_or_default();
    of_user.is_some_and(|(_, password)| !password.is_empty() && !is_reference(password))
        || parameters
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .any(|(name, value)| (is_of_credential(name) || name == "key") && value.len() >= 6 && !is_reference(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_found_and_references_are_not() {
        for (key, text) in [
            ("url", "https://user:pass@example.com/mcp"),
            ("url", "https://example.com/mcp?api_key=abcdef123"),
            ("note", "ghp_0123456789abcdef0123"),
        ] {
            assert_eq!(secrets(&[Entry::new(key, Node::text(text))], &[]).len(), 1, "{text}");
        }
        for text in [
            "https://${USER}:${PASS}@example.com",
            "https://example.com/mcp",
            "sk-",
            "You ask for a token.",
        ] {
            assert!(
                secrets(&[Entry::new("url", Node::text(text))], &[]).is_empty(),
                "{text}"
            );
        }
        let in_env = |key: &str, text: &str| {
            let env = Node::map(vec![Entry::new(key, Node::text(text))]);
            secrets(&[Entry::new("env", env)], &[]).len()
        };
        assert_eq!(in_env("DESK_TOKEN", "plain-literal"), 1);
        assert_eq!(in_env("DESK_TOKEN", "${DESK_TOKEN}"), 0);
        assert_eq!(in_env("LOG_LEVEL", "debugging"), 0);
        assert_eq!(in_env("Authorization", "Bearer abcdefgh"), 1);
    }
}
