//! Reading an agent's file, with all of its problems.

use std::collections::HashMap;
use std::path::Path;

use agentcfg_core::validate::{Fault, shown};

use super::conflicts::{Markers, UNRESOLVED, conflicts_of_body, first_marker};
use super::fault_places::{json_object, json_text, json_value, place_of, place_of_unknown};
use super::yaml::{self, Entry, Yaml};
use super::{EXTENSION, FENCE, Fields, Place, Problem};
use agentcfg_client::model::{AgentId, AgentSpec};

/// Reads the file of an agent. Conflict markers in front matter are always a problem, those in the persona unless they
/// are allowed.
///
/// # Errors
///
/// Every problem of the file, in the order of the lines.
pub fn read(path: &Path, bytes: &[u8], markers: Markers) -> Result<AgentSpec, Vec<Problem>> {
    let mut problems = Vec::new();
    let agent_id = agent_id(path).map_err(|problem| problems.push(problem)).ok();
    let parts = front_matter(path, bytes).map_err(|problem| problems.push(problem));
    let spec = parts.ok().and_then(|parts| {
        if markers == Markers::Refuse {
            refuse_conflicts_of_body(path, &parts, &mut problems);
        }
        content(path, agent_id.as_ref(), parts, &mut problems)
    });
    problems.sort_by_key(|problem| problem.place);
    match spec {
        Some(spec) if problems.is_empty() => Ok(spec),
        _ => Err(problems),
    }
}

/// Whether a file is that of an agent: it has front matter with a field that each agent has, and that names no other
/// agent. A page with a title, or an agent of another tool, is none.
pub fn is_agent_file(path: &Path, bytes: &[u8]) -> bool {
    let is_own = |entry: &Entry| matches!(entry.key.as_str(), "agent_id" | "display_name");
    entries_of_agent(path, bytes).is_some_and(|entries| entries.iter().any(is_own))
}

/// Whether a file is meant to be that of an agent: it has front matter, and names no other agent.
pub fn looks_like_agent_file(path: &Path, bytes: &[u8]) -> bool {
    entries_of_agent(path, bytes).is_some_and(|entries| !entries.is_empty())
}

/// The front matter of a file that is named like an agent, and names no other one.
fn entries_of_agent(path: &Path, bytes: &[u8]) -> Option<Vec<Entry>> {
    let (agent_id, Parts { entries, .. }) = (agent_id(path).ok()?, front_matter(path, bytes).ok()?);
    let is_named = |entry: &Entry| matches!(&entry.node.value, Yaml::Scalar { text, .. } if *text == *agent_id);
    let mut named = entries.iter().filter(|entry| entry.key == "agent_id");
    named.all(is_named).then_some(entries)
}

/// The agent identifier in the name of a file.
fn agent_id(path: &Path) -> Result<AgentId, Problem> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = name.strip_suffix(EXTENSION).and_then(|stem| stem.strip_suffix('.'));
    stem.and_then(|stem| stem.parse().ok()).ok_or_else(|| {
        let rule = format!(
            "the name of the file must be <agent_id>.{EXTENSION}, and the agent_id 1 to 50 of a-z, 0-9, - and _"
        );
        Problem::of(path, rule)
    })
}

/// The two parts of a file.
struct Parts<'a> {
    entries: Vec<Entry>,
    /// The lines of the front matter, of which the first is line 2 of the file.
    yaml: &'a str,
    persona: Option<&'a str>,
    /// The first line of the persona.
    body: Place,
}

/// The text of a file.
pub(crate) fn utf8<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a str, Problem> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let line = before.split('\n').next_back().unwrap_or_default();
        let place = Place {
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
        };
        Problem::new(path, place, "must be UTF-8")
    })
}

fn front_matter<'a>(path: &Path, bytes: &'a [u8]) -> Result<Parts<'a>, Problem> {
    let text = utf8(path, bytes)?;
    if text.starts_with('\u{feff}') {
        return Err(Problem::of(path, "must not start with a byte order mark"));
    }
    // A file that both sides have added is one conflict.
    refuse_conflicts(path, text.split('\n').next().unwrap_or_default(), 1)?;
    let FrontMatter { yaml, body, body_line } = FrontMatter::split(path, text)?
        .ok_or_else(|| Problem::of(path, "must start with a line of three hyphens and front matter"))?;
    refuse_conflicts(path, yaml, 2)?;
    let entries = yaml::parse(yaml, 2).map_err(|malformed| Problem::new(path, malformed.place, malformed.message))?;
    Ok(Parts {
        entries,
        yaml,
        // One line feed belongs to the file.
        persona: (!body.is_empty()).then(|| body.strip_suffix('\n').unwrap_or(body)),
        body: Place {
            line: body_line,
            column: 1,
        },
    })
}

