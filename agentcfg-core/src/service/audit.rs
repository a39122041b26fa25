//! The audit log: what the mutations wrote, newest first.

use std::fmt;
use std::sync::Arc;

use super::blocking::{LONG, blocking_if};
use super::chunked_reads;
use super::records::{self, Encoded, Entries, Scanned, StoredEntry, StoredEntryHead};
use super::{AgentCfg, Caller};
use crate::clock::DAY;
use crate::error::Error;
use crate::model::{AuditEntry, AuditFilter, Permission, Timestamp, WorkspaceId, event_family};
use crate::validate::DEFAULT_LIMIT;

/// The bytes of entries after which a page is returned.
const PAGE_BYTES: usize = 512 << 10;

/// How far the times of entries may be out of order, in milliseconds: clocks of servers differ, and one may be set
/// back. A search by time reads entries of one day more at either end.
const DISORDER: i64 = DAY;

impl AgentCfg {
    /// The entries of a workspace's audit log, newest first: at most `limit` after skipping `offset`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `audit_log:read`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// for entry in service.audit_log(&ada, studio, 0, 100).await? {
    ///     println!("{}: {} did {} to {}", entry.created_at, entry.actor.id, entry.action, entry.target.id);
    /// }
    /// # assert_eq!(service.audit_log(&ada, studio, 0, 1).await?[0].action, Action::AgentCreated);
    /// # Ok(()) }) }
    /// ```
    pub async fn audit_log(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, Error> {
        let filter = AuditFilter {
            offset,
            limit: Some(u32::try_from(limit).unwrap_or(u32::MAX)),
            ..AuditFilter::default()
        };
        self.search_audit_log(caller, workspace, &filter).await
    }

    /// The entries of a workspace's audit log that a filter selects, newest first.
    ///
    /// All of them are in memory at once; [`Self::audit_pages`] gives them in parts.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `audit_log:read`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let of_writer = AuditFilter::default().target_id("writer");
    /// let entries = service.search_audit_log(&ada, studio, &of_writer).await?;
    /// assert_eq!((entries.len(), entries[0].revision), (1, 2));
    /// # Ok(()) }) }
    /// ```
    pub async fn search_audit_log(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        filter: &AuditFilter,
    ) -> Result<Vec<AuditEntry>, Error> {
        let mut pages = self.audit_pages(caller, workspace, filter).await?;
        let mut selected = Vec::new();
        while let Some(page) = pages.next().await? {
            selected.extend(page);
        }
        Ok(selected)
    }

    /// The entries of a workspace's audit log that a filter selects, newest first, in parts of bounded size.
    ///
    /// The log is read from its end, or from where the filter's revision or time says, until there are enough entries.
    /// An entry that the filter does not select is never in memory for longer than its part.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `audit_log:read`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let mut pages = service.audit_pages(&ada, studio, &AuditFilter::default()).await?;
    /// while let Some(page) = pages.next().await? {
    ///     for entry in page {
    ///         println!("{} {}", entry.revision, entry.action);
    ///     }
    /// }
    /// # Ok(()) }) }
    /// ```
    pub async fn audit_pages(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        filter: &AuditFilter,
    ) -> Result<AuditPages, Error> {
        let access = self.access(caller, workspace, Permission::AuditLogRead).await?;
        let left = usize::try_from(filter.limit.map_or(DEFAULT_LIMIT, u64::from)).unwrap_or(usize::MAX);
        let mut last = self.revision(&access).await?;
        if let Some(before) = filter.before {
            last = last.min(before.saturating_sub(1));
        }
        let mut skip = filter.offset;
        if !filter.selects_some() {
            // Entries are numbered without gaps, so the offset says where to start.
            last = last.saturating_sub(skip);
            skip = 0;
        }
        if let Some(until) = filter.until {
            let moment = until.plus_millis(DISORDER);
            let by_then = |entry: &StoredEntryHead| entry.created_at <= moment;
            last = self.last_entry_where(workspace, last, by_then).await?;
        }
        Ok(AuditPages {
            service: self.clone(),
            caller: caller.clone(),
            workspace,
            filter: Arc::new(filter.clone()),
            position: Position { last, skip, left },
            is_first: true,
        })
    }

    /// The number of the last entry up to `last` for which `holds` is true, 0 if there is none. The search is binary:
    /// where it is true for an entry, it must be true for those before.
    async fn last_entry_where(
        &self,
        workspace: WorkspaceId,
        last: u64,
        holds: impl Fn(&StoredEntryHead) -> bool,
    ) -> Result<u64, Error> {
        let (mut low, mut high) = (0, last + 1);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let key = records::audit_entry::<StoredEntryHead>(workspace, middle);
            // An entry may have long changes, over which its decoding goes too.
            let entry = self.read_many(vec![key]).await?.pop().flatten();
            // What was removed is older than the rest.
            match entry.is_none_or(|entry| holds(&entry.value)) {
                true => low = middle,
                false => high = middle,
            }
        }
        Ok(low)
    }
}

/// The entries of an audit log that a filter selects, in parts. Each part is read when it is asked for, so that a slow
/// reader holds nothing in the store.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
/// # fn main() -> Outcome { run(async |service, ada, studio| {
/// let mut pages = service.audit_pages(&ada, studio, &AuditFilter::default()).await?;
/// assert_eq!(pages.next().await?.map(|page| page.len()), Some(2));
/// assert!(pages.next().await?.is_none());
/// # Ok(()) }) }
/// ```
pub struct AuditPages {
    service: AgentCfg,
    caller: Caller,
    workspace: WorkspaceId,
    filter: Arc<AuditFilter>,
    position: Position,
    is_first: bool,
}

