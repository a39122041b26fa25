//! The command line of `agentcfg agents`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Agent, CreateFields, Reason};

#[derive(Debug, Subcommand)]
pub enum Agents {
    /// List the agents of the workspace.
    List {
        /// Which agents: `active`, `inactive` or `all`.
        #[arg(long, value_name = "STATE", default_value = "active")]
        state: String,
        /// The agents as they were at this time, such as 2026-11-20T18:00:00Z.
        #[arg(long, value_name = "TIME")]
        at: Option<String>,
        /// The agents as they were at this revision of the workspace.
        #[arg(long, value_name = "NUMBER", conflicts_with = "at")]
        revision: Option<u64>,
    },
    /// Show an agent as its file, or as JSON.
    #[command(after_help = "\
Examples:
  agentcfg agents get writer
  agentcfg agents get writer --label production
  agentcfg agents get writer > writer.md")]
    Get {
        #[command(flatten)]
        agent: Agent,
        #[command(flatten)]
        at: Selector,
    },
    /// Create an agent.
    #[command(after_help = "\
Examples:
  agentcfg agents create writer --display-name Writer --persona-file persona.txt
  agentcfg agents create writer --display-name Writer --parameter formality=70
  agentcfg agents create --file writer.md")]
    Create(Box<Create>),
    /// Change an agent in your editor, the one of VISUAL or EDITOR.
    #[command(after_help = "\
The agent is shown as its file. What you change is sent. If another client has changed the agent
meanwhile, the two changes are merged, and lines that both have changed are marked for you to
choose. If anything fails, your text is kept and its path is printed.

Example:
  EDITOR='code --wait' agentcfg agents edit writer")]
    Edit {
        #[command(flatten)]
        agent: Agent,
        #[command(flatten)]
        reason: Reason,
    },
    /// Delete an agent. Its record is kept, and `agentcfg agents restore` brings it back.
    Delete {
        #[command(flatten)]
        agent: Agent,
        #[command(flatten)]
        reason: Reason,
        /// Delete without asking.
        #[arg(long, short)]
        yes: bool,
        /// Only check that the agent is there.
        #[arg(long)]
        dry_run: bool,
    },
    /// Make a deleted agent active again.
    Restore {
        #[command(flatten)]
        agent: Agent,
        #[command(flatten)]
        reason: Reason,
    },
}

/// Which version of an agent.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct Selector {
    /// This version.
    #[arg(long, value_name = "NUMBER")]
    pub version: Option<u64>,
    /// The version that this label points at.
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// As it was at this time, such as 2026-11-20T18:00:00Z.
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// As it was at this revision of the workspace.
    #[arg(long, value_name = "NUMBER")]
    pub revision: Option<u64>,
}

#[derive(Debug, Args)]
pub struct Create {
    /// The identifier: 1 to 50 of a-z, 0-9, - and _.
    #[arg(value_name = "AGENT", required_unless_present = "file")]
    pub agent: Option<String>,
    /// Take the agent from this file, as `agentcfg export` writes it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["agent", "fields"])]
    pub file: Option<PathBuf>,
    /// Take lines of the persona that look like the conflict markers of git as text.
    #[arg(long, requires = "file")]
    pub allow_conflict_markers: bool,
    #[command(flatten)]
    pub fields: CreateFields,
    #[command(flatten)]
    pub reason: Reason,
}
