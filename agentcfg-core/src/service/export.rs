//! Exports: all records of a workspace, one line each.
//!
//! An export shows the state at one revision. The workspace, its members, its sets, its provider keys, its budgets and
//! its webhooks are read first, and again if one of them changed meanwhile; the revision of their snapshot is that of
//! the export. All else is read in pieces while the reader takes them, and [`LogSince`] takes back the later changes of
//! each piece. Entries of the log never change, and reports of a status belong to no revision.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::Serialize;

use super::blocking::{LONG, blocking_if};
use super::change::Change;
use super::chunked_reads::{self, Chunks};
use super::log_since::LogSince;
use super::records::{
    self, Encoded, Entity, Entries, Scanned, StoredEntry, StoredLabel, StoredLabels, StoredProviderKey, StoredStatus,
    StoredVersion, StoredWebhook, WebhookState, WorkspaceApiKey,
};
use super::{AgentCfg, Caller};
use crate::error::{Error, ErrorKind};
use crate::model::change_path;
use crate::model::{
    Action, Actor, AgentId, AgentSet, Budget, Epoch, ExportLine, ExportedVersion, Label, Member, Permission,
    ProviderKeyInfo, ReportedStatus, StoredAgent, TargetType, TextId, Webhook, Workspace, WorkspaceId,
};

/// How many times the first records are read at most. Each further time, another writer has changed one of them in
/// between.
const ATTEMPTS: usize = 100;

/// The bytes of lines after which a piece is given to the reader.
const PIECE: usize = 64 << 10;

/// The export of a workspace, in pieces. Each piece is read when it is asked for, so that a slow reader holds nothing
/// in the store.
pub struct Export {
    service: AgentCfg,
    caller: Caller,
    workspace: WorkspaceId,
    revision: u64,
    first: First,
    since: LogSince,
    stage: ExportStage,
    /// The last record that was read in this stage.
    after: Option<Box<str>>,
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export")
            .field("workspace", &self.workspace)
            .field("revision", &self.revision)
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}

/// The records that are read first, in one snapshot.
struct First {
    workspace: Workspace,
    members: Vec<Member>,
    sets: Vec<AgentSet>,
    provider_keys: Vec<ProviderKeyInfo>,
    webhooks: Vec<Webhook>,
    budgets: Vec<Budget>,
}

/// What an export writes next: the kinds of lines, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExportStage {
    Workspace,
    Agents,
    Versions,
    Labels,
    Sets,
    Statuses,
    ApiKeys,
    ProviderKeys,
    Webhooks,
    Budgets,
    Usage,
    Audit,
    Done,
}

impl ExportStage {
    fn next(self) -> Self {
        match self {
            Self::Workspace => Self::Agents,
            Self::Agents => Self::Versions,
            Self::Versions => Self::Labels,
            Self::Labels => Self::Sets,
            Self::Sets => Self::Statuses,
            Self::Statuses => Self::ApiKeys,
            Self::ApiKeys => Self::ProviderKeys,
            Self::ProviderKeys => Self::Webhooks,
            Self::Webhooks => Self::Budgets,
            Self::Budgets => Self::Usage,
            Self::Usage => Self::Audit,
            Self::Audit | Self::Done => Self::Done,
        }
    }
}

impl AgentCfg {
    /// Begins the export of a workspace: all of its records, as lines of JSON.
    ///
    /// The export shows the state at one revision, also while others change the workspace. It holds no hash of an API
    /// key and no provider key. An audit entry says that it was taken.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `workspace:manage` and for an API key.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let mut export = service.export_workspace(&ada, studio).await?;
    /// let mut copy = Vec::new();
    /// while let Some(lines) = export.next().await? {
    ///     copy.extend(lines);
    /// }
    /// let copy = String::from_utf8(copy)?;
    /// assert!(copy.lines().any(|line| line.starts_with(r#"{"kind":"agent","record":{"#)));
    /// # Ok(()) }) }
    /// ```
    pub async fn export_workspace(&self, caller: &Caller, workspace: WorkspaceId) -> Result<Export, Error> {
        caller.user_id()?;
        self.retry_lost_races(|| async {
            let access = self.access(caller, workspace, Permission::WorkspaceManage).await?;
            let (action, id) = (Action::WorkspaceExported, workspace.to_string());
            let change = Change::new(&access, self.now(), action, TargetType::Workspace, id);
            self.apply(change).await?.attempt(())
        })
        .await?;
        for _ in 0..ATTEMPTS {
            // The workspace may have been deleted since.
            self.authorize(caller, workspace, Permission::WorkspaceManage).await?;
            if let Some((first, since, revision)) = self.first_records(workspace).await? {
                return Ok(Export {
                    service: self.clone(),
                    caller: caller.clone(),
                    workspace,
                    revision,
                    first,
                    since,
                    stage: ExportStage::Workspace,
                    after: None,
                });
            }
        }
        let message = "the workspace changes too often to be exported now, try again";
        Err(Error::new(ErrorKind::Unavailable, message))
    }

