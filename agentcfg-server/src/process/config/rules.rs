//! The rules for the values of single settings.

use agentcfg_core::model::{AllowedHost, Plan, Provider, WorkspaceCreation};
use agentcfg_core::routing::Catalogue;
use agentcfg_core::secret::ProviderCredential;
use agentcfg_core::session::RequiredClaim;
use agentcfg_core::vault::{MasterKey, Vault};
use hyper::Uri;
use hyper::header::HeaderMap;

use super::value::Value;
use crate::http::{Browser, InvalidPublicUrl, Network};
use crate::identity::is_plain_url;
use crate::secret::Secret;

/// Any text without control characters.
pub(super) fn text(value: &Value<'_>) -> Result<String, String> {
    value.text("text without control characters", is_text)
}

pub(super) fn secret_text(value: &Value<'_>, rule: &str, valid: fn(&str) -> bool) -> Result<Option<Secret>, String> {
    value.text(rule, valid).map(|text| Some(Secret::new(text)))
}

pub(super) fn url(value: &Value<'_>) -> Result<Option<Uri>, String> {
    let text = value.text("an http or https URL without credentials and fragment", is_plain_url)?;
    Ok(text.parse().ok())
}

pub(super) fn base_url(value: &Value<'_>) -> Result<String, String> {
    const RULE: &str = "an address such as https://api.example.com or http://127.0.0.1:8080/prefix, without credentials, \
                        query or fragment, and without /v1 at the end, because the paths of model calls begin with it";
    let normal = |text: &str| {
        let catalogue = Catalogue::default().with_base_url(Provider::OPENAI, text).ok()?;
        catalogue.base_url(Provider::OPENAI).map(str::to_owned)
    };
    match value.text(RULE, |_| true).map(|text| (normal(&text), text)) {
        Ok((Some(url), _)) => Ok(url),
        // The text before an @ may be a password.
        Ok((None, text)) if text.contains('@') => Err(format!("must be {RULE}")),
        Ok((None, _)) => value.text(RULE, |_| false),
        Err(fault) => Err(fault),
    }
}

pub(super) fn public_url(value: &Value<'_>) -> Result<String, String> {
    let normal = |text: &str| {
        let browser = Browser::default().public_url(text)?;
        Ok(browser.base_url(&HeaderMap::new()))
    };
    let text = value.text("a URL such as https://agents.example.com", |_| true)?;
    normal(&text).map_err(|fault: InvalidPublicUrl| fault.to_string())
}

/// Whether these are scopes (RFC 6749, section 3.3) with which a provider answers an ID token.
pub(super) fn is_scope(text: &str) -> bool {
    let is_word = |word: &str| {
        word.bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
    };
    text.split(' ').all(is_word) && text.split(' ').any(|word| word == "openid")
}

pub(super) fn call_path(text: &str) -> bool {
    Catalogue::default().with_managed_paths(vec![text.to_owned()]).is_ok()
}

pub(super) fn provider_key(value: &Value<'_>) -> Result<Option<Secret>, String> {
    let fits = |text: &str| ProviderCredential::new(text).is_ok();
    secret_text(value, "1 to 500 visible ASCII characters", fits)
}

pub(super) fn master_keys(value: &Value<'_>) -> Result<Vec<Secret>, String> {
    const RULE: &str = "a list of keys of 32 bytes, each as 64 hexadecimal digits or base64, and none twice";
    // The file of a data directory has comments.
    let is_key = |line: &&str| !line.trim_start().starts_with('#');
    let texts = match value {
        Value::Text(text) => Value::Text(&text.lines().filter(is_key).collect::<Vec<_>>().join("\n")).words(),
        Value::Toml(_) => value.words(),
    };
    let keys: Option<Vec<MasterKey>> = texts.iter().flatten().map(|text| text.parse().ok()).collect();
    match (texts, keys) {
        (_, Some(keys)) if keys.is_empty() && matches!(value, Value::Text(_)) => {
            Err("must be at least one key, and there is none: write a key, or unset the variable".to_owned())
        }
        (Some(texts), Some(keys)) if keys.is_empty() || Vault::new(keys.clone()).is_ok() => {
            Ok(texts.into_iter().map(Secret::new).collect())
        }
        _ => Err(format!("must be {RULE}")),
    }
}

