//! The command line of `agentcfg-server`.

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::process::config::{Flags, is_of_home};

/// The parsed command line.
#[derive(Debug, Parser)]
#[command(
    name = "agentcfg-server",
    version,
    about = "Configurations, live status and credentials of a fleet of agents, over REST",
    after_help = "Every setting is a key in the TOML file and AGENTCFG_<KEY> in the environment. \
                  The command line wins over the environment, which wins over the file.",
    arg_required_else_help = true,
    propagate_version = true
)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of the binary.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Try it out: one command gives a workspace, a key, a token and a running server
    #[command(
        long_about = "Creates ./agentcfg-data with a workspace, an admin key and a session token, prints them once with \
                      curl lines to copy, and serves on 127.0.0.1:7420."
    )]
    Dev(DevArgs),
    /// Run the server
    #[command(
        long_about = "Runs the server. Prints one line `listening on http://HOST:PORT` (https with tls_cert) to standard output once it answers; \
                      logs go to standard error. After SIGTERM or Ctrl-C it finishes requests in flight and exits; a second signal exits at once."
    )]
    Serve(ServeArgs),
    /// Ask the running server whether it is ready, for containers without a shell
    #[command(
        long_about = "Asks the server that runs with the same settings for GET /readyz: on metrics_listen if that names a port, else \
                      on listen, whose port 0 is looked up in the data directory. Exits 0 when it is ready, also while it serves reads \
                      alone, else 1.",
        after_help = "Examples:\n  agentcfg-server healthcheck --config /etc/agentcfg.toml\n  \
                      agentcfg-server healthcheck --listen 127.0.0.1:7420"
    )]
    Healthcheck(SettingsArgs),
    /// Check the settings without a start
    #[command(
        long_about = "Reads the same settings as `serve`, with the files that they name, and reports everything for which it would \
                      not start. Nothing is created or changed, and no database is asked, so that it can run beside the \
                      server. Exits 0 when nothing is wrong, else 1.",
        after_help = "Example: agentcfg-server check-config --config /etc/agentcfg.toml"
    )]
    CheckConfig(SettingsArgs),
    /// Print a session token of the local identity provider
    #[command(
        long_about = "Prints a session token for a user of the local identity provider. Works while a server runs on the \
                      directory, and before its first start."
    )]
    Token(TokenArgs),
    /// Print a link that signs a user in to the dashboard once
    #[command(
        long_about = "Prints a link that signs a user in to the dashboard: it works once, within 5 minutes. A server that runs on the \
                      data directory makes it, through a socket that only the owner of the directory can open; without one, and \
                      with a database, the store is opened. For the local identity provider alone."
    )]
    LoginLink(LoginLinkArgs),
    /// Print the lines that connect an AI client to the server by the Model Context Protocol
    #[command(
        long_about = "Prints what to run or to write into which file, so that an AI client finds the server's tools. The client \
                      reads the API key from the environment variable AGENTCFG_API_KEY, so that it is in no file; VS Code asks for it."
    )]
    McpConfig(McpConfigArgs),
    /// Write one consistent copy of the store to a file, also while a server runs on it
    #[command(
        long_about = "Writes one consistent copy of the store. When a server runs on the directory, it writes the copy and sends it \
                      through a socket that only the owner of the directory can open. Keys are not part of the copy. Back \
                      up a store in a database with the database's own tools."
    )]
    Backup(BackupArgs),
    /// Put a backup into a directory that has no store yet
    #[command(
        long_about = "Puts a backup into a directory that has no store. A store that exists already is never changed. A backup \
                      does not hold the master key: when provider keys or webhooks are saved in it, the file master.key of the old directory \
                      must be copied into the new one."
    )]
    Restore(RestoreArgs),
    /// Give back the space of deleted and replaced records, also while a server runs
    #[command(
        long_about = "Copies all records into a new file, which takes the place of the store file: it has its smallest size, and no \
                      content of deleted or replaced records, such as those of a deleted workspace. A server that runs on the \
                      directory does this itself: it serves reads meanwhile, and changes wait, about a second for 100 MB of \
                      records. The disk needs room for the new file beside the old one. When it is stopped, the store is as \
                      before."
    )]
    Compact(CompactArgs),
    /// Verify the structure of the store and the checksum of every record
    #[command(
        long_about = "Verifies the structure of the store and the checksum of every record. Exits 0 when no fault is found, else 1. Check \
                      a store in a database with the database's own tools."
    )]
    Check(CheckArgs),
    /// Move a store from a data directory into PostgreSQL or etcd, or back
    #[command(
        long_about = "Copies all records atomically, verifies the copy, and leaves the source unchanged. An interrupted \
                      run changes nothing: run it again. A run after a finished one reports that. A target that holds other \
                      records is refused. No server may run on either store."
    )]
    Migrate(MigrateArgs),
    /// Make a new master key and seal every saved provider key and webhook secret under it, also while a server runs
    #[command(
        long_about = "Puts a new master key before the others in the file master.key and seals every saved provider key and \
                      webhook secret under it. A server that runs on the directory does this itself, without a pause, and uses the new key at once. \
                      The old keys stay in the file until everything is sealed under the new one, so this can be stopped \
                      at any point: run it again to finish."
    )]
    RotateMasterKey(RotateArgs),
    /// Print the script with which a shell completes this command line
    #[command(
        long_about = "Prints a completion script to standard output. The Debian package installs those of bash, zsh and fish."
    )]
    Completions(CompletionsArgs),
    /// Write the manual pages of the commands
    #[command(hide = true)]
    Man(ManArgs),
}