    /// The records that are read together, and their revision; `None` where one of them was changed or removed in
    /// between.
    async fn first_records(&self, workspace: WorkspaceId) -> Result<Option<(First, LogSince, u64)>, Error> {
        let head = || records::revision(workspace);
        let query = (records::workspace(workspace), head());
        let (members, (found, revision)) = self.scan_with(Entries::in_workspace(workspace), query).await?;
        let (sets, _) = self.scan_with(Entries::in_workspace(workspace), head()).await?;
        let (keys, _) = self
            .scan_with(Entries::<StoredProviderKey>::in_workspace(workspace), head())
            .await?;
        let (hooks, _) = self
            .scan_with(Entries::<StoredWebhook>::in_workspace(workspace), head())
            .await?;
        let budgets = self.shown_budgets(workspace).await?;
        let (states, last) = self
            .scan_with(Entries::<WebhookState>::in_workspace(workspace), head())
            .await?;
        let mut since = LogSince::new(workspace, revision);
        since.read_to(self, last).await?;
        if since.has_others() {
            return Ok(None);
        }
        let mut members: Vec<Member> = chunked_reads::values(members).await?;
        members.sort_by(|a, b| (a.created_at, &a.user_id).cmp(&(b.created_at, &b.user_id)));
        let members = self.with_profiles(members).await?;
        let epoch = self.epoch().await?;
        let (Some(found), Some(webhooks)) = (found, listed(epoch, hooks, states)?) else {
            return Ok(None);
        };
        let first = First {
            workspace: found.value,
            members,
            sets: chunked_reads::values(sets).await?,
            provider_keys: chunked_reads::values(keys)
                .await?
                .iter()
                .map(StoredProviderKey::listed)
                .collect(),
            webhooks,
            budgets,
        };
        Ok(Some((first, since, revision)))
    }
}

/// The webhooks of a workspace with their states; `None` when the workspace was deleted between the two reads.
fn listed(
    epoch: Epoch,
    webhooks: Scanned<StoredWebhook>,
    states: Scanned<WebhookState>,
) -> Result<Option<Vec<Webhook>>, Error> {
    let mut of_webhooks = HashMap::new();
    for state in states {
        of_webhooks.insert(state.key().item().to_owned(), state.value()?);
    }
    let mut listed = Vec::with_capacity(webhooks.len());
    for webhook in webhooks {
        let Some(state) = of_webhooks.get(webhook.key().item()) else {
            return Ok(None);
        };
        listed.push(webhook.value()?.listed(epoch, state));
    }
    Ok(Some(listed))
}

