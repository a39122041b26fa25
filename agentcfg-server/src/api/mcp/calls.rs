//! The implementations of the tools.

use std::collections::HashMap;

use agentcfg_core::model::{
    AgentConfig, AgentFilter, AgentPatch, AgentState, AuditEntry, AuditFilter, Message, NewAgent, Precondition,
    StatusReport, Tagged, VersionSelector, VersionedAgent, WorkspaceId,
};
use agentcfg_core::validate::{DEFAULT_LIMIT, MAX_LIMIT, quoted};
use agentcfg_core::{AgentCfg, Caller, Error, ErrorKind};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::json::object;
use super::persona_edits::PersonaEdits;

/// The fields of an agent in a list. The others may be long, and the context of a model is short.
const LISTED: [&str; 8] = [
    "agent_id",
    "display_name",
    "agent_type",
    "role",
    "model",
    "is_active",
    "created_at",
    "updated_at",
];

/// The length of a list's entries, in bytes, from which the rest goes on the next page.
const LONGEST_LIST: usize = 512 << 10;

/// The greatest length of an entry's changes that are listed with their values, in bytes.
const LONGEST_CHANGES: usize = 64 << 10;

/// How many names of changed fields replace the values at most.
const MOST_NAMES: usize = 200;

/// The advice for an argument that is null.
pub(super) const LEAVE_OUT: &str = "leave it out";

/// The answer to an etag that is not the current one.
const STALE: &str = "etag is not the current one, the agent has changed: read it again with get_agent";

/// The field that [`PersonaEdits`] change.
const PERSONA: &str = "persona_prompt";

/// Why a call has no structured result. The model gets this text.
pub(super) struct ToolError(pub(super) String);

impl From<String> for ToolError {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        if matches!(error.kind(), ErrorKind::Internal | ErrorKind::Unavailable) {
            tracing::error!(?error, "a tool failed");
        }
        if error.current_tag().is_some() {
            // Without the current one: with it, a model would overwrite a change that it has not read.
            return Self(STALE.to_owned());
        }
        Self(error.message().to_owned())
    }
}

/// The structured result of a call.
pub(super) type ToolResult = Result<Map<String, Value>, ToolError>;

/// The service and the caller, on which the tools work.
pub(super) struct Tools<'a> {
    pub(super) service: &'a AgentCfg,
    pub(super) caller: &'a Caller,
}

