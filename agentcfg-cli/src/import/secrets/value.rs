//! Whether a text is a secret: by itself, or by where it is.

use super::names::{Expected, expected_in_url};

/// What well-known tokens begin with.
const PREFIXES: &[&str] = &[
    "sk-ant-",
    "sk-proj-",
    "sk-lf-",
    "sk-or-",
    "sk-svcacct-",
    "sk-admin-",
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
    "eyJ",
    "lsv2_",
    "svc_",
    "ya29.",
];

/// What tokens begin with that have letters and digits alone after it. Names of tools and skills may begin so, too.
const BEFORE_LETTERS: &[&str] = &["sk-", "hf_", "npm_", "AKIA", "ASIA", "AIza"];

/// URLs whose path is a credential.
const SECRET_URLS: &[&str] = &[
    "hooks.slack.com/services/",
    "hooks.slack.com/workflows/",
    "discord.com/api/webhooks/",
    "mcp.zapier.com/api/mcp/s/",
];

/// What references to values in a vault or in a variable begin with.
const REFERENCES: &[&str] = &["op://", "vault://", "keyring://", "keychain://", "env:"];

/// The schemes of a header before its credential.
const SCHEMES: &[&str] = &["bearer ", "basic ", "token ", "apikey "];

/// Whether a text is a secret by itself, or by where it is.
pub fn is_secret(text: &str, expects: Expected) -> bool {
    if has_token(text) || has_key(text) || has_password(text) || is_connection_with_password(text) {
        return true;
    }
    let scheme = SCHEMES.iter().find_map(|scheme| {
        let start = text.get(..scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then(|| text[scheme.len()..].trim())
    });
    let bare = scheme.unwrap_or(text);
    if let Some(default) = default_of(bare) {
        // Such a default is often a value of a test.
        let is_long = default.len() >= 6 && is_mixed(default);
        return is_literal(default) && is_long && is_secret(default, expects);
    }
    if !is_literal(bare) || is_placeholder(bare) {
        return false;
    }
    let rest = without_references(bare);
    if rest.len() < bare.len() {
        // What stands beside a reference is often a name or a scheme.
        // A word in capitals is the name of a scheme.
        let is_of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+');
        let has_small = |word: &str| word.contains(|c: char| c.is_ascii_lowercase());
        let is_odd_word =
            |word: &str| word.len() >= 6 && is_mixed(word) && word.chars().all(is_of_word) && has_small(word);
        return expects == Expected::Secret && rest.split_whitespace().any(is_odd_word);
    }
    if bare.contains(char::is_whitespace) {
        return expects == Expected::Secret;
    }
    let (is_mixed, is_odd) = (is_mixed(bare), bare.contains(['&', '!', '#', '%', '^', '*', '$']));
    let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '/' | '=');
    let is_path = bare.starts_with(['/', '~']) || bare.starts_with("./");
    match expects {
        Expected::Anything => false,
        Expected::Value if bare.contains("://") => false,
        Expected::Value if scheme.is_some() => bare.len() >= 8 && (is_mixed || has_both_cases(bare)),
        Expected::Value if is_odd => bare.len() >= 12 && is_mixed,
        Expected::Value => bare.len() >= 20 && is_mixed && !bare.starts_with('/') && bare.chars().all(is_token),
        Expected::Likely if scheme.is_some() => bare.len() >= 6,
        Expected::Likely => is_likely(bare),
        Expected::Credential => bare.len() >= 12 && is_mixed,
        Expected::Named => bare.len() >= 8 && !is_path && !bare.contains("://") && !is_plain_word(bare),
        Expected::Secret => !is_path && !is_plain_word(bare),
    }
}

