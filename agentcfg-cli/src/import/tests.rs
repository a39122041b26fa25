//! The corpus: each case is imported with its expected outcome, exported, and read again.

mod directories;
mod edits;
mod front_matter;
mod servers;
mod sources;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::formats::{FORMATS, format};
use super::source_tree::{Entry, Node};
use super::*;
use crate::agent_file;

fn corpus(word: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(word)
}

/// The cases of a format: the files and directories in its directory.
fn cases(word: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(corpus(word)).unwrap();
    let mut cases: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.ends_with("expected.txt"))
        .collect();
    cases.sort();
    cases
}

fn imported(format: &Format, path: &Path) -> (Vec<Imported>, Reading) {
    let mut reading = read(format, &[path.to_owned()], Markers::Refuse).unwrap();
    let agents = agents(format, &mut reading, &mut Went::new());
    (agents, reading)
}

/// What became of a case, one line each.
fn outcome(agents: &[Imported], reading: &Reading, root: &Path) -> String {
    let mut lines = String::new();
    for agent in agents {
        let fields: Vec<_> = agent
            .fields
            .iter()
            .map(|entry| entry.key.as_str())
            .filter(|key| *key != "definition")
            .collect();
        let definition = agent.field("definition").map(Node::entries).unwrap_or_default();
        let definition: Vec<_> = definition.iter().map(|entry| entry.key.as_str()).collect();
        let version = agent
            .version
            .map(|version| format!(" version {version}"))
            .unwrap_or_default();
        let _ = writeln!(
            lines,
            "  agent {}{version}: {}; definition: {}",
            agent.agent_id,
            fields.join(" "),
            definition.join(" ")
        );
        if !agent.labels.is_empty() {
            let _ = writeln!(lines, "    labels {}", agent.labels.join(" "));
        }
        if let Err(problems) = agent.spec() {
            let _ = writeln!(lines, "    refused: {}", problems[0].message);
        }
    }
    let below = |text: &str| text.replace(&format!("{}/", root.display()), "");
    let at = |problem: &Problem| {
        let message = below(&problem.message);
        format!("{}:{}: {message}", problem.place.line, problem.place.column)
    };
    for problem in &reading.warnings {
        let _ = writeln!(lines, "  warning {}", at(problem));
    }
    for problem in &reading.problems {
        let _ = writeln!(lines, "  problem {}", at(problem));
    }
    for skipped in &reading.skipped {
        let _ = writeln!(lines, "  skipped {}", below(&skipped.reason));
    }
    lines
}

#[test]
fn each_case_has_its_expected_outcome() {
    let mut number = 0;
    for format in FORMATS {
        let mut all = String::new();
        for case in cases(format.word) {
            number += 1;
            let (agents, reading) = imported(format, &case);
            let _ = writeln!(all, "{}", case.file_name().unwrap().to_str().unwrap());
            all += &outcome(&agents, &reading, &corpus(format.word));
        }
        let path = corpus(format.word).join("expected.txt");
        if std::env::var_os("UPDATE_CORPUS").is_some() {
            fs::write(&path, &all).unwrap();
        }
        assert_eq!(all, fs::read_to_string(&path).unwrap_or_default(), "{}", path.display());
    }
    assert!(number >= 90, "{number} cases");
}

/// The same value; a number equals the text of it.
fn is_same(one: &Node, other: &Node) -> bool {
    one == other || one.scalar().is_some() && one.scalar() == other.scalar()
}

fn same_entries(a: &[Entry], b: &[Entry]) -> std::result::Result<(), String> {
    for entry in a {
        match super::source_tree::find(b, &entry.key) {
            Some(node) if is_same(&entry.node, node) => {}
            Some(node) => return Err(format!("{}: {} became {}", entry.key, entry.node.json(), node.json())),
            None => return Err(format!("{} is lost", entry.key)),
        }
    }
    match a.len() == b.len() {
        true => Ok(()),
        false => Err(format!("{} keys became {}", a.len(), b.len())),
    }
}

