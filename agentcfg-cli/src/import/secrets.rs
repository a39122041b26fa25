//! Literal secrets in a source, which must not be stored with an agent.

use super::source_tree::{Entry, Node, Value};
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
    "cookie",
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
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "eyJ",
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

/// What the place of a text says about it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Expected {
    Anything,
    /// Among the variables of a program or the headers of a request.
    Value,
    /// The name of a credential, among other settings.
    Credential,
    /// The name of a credential, where only its value can be.
    Secret,
}

/// The secrets in entries, but for those in texts of these keys, which are prose.
pub fn secrets(entries: &[Entry], prose: &[&str]) -> Vec<Secret> {
    let mut found = Vec::new();
    for entry in entries.iter().filter(|entry| !prose.contains(&entry.key.as_str())) {
        search(&entry.node, &entry.key, expected(&entry.key, false), &mut found);
    }
    found
}

fn expected(key: &str, is_map: bool) -> Expected {
    match (is_of_credential(key), is_map) {
        // A key of some kind may be one for sorting.
        (true, true) if !names_a_credential(key) => Expected::Credential,
        (true, true) => Expected::Secret,
        (true, false) => Expected::Credential,
        (false, true) => Expected::Value,
        (false, false) => Expected::Anything,
    }
}

fn search(node: &Node, path: &str, expects: Expected, found: &mut Vec<Secret>) {
    match &node.value {
        Value::Text(text) if is_secret(text, expects) || (is_of_program(path) && command_has_secret(text)) => {
            found.push(Secret {
                place: node.place,
                path: path.to_owned(),
            });
        }
        Value::List(items) => {
            let texts: Vec<&str> = items.iter().map(|item| item.as_text().unwrap_or_default()).collect();
            let is_command = is_of_program(path);
            for (i, item) in items.iter().enumerate() {
                let path = format!("{path}[{i}]");
                let before = i.checked_sub(1).map_or("", |before| texts[before]);
                match item.as_text() {
                    Some(text) if argument_is_secret(before, text, is_command) => found.push(Secret {
                        place: item.place,
                        path,
                    }),
                    _ => search(item, &path, expects, found),
                }
            }
        }
        Value::Map(entries) => {
            // The nodes of manifests name secrets by the variable that has them.
            if node.text_of("type") == Some("secret") {
                return;
            }
            let is_map = MAPS.contains(&path.rsplit('.').next().unwrap_or_default());
            for entry in entries {
                let expects = expected(&entry.key, is_map);
                search(&entry.node, &format!("{path}.{}", entry.key), expects, found);
            }
        }
        _ => {}
    }
}

/// Whether a path is that of a program or its arguments.
fn is_of_program(path: &str) -> bool {
    matches!(path.rsplit('.').next(), Some("command" | "args" | "arguments"))
}

/// The options whose value is a header or a variable.
const PAIRS: &[&str] = &["-H", "--header", "--headers", "-e", "--env", "--environment"];

/// Whether an argument of a program has a secret. It may be the value of the argument before it.
fn argument_is_secret(before: &str, text: &str, is_command: bool) -> bool {
    let option = text
        .starts_with('-')
        .then(|| text.split_once('=').unwrap_or((text, "")));
    // `--token=x`, and `x` after `--token`.
    let is_value = before.starts_with('-') && !before.contains('=') && is_of_credential(before);
    let of_option =
        option.is_some_and(|(name, value)| is_of_credential(name) && is_secret(value, expected(name, true)));
    if of_option || (is_value && option.is_none() && is_secret(text, expected(before, true))) {
        return true;
    }
    // `--header=Name: x`, `-HName: x`, `-eNAME=x`, and those after their option.
    let joined = PAIRS.iter().find_map(|pair| {
        let rest = text.strip_prefix(pair)?;
        match pair.starts_with("--") {
            true => rest.strip_prefix('='),
            false => (!rest.is_empty()).then_some(rest),
        }
    });
    match joined {
        Some(pair) => pair_is_secret(pair),
        None => (is_command || PAIRS.contains(&before)) && option.is_none() && pair_is_secret(text),
    }
}

/// Whether `NAME=value` or `Name: value` has a secret.
fn pair_is_secret(text: &str) -> bool {
    let Some((name, value)) = text.split_once(['=', ':']) else {
        return false;
    };
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_name = !name.is_empty() && name.chars().all(is_of_name) && !value.starts_with("//");
    is_name && is_secret(value.trim().trim_matches(['"', '\'']), expected(name, true))
}

/// Whether a command on one line has a secret among its arguments.
fn command_has_secret(line: &str) -> bool {
    let words: Vec<&str> = line
        .split_whitespace()
        .map(|word| word.trim_matches(['"', '\'']))
        .collect();
    let is_secret_at = |at: usize| {
        let before = at.checked_sub(1).map_or("", |before| words[before]);
        // The value of a header follows its name as a word of its own.
        let (joined, rest) = (format!("{before} {}", words[at]), words.get(at + 1).unwrap_or(&""));
        let is_of_header = before.ends_with(':') && at >= 2 && PAIRS.contains(&words[at - 2]);
        argument_is_secret(before, words[at], true)
            || (is_of_header && pair_is_secret(&joined))
            || (is_of_header && !rest.is_empty() && pair_is_secret(&format!("{joined} {rest}")))
    };
    (0..words.len()).any(is_secret_at)
}