/// `agentcfg-server dev`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  agentcfg-server dev\n  agentcfg-server dev --listen 127.0.0.1:0")]
pub struct DevArgs {
    /// Address to listen on; port 0 picks a free one [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// TOML file with settings
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// `agentcfg-server serve`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  agentcfg-server serve --config /etc/agentcfg.toml\n  \
                  agentcfg-server serve --data /var/lib/agentcfg --listen 0.0.0.0:7420\n  \
                  AGENTCFG_LOG=debug agentcfg-server serve --listen 127.0.0.1:0")]
pub struct ServeArgs {
    /// TOML file with settings
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Data directory; created when it does not exist [default: ./agentcfg-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Address to listen on; port 0 picks a free one [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Seconds to wait at the start for a database that does not answer yet [default: 0]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(0..=86_400))]
    pub wait_for: Option<u32>,
}

/// `agentcfg-server healthcheck` and `agentcfg-server check-config`
#[derive(Debug, Args)]
pub struct SettingsArgs {
    /// TOML file with settings
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Data directory of the server [default: ./agentcfg-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Address that the server listens on [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
}

/// `agentcfg-server token`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  agentcfg-server token --user alice\n  \
                  agentcfg-server token --user alice --data /var/lib/agentcfg --ttl 600")]
pub struct TokenArgs {
    /// Id of the user that the token is issued for
    #[arg(long, value_name = "ID", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub user: String,
    /// Data directory; created when it does not exist [default: ./agentcfg-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Seconds that the token is valid, 1 to 86400
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub ttl: u32,
    /// TOML file with settings
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// `agentcfg-server login-link`
#[derive(Debug, Args)]
#[command(after_help = "Example: agentcfg-server login-link --user alice --data /var/lib/agentcfg")]
pub struct LoginLinkArgs {
    /// Id of the user whom the link signs in
    #[arg(long, value_name = "ID", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub user: String,
    /// Data directory [default: ./agentcfg-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// TOML file with settings, when the server has one
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// `agentcfg-server mcp-config`
#[derive(Debug, Args)]
#[command(after_help = "Example: agentcfg-server mcp-config claude-code")]
pub struct McpConfigArgs {
    /// The client
    #[arg(value_enum)]
    pub client: McpClient,
    /// TOML file with settings, when the server has one
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// A client of the Model Context Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum McpClient {
    /// Claude Code
    ClaudeCode,
    /// Cursor
    Cursor,
    /// VS Code
    Vscode,
    /// Codex
    Codex,
}

/// `agentcfg-server backup`
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  agentcfg-server backup --data /var/lib/agentcfg --out /backups/agentcfg-$(date +%F)"
)]
pub struct BackupArgs {
    /// Data directory to copy; needed unless the settings name one
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// File to write; - writes to standard output
    #[arg(long, value_name = "FILE", value_parser = whole_path())]
    pub out: PathBuf,
    /// Compress the copy with gzip, which `restore` recognises
    #[arg(long)]
    pub compress: bool,
    /// TOML file with settings
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// `agentcfg-server restore`
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  agentcfg-server restore --from /backups/agentcfg-2026-11-20 --data /var/lib/agentcfg"
)]
pub struct RestoreArgs {
    /// File written by `backup`; - reads standard input
    #[arg(long, value_name = "FILE", value_parser = whole_path())]
    pub from: PathBuf,
    /// Data directory to fill, created when it does not exist; needed unless the settings name one
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Delete the saved provider keys and the webhooks, when the master key that opens them is lost
    #[arg(long)]
    pub discard_provider_keys: bool,
    /// TOML file with settings
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// `agentcfg-server compact`
#[derive(Debug, Args)]
#[command(after_help = "Example: agentcfg-server compact --data /var/lib/agentcfg")]
pub struct CompactArgs {
    /// Data directory of the store; needed unless the settings name one
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// TOML file with settings
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// `agentcfg-server check`
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  agentcfg-server check --data /var/lib/agentcfg")]
pub struct CheckArgs {
    /// Data directory to verify, on which no server may run; needed unless the settings name one
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// TOML file with settings
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// `agentcfg-server migrate`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  agentcfg-server migrate --from /var/lib/agentcfg --to postgres://agentcfg@db/agentcfg\n  \
                  AGENTCFG_DATABASE_URL_FILE=/run/secrets/url agentcfg-server migrate --from postgres --to /var/lib/agentcfg"
)]
pub struct MigrateArgs {
    /// Data directory or postgres:// URL to move from; `postgres` is the URL in AGENTCFG_DATABASE_URL or _FILE, `etcd` the
    /// cluster in AGENTCFG_ETCD_ENDPOINTS
    #[arg(long, value_name = "DIR|URL", value_parser = place)]
    pub from: String,
    /// Data directory or postgres:// URL to move to; `postgres` and `etcd` as for --from
    #[arg(long, value_name = "DIR|URL", value_parser = place)]
    pub to: String,
    /// TOML file with settings
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// `agentcfg-server rotate-master-key`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  agentcfg-server rotate-master-key --data /var/lib/agentcfg\n  \
                  agentcfg-server rotate-master-key --data /var/lib/agentcfg --drop-old"
)]
pub struct RotateArgs {
    /// Data directory whose master key is replaced; needed unless the settings name one
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// TOML file with settings, when the server has one
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Remove the old keys from the file at the end; earlier backups need a copy of the old file to restore provider keys
    #[arg(long)]
    pub drop_old: bool,
}

/// `agentcfg-server completions`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                  agentcfg-server completions bash > /usr/share/bash-completion/completions/agentcfg-server\n  \
                  agentcfg-server completions fish > ~/.config/fish/completions/agentcfg-server.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// `agentcfg-server man`
#[derive(Debug, Args)]
#[command(after_help = "Example: agentcfg-server man --out /usr/local/share/man/man1")]
pub struct ManArgs {
    /// Directory to write into; created when it does not exist
    #[arg(long, value_name = "DIR", value_parser = whole_path())]
    pub out: PathBuf,
}

/// A path as the system takes it: `~` is expanded by a shell alone, and not everywhere in a word.
fn whole_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match is_of_home(&path) {
        true => Err(NO_SHELL),
        false => Ok(path),
    })
}

