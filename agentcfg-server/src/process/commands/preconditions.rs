//! The preconditions of commands, which are checked on the settings first.

use agentcfg_core::validate::is_group_id;

use super::error::CommandError;
use crate::process::config::{Config, SessionProvider};

/// Refuses to issue a session token when the configured server would not accept it.
pub(super) fn require_local_provider(config: &Config, command: &str) -> Result<(), CommandError> {
    let provider = match config.session_provider {
        SessionProvider::Local => return Ok(()),
        SessionProvider::Jwks => "jwks",
        SessionProvider::Introspection => "introspection",
    };
    Err(format!(
        "session_provider is {provider}: session tokens come from the identity provider, so `{command}` has none to give; \
         sign in there, or set session_provider to local"
    )
    .into())
}

/// Refuses to sign in a group, whose members sign in themselves.
pub(super) fn require_user(user: &str) -> Result<(), CommandError> {
    match is_group_id(user) {
        true => {
            Err("--user must be a user: ids that begin with group: stand for the groups of an identity provider".into())
        }
        false => Ok(()),
    }
}

/// Refuses a command on a whole data directory unless a layer of the settings names the directory: the default one in
/// the working directory may not be the intended one.
pub(super) fn require_named_directory(config: &Config) -> Result<(), CommandError> {
    if config.names_data || config.is_shared() {
        return Ok(());
    }
    Err("name the data directory with --data, or with AGENTCFG_DATA, or as `data` in the file of --config".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_issued_for_the_local_provider_only() {
        let with = |session_provider| Config {
            session_provider,
            ..Config::default()
        };
        assert!(require_local_provider(&with(SessionProvider::Local), "token").is_ok());
        for (provider, name) in [
            (SessionProvider::Jwks, "jwks"),
            (SessionProvider::Introspection, "introspection"),
        ] {
            let refusal = require_local_provider(&with(provider), "token")
                .unwrap_err()
                .to_string();
            assert!(
                refusal.contains(name) && refusal.contains("identity provider"),
                "{refusal}"
            );
        }
    }
}
