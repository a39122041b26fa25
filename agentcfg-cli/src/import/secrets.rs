//! Literal secrets in a source, which must not be stored with an agent.

mod names;
#[cfg(test)]
mod tests;
mod value;

use std::path::Path;

use self::names::{Expected, expected, is_of_credential};
use self::value::{is_literal, is_secret};
use super::parse_tree::from_json;
use super::source_tree::{Entry, Node, Value};
use crate::agent_file::Place;

/// Maps whose values are often credentials.
const MAPS: &[&str] = &["env", "environment", "headers", "http_headers", "sensitive_headers"];

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
        search(&entry.node, &entry.key, expected(&entry.key, false), &mut found);
    }
    found
}

fn search(node: &Node, path: &str, expects: Expected, found: &mut Vec<Secret>) {
    match &node.value {
        Value::Text(text)
            if is_secret(text, expects)
                || (is_of_program(path) && command_has_secret(text))
                || (text.starts_with('{') && json_has_secret(text)) =>
        {
            found.push(Secret {
                place: node.place,
                path: path.to_owned(),
            });
        }
        // A password may be all digits.
        Value::Number(number) if expects == Expected::Secret && is_secret(number, expects) => found.push(Secret {
            place: node.place,
            path: path.to_owned(),
        }),
        Value::List(items) => {
            let texts: Vec<&str> = items.iter().map(|item| item.as_text().unwrap_or_default()).collect();
            let is_command = is_of_program(path) || is_of_map(path);
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
            let is_name = |entry: &Entry| ["lc", "type", "id"].contains(&entry.key.as_str());
            if node.text_of("type") == Some("secret") && node.get("lc").is_some() && entries.iter().all(is_name) {
                return;
            }
            let is_map = is_of_map(path);
            for entry in entries {
                let expects = expected(&entry.key, is_map);
                search(&entry.node, &format!("{path}.{}", entry.key), expects, found);
            }
        }
        _ => {}
    }
}

/// Whether a text is JSON with a secret, such as the settings of a server among its arguments.
fn json_has_secret(text: &str) -> bool {
    from_json(Path::new(""), text).is_ok_and(|node| !secrets(node.entries(), &[]).is_empty())
}

/// Whether a path is that of a map whose values are often credentials.
fn is_of_map(path: &str) -> bool {
    let name = path.rsplit('.').next().unwrap_or_default();
    MAPS.iter().any(|map| name.eq_ignore_ascii_case(map))
}

/// Whether a path is that of a program or its arguments.
fn is_of_program(path: &str) -> bool {
    matches!(
        path.rsplit('.').next(),
        Some("command" | "args" | "arguments" | "headersHelper")
    )
}

/// The options whose value is a header or a variable.
const PAIRS: &[&str] = &["-H", "--header", "--headers", "-e", "--env", "--environment"];

/// The options whose value is a name and a password.
const USERS: &[&str] = &["-u", "--user", "--proxy-user"];

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
    // `-u name:password`, and not the numbers of a user and a group.
    let of_user = USERS
        .iter()
        .find_map(|user| match (*user == before, user.starts_with("--")) {
            (true, _) => Some(text),
            (false, true) => text.strip_prefix(user)?.strip_prefix('='),
            (false, false) => text.strip_prefix(user),
        });
    if let Some((name, password)) = of_user.and_then(|pair| pair.split_once(':'))
        && name != password
        && password.contains(|c: char| !c.is_ascii_digit())
    {
        return is_literal(password);
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
    let expects = expected(name, true);
    // A statement of a script, such as `d='';x.on('data')`.
    let is_code = expects == Expected::Value && value.contains([';', '(']);
    is_name && !is_code && is_secret(value.trim().trim_matches(['"', '\'']), expects)
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