/// A directory or a URL.
fn place(text: &str) -> Result<String, &'static str> {
    match is_of_home(text.as_ref()) {
        true => Err(NO_SHELL),
        false => Ok(text.to_owned()),
    }
}

const NO_SHELL: &str = "write the whole path, since only a shell knows what ~ stands for";

/// The flags of commands that have `--config` and `--data`.
macro_rules! config_and_data {
    ($($args:ty),*) => {$(
        impl From<&$args> for Flags {
            fn from(args: &$args) -> Self {
                Self {
                    config: args.config.clone(),
                    data: args.data.clone(),
                    is_beside_server: true,
                    ..Self::default()
                }
            }
        }
    )*};
}

config_and_data!(
    LoginLinkArgs,
    TokenArgs,
    BackupArgs,
    RestoreArgs,
    CompactArgs,
    CheckArgs,
    RotateArgs
);

/// The flags of commands that have `--config` alone.
macro_rules! config_alone {
    ($($args:ty),*) => {$(
        impl From<&$args> for Flags {
            fn from(args: &$args) -> Self {
                Self {
                    config: args.config.clone(),
                    is_beside_server: true,
                    ..Self::default()
                }
            }
        }
    )*};
}

config_alone!(McpConfigArgs, MigrateArgs);

impl From<&DevArgs> for Flags {
    fn from(args: &DevArgs) -> Self {
        Self {
            config: args.config.clone(),
            listen: args.listen.clone(),
            ..Self::default()
        }
    }
}

impl From<&SettingsArgs> for Flags {
    fn from(args: &SettingsArgs) -> Self {
        Self {
            config: args.config.clone(),
            data: args.data.clone(),
            listen: args.listen.clone(),
            ..Self::default()
        }
    }
}

impl From<&ServeArgs> for Flags {
    fn from(args: &ServeArgs) -> Self {
        Self {
            config: args.config.clone(),
            data: args.data.clone(),
            listen: args.listen.clone(),
            wait_for: args.wait_for,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests;
