//! What packages install beside the binary: completions and manual pages.

use std::fs;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use super::context::Context;
use crate::args::Arguments;
use crate::failure::{Code, CommandFailure, Result};

pub fn completions(context: &mut Context, shell: Shell) -> Result<Code> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "agentcfg", &mut script);
    context.output.text(&String::from_utf8_lossy(&script))?;
    Ok(Code::Done)
}

/// Writes a page for each command, such as `agentcfg-agents-list.1`.
pub fn manual(dir: &Path) -> Result<Code> {
    let failed = |error| CommandFailure::io(dir.display(), &error);
    fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(Arguments::command(), dir).map_err(failed)?;
    Ok(Code::Done)
}
