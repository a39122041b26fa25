//! `token`: prints a session token of the local identity provider.

use std::process::ExitCode;

use agentcfg_core::clock::{Clock, SystemClock};

use super::error::CommandError;
use super::preconditions::{require_local_provider, require_user};
use super::stdout::{note, print};
use crate::process::cli::TokenArgs;
use crate::process::config::{Config, Flags};
use crate::process::datadir::{DataDir, TokenSource};
use crate::process::server::local_sessions;

pub(super) fn run(args: &TokenArgs) -> Result<ExitCode, CommandError> {
    let config = Config::load(Flags::from(args), std::env::vars_os())?;
    require_local_provider(&config, "token")?;
    require_user(&args.user)?;
    // With a database there is no data directory, and the secret comes from the configuration.
    let dir = match config.is_shared() {
        true => None,
        false => Some(directory(&config)?),
    };
    if config.session_secret.is_none()
        && let Some(dir) = &dir
    {
        let shown = dir.path().display();
        refuse_other_tokens(dir)?;
        if dir.has_lost_session_secret()? {
            note!(
                "note: session.key was missing in {shown} and was made again; session tokens from before are refused"
            );
        }
    }
    let token = local_sessions(&config, dir.as_ref())?.issue(&args.user, args.ttl, SystemClock.now())?;
    print(&format!("{token}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses to sign a token with the key of a directory whose server accepts none of these.
fn refuse_other_tokens(dir: &DataDir) -> Result<(), CommandError> {
    let shown = dir.path().display();
    let why = match dir.token_source() {
        TokenSource::Directory => return Ok(()),
        TokenSource::Settings => format!(
            "the server of {shown} has the secret of its session tokens in the setting session_secret, so it would refuse a token that is \
             signed with the key of the directory: give this command the same setting, in AGENTCFG_SESSION_SECRET_FILE or by --config"
        ),
        TokenSource::Provider => format!(
            "the session tokens of the server of {shown} come from its identity provider, so it would refuse a token of this command: sign \
             in there, or start the server with session_provider set to local first"
        ),
    };
    Err(why.into())
}

/// The data directory. It is created if it does not exist, because a token may be issued before the first start. A note
/// says so, in case the name was mistyped.
fn directory(config: &Config) -> Result<DataDir, CommandError> {
    let is_new = !DataDir::is_there(&config.data)?;
    let dir = DataDir::open_or_create(&config.data)?;
    if is_new {
        note!(
            "note: made a new data directory {}; the token is good for a server that is started on it",
            dir.path().display()
        );
    }
    Ok(dir)
}
