//! The arguments of `agentcfg label`.

use clap::Subcommand;

use super::{Agent, Reason};

#[derive(Debug, Subcommand)]
pub enum Label {
    /// Point a label of an agent at a version.
    #[command(after_help = "\
Examples:
  agentcfg label set writer production 4
  agentcfg label set writer production 4 --expected 3     # only if it points at 3 now
  agentcfg label set writer production staging            # the version that another label points at
  agentcfg label set writer staging latest                # the current version")]
    Set {
        #[command(flatten)]
        agent: Agent,
        #[arg(value_name = "LABEL")]
        label: String,
        /// The number of the version, or another label that points at it; `latest` is the current one.
        #[arg(value_name = "VERSION|LABEL")]
        version: String,
        /// Only if the label points at this version now; `none`: only if there is no such label.
        #[arg(long, value_name = "VERSION")]
        expected: Option<String>,
        #[command(flatten)]
        reason: Reason,
    },
    /// Remove a label of an agent. The version stays.
    Remove {
        #[command(flatten)]
        agent: Agent,
        #[arg(value_name = "LABEL")]
        label: String,
        #[command(flatten)]
        reason: Reason,
    },
    /// List the labels of the workspace.
    List {
        /// Only labels of this agent.
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
        /// Only labels with this name.
        #[arg(long, value_name = "LABEL")]
        label: Option<String>,
    },
    /// Point one label at the versions of another, for all agents that have it, in one change.
    #[command(after_help = "\
Examples:
  agentcfg label promote staging production --dry-run     # which agents would move, and from which version
  agentcfg label promote staging production
  agentcfg label promote staging production --set docs    # only the agents of this set")]
    Promote {
        #[arg(value_name = "FROM")]
        from: String,
        #[arg(value_name = "TO")]
        to: String,
        /// Only this agent. May be given more than once.
        #[arg(long = "agent", value_name = "AGENT", conflicts_with = "set")]
        agents: Vec<String>,
        /// Only the agents of this set.
        #[arg(long, value_name = "NAME")]
        set: Option<String>,
        /// Only if neither label has moved since this cursor; otherwise exit code 5.
        #[arg(long, value_name = "CURSOR")]
        base: Option<String>,
        #[command(flatten)]
        reason: Reason,
        /// Only show what would change.
        #[arg(long)]
        dry_run: bool,
    },
    /// List the commits that moved a label, newest first.
    #[command(after_help = "\
Examples:
  agentcfg label history production
  agentcfg label history production --agent writer --limit 5")]
    History {
        #[arg(value_name = "LABEL")]
        label: String,
        /// Only the moves of this agent's label.
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
        /// The most commits to list, 1 to 1000; 100 unless given.
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: Option<u32>,
        /// Only commits before this revision.
        #[arg(long, value_name = "REVISION", value_parser = clap::value_parser!(u64).range(1..))]
        before: Option<u64>,
    },
    /// Put a label of all agents back to where it was at a revision, in one change.
    #[command(after_help = "\
Examples:
  agentcfg label history production                       # which revision to go back to
  agentcfg label restore production 42 --dry-run          # what would move
  agentcfg label restore production 42")]
    Restore {
        #[arg(value_name = "LABEL")]
        label: String,
        /// The revision of the workspace at which the label pointed where it is to point again.
        #[arg(value_name = "REVISION")]
        revision: u64,
        /// Only if the label has not moved since this cursor; otherwise exit code 5.
        #[arg(long, value_name = "CURSOR")]
        base: Option<String>,
        #[command(flatten)]
        reason: Reason,
        /// Only show what would change.
        #[arg(long)]
        dry_run: bool,
    },
}