/// Whether a name is one of a credential. Names of variables and counts of tokens are none.
fn is_of_credential(name: &str) -> bool {
    let name = name.to_lowercase();
    let ends = [
        "_env",
        "_var",
        "tokens",
        "_file",
        "_path",
        "_dir",
        "_name",
        "_url",
        "_uri",
        "_endpoint",
        "_domain",
        "_limit",
        "_ttl",
    ];
    let is_other = ends.iter().any(|end| name.replace('-', "_").ends_with(end));
    let is_key = name.rsplit(['-', '_']).next() == Some("key") && name != "key";
    !is_other && !name.contains("max_token") && !name.contains("tokenizer") && (is_key || names_a_credential(&name))
}

fn names_a_credential(name: &str) -> bool {
    let name = name.to_lowercase();
    NAMES.iter().any(|part| name.contains(part))
}

/// Whether a text is a secret by itself, or by where it is.
fn is_secret(text: &str, expects: Expected) -> bool {
    let bare = ["Bearer ", "Basic ", "bearer ", "Token "]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme));
    let bare = bare.unwrap_or(text);
    if has_token(text) {
        return true;
    }
    if let Some(default) = default_of(bare) {
        // Such a default is often a value of a test.
        let is_long = default.len() >= 6 && is_mixed(default);
        return !is_reference(default) && is_long && is_secret(default, expects);
    }
    if is_reference(bare) {
        return has_password(text);
    }
    if bare.contains(char::is_whitespace) {
        return expects == Expected::Secret || has_password(text);
    }
    let (is_mixed, is_odd) = (is_mixed(bare), bare.contains(['&', '!', '#', '%', '^', '*', '$']));
    let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '/' | '=');
    let is_known = bare.len() >= 16 && PREFIXES.iter().any(|prefix| bare.starts_with(prefix));
    let is_by_place = match expects {
        Expected::Anything => false,
        Expected::Value if bare.contains("://") => false,
        Expected::Value if is_odd => bare.len() >= 12 && is_mixed,
        Expected::Value => bare.len() >= 20 && is_mixed && !bare.starts_with('/') && bare.chars().all(is_token),
        Expected::Credential => bare.len() >= 12 && is_mixed,
        Expected::Secret if bare.starts_with(['/', '~']) || bare.starts_with("./") => false,
        Expected::Secret => !bare.is_empty() && !is_plain_word(bare),
    };
    is_known || is_by_place || has_password(text)
}

fn is_mixed(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit()) && text.contains(|c: char| c.is_ascii_alphabetic())
}

/// Whether a well-known token is anywhere in a text, such as a header, an argument or the path of a URL.
fn has_token(text: &str) -> bool {
    let is_of_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.split(|c: char| !is_of_token(c)).any(|word| {
        let is_of_prefix = |prefix: &&&str| word.starts_with(**prefix);
        word.len() >= 16
            && is_mixed(word)
            && PREFIXES
                .iter()
                .find(is_of_prefix)
                .is_some_and(|prefix| *prefix != "eyJ" || word.contains('.') || word.len() >= 40)
    })
}

/// `none`, `required`, `true`, `8`: a setting and no credential.
fn is_plain_word(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "required", "optional", "enabled", "disabled", "bearer", "oauth2", "api_key", "true", "false", "none", "null",
        "yes", "no", "on", "off", "auto",
    ];
    WORDS.contains(&text.to_lowercase().as_str()) || (text.len() < 4 && text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The literal in `${X:-literal}` or `${X:literal}`, which stands for a variable that is not set. In `${env:X}` and `${input:x}` the
/// second part is the name.
fn default_of(text: &str) -> Option<&str> {
    let (name, default) = text.strip_prefix("${")?.strip_suffix('}')?.split_once(':')?;
    if [
        "env", "input", "secret", "secrets", "file", "config", "command", "vault",
    ]
    .contains(&name)
    {
        return None;
    }
    let default = default.strip_prefix('-').unwrap_or(default);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_name)).then_some(default)
}

/// Whether a text stands for a value that is elsewhere: `${X}`, `$X`, `{{x}}`, `{env:X}`, `<your-key>`.
fn is_reference(text: &str) -> bool {
    ["${", "{{", "{env:", "{file:"].iter().any(|mark| text.contains(mark))
        || text.starts_with(['$', '<'])
        || (text.len() > 2 && text.starts_with('%') && text.ends_with('%'))
        || is_variable(text)
}