impl Export {
    /// The revision whose state the export shows.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let export = service.export_workspace(&ada, studio).await?;
    /// assert_eq!(export.revision(), 3, "the workspace, an agent, and the entry of the export");
    /// # Ok(()) }) }
    /// ```
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The next lines, each an [`ExportLine`] as JSON that ends with a line feed; `None` after the last ones.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] when the caller has lost the right meanwhile, or the workspace was deleted; else when
    /// storage fails. What was read until then is no whole export.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let mut lines = Vec::new();
        while self.stage != ExportStage::Done && lines.len() < PIECE {
            self.authorize().await?;
            if !self.piece(&mut lines).await? {
                self.stage = self.stage.next();
                self.after = None;
            }
        }
        if self.stage == ExportStage::Done {
            // A workspace that was deleted while its last records were read has lost its members before its records.
            self.authorize().await?;
        }
        Ok(if lines.is_empty() { None } else { Some(lines) })
    }

    async fn authorize(&self) -> Result<(), Error> {
        let permission = Permission::WorkspaceManage;
        self.service.authorize(&self.caller, self.workspace, permission).await
    }

    /// Writes the next records of a stage. `false` when there were none.
    async fn piece(&mut self, lines: &mut Vec<u8>) -> Result<bool, Error> {
        match self.stage {
            ExportStage::Workspace => {
                write(lines, &ExportLine::Workspace(self.first.workspace.clone()))?;
                for member in std::mem::take(&mut self.first.members) {
                    write(lines, &ExportLine::Member(member))?;
                }
                Ok(false)
            }
            ExportStage::Agents => self.agents(lines).await,
            ExportStage::Versions => self.versions(lines).await,
            ExportStage::Labels => self.labels(lines).await,
            ExportStage::Sets => {
                for set in std::mem::take(&mut self.first.sets) {
                    write(lines, &ExportLine::Set(set))?;
                }
                Ok(false)
            }
            ExportStage::Statuses => self.statuses(lines).await,
            ExportStage::ApiKeys => self.api_keys(lines).await,
            ExportStage::ProviderKeys => {
                for key in std::mem::take(&mut self.first.provider_keys) {
                    write(lines, &ExportLine::ProviderKey(key))?;
                }
                Ok(false)
            }
            ExportStage::Webhooks => {
                for webhook in std::mem::take(&mut self.first.webhooks) {
                    write(lines, &ExportLine::Webhook(webhook))?;
                }
                Ok(false)
            }
            ExportStage::Budgets => {
                for budget in std::mem::take(&mut self.first.budgets) {
                    write(lines, &ExportLine::Budget(budget))?;
                }
                Ok(false)
            }
            ExportStage::Usage => self.usage(lines).await,
            ExportStage::Audit => self.audit(lines).await,
            ExportStage::Done => Ok(false),
        }
    }

    /// Reads the next records of a kind, and the log up to their snapshot.
    async fn read<T: Entity>(&mut self) -> Result<Scanned<T>, Error> {
        let entries = Entries::in_workspace(self.workspace)
            .after_item(self.after.take())
            .bounded(chunked_reads::RECORDS, chunked_reads::BYTES);
        let head = records::revision(self.workspace);
        let (found, last) = self.service.scan_with(entries, head).await?;
        self.after = found.last_item();
        self.since.read_to(&self.service, last).await?;
        Ok(found)
    }

    async fn agents(&mut self, lines: &mut Vec<u8>) -> Result<bool, Error> {
        let found = self.read::<StoredAgent>().await?;
        let (is_some, is_long) = (!found.is_empty(), found.bytes() >= LONG);
        let mut shown = Vec::with_capacity(found.len());
        for stored in chunked_reads::values(found).await? {
            shown.extend(self.since.agent(stored.agent)?.map(ExportLine::Agent));
        }
        let text = blocking_if(is_long, move || {
            let mut text = Vec::new();
            shown.iter().try_for_each(|line| write(&mut text, line)).map(|()| text)
        });
        lines.append(&mut text.await??);
        Ok(is_some)
    }

    async fn versions(&mut self, lines: &mut Vec<u8>) -> Result<bool, Error> {
        let found = self.read::<StoredVersion>().await?;
        let (is_some, revision) = (!found.is_empty(), self.revision);
        write_each(lines, found, move |text, record| {
            let version = record.value()?;
            if version.revision > revision {
                return Ok(());
            }
            // The identifier in a key is that of a record, which was checked.
            let agent_id = AgentId::wrap(record.key().agent_id().into());
            write(text, &ExportLine::Version(exported(agent_id, version)))
        })
        .await?;
        Ok(is_some)
    }

    async fn labels(&mut self, lines: &mut Vec<u8>) -> Result<bool, Error> {
        let before = self.after.clone();
        let found = self.read::<StoredLabels>().await?;
        let is_some = !found.is_empty();
        let decode = |labels: Encoded<StoredLabels>| Ok((labels.key().item().to_owned(), labels.value()?));
        let mut agents: BTreeMap<_, _> = chunked_reads::decoded(found, decode).await?.into_iter().collect();
        // Labels that were removed since may have left no record.
        for agent_id in self
            .since
            .agents_of_moved_labels(before.as_deref(), self.after.as_deref())
        {
            agents.entry(agent_id).or_default();
        }
        for (agent_id, StoredLabels { mut labels }) in agents {
            for (label, version) in self.since.moved_labels(&agent_id).cloned().unwrap_or_default() {
                let label: Label = label.parse()?;
                labels.remove(&label);
                if let Some(version) = version {
                    let was = self.label_at_revision(&agent_id, &label, version).await?;
                    labels.insert(label, was);
                }
            }
            let agent_id = AgentId::wrap(agent_id.into());
            for (label, stored) in labels {
                write(lines, &ExportLine::Label(stored.shown(&agent_id, &label)))?;
            }
        }
        Ok(is_some)
    }

    /// A label as it was at the revision, at this version, from the last entry up to then that moved it.
    async fn label_at_revision(&self, agent_id: &str, label: &Label, version: u64) -> Result<StoredLabel, Error> {
        let after = records::audit_entry::<StoredEntry>(self.workspace, self.revision + 1);
        let mut pieces = Chunks::of(Entries::in_workspace(self.workspace).after(&after).descending());
        let path = change_path::of_label(agent_id, label);
        let at = |updated_at, actor| StoredLabel {
            version,
            updated_at,
            actor,
        };
        while let Some(found) = pieces.next(&self.service).await? {
            for entry in chunked_reads::values(found).await? {
                if entry.changes.get(&path).is_some_and(|change| change.to.is_u64()) {
                    return Ok(at(entry.created_at, entry.actor));
                }
            }
        }
        // The entry is older than the log is kept.
        Ok(at(self.first.workspace.created_at, Actor::system("retention")))
    }

    async fn statuses(&mut self, lines: &mut Vec<u8>) -> Result<bool, Error> {
        let found = self.read::<StoredStatus>().await?;
        let is_some = !found.is_empty();
        write_each(lines, found, |text, record| {
            // The identifier in a key is that of a record, which was checked.
            let agent_id = AgentId::wrap(record.key().item().into());
            let stored = record.value()?;
            let report = ReportedStatus {
                agent_id,
                status: stored.status,
                current_task_id: stored.current_task_id,
                current_task_title: stored.current_task_title,
                reported_at: stored.reported_at,
            };
            write(text, &ExportLine::Status(report))
        })
        .await?;
        Ok(is_some)
    }

    async fn api_keys(&mut self, lines: &mut Vec<u8>) -> Result<bool, Error> {
        let found = self.read::<WorkspaceApiKey>().await?;
        let is_some = !found.is_empty();
        let ids = found.into_keys().map(|key| key.item().to_owned()).collect::<Vec<_>>();
        let (keys, last) = self.service.api_keys_of(self.workspace, &ids).await?;
        self.since.read_to(&self.service, last).await?;
        for key in keys {
            if let Some(key) = self.since.api_key(key)? {
                write(lines, &ExportLine::ApiKey(key))?;
            }
        }
        Ok(is_some)
    }

    /// Sums of usage belong to no revision.
    async fn usage(&mut self, lines: &mut Vec<u8>) -> Result<bool, Error> {
        let after = self.after.as_deref().and_then(|day| day.parse().ok());
        let Some((last, rows)) = self.service.usage_days_after(self.workspace, after).await? else {
            return Ok(false);
        };
        self.after = Some(last.to_string().into());
        rows.into_iter()
            .try_for_each(|row| write(lines, &ExportLine::Usage(row)))?;
        Ok(true)
    }

    async fn audit(&mut self, lines: &mut Vec<u8>) -> Result<bool, Error> {
        let found = self.read::<StoredEntry>().await?;
        let revision = self.revision;
        write_each(lines, found, move |text, record| {
            let number = record.key().entry_number()?;
            match number <= revision {
                true => write(text, &ExportLine::Audit(record.value()?.shown(number))),
                false => Ok(()),
            }
        })
        .await?;
        let last = records::audit_entry::<StoredEntry>(self.workspace, revision);
        Ok(self.after.as_deref() < Some(last.item()))
    }
}

fn exported(agent_id: AgentId, version: StoredVersion) -> ExportedVersion {
    ExportedVersion {
        agent_id,
        version: version.version,
        created_at: version.created_at,
        actor: Some(version.actor),
        message: version.message,
        restored_from: version.restored_from,
        config: version.config,
    }
}

/// Writes the lines of each record of a piece, those of a long one on the blocking pool.
async fn write_each<T: Entity + 'static>(
    lines: &mut Vec<u8>,
    found: Scanned<T>,
    mut write: impl FnMut(&mut Vec<u8>, &Encoded<T>) -> Result<(), Error> + Send + 'static,
) -> Result<(), Error> {
    let is_long = found.bytes() >= LONG;
    let work = move || {
        let mut text = Vec::new();
        for record in found {
            write(&mut text, &record)?;
        }
        Ok(text)
    };
    let text: Result<_, Error> = blocking_if(is_long, work).await?;
    lines.append(&mut text?);
    Ok(())
}

fn write<T: Serialize>(lines: &mut Vec<u8>, line: &T) -> Result<(), Error> {
    serde_json::to_writer(&mut *lines, line).map_err(records::not_written)?;
    lines.push(b'\n');
    Ok(())
}
