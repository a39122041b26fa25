//! Which files of a directory are read, and what an export may write.

use super::super::output_file::{File, Holds};
use super::super::places::{leads_out, place_files};
use super::*;

/// Writes files, and reads their directory.
fn read_dir(word: &str, files: &[(&str, &str)], root: &str) -> (tempfile::TempDir, Vec<String>, Reading) {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let (agents, reading) = imported(format(word).unwrap(), &dir.path().join(root));
    let ids = agents.into_iter().map(|agent| agent.agent_id).collect();
    (dir, ids, reading)
}

/// The names of the files that were skipped.
fn skipped(reading: &Reading) -> Vec<&std::ffi::OsStr> {
    reading
        .skipped
        .iter()
        .map(|one| one.file.file_name().unwrap())
        .collect()
}

const AGENT: &str = "---\nname: one\ndescription: d\n---\nx\n";

#[test]
fn commands_skills_and_styles_are_no_agents() {
    for (word, path, other) in [
        ("opencode", ".opencode/agent/one.md", ".opencode/command/test.md"),
        ("opencode", ".opencode/agent/one.md", ".opencode/skill/s/SKILL.md"),
        ("opencode", ".opencode/mode/one.md", "docs/page.md"),
        ("opencode", ".opencode/agent/one.md", ".claude/agents/page.md"),
        ("claude-code", ".claude/agents/one.md", ".gemini/agents/page.md"),
        (
            "claude-code",
            ".claude/agents/one.md",
            ".claude/output-styles/teaching.md",
        ),
        ("claude-code", ".claude/agents/one.md", ".claude/commands/agents/x.md"),
        ("claude-code", ".claude/agents/skills/one.md", "docs/page.md"),
        ("copilot", ".github/agents/one.agent.md", ".github/prompts/x.prompt.md"),
        (
            "copilot",
            ".github/agents/one.md",
            ".github/instructions/x.instructions.md",
        ),
        ("copilot", ".github/agents/one.md", ".github/skills/z/SKILL.md"),
        ("copilot", ".github/agents/one.md", ".github/ISSUE_TEMPLATE/bug.md"),
    ] {
        let page = AGENT.replace("one", "page");
        let (dir, ids, reading) = read_dir(word, &[(path, AGENT), (other, &page)], "");
        assert_eq!(ids, ["one"], "{other}: {reading:?}");
        assert_eq!(reading.skipped.len(), 1, "{other}: {reading:?}");
        assert!(reading.skipped[0].file.ends_with(other), "{reading:?}");
        // A file that is named is read wherever it is.
        let is_always_skipped = reading.skipped[0].reason.contains("which is no agent");
        let (agents, _) = imported(format(word).unwrap(), &dir.path().join(other));
        assert_eq!(agents.is_empty(), is_always_skipped, "{other}");
    }
    // The directory of agents itself, and one that is not of a tool.
    for root in ["a/.claude/agents", "agents", "plain"] {
        let (_, ids, _) = read_dir("claude-code", &[(&format!("{root}/team/one.md"), AGENT)], root);
        assert_eq!(ids, ["one"], "{root}");
    }
}

#[test]
fn a_directory_that_is_left_out_is_told() {
    let files = [
        ("agents/target/one.md", AGENT),
        ("node_modules/p/agents/two.md", AGENT),
        ("target/three.md", AGENT),
    ];
    let (_, ids, reading) = read_dir("claude-code", &files, "");
    assert_eq!(ids, ["one"]);
    assert_eq!(skipped(&reading), ["node_modules", "target"]);
}

#[test]
fn ends_of_names_may_have_capitals() {
    for (word, path, text) in [
        ("claude-code", "ONE.MD", AGENT),
        ("opencode", "One.MD", AGENT),
        ("copilot", "one.Agent.MD", AGENT),
        ("crewai", "agents.YAML", "one:\n  role: r\n"),
    ] {
        let (_, ids, reading) = read_dir(word, &[(path, text)], "");
        assert_eq!(ids, ["one"], "{path}: {reading:?}");
    }
}

#[test]
fn what_cannot_be_parsed_is_skipped_when_it_can_have_no_agents() {
    let files = [
        ("agents.yaml", "one:\n  role: r\n"),
        (
            "chart/deployment.yaml",
            "{{ if .Values.on }}\nkind: Deployment\n{{ end }}\n",
        ),
        ("tsconfig.json", "{\"a\": }"),
        ("more/agents.yaml", "two:\n  role: [r\n"),
    ];
    let (dir, ids, reading) = read_dir("crewai", &files, "");
    assert_eq!(ids, ["one"]);
    assert_eq!(skipped(&reading), ["deployment.yaml", "tsconfig.json"], "{reading:?}");
    assert!(reading.skipped[0].reason.starts_with("line 1: "), "{reading:?}");
    assert_eq!(reading.problems.len(), 1, "{reading:?}");
    assert!(reading.problems[0].file.ends_with("more/agents.yaml"), "{reading:?}");
    // A file that is named is a problem, whatever it has in it.
    let (_, reading) = imported(format("crewai").unwrap(), &dir.path().join("chart/deployment.yaml"));
    assert_eq!(reading.problems.len(), 1, "{reading:?}");
}

