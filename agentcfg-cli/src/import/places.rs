//! Where the files of an export go.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::output_file::{File, Holds};
use super::table::Format;
use crate::failure::{CommandFailure, Result};

/// Moves files to where the tool reads them. An agent of a project keeps its place `.claude/agents/a.md` whether the
/// directory of the export is the project, its `.claude`, or the `agents` in it. Where the directory is that of a project
/// or of the tool, new agents without a place are written to those of the tool.
///
/// # Errors
///
/// When two agents have one file.
pub fn place_files(format: &Format, dir: &Path, files: &mut [File]) -> Result<()> {
    let whole = whole(dir);
    let home: Vec<&str> = format.home.map(|home| home.split('/').collect()).unwrap_or_default();
    // How much of the place of its tool the directory is.
    let within = (1..=home.len())
        .rev()
        .find(|count| whole.ends_with(home[..*count].join("/")))
        .unwrap_or(0);
    for file in files.iter_mut().filter(|file| !dir.join(&file.path).exists()) {
        let of_home = (0..within).map(|from| PathBuf::from(home[from..within].join("/")));
        let parent = file
            .path
            .parent()
            .filter(|parent| whole.ends_with(parent))
            .map(Path::to_owned);
        let rest = of_home
            .chain(parent)
            .find_map(|start| file.path.strip_prefix(start).ok());
        if let Some(rest) = rest.map(Path::to_owned) {
            file.path = rest;
        }
    }
    if let Some(tool) = home.first() {
        let is_of_tool = within > 0 || dir.join(tool).is_dir() || files.iter().any(|file| file.path.starts_with(tool));
        let agents = PathBuf::from(home[within..].join("/"));
        let is_alone = |file: &&mut File| file.holds == Holds::Agent && file.path.components().count() == 1;
        for file in files.iter_mut().filter(|_| is_of_tool).filter(is_alone) {
            let placed = agents.join(&file.path);
            if dir.join(&placed).exists() || !dir.join(&file.path).exists() {
                file.path = placed;
            }
        }
    }
    let mut paths = BTreeSet::new();
    match files.iter().find(|file| !paths.insert(&file.path)) {
        Some(file) => {
            let path = dir.join(&file.path);
            Err(CommandFailure::error(format_args!(
                "two agents have the file {}",
                path.display()
            )))
        }
        None => Ok(()),
    }
}

/// Whether a link on the way to a file leads out of a directory.
pub fn leads_out(dir: &Path, file: &Path) -> bool {
    let real = file.ancestors().skip(1).find_map(|dir| fs::canonicalize(dir).ok());
    fs::canonicalize(dir).is_ok_and(|dir| real.is_some_and(|real| !real.starts_with(dir)))
}

/// A directory with all its parents, also if it does not exist yet.
fn whole(dir: &Path) -> PathBuf {
    fs::canonicalize(dir)
        .or_else(|_| std::path::absolute(dir))
        .unwrap_or_else(|_| dir.to_owned())
}