pub(super) fn allowed_hosts(value: &Value<'_>) -> Result<Vec<AllowedHost>, String> {
    let texts = value.list("hosts such as hooks.internal or 10.0.0.7:8080", |text| {
        text.parse::<AllowedHost>().is_ok()
    })?;
    Ok(texts.iter().filter_map(|text| text.parse().ok()).collect())
}

pub(super) fn networks(value: &Value<'_>) -> Result<Vec<Network>, String> {
    let texts = value.list("addresses or networks such as 10.0.0.0/8", |text| {
        text.parse::<Network>().is_ok()
    })?;
    Ok(texts.iter().filter_map(|text| text.parse().ok()).collect())
}

/// Hosts that are reached without the proxy, with the rules of curl: a name stands for its subdomains too, and `*`, which must be
/// alone, for all hosts.
pub(super) fn no_proxy(value: &Value<'_>) -> Result<Vec<String>, String> {
    const RULE: &str = "names, domains such as .internal, addresses or networks such as 10.0.0.0/8, each without scheme and port, \
                        or * alone for all hosts";
    let hosts = value.list(RULE, |text| {
        text == "*" || text.parse::<Network>().is_ok() || is_host_name(text.strip_prefix('.').unwrap_or(text))
    })?;
    match hosts.len() > 1 && hosts.iter().any(|host| host == "*") {
        true => Err("must be * alone or hosts, got * beside others: it stands for all hosts".to_owned()),
        false => Ok(hosts),
    }
}

/// Whether this can be the name of a host. One that ends in a number is taken for an address everywhere.
fn is_host_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let mut bytes = label.bytes();
        !label.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    text.split('.').all(is_label) && !last.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn required_claims(value: &Value<'_>) -> Result<Vec<RequiredClaim>, String> {
    let texts = value.list("claims such as groups=staff or email_verified=true", |text| {
        text.parse::<RequiredClaim>().is_ok()
    })?;
    Ok(texts.iter().filter_map(|text| text.parse().ok()).collect())
}

pub(super) fn workspace_creation(value: &Value<'_>) -> Result<WorkspaceCreation, String> {
    let words: Vec<_> = WorkspaceCreation::ALL
        .iter()
        .map(|word| (word.as_str(), *word))
        .collect();
    value.choice(&words)
}

pub(super) fn plan(value: &Value<'_>) -> Result<Plan, String> {
    let plans: Vec<_> = Plan::ALL.iter().map(|plan| (plan.as_str(), *plan)).collect();
    value.choice(&plans)
}

pub(super) fn database_url(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

fn is_text(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(char::is_control)
}

pub(super) fn is_visible(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

pub(super) fn log_filter(text: &str) -> bool {
    // A filter takes an unknown word for the name of a module, so a mistyped level would turn off all logs.
    let is_level = |word: &str| !word.is_empty() && word.parse::<tracing_subscriber::filter::LevelFilter>().is_ok();
    let mut directives = text.split(',').map(str::trim);
    directives.all(|directive| match directive.split_once('=') {
        Some((_, level)) => is_level(level),
        None => is_level(directive),
    }) && tracing_subscriber::EnvFilter::try_new(text).is_ok()
}

/// Origins as browsers send them in `Origin`: a scheme, a host, and a port that is not the default one of the scheme.
pub(super) fn origins(value: &Value<'_>) -> Result<Vec<String>, String> {
    let texts = value.list("origins such as https://app.example.com", |text| origin(text).is_some())?;
    Ok(texts.iter().filter_map(|text| origin(text)).collect())
}

fn origin(text: &str) -> Option<String> {
    let (scheme, authority) = text.split_once("://")?;
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._:[]".contains(&b);
    if !matches!(scheme, "https" | "http") || !authority.bytes().all(is_plain) {
        return None;
    }
    let browser = Browser::default().public_url(text).ok()?;
    Some(browser.base_url(&HeaderMap::new()))
}