#[test]
fn servers_are_of_all_agents_whatever_the_order_of_the_arguments() {
    let dir = tempfile::tempdir().unwrap();
    let (agent, servers) = (dir.path().join("one.md"), dir.path().join(".mcp.json"));
    fs::write(&agent, AGENT).unwrap();
    fs::write(&servers, r#"{"mcpServers": {"desk": {"command": "desk"}}}"#).unwrap();
    let claude = format("claude-code").unwrap();
    let mut reading = read(claude, &[agent, servers], Markers::Refuse).unwrap();
    let agents = agents(claude, &mut reading, &mut Went::new());
    let definition = agents[0].field("definition").unwrap();
    assert!(definition.get("mcp_servers").is_some(), "{reading:?}");
}

#[test]
fn an_agent_chooses_no_hidden_file() {
    for (word, kept, path) in [
        ("crewai", r#"{"$yaml": ".github/workflows/x.yml"}"#, "agents.yaml"),
        ("crewai", r#"{"$yaml": "config/agents.yml"}"#, "config/agents.yml"),
        ("crewai", r#"{"$yaml": "run.sh"}"#, "agents.yaml"),
        ("crewai", r#"{"$file": "run.sh"}"#, "agents.yaml"),
        (
            "opencode",
            r#"{"$json": {"file": "package.json", "name": "scripts"}}"#,
            "one.md",
        ),
        (
            "opencode",
            r#"{"$json": {"file": "a/opencode.jsonc", "name": "one"}}"#,
            "a/opencode.jsonc",
        ),
        ("opencode", r#"{"$file": ".git/one.md"}"#, "one.md"),
        (
            "opencode",
            r#"{"$file": ".opencode/agent/a.md"}"#,
            ".opencode/agent/a.md",
        ),
        ("claude-code", r#"{"$file": ".github/one.md"}"#, "one.md"),
        (
            "copilot",
            r#"{"$file": ".github/agents/a.agent.md"}"#,
            ".github/agents/a.agent.md",
        ),
        ("claude-code", r#"{"$file": "One.MD"}"#, "One.MD"),
    ] {
        let json = format!(r#"{{"display_name": "one", "definition": {{"{word}": {kept}}}}}"#);
        let fields = from_json(Path::new("a"), &json).unwrap().entries().to_vec();
        let format = format(word).unwrap();
        let written = export(format, "one", fields, &mut Vec::new());
        let files = (format.write)(vec![written], &mut Vec::new());
        assert_eq!(files[0].path, Path::new(path), "{kept}");
    }
}

/// Where files of an export go: `place_files` with the directory of the export and its files.
#[track_caller]
fn placed(word: &str, dir: &Path, files: &[&str]) -> std::result::Result<Vec<String>, String> {
    let file = |path: &&str| File::new(PathBuf::from(path), String::new(), Holds::Agent);
    let mut files: Vec<_> = files.iter().map(file).collect();
    place_files(format(word).unwrap(), dir, &mut files).map_err(|error| error.to_string())?;
    Ok(files.iter().map(|file| file.path.display().to_string()).collect())
}

#[test]
fn an_export_writes_agents_where_their_tool_reads_them() {
    let root = tempfile::tempdir().unwrap();
    let project = root.path();
    for (word, tool, place, new) in [
        ("claude-code", ".claude", ".claude/agents/a.md", "b.md"),
        ("opencode", ".opencode", ".opencode/agents/a.md", "b.md"),
        ("copilot", ".github", ".github/agents/a.agent.md", "b.agent.md"),
        ("codex", ".codex", ".codex/agents/a.toml", "b.toml"),
    ] {
        let below_tool = place.strip_prefix(tool).unwrap().trim_start_matches('/');
        let name = place.rsplit('/').next().unwrap();
        for (dir, read, at) in [
            ("", place, place),
            (tool, place, below_tool),
            (&*format!("{tool}/agents"), place, name),
            (&*format!("{tool}/agents"), below_tool, name),
        ] {
            let to = |file: &str| at.replace(name, file);
            let found = placed(word, &project.join(dir), &[read, new]).unwrap();
            assert_eq!(found, [at.to_owned(), to(new)], "{word} {dir:?} {read}");
        }
        // A directory of no project has them side by side.
        assert_eq!(placed(word, &project.join("out"), &[new]).unwrap(), [new]);
    }
}

#[cfg(unix)]
#[test]
fn an_export_does_not_follow_links_out_of_its_directory() {
    let root = tempfile::tempdir().unwrap();
    let (inside, outside) = (root.path().join("in"), root.path().join("out"));
    fs::create_dir(&inside).unwrap();
    fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
    std::os::unix::fs::symlink(&inside, root.path().join("other")).unwrap();
    assert!(leads_out(&inside, &inside.join("link/deep/a.md")));
    let other = root.path().join("other");
    assert!(!leads_out(&other, &other.join("deep/a.md")));
}

#[test]
fn an_export_writes_agents_where_they_are() {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    };
    // The name of a directory that is that of another one.
    write("agents/agents/a.md");
    write("agents/a.md");
    let dir = root.path().join("agents");
    let files = ["agents/a.md", "a.md"];
    assert_eq!(placed("claude-code", &dir, &files).unwrap(), files);
    let (crew, file) = (root.path().join("crew"), "crew/config/agents.yaml");
    assert_eq!(placed("crewai", &crew, &[file]).unwrap(), [file]);
    assert_eq!(
        placed("crewai", &crew.join("config"), &[file]).unwrap(),
        ["agents.yaml"]
    );
    // A file of the project beside those of its tool.
    write("project/.github/workflows/x.yml");
    write("project/triage.agent.md");
    let project = root.path().join("project");
    let placed_both = placed("copilot", &project, &["triage.agent.md", "new.agent.md"]).unwrap();
    assert_eq!(placed_both, ["triage.agent.md", ".github/agents/new.agent.md"]);
    let refused = placed("copilot", &project, &["a.md", "a.md"]).unwrap_err();
    assert!(refused.contains("two agents"), "{refused}");
}

#[test]
fn a_configuration_is_written_again_however_it_was_named() {
    let config = r#"{"model": "m", "agent": {"build": {"description": "B", "prompt": "Hi"}}}"#;
    for (name, root) in [
        ("opencode.json", ""),
        ("opencode.json", "opencode.json"),
        ("p/opencode.json", "p/opencode.json"),
        ("my.json", ""),
        ("my.json", "my.json"),
    ] {
        let (dir, _, _) = read_dir("opencode", &[(name, config)], "");
        let (agents, reading) = imported(format("opencode").unwrap(), &dir.path().join(root));
        assert!(reading.skipped.is_empty(), "{name} {root}: {reading:?}");
        let (exported, lost) = exported(format("opencode").unwrap(), &agents);
        assert_eq!(lost, [""; 0]);
        let text = fs::read_to_string(exported.path().join("opencode.json")).unwrap();
        assert_eq!(
            from_json(Path::new(""), &text),
            from_json(Path::new(""), config),
            "{name} {root}"
        );
    }
    // Servers of a project whose files are named one by one are where the tool reads them.
    let files = [
        (".mcp.json", r#"{"mcpServers": {"desk": {"command": "d"}}}"#),
        (".claude/agents/one.md", AGENT),
    ];
    let (dir, _, _) = read_dir("claude-code", &files, "");
    let paths = files.map(|(path, _)| dir.path().join(path));
    let claude = format("claude-code").unwrap();
    let mut reading = read(claude, &paths, Markers::Refuse).unwrap();
    let (exported, _) = exported(claude, &agents(claude, &mut reading, &mut Went::new()));
    assert!(exported.path().join(".mcp.json").is_file());
}

#[test]
fn json_files_that_are_no_configuration_are_not_searched_for_secrets() {
    let files = [
        (".opencode/agent/one.md", AGENT),
        ("locales/en.json", r#"{"login": {"password": "Password"}}"#),
        ("broken.json", "{"),
    ];
    let (_, ids, reading) = read_dir("opencode", &files, "");
    assert_eq!((ids.len(), reading.skipped.len()), (1, 2), "{reading:?}");
    assert!(reading.problems.is_empty(), "{reading:?}");
}

#[test]
fn an_agent_in_markdown_and_in_the_configuration_is_one() {
    let files = [
        (
            "opencode.json",
            r#"{"agent": {"one": {"description": "J", "temperature": 0.2, "permission": {"edit": "deny", "bash": "ask"}}}}"#,
        ),
        (
            ".opencode/agent/one.md",
            "---\ndescription: M\npermission:\n  bash: allow\n---\nx\n",
        ),
    ];
    let (dir, ids, reading) = read_dir("opencode", &files, "");
    assert_eq!(ids, ["one"], "{reading:?}");
    assert!(
        reading.warnings[0]
            .message
            .ends_with("it overrules description, permission.bash there"),
        "{reading:?}"
    );
    let (agents, _) = imported(format("opencode").unwrap(), dir.path());
    let (exported, _) = exported(format("opencode").unwrap(), &agents);
    let text = fs::read_to_string(exported.path().join(".opencode/agent/one.md")).unwrap();
    for part in ["description: M", "temperature: 0.2", "bash: allow", "edit: deny"] {
        assert!(text.contains(part), "{text}");
    }
}
