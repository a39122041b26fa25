//! The command line.

mod agents;
mod budgets;
mod contexts;
mod directory;
mod fields;
mod import;
mod labels;
mod reason;
mod usage;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use self::agents::{Agents, Create, Selector};
pub use self::budgets::{BudgetPlace, Budgets};
pub use self::contexts::Contexts;
pub use self::directory::{Apply, Conflicts, Directory, PruneLimit};
pub use self::fields::{CreateFields, Given};
pub use self::import::Import;
pub use self::labels::Label;
pub use self::reason::Reason;
pub use self::usage::Usage;

const AFTER_HELP: &str = "\
Exit codes:
  0   done, or nothing to do
  1   error
  2   plan found differences
  3   not signed in, or the credential may not do it
  4   not found
  5   changed meanwhile, or exists already
  64  wrong command line
  export, import, plan, apply and validate exit with 1 instead of 3, 4 and 5,
  except that apply exits with 5 if an agent has changed since its plan.

Environment:
  AGENTCFG_URL        the server; wins over the one of `agentcfg login`
  AGENTCFG_API_KEY    an API key or a session token; wins over the one of `agentcfg login`
  AGENTCFG_WORKSPACE  the workspace, as --workspace
  AGENTCFG_CA_FILE    more certificates to trust for https, a PEM file
  HTTPS_PROXY         the proxy for an https server, such as http://proxy:3128; HTTP_PROXY for an
                      http server, ALL_PROXY for both
  NO_PROXY            hosts, domains and networks that need no proxy, separated by commas
  NO_COLOR            no colours, as --color never
  VISUAL, EDITOR      the editor of `agentcfg agents edit`";

/// Configure a fleet of agents from the command line.
///
/// Sign in once with `agentcfg login`. Then list agents, edit one in your editor, release a version with a label, or keep all agents
/// as files in git with `export`, `plan` and `apply`.
#[derive(Debug, Parser)]
#[command(name = "agentcfg", version, after_help = AFTER_HELP, max_term_width = 100)]
pub struct Arguments {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// The workspace to work in, by its id. A credential with a single workspace needs none.
    #[arg(long, global = true, value_name = "ID")]
    pub workspace: Option<String>,
    /// The server, the credential and the workspace of `agentcfg context add`. Wins over the variables.
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// Text for people, or the JSON of the API for programs.
    #[arg(
        long,
        short,
        global = true,
        value_enum,
        default_value = "text",
        value_name = "FORMAT"
    )]
    pub output: Format,
    /// When to use colours. `auto`: on a terminal, unless NO_COLOR is set.
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: Color,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Sign in to a server, in the context in use. The API key or session token is read from standard input.
    #[command(after_help = "\
Examples:
  agentcfg login --url https://agents.example.com
  agentcfg login < key.txt")]
    Login {
        /// The server, such as http://127.0.0.1:7420.
        #[arg(long, value_name = "URL")]
        url: Option<String>,
    },
    /// Forget the server and the credential of `agentcfg login`, or of the context in use.
    Logout,
    /// Show who is signed in, and what the credential may do.
    Whoami,
    /// Keep several servers, credentials and workspaces by name, and choose one.
    #[command(subcommand)]
    Context(Contexts),
    /// List, show and change agents.
    #[command(subcommand)]
    Agents(Agents),
    /// List the versions of an agent, newest first.
    Versions {
        #[command(flatten)]
        agent: Agent,
        /// Show at most this many versions, 1 to 1000. [default: 100]
        #[arg(long, value_name = "NUMBER")]
        limit: Option<u32>,
        /// Show versions before this one.
        #[arg(long, value_name = "VERSION")]
        before: Option<u64>,
    },
    /// Compare two versions of an agent.
    #[command(after_help = "\
Examples:
  agentcfg diff writer 3 4
  agentcfg diff writer production     # with the current version")]
    Diff {
        #[command(flatten)]
        agent: Agent,
        /// A version or a label.
        #[arg(value_name = "FROM")]
        from: String,
        /// A version or a label; the current version if it is left out.
        #[arg(value_name = "TO", default_value = "latest", hide_default_value = true)]
        to: String,
    },
    /// Give an agent the content of an earlier version again, as a new version.
    #[command(after_help = "\
Examples:
  agentcfg rollback writer 3 --message 'Version 4 answers too long'
  agentcfg rollback writer production")]
    Rollback {
        #[command(flatten)]
        agent: Agent,
        /// A version or a label.
        #[arg(value_name = "TO")]
        to: String,
        #[command(flatten)]
        reason: Reason,
    },
    /// Release versions: set, remove, list and promote labels.
    #[command(subcommand)]
    Label(Label),
    /// Show what the agents are doing now.
    Status,
    /// List, create, rotate and revoke API keys. All but the list need a session token.
    #[command(subcommand)]
    Keys(Keys),
    /// Work as an operator of the deployment, in all workspaces. Needs the session token of a user whom the server's settings name as one.
    #[command(
        subcommand,
        after_help = "\
Examples:
  agentcfg operator workspaces
  agentcfg operator revoke-key 4fQ8mZr2LkV7xN0bTy6W
  agentcfg operator remove-user grace@example.com"
    )]
    Operator(Operator),
    /// Show the audit log, newest entry first.
    #[command(after_help = "\