/// A text split at the lines around its front matter.
pub(crate) struct FrontMatter<'a> {
    pub(crate) yaml: &'a str,
    pub(crate) body: &'a str,
    /// The number of the first line of the body.
    pub(crate) body_line: usize,
}

impl<'a> FrontMatter<'a> {
    /// Splits a text; `None` where it does not begin with a line of three hyphens.
    pub(crate) fn split(path: &Path, text: &'a str) -> Result<Option<Self>, Problem> {
        let mut lines = text.split_inclusive('\n');
        let Some(opening) = lines.next().filter(|line| is_fence(line)) else {
            return Ok(None);
        };
        let (mut end, mut line) = (opening.len(), 2);
        for next in lines {
            if is_fence(next) {
                return Ok(Some(Self {
                    yaml: &text[opening.len()..end],
                    body: &text[end + next.len()..],
                    body_line: line + 1,
                }));
            }
            end += next.len();
            line += 1;
        }
        let place = Place { line, column: 1 };
        let message = "the front matter must end with a line of three hyphens";
        Err(Problem::new(path, place, message))
    }
}

fn is_fence(line: &str) -> bool {
    line.trim_end_matches(['\n', '\r', ' ', '\t']) == FENCE
}

/// The place in a file of what a fault names that the server has found; the start where the file has no such field, or
/// cannot be read any more.
pub fn place_of_fault(path: &Path, bytes: &[u8], fault: &str) -> Place {
    let field = fault.split(" must ").next().unwrap_or_default();
    front_matter(path, bytes).map_or(Place::START, |parts| place_in(field, &parts.entries, parts.body))
}

/// The place of a field in a file whose body begins at this place.
fn place_in(field: &str, entries: &[Entry], body: Place) -> Place {
    let absent = if field == Fields::BODY { body } else { Place::START };
    place_of(field, entries).unwrap_or(absent)
}

/// Refuses a text with conflict markers, which begins at this line of the file, with a message that says so.
fn refuse_conflicts(path: &Path, text: &str, first_line: usize) -> Result<(), Problem> {
    match first_marker(text) {
        None => Ok(()),
        Some(at) => {
            let place = Place {
                line: first_line + at,
                column: 1,
            };
            Err(Problem::new(path, place, UNRESOLVED))
        }
    }
}

fn refuse_conflicts_of_body(path: &Path, parts: &Parts<'_>, problems: &mut Vec<Problem>) {
    for at in conflicts_of_body(parts.persona.unwrap_or_default()) {
        let place = Place {
            line: parts.body.line + at,
            column: 1,
        };
        let message =
            format!("{UNRESOLVED}. If they belong to the persona, indent them, or use --allow-conflict-markers");
        problems.push(Problem::new(path, place, message));
    }
}

/// Checks the parts as the body of an apply is checked.
fn content(
    path: &Path,
    agent_id: Option<&AgentId>,
    parts: Parts<'_>,
    problems: &mut Vec<Problem>,
) -> Option<AgentSpec> {
    let Parts {
        entries,
        yaml,
        persona,
        body,
    } = parts;
    let entries = without_repeated(path, "", entries, problems);
    let entries: Vec<Entry> = entries
        .into_iter()
        .filter(|entry| is_field(path, entry, problems))
        .collect();
    let lines: Vec<&str> = yaml.split('\n').collect();
    let mut commented = Vec::new();
    comments_for_values("", &entries, &lines, &mut commented);
    for (name, place) in &commented {
        let message = format!(
            "{} has no value: the # begins a comment; put the value into quotes, or leave the field out",
            shown(name)
        );
        problems.push(Problem::new(path, *place, message));
    }
    // An invalid one is among the faults below.
    let given = entries.iter().find(|entry| entry.key == "agent_id");
    let given = given.and_then(|entry| serde_json::from_str::<AgentId>(&json_value(&entry.node)).ok());
    if let (Some(named), Some(given)) = (agent_id, given)
        && *named != given
    {
        let place = place_of("agent_id", &entries).unwrap_or(Place::START);
        let message = format!("agent_id must be {named}, the name of the file, got {given}");
        problems.push(Problem::new(path, place, message));
    }
    // Required fields that are absent are added at the end: their names differ, and their faults have no place in the
    // file.
    let mut more = Vec::new();
    if entries.iter().all(|entry| entry.key != "agent_id") {
        // An invalid name is already a problem of its own.
        let named = agent_id.map_or("unnamed", |named| named.as_str());
        more.push(format!("\"agent_id\":{}", json_text(named)));
    }
    if let Some(persona) = persona {
        more.push(format!("{}:{}", json_text(Fields::BODY), json_text(persona)));
    }
    let object = json_object(&entries, &more);
    let spec = match AgentSpec::from_json(object.as_bytes()) {
        Ok(spec) => spec.into_inner(),
        Err(invalid) => {
            for fault in invalid.faults() {
                if commented.iter().any(|(name, _)| name == fault.field()) {
                    continue;
                }
                let place = match is_unknown(fault) {
                    true => place_of_unknown(fault.field(), &entries).unwrap_or(Place::START),
                    false => place_in(fault.field(), &entries, body),
                };
                match is_unknown(fault) && fault.field() == "name" {
                    true => problems.push(Problem::new(path, place, NAME)),
                    false => problems.push(Problem::new(path, place, fault)),
                }
            }
            return None;
        }
    };
    Some(spec)
}

