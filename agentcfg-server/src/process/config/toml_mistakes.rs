//! Messages for a file that is not TOML, in place of those of the parser.

use super::settings::{Config, DEFAULT_TOML, Setting};
use super::value::Value;

/// The mistake in a line that the parser refuses, with the corrected line; `None` for an unknown mistake.
pub(super) fn explain(line: &str) -> Option<String> {
    let line = line.trim();
    let name = |text: &str| {
        let text = text.trim();
        let is_key = !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
        is_key.then(|| text.to_owned())
    };
    let Some((key, value)) = line.split_once('=') else {
        let key = name(line.split(':').next().unwrap_or_default())?;
        return Some(format!(
            "{key} needs an equals sign and a value, such as {}",
            example(&key)
        ));
    };
    let (key, value) = (name(key)?, value.trim());
    if value.is_empty() {
        return Some(format!("{key} needs a value, such as {}", example(&key)));
    }
    if let Some(quote) = value.chars().next().filter(|first| matches!(first, '"' | '\'')) {
        return match value.matches(quote).count() {
            1 => Some(format!(
                "the text of {key} must end with the quote {quote} that it begins with"
            )),
            _ => None,
        };
    }
    let setting = Setting::find(&key);
    let is_shown = setting.is_some_and(|setting| !setting.secret);
    if let Some(items) = value.strip_prefix('[') {
        let items = items.trim_end_matches(']');
        let quoted: Vec<_> = items.split(',').map(|item| format!("{:?}", unquoted(item))).collect();
        let list = match is_shown {
            true => format!("[{}]", quoted.join(", ")),
            false => r#"["…", "…"]"#.to_owned(),
        };
        return Some(format!("each text of {key} must be in double quotes: {key} = {list}"));
    }
    if value.starts_with('{') {
        return None;
    }
    // Quotes would not help where the setting refuses the value anyway, such as a number with a unit.
    if let Some(fault) = setting.and_then(|setting| fault(setting, value)) {
        return Some(format!("{key} {fault}"));
    }
    let text = if is_shown { unquoted(value) } else { "…" };
    Some(format!("the text of {key} must be in double quotes: {key} = {text:?}"))
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches('"')
}

/// The rule of a setting that a text breaks.
fn fault(setting: &Setting, text: &str) -> Option<String> {
    let fault = (setting.set)(&mut Config::default(), &Value::Text(text)).err()?;
    Some(setting.shown_fault(&fault).to_owned())
}

/// The line for a key in the default file.
fn example(key: &str) -> String {
    let line = DEFAULT_TOML.lines().find_map(|line| {
        let line = line.trim_start_matches("# ");
        let rest = line.strip_prefix(key)?;
        rest.trim_start().starts_with('=').then_some(line)
    });
    line.unwrap_or(r#"listen = "127.0.0.1:7420""#).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_mistakes_get_the_line_as_it_should_be() {
        for (line, said) in [
            ("listen = 127.0.0.1:7420", r#"double quotes: listen = "127.0.0.1:7420""#),
            ("data=/var/lib/agentcfg", r#"double quotes: data = "/var/lib/agentcfg""#),
            ("default_plan = free", r#"double quotes: default_plan = "free""#),
            ("compression = yes", r#"compression must be true or false, got "yes""#),
            (
                "status_ttl = 2m",
                r#"status_ttl must be a whole number of seconds from 1 to 86400, got "2m""#,
            ),
            ("operators = [ada, bob]", r#"operators = ["ada", "bob"]"#),
            ("listen: 127.0.0.1:7420", r#"such as listen = "127.0.0.1:7420""#),
            ("max_streams", "such as max_streams = 5000"),
            ("log = \"info", "must end with the quote"),
            ("id = claude", r#"double quotes: id = "#),
        ] {
            let message = explain(line).unwrap_or_default();
            assert!(message.contains(said), "{line}: {message}");
        }
        assert_eq!(explain("public_url = \"https://a\" x"), None);
        assert_eq!(explain("}{"), None);
    }

    #[test]
    fn secrets_are_not_repeated() {
        for line in [
            "session_secret = hunter2hunter2hunter2hunter2hunter2",
            "master_keys = [hunter2]",
        ] {
            let message = explain(line).unwrap();
            assert!(!message.contains("hunter2"), "{message}");
        }
    }
}