/// Whether a text is the name of a variable, such as `DESK_TOKEN`, which some tools take in place of its value.
fn is_variable(text: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    text.starts_with(|c: char| c.is_ascii_uppercase()) && text.contains('_') && text.chars().all(is_of_name)
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
        assert_eq!(in_env("DB_PASSWORD", "${DB_PASSWORD:-hunter2}"), 1);
        assert_eq!(in_env("DB_PASSWORD", "${DB_PASSWORD:-}"), 0);
        assert_eq!(in_env("DB_PASSWORD", "${DB_PASSWORD:-${OTHER}}"), 0);
        assert_eq!(in_env("DB_HOST", "${DB_HOST:-localhost}"), 0);
        assert_eq!(in_env("DB_PASSWORD", "pw"), 1);
        assert_eq!(in_env("DB_PASSWORD", "correct horse"), 1);
        assert_eq!(in_env("Authorization", "Bearer abc"), 1);
        assert_eq!(in_env("COOKIE_SECURE", "true"), 0);
        assert_eq!(in_env("LOG_LEVEL", "debugging"), 0);
        assert_eq!(in_env("Authorization", "Bearer abcdefgh"), 1);
        assert_eq!(in_env("Authorization", "Bearer $DESK_TOKEN"), 0);
        assert_eq!(in_env("DESK_API_KEY", "COPILOT_MCP_DESK_API_KEY"), 0);
        assert_eq!(in_env("MODEL", "claude-sonnet-5-20260101"), 0);
        assert_eq!(in_env("DESK", "9f8a7b6c5d4e3f2a1b0c9d8e"), 1);
        let args = |args: &[&str]| {
            let args = Node::list(args.iter().map(|arg| Node::text(*arg)).collect());
            secrets(&[Entry::new("args", args)], &[]).len()
        };
        assert_eq!(args(&["--token", "abcdefgh"]), 1);
        assert_eq!(args(&["--token=abcdefgh", "--port=8080"]), 1);
        assert_eq!(args(&["--token", "${TOKEN}", "--verbose", "x"]), 0);
        let ghp = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
        for secret in [
            vec!["--header", "Authorization: Bearer Tr0ub4dor"],
            vec!["--header=Authorization: Bearer abcdefgh"],
            vec!["-H", "X-Api-Key:abcdefgh12"],
            vec!["-HX-Api-Key: abcdefgh12"],
            vec!["-e", "DESK_TOKEN=abcdefgh"],
            vec!["-eDESK_TOKEN=abcdefgh"],
            vec!["DESK_PASSWORD=abcdefgh"],
            vec![&format!("Authorization: Bearer {ghp}")],
            vec!["--endpoint", &format!("https://example.com/s/{ghp}/mcp")],
        ] {
            assert_eq!(args(&secret), 1, "{secret:?}");
        }
        for plain in [
            vec!["--header", "Authorization: Bearer ${TOKEN}"],
            vec!["--header=Accept: application/json", "-H", "X-Api-Key: ${env:KEY}"],
            vec!["-e", "DESK_TOKEN", "-e", "LOG_LEVEL=info", "--env=REGION=eu-west-1"],
            vec!["--sort-key", "created_at", "run", "https://example.com:8080/a"],
        ] {
            assert_eq!(args(&plain), 0, "{plain:?}");
        }
        let command = |line: &str| secrets(&[Entry::new("command", Node::text(line))], &[]).len();
        assert_eq!(command("x --token Tr0ub4dor"), 1);
        assert_eq!(
            command("curl -H 'Authorization: Bearer abcdefgh' https://example.com"),
            1
        );
        assert_eq!(command(&format!("x {ghp}")), 1);
        assert_eq!(command("npx -y @desk/mcp --token $TOKEN --port 8080"), 0);
        assert_eq!(in_env("X-Key", "Tr0ub4dor&3xyz"), 1);
        assert_eq!(in_env("K", "Tr0ub4dor&3xyz"), 1);
        assert_eq!(in_env("SORT_KEY", "created_at"), 0);
        for reference in ["${X:-d}", "${X:-changeme}", "${input:x}", "${env:X}", "%X%"] {
            assert_eq!(in_env("API_KEY", reference), 0, "{reference}");
        }
        assert_eq!(in_env("API_KEY", &format!("${{X:-{ghp}}}")), 1);
        for token in [
            "xoxb-1234567890-abcdefghijkl",
            "AKIAIOSFODNN7EXAMPLE",
            "glpat-abcdefghij0123456789",
            "sk-ant-api03-abcdefgh",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijklmnop",
        ] {
            assert_eq!(in_env("FOO", &format!("a {token}")), 1, "{token}");
        }
        let setting = |key: &str, text: &str| secrets(&[Entry::new(key, Node::text(text))], &[]).len();
        assert_eq!(setting("tokenizer", "cl100k_base_of_models"), 0);
        assert_eq!(setting("authorization", "always"), 0);
        assert_eq!(setting("authorization", "abcdef0123456"), 1);
    }
}