/// The message for the key that most other formats of agents have.
const NAME: &str = "name is not a known field (did you mean display_name?)";

fn is_unknown(fault: &Fault) -> bool {
    fault.rule().starts_with("is not a known field")
}

/// Keeps the first of the entries with the same key, in nested maps and lists too.
fn without_repeated(path: &Path, outer: &str, entries: Vec<Entry>, problems: &mut Vec<Problem>) -> Vec<Entry> {
    let mut lines = HashMap::new();
    let mut kept = Vec::new();
    for mut entry in entries {
        let name = format!("{outer}{}", shown(&entry.key));
        if let Some(first) = lines.get(&entry.key) {
            let message = format!("{name} must not appear more than once, see line {first}");
            problems.push(Problem::new(path, entry.place, message));
            continue;
        }
        lines.insert(entry.key.clone(), entry.place.line);
        entry.node.value = once_within(path, &name, entry.node.value, problems);
        kept.push(entry);
    }
    kept
}

/// A value in whose maps each key is there once.
fn once_within(path: &Path, name: &str, value: Yaml, problems: &mut Vec<Problem>) -> Yaml {
    match value {
        Yaml::Map(inner) => Yaml::Map(without_repeated(path, &format!("{name}."), inner, problems)),
        Yaml::List(mut items) => {
            for (i, item) in items.iter_mut().enumerate() {
                let value = std::mem::replace(&mut item.value, Yaml::List(Vec::new()));
                item.value = once_within(path, &format!("{name}[{i}]"), value, problems);
            }
            Yaml::List(items)
        }
        scalar => scalar,
    }
}

/// The comments where values are expected, at every level, with the paths of their keys.
fn comments_for_values(within: &str, entries: &[Entry], lines: &[&str], found: &mut Vec<(String, Place)>) {
    for entry in entries {
        let path = match within {
            "" => entry.key.clone(),
            within => format!("{within}.{}", entry.key),
        };
        match &entry.node.value {
            Yaml::Map(entries) => comments_for_values(&path, entries, lines, found),
            Yaml::List(items) => {
                for (i, item) in items.iter().enumerate() {
                    if let Yaml::Map(entries) = &item.value {
                        comments_for_values(&format!("{path}[{i}]"), entries, lines, found);
                    }
                }
            }
            Yaml::Scalar { .. } => found.extend(comment_for_value(entry, lines).map(|place| (path, place))),
        }
    }
}

/// The place of a comment where a value is expected, as in `color: #7c3aed`: the field would silently be absent.
fn comment_for_value(entry: &Entry, lines: &[&str]) -> Option<Place> {
    let Yaml::Scalar { text, is_plain: true } = &entry.node.value else {
        return None;
    };
    let Place { line, column } = entry.place;
    let rest: Vec<char> = lines.get(line.checked_sub(2)?)?.chars().collect();
    let rest = rest.get(column - 1..)?;
    let colon = rest.iter().position(|c| *c == ':')?;
    let value = colon + 1 + rest[colon + 1..].iter().position(|c| !c.is_whitespace())?;
    // The parser returns an absent value as `~`.
    (matches!(text.as_str(), "" | "~") && rest[value] == '#').then_some(Place {
        line,
        column: column + value,
    })
}

/// Refuses fields of the API that a file has in another place or not at all.
fn is_field(path: &Path, entry: &Entry, problems: &mut Vec<Problem>) -> bool {
    let message = match entry.key.as_str() {
        Fields::BODY => "persona_prompt is the text after the front matter, not a field in it",
        "workspace_id" => "workspace_id is no field of a file: the credential or --workspace names the workspace",
        _ => return true,
    };
    problems.push(Problem::new(path, entry.place, message));
    false
}