impl fmt::Debug for AuditPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditPages")
            .field("workspace", &self.workspace)
            .field("filter", &self.filter)
            .field("caller", &self.caller)
            .finish_non_exhaustive()
    }
}

/// How far a log was read, from its end.
#[derive(Clone, Copy)]
struct Position {
    /// The number of the newest entry that was not read yet.
    last: u64,
    /// How many of the selected entries are still skipped.
    skip: u64,
    /// How many entries may still be returned.
    left: usize,
}

/// The entries that were selected from a piece of the log.
struct Selected {
    entries: Vec<AuditEntry>,
    /// The length of their texts.
    bytes: usize,
    position: Position,
}

impl AuditPages {
    /// The next part: at least one entry, and about half a megabyte of them at most. `None` after the last one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) when the caller has lost `audit_log:read` since the part
    /// before, and when storage fails.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let one = AuditFilter::default().limit(1);
    /// let newest = service.audit_pages(&ada, studio, &one).await?.next().await?;
    /// assert_eq!(newest.unwrap()[0].action, Action::AgentCreated);
    /// # Ok(()) }) }
    /// ```
    pub async fn next(&mut self) -> Result<Option<Vec<AuditEntry>>, Error> {
        if !std::mem::take(&mut self.is_first) {
            let permission = Permission::AuditLogRead;
            self.service.authorize(&self.caller, self.workspace, permission).await?;
        }
        let (mut page, mut bytes) = (Vec::new(), 0);
        while self.position.last > 0 && self.position.left > 0 && bytes < PAGE_BYTES {
            let selected = self.piece().await?;
            self.position = selected.position;
            bytes += selected.bytes;
            page.extend(selected.entries);
            tokio::task::yield_now().await;
        }
        Ok((!page.is_empty()).then_some(page))
    }

    /// Reads a piece of the log.
    async fn piece(&self) -> Result<Selected, Error> {
        let (service, filter, position) = (self.service.clone(), Arc::clone(&self.filter), self.position);
        // Without a filter as many entries are read as are returned, which the caller bounds.
        let is_search = filter.selects_some();
        let count = match is_search {
            true => chunked_reads::RECORDS,
            false => chunked_reads::RECORDS.min(position.left),
        };
        let after = records::audit_entry(self.workspace, position.last + 1);
        let entries = Entries::in_workspace(self.workspace)
            .after(&after)
            .descending()
            .bounded(count, chunked_reads::BYTES);
        let piece = async move {
            let found = service.scan(entries).await?;
            let is_long = found.bytes() >= LONG;
            let (heads, position) = blocking_if(is_long, move || position.select(&filter, found)).await??;
            let found: Vec<Encoded<StoredEntry>> = service.unpacked_as(heads).await?;
            let bytes = found.iter().map(Encoded::bytes).sum();
            let decode = move || found.iter().map(shown).collect::<Result<_, Error>>();
            Ok(Selected {
                entries: blocking_if(bytes >= LONG, decode).await??,
                bytes,
                position,
            })
        };
        self.service.long_read_if(is_search, self.workspace, piece).await
    }
}

/// An entry as the log shows it.
fn shown(entry: &Encoded<StoredEntry>) -> Result<AuditEntry, Error> {
    Ok(entry.value()?.shown(entry.key().entry_number()?))
}

impl Position {
    /// Selects entries from what was read here, and moves on past the last one that was decided on.
    fn select(
        mut self,
        filter: &AuditFilter,
        found: Scanned<StoredEntryHead>,
    ) -> Result<(Vec<Encoded<StoredEntryHead>>, Self), Error> {
        let (mut selected, mut bytes) = (Vec::new(), 0);
        if found.is_empty() {
            self.last = 0;
        }
        for entry in found {
            self.last = entry.key().entry_number()? - 1;
            let head = entry.value()?;
            let is_too_old = |since: Timestamp| head.created_at < since.plus_millis(-DISORDER);
            if filter.since.is_some_and(is_too_old) {
                self.last = 0;
                break;
            }
            if !filter.selects(&head) {
                continue;
            }
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            bytes += entry.unpacked_bytes();
            selected.push(entry);
            self.left -= 1;
            if self.left == 0 || bytes >= chunked_reads::BYTES {
                break;
            }
        }
        Ok((selected, self))
    }
}

impl AuditFilter {
    /// Whether the filter depends on the content of entries.
    fn selects_some(&self) -> bool {
        self.actor.is_some()
            || self.action.is_some()
            || self.target_type.is_some()
            || self.target_id.is_some()
            || self.since.is_some()
            || self.until.is_some()
    }

    fn selects(&self, entry: &StoredEntryHead) -> bool {
        let is = |wanted: &Option<String>, text: &str| wanted.as_ref().is_none_or(|wanted| wanted == text);
        is(&self.actor, &entry.actor.id)
            && self
                .action
                .as_ref()
                .is_none_or(|wanted| event_family::is_wanted(wanted, &entry.action))
            && is(&self.target_type, &entry.target.kind)
            && is(&self.target_id, &entry.target.id)
            && self.since.is_none_or(|since| entry.created_at >= since)
            && self.until.is_none_or(|until| entry.created_at < until)
    }
}