/// The fields of an agent after it was written as its file and read from there.
fn through_its_file(agent: &Imported) -> Vec<Entry> {
    let Ok(spec) = agent.spec() else {
        return agent.fields.clone();
    };
    let text = agent_file::write(&agent.agent_id, &agent_file::Fields::of_spec(&spec).unwrap());
    let path = PathBuf::from(format!("{}.md", agent.agent_id));
    let read = agent_file::read(&path, text.as_bytes(), agent_file::Markers::Refuse).unwrap();
    let json = serde_json::to_string(&read).unwrap();
    let mut fields = from_json(&path, &json).unwrap().entries().to_vec();
    super::source_tree::take(&mut fields, "agent_id");
    fields
}

/// Exports agents, and returns the directory.
fn exported(format: &Format, agents: &[Imported]) -> (tempfile::TempDir, Vec<String>) {
    let (mut lost, dir) = (Vec::new(), tempfile::tempdir().unwrap());
    let written = agents
        .iter()
        .map(|agent| export(format, &agent.agent_id, through_its_file(agent), &mut lost))
        .collect();
    for file in (format.write)(written, &mut Vec::new()) {
        let path = dir.path().join(file.path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file.text).unwrap();
    }
    (dir, lost)
}

#[test]
fn an_export_gives_the_same_content_back() {
    let mut wrong = Vec::new();
    for format in FORMATS {
        for case in cases(format.word) {
            if let Err(error) = round_trip(format, &case) {
                wrong.push(format!("{}: {error}", case.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn round_trip(format: &Format, case: &PathBuf) -> std::result::Result<(), String> {
    let before = read(format, std::slice::from_ref(case), Markers::Refuse)
        .unwrap()
        .records;
    let (agents, _) = imported(format, case);
    if agents.is_empty() {
        return Ok(());
    }
    let (dir, lost) = exported(format, &agents);
    if case.join(".claude-plugin").is_dir() {
        fs::create_dir(dir.path().join(".claude-plugin")).unwrap();
    }
    let mut again = read(format, &[dir.path().to_owned()], Markers::Refuse).unwrap();
    // What is true of the source is as true of the export.
    let is_new = |problem: &Problem| {
        !["does not load", "with parentheses"]
            .iter()
            .any(|said| problem.message.contains(said))
    };
    again.warnings.retain(is_new);
    let problems: Vec<_> = again
        .problems
        .iter()
        .chain(&again.warnings)
        .map(ToString::to_string)
        .collect();
    if !(lost.is_empty() && problems.is_empty() && again.skipped.is_empty()) {
        return Err(format!(
            "lost {lost:?}, problems {problems:?}, skipped {:?}",
            again.skipped
        ));
    }
    for record in &again.records {
        let compared: Vec<_> = before
            .iter()
            .map(|one| same_entries(&one.entries, &record.entries))
            .collect();
        if !compared.iter().any(std::result::Result::is_ok) {
            return Err(format!("{compared:?}"));
        }
    }
    let once = super::agents(format, &mut again, &mut Went::new());
    if once.len() != agents.len() {
        return Err(format!("{} agents became {}", agents.len(), once.len()));
    }
    // What is exported is canonical: it gives the same bytes again. So does a source that is canonical.
    let (second, _) = exported(format, &once);
    let written = files(dir.path());
    let is_canonical = case.file_name().unwrap().to_str().unwrap().starts_with("canonical");
    let source = is_canonical.then(|| fs::read_to_string(case).unwrap());
    match files(second.path()) {
        again if again != written => Err(format!("{written:?} became {again:?}")),
        _ if source.as_ref().is_some_and(|source| *source != written[0].1) => {
            Err(format!("{source:?} became {written:?}"))
        }
        _ => Ok(()),
    }
}

/// All files below a directory with their content.
fn files(dir: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    list(dir, 0, &mut BTreeSet::new(), &mut found, &mut Reading::default());
    found.sort();
    let relative = |path: &PathBuf| path.strip_prefix(dir).unwrap().display().to_string();
    found
        .iter()
        .map(|path| (relative(path), fs::read_to_string(path).unwrap()))
        .collect()
}

#[test]
fn another_format_says_what_it_cannot_hold() {
    let claude = format("claude-code").unwrap();
    let (agents, _) = imported(claude, &corpus("claude-code").join("every-key.md"));
    let codex = format("codex").unwrap();
    let (_, lost) = exported(codex, &agents);
    for path in ["definition.tools", "definition.claude-code"] {
        assert!(lost.iter().any(|one| one == path), "{path}: {lost:?}");
    }
}

#[test]
fn places_of_a_source_are_not_what_another_format_loses() {
    let project = |agent: &str, servers: &str| {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join(".claude/agents")).unwrap();
        fs::write(dir.path().join(".claude/agents/a.md"), agent).unwrap();
        fs::write(dir.path().join(".mcp.json"), servers).unwrap();
        let (agents, _) = imported(format("claude-code").unwrap(), dir.path());
        exported(format("copilot").unwrap(), &agents).1
    };
    let agent = "---\nname: a\ndescription: d\ntools: Read,Grep\nmcpServers:\n  - own:\n      command: o\n---\nx\n";
    let servers = r#"{"mcpServers": {"desk": {"command": "desk"}}}"#;
    assert_eq!(project(agent, servers), [""; 0]);
    let lost = ["definition.claude-code"];
    for own in ["color: red", "model: inherit", "mcpServers: [github]"] {
        let agent = agent.replace("mcpServers:\n  - own:\n      command: o", own);
        assert_eq!(project(&agent, servers), lost, "{own}");
    }
    for content in [
        r#"{"mcpServers": {"desk": {"url": "${DESK}"}}}"#,
        r#"{"mcpServers": {}, "inputs": [1]}"#,
    ] {
        assert_eq!(project(agent, content), lost, "{content}");
    }
    let prompt = r#"{"name": "a", "type": "text", "prompt": "x", "version": 1}"#;
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.json"), prompt).unwrap();
    let (agents, _) = imported(format("langfuse").unwrap(), dir.path());
    assert_eq!(exported(format("copilot").unwrap(), &agents).1, ["definition.langfuse"]);
}

#[test]
fn a_changed_field_wins_over_the_text_of_the_source() {
    let claude = format("claude-code").unwrap();
    let (mut agents, _) = imported(claude, &corpus("claude-code").join("every-key.md"));
    for entry in &mut agents[0].fields {
        if entry.key == "model" {
            entry.node = Node::text("opus");
        }
    }
    let (dir, _) = exported(claude, &agents);
    let (name, text) = files(dir.path()).remove(0);
    assert!(text.contains("\nmodel: opus\n"), "{name}: {text}");
}

#[test]
fn links_in_a_circle_are_read_once() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("a")).unwrap();
    fs::write(dir.path().join("a/one.md"), "---\nname: one\ndescription: d\n---\nx\n").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(dir.path(), dir.path().join("a/loop")).unwrap();
    let (agents, reading) = imported(format("claude-code").unwrap(), dir.path());
    assert_eq!((agents.len(), reading.problems.len()), (1, 0));
}

/// Every file of the corpus, cut off and changed in many places, is read without a panic.
#[test]
fn no_input_makes_a_panic() {
    let dir = tempfile::tempdir().unwrap();
    let strange: [&[u8]; 8] = [b"[", b"{", b"\"", b"\n---\n", b": ", b"\xff", b"\0", b"- "];
    for format in FORMATS {
        let mut found = Vec::new();
        list(
            &corpus(format.word),
            0,
            &mut BTreeSet::new(),
            &mut found,
            &mut Reading::default(),
        );
        for path in found.iter().filter(|path| !path.ends_with("expected.txt")) {
            let bytes = fs::read(path).unwrap();
            let copy = dir.path().join(path.file_name().unwrap());
            for (i, strange) in strange.iter().enumerate() {
                let at = bytes.len() * (i + 1) / 9;
                for changed in [bytes[..at].to_vec(), [&bytes[..at], strange, &bytes[at..]].concat()] {
                    fs::write(&copy, changed).unwrap();
                    let (agents, _) = imported(format, &copy);
                    let write =
                        |agent: &Imported| export(format, &agent.agent_id, agent.fields.clone(), &mut Vec::new());
                    (format.write)(agents.iter().map(write).collect(), &mut Vec::new());
                }
            }
        }
    }
    for deep in ["[", "{\"a\":", "a:\n "] {
        let copy = dir.path().join("deep.json");
        fs::write(&copy, deep.repeat(100_000)).unwrap();
        assert_eq!(imported(format("langfuse").unwrap(), &copy).1.problems.len(), 1);
    }
}
