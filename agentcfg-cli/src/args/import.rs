//! The command line of `agentcfg import`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::Conflicts;
use super::reason::Reason;
use crate::import::formats::FORMATS;

/// The words of the formats.
pub fn formats() -> PossibleValuesParser {
    PossibleValuesParser::new(FORMATS.iter().map(|format| format.word))
}

#[derive(Debug, Args)]
pub struct Import {
    /// The tool that the agents come from.
    #[arg(value_name = "FORMAT", value_parser = formats())]
    pub format: String,
    /// Files and directories. Directories are read with all below them.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Write the agents as files to this directory, as `agentcfg export` does.
    #[arg(long, value_name = "DIR", conflicts_with = "apply")]
    pub out: Option<PathBuf>,
    /// Bring the agents to the workspace, version by version where the source has several.
    #[arg(long)]
    pub apply: bool,
    /// Change nothing: only report what would be done. This is also so without --out and --apply.
    #[arg(long)]
    pub dry_run: bool,
    /// Replace agents and files that were changed since their import or made by hand, and move labels that were.
    #[arg(long)]
    pub overwrite: bool,
    #[command(flatten)]
    pub conflicts: Conflicts,
    /// With --apply, point this label at the newest version of each imported agent.
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// Print the report as JSON, as `--output json` does.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reason: Reason,
}