/// Whether a text has something else than references to values that are elsewhere: `${X}`, `$X`, `{{x}}`, `{env:X}`,
/// `<your-key>`.
pub fn is_literal(text: &str) -> bool {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_whole = text.strip_prefix('$').is_some_and(is_name)
        || (text.starts_with('<') && text.ends_with('>'))
        || (text.len() > 2 && text.starts_with('%') && text.ends_with('%'))
        || REFERENCES.iter().any(|scheme| text.starts_with(scheme))
        || is_variable(text);
    !is_whole && without_references(text).contains(char::is_alphanumeric)
}

/// A text without the references in it.
fn without_references(text: &str) -> String {
    const MARKS: &[(&str, char)] = &[("${", '}'), ("{{", '}'), ("{env:", '}'), ("{file:", '}'), ("$(", ')')];
    let (mut rest, mut literal) = (text, String::new());
    while let Some((at, (mark, end))) = MARKS
        .iter()
        .filter_map(|mark| Some((rest.find(mark.0)?, *mark)))
        .min_by_key(|(at, _)| *at)
    {
        literal.push_str(&rest[..at]);
        // One reference may be within another, as in `${A:-${B}}`.
        let (mut depth, mut after) = (0_usize, None);
        for (i, c) in rest[at + mark.len() - 1..].char_indices() {
            match c {
                '{' | '(' => depth += 1,
                _ if c == end => depth = depth.saturating_sub(1),
                _ => {}
            }
            if c == end && depth == 0 {
                after = Some(at + mark.len() - 1 + i + c.len_utf8());
                break;
            }
        }
        // `${}` names nothing.
        let is_named = |after: &usize| rest[at..*after].contains(char::is_alphanumeric);
        let Some(after) = after.filter(is_named) else {
            rest = &rest[at..];
            break;
        };
        rest = rest[after..].trim_start_matches(end);
    }
    literal.push_str(rest);
    literal
}

fn is_mixed(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit()) && text.contains(|c: char| c.is_ascii_alphabetic())
}

/// Whether a text looks like a credential, and not like a mode or a name such as `build-session-2`.
fn is_likely(text: &str) -> bool {
    let is_token = |word: &str| word.len() >= 5 && is_mixed(word);
    let is_address = text.contains("://") || text.contains([';', '{']) || text.starts_with(['/', '~', '.']);
    text.len() >= 8 && !is_address && text.split(|c: char| !c.is_ascii_alphanumeric()).any(is_token)
}

/// Whether a text has capitals after its first letter, and small letters.
fn has_both_cases(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_lowercase()) && text.chars().skip(1).any(|c| c.is_ascii_uppercase())
}

/// Whether a well-known token is anywhere in a text, such as a header, an argument or the path of a URL.
fn has_token(text: &str) -> bool {
    let is_of_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_plain = |rest: &str, least: usize| rest.len() >= least && rest.chars().all(|c| c.is_ascii_alphanumeric());
    let is_token = |word: &str| {
        let after = |prefixes: &[&'static str]| {
            let after = |prefix: &&'static str| Some((*prefix, word.strip_prefix(*prefix)?));
            prefixes.iter().find_map(after)
        };
        let is_known = after(PREFIXES).is_some_and(|(prefix, rest)| match prefix {
            "eyJ" => is_mixed(word) && (word.contains('.') || word.len() >= 40),
            _ => is_mixed(word) || (is_plain(rest, 16) && !is_placeholder(rest)),
        });
        let is_before_letters = after(BEFORE_LETTERS).is_some_and(|(_, rest)| is_mixed(word) && is_plain(rest, 12));
        word.len() >= 16 && (is_known || is_before_letters)
    };
    text.split(|c: char| !is_of_token(c)).any(is_token)
}

/// Whether a text has a private key in the form of PEM.
fn has_key(text: &str) -> bool {
    text.contains("-----BEGIN ") && text.contains("PRIVATE KEY")
}

