//! The commands of the binary.

mod dev;
mod installed;
mod login_link;
mod mcp_config;
mod migrate;
mod rotate;
mod serve;
mod store;
mod token;

use std::process::ExitCode;

use crate::process::cli::{Cli, Command};
use crate::process::config::{Config, SessionProvider};

/// A command failed. The text names the cause and the way out.
pub type CommandError = Box<dyn std::error::Error + Send + Sync>;

/// Refuses to issue a session token when the configured server would not accept it.
fn issues_tokens(config: &Config, command: &str) -> Result<(), CommandError> {
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

/// Refuses a command that changes or reads a whole data directory, unless some layer of the settings names the directory: the one
/// in the working directory may be another one than is meant.
fn names_directory(config: &Config) -> Result<(), CommandError> {
    if config.names_data || config.is_shared() {
        return Ok(());
    }
    Err("name the data directory with --data, or with AGENTCFG_DATA, or as `data` in the file of --config".into())
}

/// How this program was called, for messages that say what to run next.
fn program() -> String {
    let called = std::env::args().next().unwrap_or_default();
    match called.contains(char::is_whitespace) || called.is_empty() {
        true => "agentcfg-server".to_owned(),
        false => called,
    }
}

/// Runs a command to its end.
///
/// # Errors
///
/// The cause of the failure.
///
/// ```no_run
/// use agentcfg_server::process::{self, Cli};
/// use clap::Parser;
/// process::run(Cli::parse_from(["agentcfg-server", "dev"]))?;
/// # Ok::<(), process::CommandError>(())
/// ```
pub fn run(cli: Cli) -> Result<ExitCode, CommandError> {
    match cli.command {
        Command::Dev(args) => dev::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Token(args) => token::run(&args),
        Command::LoginLink(args) => login_link::run(&args),
        Command::McpConfig(args) => mcp_config::run(&args),
        Command::Backup(args) => store::backup(&args, std::env::vars_os()),
        Command::Restore(args) => store::restore(&args, std::env::vars_os()),
        Command::Check(args) => store::check(&args, std::env::vars_os()),
        Command::Migrate(args) => migrate::run(&args),
        Command::RotateMasterKey(args) => rotate::run(&args),
        Command::Completions(args) => installed::completions(&args),
        Command::Man(args) => installed::man(&args),
    }
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
        assert!(issues_tokens(&with(SessionProvider::Local), "token").is_ok());
        for (provider, name) in [
            (SessionProvider::Jwks, "jwks"),
            (SessionProvider::Introspection, "introspection"),
        ] {
            let refusal = issues_tokens(&with(provider), "token").unwrap_err().to_string();
            assert!(
                refusal.contains(name) && refusal.contains("identity provider"),
                "{refusal}"
            );
        }
    }
}