Examples:
  agentcfg audit --limit 20
  agentcfg audit --action 'label.*' --since 2026-11-01T00:00:00Z
  agentcfg audit --target-type agent --target-id writer --output json")]
    Audit(Audit),
    /// Show what model calls used and what they cost, the sums of the last 30 days by agent and model.
    #[command(after_help = "\
Examples:
  agentcfg usage
  agentcfg usage --by agent,version --agent writer --from 2026-11-20T00:00:00Z
  agentcfg usage --by day,model --top 3 --output json")]
    Usage(Usage),
    /// List, set and remove budgets: limits of what model calls may cost.
    #[command(subcommand)]
    Budgets(Budgets),
    /// Follow the changes of the workspace as they are made. Lost connections are resumed without a gap.
    #[command(after_help = "\
Examples:
  agentcfg watch
  agentcfg watch --after start --output json          # one JSON object a line
  agentcfg watch --cursor-file watch.cursor           # goes on where the last run ended")]
    Watch(Watch),
    /// Write each active agent to a file, DIR/<agent_id>.md.
    #[command(after_help = "\
A file is YAML front matter with the fields, and the persona prompt as its text. The same agents
always give the same files, and applying them changes nothing. Files that are not those of agents
are never touched.

Examples:
  agentcfg export agents
  agentcfg export agents --prune
  agentcfg export docs --set docs
  agentcfg export --format claude-code .claude/agents")]
    Export {
        /// The directory. It is created if there is none.
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// Write the files of another tool.
        #[arg(long, value_name = "FORMAT", value_parser = import::formats(), conflicts_with_all = ["set", "prune"])]
        format: Option<String>,
        /// Overwrite files, and entries of files with several, that are not those of the agents.
        #[arg(long, requires = "format")]
        overwrite: bool,
        /// Write nothing if the format cannot hold all that the agents have, or needs what they do not have.
        #[arg(long, requires = "format")]
        strict: bool,
        /// Take the agents from the files in this directory in place of the workspace.
        #[arg(long, value_name = "DIR", requires = "format")]
        from: Option<PathBuf>,
        /// Take lines of a persona that look like the conflict markers of git as text.
        #[arg(long, requires = "from")]
        allow_conflict_markers: bool,
        /// Only the agents of this set.
        #[arg(long, value_name = "NAME")]
        set: Option<String>,
        /// Remove the files of agents that were deleted or left the set. Without it they are only listed. Files of agents that
        /// were never applied are kept.
        #[arg(long)]
        prune: bool,
    },
    /// Read agents of another tool, and report what becomes of them; write them as files, or apply them.
    #[command(after_help = "\
Without --out and --apply nothing is written: the report shows what would come in. Sources with
problems are left out and the command ends with 1; the others come in. A second run changes
nothing. Nothing in a source is run or expanded.

Examples:
  agentcfg import claude-code .claude/agents
  agentcfg import claude-code .claude/agents --out agents
  agentcfg import langfuse prompts.json --apply --label production")]
    Import(Box<Import>),
    /// Show what `agentcfg apply` would change. Exits with 2 if there are differences.
    #[command(after_help = "\
Examples:
  agentcfg plan agents
  agentcfg plan agents --set docs --prune --output json")]
    Plan(Directory),
    /// Bring the agents to the state of the files, all in one change or none.
    #[command(after_help = "\
The apply makes a plan first. On a terminal it shows the plan and asks. If one of the agents has
changed since the plan, nothing is applied and the command ends with 5.

Examples:
  agentcfg apply agents
  agentcfg apply agents --set docs --prune --yes --message 'Release 12'")]
    Apply(Box<Apply>),
    /// Check the files of a directory without a server.
    #[command(after_help = "\
All problems are reported as `plan` reports them, and the command ends with 1 if there are any. What
only the server knows is not checked, such as its limits and the sets of other agents.

Example:
  agentcfg validate agents")]
    Validate {
        /// The directory with the files.
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        #[command(flatten)]
        conflicts: Conflicts,
    },
    /// Print the completions for a shell.
    #[command(after_help = "\
