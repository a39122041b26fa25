//! Agents of CrewAI: `agents.yaml` by names, and a JSON file with comments for each agent.

use std::path::PathBuf;

use super::super::convert::As;
use super::super::output_file::{File, Holds, NotHeld, is_allowed};
use super::super::parse_tree::{Scalars, from_json, from_shared_yaml};
use super::super::source_tree::{Entry, Node, put, take};
use super::super::table::To::{Definition, Field, Kept};
use super::super::table::{Format, Record};
use super::super::written::Written;
use super::super::yaml_text::to_yaml;
use super::super::{Reading, Source};
use crate::agent_file::Problem;
use crate::agent_file::yaml::{NO_FIELDS, SEVERAL_DOCUMENTS};

pub const FORMAT: Format = Format {
    word: "crewai",
    rows: &[
        ("$name", Field("display_name"), As::Text),
        ("role", Field("role"), As::Text),
        ("goal", Field("description"), As::Text),
        ("backstory", Field("persona_prompt"), As::Text),
        ("llm", Field("model"), As::Model("model")),
        ("function_calling_llm", Kept, As::Any),
        ("tools", Definition("tools"), As::WordList),
        ("max_iter", Kept, As::Any),
        ("max_rpm", Kept, As::Any),
        ("max_execution_time", Kept, As::Any),
        ("max_tokens", Kept, As::Any),
        ("allow_delegation", Kept, As::Any),
        ("cache", Kept, As::Any),
        ("mcps", Kept, As::Any),
        ("skills", Definition("skills"), As::WordList),
        ("memory", Kept, As::Any),
        ("settings", Kept, As::Any),
    ],
    requires: &["role", "goal", "backstory"],
    prefers_jsonc: true,
    files: &[".yaml", ".yml", ".jsonc", ".json"],
    directories: &[],
    home: None,
    unique: Some("$name"),
    unversioned: &[],
    read,
    write,
};

/// PyYAML reads these files.
pub const SCALARS: Scalars = Scalars::Old(&["role", "goal", "backstory", "llm", "function_calling_llm"]);

/// Under which values are kept that the settings overrule.
const OVERRULED: &str = "$overruled";

/// The texts that an agent of CrewAI has.
const TEXTS: [&str; 3] = ["role", "goal", "backstory"];

fn read(source: &Source<'_>, reading: &mut Reading) {
    if source.has_end(".yaml") || source.has_end(".yml") {
        return yaml(source, reading);
    }
    match from_json(source.path, source.text) {
        Ok(node) if is_agent(&node) => {
            let mut entries = node.entries().to_vec();
            // The settings count, and not what is beside them.
            let mut overruled = Vec::new();
            for setting in settings(&node).filter(|setting| is_mapped(&setting.key)) {
                overruled.extend(entries.extract_if(.., |entry| entry.key == setting.key));
                entries.push(setting.clone());
            }
            entries.insert(0, Entry::new("$name", Node::text(source.stem())));
            let mut record = Record::new(source.path, node.place, entries, source.stem());
            record.beside.push(Entry::new("$file", Node::text(source.relative)));
            for entry in &overruled {
                let message = format!("{} of the settings counts, and not this one", entry.key);
                reading.warnings.push(Problem::new(source.path, entry.place, message));
            }
            if !overruled.is_empty() {
                record.beside.push(Entry::new(OVERRULED, Node::map(overruled)));
            }
            reading.records.push(record);
        }
        Ok(_) => reading.skip(source, "no agent, which has a role, a goal or a backstory"),
        Err(problem) => unreadable(source, problem, reading),
    }
}

/// A file that cannot be parsed. One of a directory may be a template or a fixture of something else: without a word that
/// agents have, it is skipped.
fn unreadable(source: &Source<'_>, problem: Problem, reading: &mut Reading) {
    match source.path != source.root && !TEXTS.iter().any(|key| source.text.contains(key)) {
        true => reading.skip(source, format!("line {}: {}", problem.place.line, problem.message)),
        false => reading.problems.push(problem),
    }
}