/// `none`, `required`, `true`, `8`: a setting and no credential.
fn is_plain_word(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "required", "optional", "enabled", "disabled", "bearer", "oauth2", "api_key", "true", "false", "none", "null",
        "yes", "no", "on", "off", "auto",
    ];
    WORDS.contains(&text.to_lowercase().as_str()) || (text.len() < 4 && text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `changeme`, `[YOUR_KEY]`, `sk-your-key`, `xxxx`: what a user has to replace.
fn is_placeholder(text: &str) -> bool {
    const BEFORE_YOUR: &[&str] = &["", "insert", "enter", "put", "add", "replacewith"];
    let text = text.trim_matches(['[', ']']);
    let prefixes = || PREFIXES.iter().chain(BEFORE_LETTERS);
    let text = prefixes().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
    let text = text.to_lowercase().replace(['-', '_', ' '], "");
    let is_told = ["changeme", "changeit", "placeholder", "redacted", "todo", "replaceme"].contains(&text.as_str());
    let is_yours = |before: &&str| text.strip_prefix(*before).is_some_and(|rest| rest.starts_with("your"));
    is_told || BEFORE_YOUR.iter().any(is_yours) || text.chars().all(|c| matches!(c, 'x' | '*' | '.'))
}

/// The literal in `${X:-literal}` or `${X:literal}`, which stands for a variable that is not set. In `${env:X}` and
/// `${input:x}` the second part is the name.
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

/// Whether a text is the name of a variable, such as `DESK_TOKEN`, which some tools take in place of its value. Words
/// of a name do not go from letters to digits and back again and again.
fn is_variable(text: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let changes = |word: &str| {
        let digits: Vec<bool> = word.bytes().map(|byte| byte.is_ascii_digit()).collect();
        digits.windows(2).filter(|pair| pair[0] != pair[1]).count()
    };
    text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.contains('_')
        && text.chars().all(is_of_name)
        && text.split('_').all(|word| changes(word) <= 2)
}

/// Whether a text is the settings of a connection, such as `Server=db;User Id=app;Password=…` and `host=db password=…`, with
/// a password.
fn is_connection_with_password(text: &str) -> bool {
    let separator = if text.contains(';') { ';' } else { ' ' };
    let parts = || text.split(separator).map(str::trim).filter(|part| !part.is_empty());
    let pairs: Option<Vec<_>> = parts().map(|part| part.split_once('=')).collect();
    let pairs = pairs.filter(|pairs| pairs.len() > 1).unwrap_or_default();
    pairs.into_iter().any(|(name, value)| {
        let (name, value) = (name.trim().to_lowercase().replace(' ', "_"), value.trim());
        let is_password = ["password", "pwd", "accountkey", "sharedaccesskey"].contains(&&*name);
        let is_reference = ['{', '['].iter().any(|open| value.starts_with(*open));
        is_password && is_literal(value) && !is_reference && !is_placeholder(value) && !is_plain_word(value)
    })
}

/// Whether a URL has a password, or a credential as its user, in its path, or among its parameters.
fn has_password(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
    let is_of_user = authority
        .rsplit_once('@')
        .is_some_and(|(user, _)| match user.split_once(':') {
            Some((_, password)) if !password.is_empty() => is_literal(password),
            _ => {
                let user = user.trim_end_matches(':');
                user.len() >= 16 && is_mixed(user) && is_literal(user)
            }
        });
    let is_of_path = SECRET_URLS.iter().any(|url| {
        let path = rest
            .strip_prefix(url)
            .map(|path| path.split(['?', '#', ' ']).next().unwrap_or_default());
        path.is_some_and(|path| path.len() >= 8 && is_literal(path))
    });
    let is_credential = |pair: &str| {
        let pair = pair.split_once('=');
        pair.is_some_and(|(name, value)| {
            let is_long = match expected_in_url(name) {
                Expected::Secret => value.len() >= 6,
                Expected::Likely => is_likely(value),
                _ => false,
            };
            is_long && is_literal(value)
        })
    };
    let parameters = rest.split_once(['?', '#']).map(|(_, query)| query).unwrap_or_default();
    is_of_user || is_of_path || parameters.split(['&', '#', '?']).any(is_credential)
}
