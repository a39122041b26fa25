//! Which files of a directory are those of agents: tools keep commands, skills and styles beside them that look the
//! same.

use std::fs;

use super::super::{Reading, Source};

/// The names of directories of a tool.
pub struct Directories {
    /// Those of agents.
    pub agents: &'static [&'static str],
    /// Those of other files, in the order of the documentation of the tool.
    pub others: &'static [&'static str],
    /// The one that has them.
    pub tool: &'static str,
}

/// Hidden directories that are of no tool: those of all programs, and of plugins.
const OF_NO_TOOL: &[&str] = &[".config", ".claude-plugin"];

impl Directories {
    /// Why a file of a directory is not that of an agent. A file that the user named is one wherever it is. So is one
    /// of a directory that has none of the directories of a tool, such as that of an export.
    pub fn reason(&self, source: &Source<'_>, reading: &Reading) -> Option<String> {
        if source.path == source.root || reading.takes_all {
            return None;
        }
        let dirs: Vec<&str> = source.relative.split('/').collect();
        let dirs = &dirs[..dirs.len() - 1];
        let is_of_tool = |dir: &&&str| dir.starts_with('.') && !OF_NO_TOOL.contains(*dir);
        if let Some(tool) = dirs.iter().rev().find(is_of_tool)
            && *tool != self.tool
        {
            return Some(format!(
                "in {tool}/, which is of another tool: name the file itself to import it"
            ));
        }
        let after_tool = dirs.iter().rposition(|dir| *dir == self.tool).map_or(0, |at| at + 1);
        let root = fs::canonicalize(source.root).unwrap_or_else(|_| source.root.to_owned());
        let name = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The name of the root decides last, as it may be that of any project.
        let of_root = (after_tool == 0).then_some(&*name);
        if of_root.is_some_and(|name| self.agents.contains(&name)) {
            return None;
        }
        for dir in dirs[after_tool..].iter().copied().chain(of_root) {
            if self.agents.contains(&dir) {
                return None;
            }
            if self.others.contains(&dir) {
                return Some(format!(
                    "in {dir}/, which has no agents: name the file itself to import it"
                ));
            }
        }
        let all = self.agents.iter().chain(self.others).chain([&self.tool, &".git"]);
        let is_of_tool = name == self.tool || after_tool > 0 || all.into_iter().any(|dir| root.join(dir).is_dir());
        is_of_tool.then(|| format!("not below {}/: name the file itself to import it", self.agents[0]))
    }
}
