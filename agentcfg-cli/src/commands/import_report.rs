//! The report of an import.

use std::path::PathBuf;

use agentcfg_core::validate::MAX_PERSONA_PROMPT;
use serde::Serialize;

use super::context::Context;
use crate::agent_file::Problem;
use crate::failure::{Result, count};
use crate::import::{Imported, Reading, Skipped, Went};
use crate::output::printable_lines;

/// How many rows of one kind the text shows. The JSON has all.
const SHOWN: usize = 200;

/// Where the agents of an import go.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Target {
    #[default]
    Report,
    Files,
    Workspace,
}

/// What an import did, or would do.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub format: String,
    #[serde(skip)]
    pub target: Target,
    pub dry_run: bool,
    pub agents: Vec<AgentRow>,
    /// Files that were written, with `--out`.
    pub written: Vec<PathBuf>,
    pub unchanged: usize,
    /// Versions that were made, with `--apply`.
    pub versions_made: usize,
    /// Labels that were set, as `agent:label`.
    pub labels_set: Vec<String>,
    /// How often each key of the source went to each place.
    pub went: Vec<WentRow>,
    pub too_long: Vec<TooLong>,
    pub warnings: Vec<Row>,
    pub problems: Vec<Row>,
    pub skipped: Vec<Skipped>,
    /// Files whose ends are not those of the format.
    pub other_files: usize,
}

#[derive(Debug, Serialize)]
pub struct AgentRow {
    pub agent_id: String,
    pub name: String,
    pub file: PathBuf,
    pub line: usize,
    pub versions: usize,
    pub labels: Vec<String>,
    /// What becomes of it: `create`, `change`, `restore`, `unchanged` or `refused`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<&'static str>,
    /// The fields that differ from what is there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
}

impl AgentRow {
    /// What becomes of the agent, as text.
    fn outcome(&self) -> String {
        match (self.action, self.changes.is_empty()) {
            (None, _) => String::new(),
            (Some(action), true) => format!(": {action}"),
            (Some(action), false) => format!(": {action} {}", self.changes.join(", ")),
        }
    }
}

#[derive(Debug, Serialize)]
pub struct WentRow {
    pub key: String,
    pub to: String,
    pub count: usize,
}

#[derive(Debug, Serialize)]
pub struct TooLong {
    pub agent_id: String,
    pub field: &'static str,
    pub characters: usize,
    pub limit: usize,
    pub setting: &'static str,
}

/// A problem or a warning with its place.
#[derive(Debug, Serialize)]
pub struct Row {
    pub file: PathBuf,
    pub line: usize,
    pub column: usize,
    pub message: String,
}

impl From<&Problem> for Row {
    fn from(problem: &Problem) -> Self {
        Self {
            file: problem.file.clone(),
            line: problem.place.line,
            column: problem.place.column,
            message: problem.message.clone(),
        }
    }
}

impl Report {
    /// What was read, before anything is written.
    pub fn of(format: &str, agents: &[Imported], went: Went, reading: Reading) -> Self {
        let mut rows: Vec<AgentRow> = Vec::new();
        for agent in agents {
            let row = match rows.last_mut() {
                Some(row) if row.agent_id == agent.agent_id => row,
                _ => {
                    rows.push(AgentRow {
                        agent_id: agent.agent_id.clone(),
                        name: agent.name.clone(),
                        file: agent.file.clone(),
                        line: agent.place.line,
                        versions: 0,
                        labels: Vec::new(),
                        action: None,
                        changes: Vec::new(),
                    });
                    let last = rows.len() - 1;
                    &mut rows[last]
                }
            };
            row.versions += 1;
            row.labels.extend(agent.labels.iter().cloned());
        }
        let went = went.into_iter().map(|((key, to), count)| WentRow { key, to, count });
        Self {
            format: format.to_owned(),
            agents: rows,
            went: went.collect(),
            warnings: reading.warnings.iter().map(Row::from).collect(),
            problems: reading.problems.iter().map(Row::from).collect(),
            skipped: reading.skipped,
            other_files: reading.other_files,
            ..Self::default()
        }
    }

    /// Notes what becomes of an agent.
    pub fn did(&mut self, agent_id: &str, action: &'static str, changes: Vec<String>) {
        if let Some(row) = self.agents.iter_mut().find(|row| row.agent_id == agent_id) {
            (row.action, row.changes) = (Some(action), changes);
        }
    }

