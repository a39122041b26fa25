//! Checking the files of a directory without a server.

use std::path::Path;

use agentcfg_client::model::{AgentId, ApplyAgents};
use serde::Serialize;

use super::context::Context;
use super::directory;
use crate::agent_file::Markers;
use crate::failure::{Code, CommandFailure, Result, count};
use crate::file::Directory;

/// The agents whose files are valid.
#[derive(Serialize)]
struct Validated {
    agents: Vec<AgentId>,
}

pub fn run(context: &mut Context, dir: &Path, markers: Markers) -> Result<Code> {
    let directory = Directory::open(dir)?;
    directory::warn_of_windows_lines(context, &directory);
    let body = ApplyAgents::of(directory.read(markers)?);
    match directory.is_empty() {
        true => directory::note_empty(context, &directory),
        false => body.validate().map_err(CommandFailure::error)?,
    }
    let validated = Validated {
        agents: body.agents.into_iter().map(|agent| agent.agent_id).collect(),
    };
    let files = validated.agents.len();
    context.output.show(&validated, |output| match files {
        0 => Ok(()),
        1 => output.line("1 file is valid"),
        _ => output.line(format_args!("{} are valid", count(files, "file"))),
    })?;
    Ok(Code::Done)
}