impl Tools<'_> {
    /// The workspace that the call names, or the only one of the caller.
    pub(super) async fn workspace(&self, named: Option<WorkspaceId>) -> Result<WorkspaceId, Error> {
        match named {
            Some(workspace) => Ok(workspace),
            None => self.service.default_workspace(self.caller).await,
        }
    }

    /// The caller, with the message for a change.
    pub(super) fn because(&self, message: Option<Message>) -> Caller {
        self.caller.with_message(message)
    }

    pub(super) async fn list_agents(&self, mut arguments: Arguments) -> ToolResult {
        let named = arguments.workspace();
        let state: AgentState = arguments.word("state").unwrap_or_default();
        let (limit, offset) = page(&mut arguments);
        arguments.finish()?;
        let workspace = self.workspace(named).await?;
        let filter = AgentFilter::default()
            .state(state)
            .offset(offset)
            .limit(u32::try_from(limit).ok());
        let list = self.service.list_agents(self.caller, workspace, &filter).await?.value;
        let (mut agents, mut places) = (Vec::with_capacity(list.len()), HashMap::with_capacity(list.len()));
        for agent in list.decode()? {
            let mut row = filled(&agent)?;
            row.retain(|field, _| LISTED.contains(&field.as_str()));
            places.insert(agent.agent_id, agents.len());
            agents.push(row);
        }
        if state != AgentState::Inactive {
            for entry in self.service.agent_status(self.caller, workspace).await? {
                if let Some(place) = places.get(&entry.agent_id) {
                    agents[*place].extend(filled(&entry)?);
                }
            }
        }
        Ok(with_next("agents", agents, limit, offset))
    }

    pub(super) async fn get_agent(&self, mut arguments: Arguments) -> ToolResult {
        let (named, agent_id) = (arguments.workspace(), arguments.required("agent_id"));
        let (label, version) = (arguments.text("label"), arguments.integer("version", 1..=u64::MAX));
        if label.is_some() && version.is_some() {
            arguments.fault("label and version cannot be given together".to_owned());
        }
        let include = arguments.texts("include");
        if let Some(other) = include.iter().find(|name| *name != DEFINITION) {
            arguments.fault(format!("include must name {DEFINITION} alone, not {}", quoted(other)));
        }
        let definition = match include.is_empty() {
            true => Longest::InAnAnswer,
            false => Longest::Any,
        };
        arguments.finish()?;
        let workspace = self.workspace(named).await?;
        let current = self.service.get_agent(self.caller, workspace, &*agent_id).await?;
        let selector = match (&label, version) {
            (Some(label), _) => VersionSelector::Label(label),
            (None, Some(version)) => VersionSelector::Version(version),
            (None, None) => return shown(&current, definition),
        };
        let wanted = self
            .service
            .get_version(self.caller, Some(workspace), &*agent_id, selector)
            .await?;
        let then = Tagged {
            value: current.value.with_config(wanted.config),
            tag: current.tag,
        };
        // A change of the present state needs the etag of a reading of it.
        let mut members = shown(&VersionedAgent::new(then, wanted.version), definition)?;
        members.shift_remove("etag");
        Ok(members)
    }

    pub(super) async fn list_models(&self, mut arguments: Arguments) -> ToolResult {
        let named = arguments.workspace();
        arguments.finish()?;
        let workspace = self.workspace(named).await?;
        let models = self.service.list_models(self.caller, workspace).await?;
        let models = models.iter().map(filled).collect::<Result<Vec<_>, _>>()?;
        Ok(object(json!({ "models": models })))
    }

    pub(super) async fn search_audit_log(&self, mut arguments: Arguments) -> ToolResult {
        let named = arguments.workspace();
        let (limit, offset) = page(&mut arguments);
        let filter = AuditFilter::default()
            .actor(arguments.text("actor"))
            .action(arguments.text("action"))
            .target_type(arguments.text("target_type"))
            .target_id(arguments.text("target_id"))
            .since(arguments.word("since"))
            .until(arguments.word("until"))
            .before(arguments.integer("before", 1..=u64::MAX))
            .offset(offset)
            .limit(u32::try_from(limit).ok());
        arguments.finish()?;
        let workspace = self.workspace(named).await?;
        let mut pages = self.service.audit_pages(self.caller, workspace, &filter).await?;
        let (mut entries, mut length) = (Vec::new(), 0);
        while let Some(page) = pages.next().await? {
            for entry in page {
                let entry = brief(entry)?;
                length += json_length(&entry)?;
                if length > LONGEST_LIST && !entries.is_empty() {
                    let next = offset.saturating_add(entries.len() as u64);
                    return Ok(list("entries", entries, Some(next)));
                }
                entries.push(entry);
            }
        }
        Ok(with_next("entries", entries, limit, offset))
    }

    pub(super) async fn create_agent(&self, mut arguments: Arguments) -> ToolResult {
        let (named, message) = (arguments.workspace(), arguments.message());
        let mut body = arguments.body();
        // The other fields are checked before the default workspace is read.
        let placeholder = || json!("00000000-0000-0000-0000-000000000000");
        body.insert(
            "workspace_id".to_owned(),
            named.map_or_else(placeholder, |id| json!(id)),
        );
        let read = |json: &[u8]| NewAgent::from_json_within(json, self.service.limits());
        let new = arguments.finish_with(body, &[], LEAVE_OUT, read)?;
        let workspace_id = self.workspace(named).await?;
        let new = new.workspace_id(workspace_id);
        let created = self.service.create_agent(&self.because(message), new).await?;
        shown(&created, Longest::InAnAnswer)
    }

    pub(super) async fn update_agent(&self, mut arguments: Arguments) -> ToolResult {
        let (named, agent_id) = (arguments.workspace(), arguments.required("agent_id"));
        let (etag, message) = (arguments.required("etag"), arguments.message());
        let clear = arguments.texts("clear");
        let edits = PersonaEdits::take(&mut arguments);
        let body = arguments.body();
        if !edits.is_empty() && (body.contains_key(PERSONA) || clear.iter().any(|field| field == PERSONA)) {
            arguments.fault(format!("persona_edits and {PERSONA} cannot be given together"));
        }
        let mut cleared = Vec::new();
        for field in &clear {
            if AgentConfig::nullable().all(|name| name != field) {
                let names: Vec<&str> = AgentConfig::nullable().collect();
                arguments.fault(format!("clear must name {}, not {field}", names.join(", ")));
            } else if body.contains_key(field) {
                arguments.fault(format!("{field} is given, and named in clear"));
            } else {
                cleared.push(field.as_str());
            }
        }
        let read = |json: &[u8]| AgentPatch::from_json_within(json, self.service.limits());
        let mut patch = arguments.finish_with(body, &cleared, "name it in clear", read)?;
        let condition = condition(Some(&etag));
        if !edits.is_empty() {
            let workspace = self.workspace(named).await?;
            let current = self.service.get_agent(self.caller, workspace, &*agent_id).await?;
            // The edits are those of a text that the caller has read.
            if !condition.is_met_by(current.tag) {
                return Err(ToolError(STALE.to_owned()));
            }
            let persona = current.value.persona_prompt.as_deref().unwrap_or_default();
            patch = patch.persona_prompt(edits.apply(persona)?);
        }
        let updated = self
            .service
            .update_agent(&self.because(message), named, &*agent_id, patch, &condition)
            .await?;
        shown(&updated, Longest::InAnAnswer)
    }

    pub(super) async fn deactivate_agent(&self, mut arguments: Arguments) -> ToolResult {
        let (named, agent_id) = (arguments.workspace(), arguments.required("agent_id"));
        let (etag, message) = (arguments.text("etag"), arguments.message());
        arguments.finish()?;
        let condition = condition(etag.as_deref());
        self.service
            .delete_agent(&self.because(message), named, &*agent_id, &condition)
            .await?;
        Ok(object(json!({"agent_id": agent_id, "is_active": false})))
    }

    pub(super) async fn restore_agent(&self, mut arguments: Arguments) -> ToolResult {
        let (named, agent_id) = (arguments.workspace(), arguments.required("agent_id"));
        let (etag, message) = (arguments.text("etag"), arguments.message());
        arguments.finish()?;
        let condition = condition(etag.as_deref());
        let restored = self
            .service
            .restore_agent(&self.because(message), named, &*agent_id, &condition)
            .await?;
        shown(&restored, Longest::InAnAnswer)
    }

    pub(super) async fn report_status(&self, mut arguments: Arguments) -> ToolResult {
        let (named, agent_id) = (arguments.workspace(), arguments.required("agent_id"));
        let body = arguments.body();
        let report = arguments.finish_with(body, &[], LEAVE_OUT, StatusReport::from_json)?;
        let reported = self
            .service
            .report_status(self.caller, named, &*agent_id, report)
            .await?;
        filled(&reported)
    }
}