fn is_agent(node: &Node) -> bool {
    let has = |key: &str| node.get(key).is_some() || settings(node).any(|setting| setting.key == key);
    TEXTS.into_iter().any(has)
}

fn settings(agent: &Node) -> impl Iterator<Item = &Entry> {
    agent.get("settings").map(Node::entries).unwrap_or_default().iter()
}

/// Whether a key has a place outside of the format's own part.
fn is_mapped(key: &str) -> bool {
    FORMAT.rows.iter().any(|(row, to, _)| *row == key && *to != Kept)
}

/// Moves the values of settings back into them.
fn into_settings(entries: &mut Vec<Entry>) {
    let Some(at) = entries.iter().position(|entry| entry.key == "settings") else {
        return;
    };
    let mut settings = entries.remove(at);
    if let Some(members) = settings.node.entries_mut() {
        let keys: Vec<_> = members.iter().map(|member| member.key.clone()).collect();
        for key in keys.into_iter().filter(|key| is_mapped(key)) {
            match take(entries, &key) {
                Some(node) => put(members, &key, node),
                None => members.retain(|member| member.key != key),
            }
        }
    }
    entries.push(settings);
}

fn yaml(source: &Source<'_>, reading: &mut Reading) {
    let agents = match from_shared_yaml(source.path, source.text, (1, SCALARS), &mut reading.warnings) {
        Ok(agents) => agents,
        Err(problem) if [NO_FIELDS, SEVERAL_DOCUMENTS].contains(&&*problem.message) => {
            return match source.path == source.root {
                true => reading.problems.push(Problem {
                    message: "must be one YAML document with the agents by their names".to_owned(),
                    ..problem
                }),
                false => reading.skip(source, "no agents by their names in one YAML document"),
            };
        }
        Err(problem) => return unreadable(source, problem, reading),
    };
    if agents.is_empty() {
        return reading.skip(source, "no agents in it");
    }
    for agent in agents {
        if !is_agent(&agent.node) {
            let reason = format!(
                "line {}: {} is no agent, which has a role, a goal or a backstory",
                agent.place.line, agent.key
            );
            reading.skip(source, reason);
            continue;
        }
        let mut entries = agent.node.entries().to_vec();
        entries.insert(0, Entry::new("$name", Node::text(&*agent.key)));
        let mut record = Record::new(source.path, agent.place, entries, agent.key);
        if source.relative != "agents.yaml" {
            record.beside.push(Entry::new("$yaml", Node::text(source.relative)));
        }
        reading.records.push(record);
    }
}

/// One YAML file for the agents that were in one, and a JSON file for each of the others.
fn write(agents: Vec<Written>, _: &mut NotHeld) -> Vec<File> {
    let mut files: Vec<File> = Vec::new();
    for mut agent in agents {
        let name = take(&mut agent.entries, "$name")
            .and_then(|node| node.scalar())
            .unwrap_or_else(|| agent.agent_id.clone());
        let own = agent
            .beside("$file")
            .and_then(Node::as_text)
            .and_then(|file| [".jsonc", ".json"].into_iter().find(|end| file.ends_with(end)));
        if let Some(end) = own {
            into_settings(&mut agent.entries);
            let overruled = agent.beside(OVERRULED).map(Node::entries).unwrap_or_default().to_vec();
            for entry in overruled {
                put(&mut agent.entries, &entry.key, entry.node);
            }
            let path = agent.path(end);
            files.push(File::new(path, Node::map(agent.entries).pretty(), Holds::Agent));
            continue;
        }
        let yaml = to_yaml(&[Entry::new(name, Node::map(agent.entries.clone()))]);
        let named = agent.beside("$yaml").and_then(Node::as_text).map(PathBuf::from);
        let is_yaml = |path: &PathBuf| {
            let is_end = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
            is_end && is_allowed(path, agent.directories)
        };
        let path = named.filter(is_yaml).unwrap_or_else(|| PathBuf::from("agents.yaml"));
        match files.iter_mut().find(|file| file.path == path) {
            Some(file) => {
                file.text.push('\n');
                file.text.push_str(&yaml);
            }
            None => files.push(File::new(path, yaml, Holds::Names)),
        }
    }
    files
}