Examples:
  agentcfg completions bash > /etc/bash_completion.d/agentcfg
  agentcfg completions zsh > \"${fpath[1]}/_agentcfg\"
  agentcfg completions fish > ~/.config/fish/completions/agentcfg.fish")]
    Completions {
        #[arg(value_enum, value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Write a manual page for each command.
    #[command(hide = true)]
    Man {
        /// The directory. It is created if there is none.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

/// An agent by its identifier.
#[derive(Debug, Args)]
pub struct Agent {
    /// The identifier of the agent, its `agent_id`.
    #[arg(value_name = "AGENT")]
    pub agent: String,
}

#[derive(Debug, Subcommand)]
pub enum Keys {
    /// List the API keys of the workspace, without their secrets.
    List,
    /// Create an API key. The key alone goes to standard output, and is never shown again.
    #[command(after_help = "\
Example:
  KEY=$(agentcfg keys create 'Nightly build' --scope write --environment production)
  KEY=$(agentcfg keys create 'Support bot' --scope write --agent support --label production)")]
    Create {
        /// A descriptive name.
        #[arg(value_name = "NAME")]
        name: String,
        /// `read`, `write` or `admin`.
        #[arg(long, value_name = "SCOPE")]
        scope: String,
        /// `development` or `production`.
        #[arg(long, value_name = "ENVIRONMENT", default_value = "development")]
        environment: String,
        /// When the key expires, such as 2027-01-31T18:00:00Z; never if it is left out.
        #[arg(long, value_name = "TIME")]
        expires_at: Option<String>,
        /// Requests per minute.
        #[arg(long, value_name = "NUMBER")]
        rate_limit: Option<u32>,
        /// An agent that the key is limited to; may be given more than once.
        #[arg(long = "agent", value_name = "AGENT")]
        agents: Vec<String>,
        /// A permission of the scope that the key has, such as models:invoke; may be given more than once. Without it, all of them.
        #[arg(long = "permission", value_name = "PERMISSION")]
        permissions: Vec<String>,
        /// The label that its model calls, prompts and releases are pinned to.
        #[arg(long, value_name = "LABEL")]
        label: Option<String>,
    },
    /// Replace an API key by a new one. The new key alone goes to standard output, and is never shown again.
    #[command(after_help = "\
Example:
  KEY=$(agentcfg keys rotate 4fQ8mZr2LkV7xN0bTy6W --overlap 3600)")]
    Rotate {
        /// The identifier of the key, as `agentcfg keys list` shows it; not the key itself.
        #[arg(value_name = "KEY_ID")]
        key: String,
        /// How many seconds the old key still works.
        #[arg(long, value_name = "SECONDS", default_value_t = 0)]
        overlap: u32,
    },
    /// Revoke an API key, at once.
    Revoke {
        /// The identifier of the key, as `agentcfg keys list` shows it; not the key itself.
        #[arg(value_name = "KEY_ID")]
        key: String,
        /// Revoke without asking.
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Debug, Subcommand)]
pub enum Operator {
    /// List all workspaces of the deployment.
    Workspaces,
    /// Show an API key of any workspace, without its secret.
    Key {
        /// The identifier of the key, which is part of it, right behind the prefix; not the key itself.
        #[arg(value_name = "KEY_ID")]
        key: String,
    },
    /// Revoke an API key of any workspace, at once.
    RevokeKey {
        /// The identifier of the key, which is part of it, right behind the prefix; not the key itself.
        #[arg(value_name = "KEY_ID")]
        key: String,
        /// Revoke without asking.
        #[arg(long, short)]
        yes: bool,
    },
    /// End all memberships and browser sessions of a user. Workspaces refuse the user's tokens until an owner adds the user again.
    RemoveUser {
        /// The user's identifier, the `sub` of the user's session tokens.
        #[arg(value_name = "USER_ID")]
        user: String,
        /// Remove without asking.
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub struct Audit {
    /// Entries of this actor, a user id or the id of a key.
    #[arg(long, value_name = "ID")]
    pub actor: Option<String>,
    /// Entries of this action, such as agent.updated or 'agent.*'.
    #[arg(long, value_name = "ACTION")]
    pub action: Option<String>,
    /// Entries about this kind of target, such as agent.
    #[arg(long, value_name = "TYPE")]
    pub target_type: Option<String>,
    /// Entries about the target with this id.
    #[arg(long, value_name = "ID")]
    pub target_id: Option<String>,
    /// Entries from this time on.
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Entries before this time.
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Entries before this revision.
    #[arg(long, value_name = "NUMBER")]
    pub before: Option<u64>,
    /// At most this many entries, 1 to 1000. [default: 100]
    #[arg(long, value_name = "NUMBER")]
    pub limit: Option<u32>,
}

#[derive(Debug, Args)]
pub struct Watch {
    /// Where to begin: `now`, `start` (of the workspace), or a cursor. [default: now]
    #[arg(long, value_name = "POSITION")]
    pub after: Option<String>,
    /// Also show what the agents are doing.
    #[arg(long)]
    pub status: bool,
    /// Keep the position in this file, and go on from there if it exists.
    #[arg(long, value_name = "FILE")]
    pub cursor_file: Option<PathBuf>,
    /// End after this many events.
    #[arg(long, value_name = "NUMBER")]
    pub limit: Option<u64>,
}