fn page(arguments: &mut Arguments) -> (u64, u64) {
    let limit = arguments.integer("limit", 1..=MAX_LIMIT).unwrap_or(DEFAULT_LIMIT);
    (limit, arguments.integer("offset", 0..=u64::MAX).unwrap_or_default())
}

/// A list, with the offset of the next page if there may be one.
fn with_next(name: &str, rows: Vec<Map<String, Value>>, limit: u64, offset: u64) -> Map<String, Value> {
    let is_full = rows.len() as u64 == limit;
    list(name, rows, is_full.then(|| offset.saturating_add(limit)))
}

pub(super) fn list(name: &str, rows: Vec<Map<String, Value>>, next_offset: Option<u64>) -> Map<String, Value> {
    let mut list = object(json!({ name: rows }));
    if let Some(next) = next_offset {
        list.insert("next_offset".to_owned(), json!(next));
    }
    list
}

/// An entry whose long changes are replaced by the names of the changed fields.
fn brief(mut entry: AuditEntry) -> Result<Map<String, Value>, ToolError> {
    if json_length(&entry.changes)? <= LONGEST_CHANGES {
        return filled(&entry);
    }
    let changes = std::mem::take(&mut entry.changes);
    let count = changes.len();
    let names: Vec<String> = changes.into_keys().take(MOST_NAMES).collect();
    let mut shown = filled(&entry)?;
    shown.shift_remove("changes");
    shown.insert("changed_fields".to_owned(), json!(names));
    shown.insert("changed_fields_count".to_owned(), json!(count));
    Ok(shown)
}

/// The length of a JSON text, in bytes.
fn json_length(value: &impl Serialize) -> Result<usize, ToolError> {
    let mut counted = Counted(0);
    serde_json::to_writer(&mut counted, value).map_err(|error| ToolError(error.to_string()))?;
    Ok(counted.0)
}

/// Counts the bytes that are written to it.
struct Counted(usize);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The condition of an etag, with or without the quotes of HTTP.
pub(super) fn condition(etag: Option<&str>) -> Precondition {
    match etag {
        None => Precondition::None,
        Some(etag) => Precondition::matches(etag.trim_matches('"')),
    }
}

/// A record without its null fields.
pub(super) fn filled<T: Serialize>(record: &T) -> Result<Map<String, Value>, ToolError> {
    let value = serde_json::to_value(record).map_err(|error| ToolError(error.to_string()))?;
    let mut members = object(value);
    members.retain(|_, member| !member.is_null());
    Ok(members)
}

/// The field of an agent that may be long.
const DEFINITION: &str = "definition";

/// The greatest length in bytes of a definition that an answer shows unless it is asked for.
const LONG_DEFINITION: usize = 16 << 10;

/// Which definitions an answer shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Longest {
    /// Up to [`LONG_DEFINITION`]; in place of a longer one there is a note.
    InAnAnswer,
    Any,
}

pub(super) fn shown(agent: &VersionedAgent, longest: Longest) -> ToolResult {
    let mut members = filled(&agent.value)?;
    if let Some(definition) = &agent.value.definition
        && longest == Longest::InAnAnswer
        && definition.as_str().len() > LONG_DEFINITION
    {
        let bytes = definition.as_str().len();
        members.remove(DEFINITION);
        let note = format!("The definition has {bytes} bytes. get_agent with include [\"{DEFINITION}\"] returns it.");
        members.insert("definition_note".to_owned(), json!(note));
    }
    members.insert("version".to_owned(), json!(agent.version));
    members.insert("etag".to_owned(), json!(agent.tag.to_string()));
    Ok(members)
}
