//! Errors of the command line itself.

use agentcfg_client::model::Environment;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::failure::Code;

/// What a session token begins with: the object of its header.
const TOKEN_PREFIX: &str = "eyJ";

/// What API keys begin with.
pub fn key_prefixes() -> impl Iterator<Item = &'static str> {
    Environment::ALL.iter().map(|environment| environment.prefix())
}

/// Prints help, the version or the error.
pub fn report(error: &clap::Error) -> Code {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // The reader of standard output may have gone.
        let _ = error.print();
        return Code::Done;
    }
    // What the user typed is quoted, and may be a secret in the wrong place.
    let text = error.to_string();
    let shown = without_keys(&without_argument_of_login(&text, error));
    if shown == text {
        let _ = error.print();
    } else {
        eprintln!(
            "{shown}\nAPI keys are read from standard input or from AGENTCFG_API_KEY, never from the command line, which other\n\
             users of this machine can see. Revoke this key if it is a real one."
        );
    }
    Code::Usage
}

/// Removes what was given to `login`, which has no arguments: it is a credential of any form.
fn without_argument_of_login(text: &str, error: &clap::Error) -> String {
    let is_login = || std::env::args_os().skip(1).any(|argument| argument == "login");
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) if !argument.starts_with('-') && is_login() => {
            text.replace(argument.as_str(), "[redacted]")
        }
        _ => text.to_owned(),
    }
}

/// Removes API keys and session tokens from a text.
fn without_keys(text: &str) -> String {
    let heads: Vec<&str> = key_prefixes().chain([TOKEN_PREFIX]).collect();
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, head)) = heads.iter().filter_map(|head| Some((rest.find(head)?, head))).min() {
        let (before, found) = rest.split_at(at);
        let secret = &found[head.len()..];
        let end = secret.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '.'));
        let length = end.unwrap_or(secret.len());
        kept += before;
        kept += head;
        kept += if length > 0 { "[redacted]" } else { "" };
        rest = &secret[length..];
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Arguments;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_key_in_the_wrong_place_is_not_repeated() {
        assert_eq!(
            without_keys("unexpected argument 'svc_live_abc123' found, eyJhbGciOi.x-y_z here, svc_test_"),
            "unexpected argument 'svc_live_[redacted]' found, eyJ[redacted] here, svc_test_"
        );
        assert_eq!(without_keys("plain"), "plain");
    }
}
