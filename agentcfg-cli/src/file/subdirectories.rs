//! Files of agents that lie too deep to be applied.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::directory::{content, may_be_agent};
use crate::agent_file::looks_like_agent_file;

/// How many levels of directories are searched, and how many entries of them. A search is for a message, and may be cut
/// short.
const MAX_DEPTH: usize = 8;
const MAX_ENTRIES: usize = 10_000;

/// The directories below this one that have files of agents, with their number. Hidden directories and links are left
/// out, and what cannot be read.
pub fn with_agents(root: &Path) -> BTreeMap<PathBuf, usize> {
    let mut found = BTreeMap::new();
    let mut visited = 0;
    let mut rest = vec![(root.to_owned(), 0)];
    while let Some((dir, depth)) = rest.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            visited += 1;
            if visited > MAX_ENTRIES {
                return found;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            let (path, kind) = (entry.path(), entry.file_type());
            if kind.as_ref().is_ok_and(fs::FileType::is_dir) && depth < MAX_DEPTH && !name.starts_with('.') {
                rest.push((path, depth + 1));
            } else if depth > 0
                && kind.is_ok_and(|kind| kind.is_file())
                && may_be_agent(&name)
                && content(&path).is_ok_and(|bytes| looks_like_agent_file(&path, &bytes))
            {
                *found.entry(dir.clone()).or_default() += 1;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_with_files_of_agents_are_found() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let agent = "---\ndisplay_name: W\n---\n";
        for path in ["top.md", "team/a.md", "team/b.md", "team/deep/c.md", ".git/d.md"] {
            write(path, agent);
        }
        write("docs/notes.md", "# Notes\n");
        write("team/README.md", agent);
        #[cfg(unix)]
        std::os::unix::fs::symlink(root.path(), root.path().join("loop")).unwrap();
        let found: Vec<_> = with_agents(root.path()).into_iter().collect();
        let dir = |path: &str| root.path().join(path);
        assert_eq!(found, [(dir("team"), 2), (dir("team/deep"), 1)]);
    }
}
