//! The command line of the commands that take agents from files.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use super::Reason;
use crate::agent_file::Markers;

#[derive(Debug, Args)]
pub struct Directory {
    /// The directory with the files.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// The set that the agents belong to. Other agents are left alone.
    #[arg(long, value_name = "NAME")]
    pub set: Option<String>,
    /// Deactivate the agents of the set that have no file any more.
    #[arg(long, requires = "set")]
    pub prune: bool,
    /// The greatest number of agents to deactivate, or `all`. Without it an apply refuses to deactivate all agents of the set,
    /// or several that are more than a third of them.
    #[arg(long, value_name = "NUMBER|all", requires = "prune")]
    pub prune_limit: Option<PruneLimit>,
    #[command(flatten)]
    pub conflicts: Conflicts,
}

#[derive(Debug, Args)]
pub struct Apply {
    #[command(flatten)]
    pub directory: Directory,
    /// Only if no agent has changed since this cursor, the one of `agentcfg plan --output json`. Without it, since the plan that
    /// the apply makes first.
    #[arg(long, value_name = "CURSOR")]
    pub base: Option<String>,
    /// Apply also if an agent has changed since the plan. The change is overwritten.
    #[arg(long, conflicts_with = "base")]
    pub force: bool,
    #[command(flatten)]
    pub reason: Reason,
    /// Apply without asking.
    #[arg(long, short)]
    pub yes: bool,
    /// Only show what would change. Unlike `plan`, this exits with 0 also if there are differences.
    #[arg(long)]
    pub dry_run: bool,
}

/// What to do about conflict markers.
#[derive(Debug, Args)]
pub struct Conflicts {
    /// Take lines of a persona that look like the conflict markers of git as text.
    #[arg(long)]
    pub allow_conflict_markers: bool,
}

impl Conflicts {
    pub fn markers(&self) -> Markers {
        Markers::allowed_if(self.allow_conflict_markers)
    }
}

/// How many agents may be deactivated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneLimit {
    Number(usize),
    All,
}

impl FromStr for PruneLimit {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "all" => Ok(Self::All),
            number => number
                .parse()
                .map(Self::Number)
                .map_err(|_| "must be a number of agents, or `all`"),
        }
    }
}