    pub fn print(&self, context: &mut Context) -> Result<()> {
        context.output.show(self, |output| {
            let place = |row: &Row| format!("{}:{}:{}: {}", row.file.display(), row.line, row.column, row.message);
            let problems = self.problems.iter().map(|row| format!("problem  {}", place(row)));
            let warnings = self.warnings.iter().map(|row| format!("warning  {}", place(row)));
            let skipped = self
                .skipped
                .iter()
                .map(|one| format!("skipped  {}: {}", one.file.display(), one.reason));
            let long = self.too_long.iter().map(|one| {
                format!(
                    "too long {}: {} has {} characters, and the limit is {}",
                    one.agent_id, one.field, one.characters, one.limit
                )
            });
            let agents = self.agents.iter().map(|row| {
                let versions = match row.versions {
                    1 => String::new(),
                    versions => format!(", {versions} versions"),
                };
                let labels = match row.labels.is_empty() {
                    true => String::new(),
                    false => format!(", labels {}", row.labels.join(" ")),
                };
                format!(
                    "agent    {} ({}){versions}{labels}{}",
                    row.agent_id,
                    row.name,
                    row.outcome()
                )
            });
            let went = self
                .went
                .iter()
                .map(|row| format!("{:5}  {} -> {}", row.count, row.key, row.to));
            let parts: [Box<dyn Iterator<Item = String>>; 6] = [
                Box::new(agents),
                Box::new(went),
                Box::new(skipped),
                Box::new(warnings),
                Box::new(long),
                Box::new(problems),
            ];
            for lines in parts {
                let lines: Vec<String> = lines.collect();
                for line in lines.iter().take(SHOWN) {
                    output.line(printable_lines(line))?;
                }
                if lines.len() > SHOWN {
                    output.line(format_args!(
                        "         … and {} more; `--json` has all",
                        lines.len() - SHOWN
                    ))?;
                }
            }
            Ok(())
        })?;
        if !context.output.is_json() {
            self.summary(context);
        }
        Ok(())
    }

    /// How long the setting must allow prompts to be, and how many prompts no setting helps.
    fn too_long_notes(&self) -> Vec<String> {
        let lengths = self.too_long.iter().map(|one| one.characters);
        let (within, beyond): (Vec<usize>, Vec<usize>) =
            lengths.partition(|characters| *characters <= MAX_PERSONA_PROMPT as usize);
        let needed = within.iter().max().map(|needed| {
            format!(
                "{} too long for the server. Set max_persona_prompt in its configuration to at least {needed}.",
                count(within.len(), "prompt")
            )
        });
        let shortened = (!beyond.is_empty()).then(|| {
            format!(
                "{} longer than {MAX_PERSONA_PROMPT} characters, the most that max_persona_prompt allows. Shorten them.",
                count(beyond.len(), "prompt")
            )
        });
        needed.into_iter().chain(shortened).collect()
    }

    fn summary(&self, context: &mut Context) {
        let versions: usize = self.agents.iter().map(|row| row.versions).sum();
        let labels: usize = self.agents.iter().map(|row| row.labels.len()).sum();
        let mut parts = vec![
            count(self.agents.len(), "agent"),
            count(versions, "version"),
            count(labels, "label"),
            format!("{} skipped", self.skipped.len()),
            count(self.warnings.len(), "warning"),
            count(self.problems.len(), "problem"),
        ];
        if self.other_files > 0 {
            parts.push(format!("{} of other kinds not read", count(self.other_files, "file")));
        }
        context.output.note(format_args!("Read: {}.", parts.join(", ")));
        if self.agents.is_empty() && self.problems.is_empty() {
            context
                .output
                .note(format_args!("No agents of {} were found.", self.format));
        }
        for note in self.too_long_notes() {
            context.output.note(note);
        }
        if !self.problems.is_empty() {
            let is_kept = self.problems.iter().any(|row| row.message.contains("--overwrite"));
            context.output.note(match is_kept {
                true => "What was changed since stays as it is, and sources with problems were left out.",
                false => "Sources with problems were left out. Change them and run the command again.",
            });
        }
        let done = match (self.dry_run, self.target) {
            (true, _) | (_, Target::Report) => "Nothing was changed.".to_owned(),
            (false, Target::Files) => format!(
                "{} written, {} unchanged.",
                count(self.written.len(), "file"),
                self.unchanged
            ),
            (false, Target::Workspace) => format!(
                "{} made, {} unchanged, {} set.",
                count(self.versions_made, "version"),
                count(self.unchanged, "agent"),
                count(self.labels_set.len(), "label")
            ),
        };
        context.output.note(done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_is_named_for_the_prompts_that_it_helps() {
        let notes = |lengths: &[usize]| {
            let too_long = lengths.iter().map(|characters| TooLong {
                agent_id: "a".to_owned(),
                field: "persona_prompt",
                characters: *characters,
                limit: 5000,
                setting: "max_persona_prompt",
            });
            let report = Report {
                too_long: too_long.collect(),
                ..Report::default()
            };
            report.too_long_notes()
        };
        let needed = "2 prompts too long for the server. Set max_persona_prompt in its configuration to at least 7000.";
        let beyond = "1 prompt longer than 200000 characters, the most that max_persona_prompt allows. Shorten them.";
        assert_eq!(notes(&[6000, 7000]), [needed]);
        assert_eq!(notes(&[6000, 250_000, 7000]), [needed, beyond]);
        assert_eq!(notes(&[250_000]), [beyond]);
        assert_eq!(notes(&[]), [""; 0]);
    }
}
