//! Integrity check of a store file: the structure of its pages, and each record.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::path::Path;

use redb::backends::FileBackend;
use redb::{Database, ReadableDatabase, ReadableTable, StorageBackend};

use super::super::plan::number;
use super::super::{Key, Kind, Partition, Record, envelope};
use super::agent_counts::Tally;
use super::blocks::{Blocks, Damage};
use super::error::{Fault, OpenError, catch_panic, contain_damage, require_unwinding};
use super::open::{builder, panic_as_damage, refuse_empty};
use super::options::RedbOptions;
use super::overlay::Overlay;
use super::schema::{RECORDS, read_sequence, verify_tables};
use crate::model::WorkspaceId;

/// The result of a [`check`].
///
/// ```
/// use agentcfg_core::store::redb::CheckReport;
/// let report = CheckReport::default();
/// for problem in &report.problems {
///     eprintln!("{problem}");
/// }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// The number of undamaged records of each kind.
    pub records: BTreeMap<Kind, u64>,
    /// The deleted workspaces whose records are not all removed yet, each with the number of those that are left. A
    /// service that opens the store goes on with the removal.
    pub removals: BTreeMap<WorkspaceId, u64>,
    /// The problems, in the order in which the check found them.
    pub problems: Vec<Problem>,
}

impl CheckReport {
    /// Whether the check found no problem.
    ///
    /// ```
    /// # use agentcfg_core::store::redb::{OpenError, RedbOptions, RedbStore};
    /// use agentcfg_core::store::redb::check;
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("store.redb");
    /// # drop(RedbStore::open(&path, RedbOptions::default())?);
    /// assert!(check(&path)?.is_sound());
    /// # Ok::<(), OpenError>(())
    /// ```
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}

/// One problem of a store file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The page structure of the file is inconsistent.
    Structure(String),
    /// A block of the file cannot be read, or does not match its checksum: the block, and the last record that was read
    /// before it.
    Block(String, String),
    /// A record's key cannot be decoded, or has a kind that this release does not know.
    UnknownKey(String),
    /// A record is damaged or is not a JSON text: its key, and the reason.
    Record(String, String),
    /// A log has a gap between its entries, or its last entry is not the one that its head names. Its first entries may
    /// be removed.
    Log(String),
    /// A workspace's counter of active agents differs from the number of its active agents.
    Count(String),
    /// Records name a workspace that does not exist: how many, and which.
    Remains(u64, WorkspaceId),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block(why, after) => write!(f, "{why}; the last record before it is {after}"),
            Self::Structure(why) => write!(f, "the structure of the file is damaged: {why}"),
            Self::UnknownKey(key) => write!(f, "{key} is not a valid key"),
            Self::Record(key, why) => write!(f, "record {key}: {why}"),
            Self::Log(why) | Self::Count(why) => f.write_str(why),
            Self::Remains(count, workspace) => {
                write!(
                    f,
                    "{count} records are left of the workspace {workspace}, which does not exist"
                )
            }
        }
    }
}

/// Verifies the structure of a store file and the checksum and form of each record in it.
///
/// The file is not changed. A file that was not closed cleanly is recovered in memory first, and that
/// alone is not reported as a problem.
///
/// # Errors
///
/// [`OpenError`] if the file cannot be checked: another process holds its lock, it cannot be read, or
/// it is too damaged to be opened.
///
/// ```
/// use agentcfg_core::store::redb::{OpenError, RedbOptions, RedbStore, check};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("store.redb");
/// let store = RedbStore::open(&path, RedbOptions::default())?;
/// assert!(matches!(check(&path), Err(OpenError::Held)));
/// drop(store);
/// assert!(check(&path)?.is_sound());
/// # Ok::<(), OpenError>(())
/// ```
pub fn check(path: impl AsRef<Path>) -> Result<CheckReport, OpenError> {
    require_unwinding(cfg!(panic = "abort"))?;
    let path = path.as_ref();
    refuse_empty(path)?;
    check_overlay(Overlay::shared(Blocks::new(FileBackend::new(File::open(path)?)?)))
}

/// Checks the store in a backend, without writing to it.
#[cfg(test)]
pub(super) fn check_backend(file: impl StorageBackend) -> Result<CheckReport, OpenError> {
    check_overlay(Overlay::new(file))
}

fn check_overlay(file: Overlay<impl StorageBackend>) -> Result<CheckReport, OpenError> {
    let mut database = panic_as_damage(|| {
        let database = builder(&RedbOptions::default()).create_with_backend(file)?;
        verify_tables(&database)?;
        Ok(database)
    })?;
    let mut walk = Walk::default();
    let walked = contain_damage(|| walk.database(&database)).unwrap_or_else(Err);
    match walked {
        Ok(()) => {}
        Err(Fault::Block(damage)) => walk.damaged(damage),
        Err(fault) => walk.report.problems.push(Problem::Structure(fault.text())),
    }
    let mut report = walk.report;
    match catch_panic(|| database.check_integrity()) {
        Ok(Ok(true)) => {}
        Ok(Ok(false)) => report
            .problems
            .push(Problem::Structure("pages do not match their checksums".into())),
        Ok(Err(error)) => report.problems.push(Problem::Structure(error.to_string())),
        Err(panic) => report.problems.push(Problem::Structure(panic)),
    }
    // After damaged pages, the engine may panic while it closes the database.
    let _ = catch_panic(|| drop(database));
    Ok(report)
}

/// The state of the iteration over all records in key order.
#[derive(Default)]
pub(super) struct Walk {
    report: CheckReport,
    log: Option<Log>,
    /// The problems of logs and counters, by workspace. The records of one that is being removed may be there in any
    /// part.
    logs: Vec<(Partition, Problem)>,
    owners: Owners,
    tally: Tally,
    /// The key of the previous record.
    last: Vec<u8>,
}

/// The log whose records the iteration is reading.
struct Log {
    partition: Partition,
    /// The number of entries according to the head; `None` if the head cannot be read, which is
    /// reported as a separate problem.
    expected: Option<u64>,
    /// The number of the last entry that was read.
    last: Option<u64>,
    gap: bool,
}

impl Walk {
    fn database(&mut self, database: &Database) -> Result<(), Fault> {
        let snapshot = database.begin_read()?;
        let sequence = read_sequence(&snapshot).map_err(|error| Fault::Damage(error.to_string()))?;
        for entry in snapshot.open_table(RECORDS)?.iter()? {
            let (key, sealed) = entry?;
            self.record(key.value(), sealed.value(), sequence);
        }
        self.end();
        Ok(())
    }

    /// Ends the iteration; returns the first problem that a copy of the records would hide or keep. Remains of a
    /// workspace are none: a copy of them is complete.
    pub(super) fn end(&mut self) -> Option<&Problem> {
        self.end_log();
        let mismatch = self.tally.end();
        self.count_problem(mismatch);
        self.settle();
        let mut problems = self.report.problems.iter();
        problems.find(|problem| !matches!(problem, Problem::Remains(..)))
    }

    fn count_problem(&mut self, mismatch: Option<(Partition, String)>) {
        let problems = mismatch.map(|(partition, why)| (partition, Problem::Count(why)));
        self.logs.extend(problems);
    }

    /// Records the damaged block that ended the iteration.
    fn damaged(&mut self, damage: Damage) {
        let after = match self.last.as_slice() {
            [] => "none".to_owned(),
            last => envelope::describe(last),
        };
        self.report.problems.push(Problem::Block(damage.to_string(), after));
    }

    /// Decides what could not be decided before all records were read: what belongs to a removal.
    fn settle(&mut self) {
        let Owners {
            existing,
            removed,
            records,
        } = std::mem::take(&mut self.owners);
        self.report.removals = removed.iter().map(|id| (*id, 0)).collect();
        for (partition, problem) in std::mem::take(&mut self.logs) {
            if !matches!(partition, Partition::Workspace(id) if removed.contains(&id)) {
                self.report.problems.push(problem);
            }
        }
        for (id, count) in records {
            match self.report.removals.get_mut(&id) {
                Some(left) => *left = count,
                None if existing.contains(&id) => {}
                None => self.report.problems.push(Problem::Remains(count, id)),
            }
        }
    }

    /// Checks the next record.
    pub(super) fn record(&mut self, bytes: &[u8], sealed: &[u8], sequence: u64) {
        if !self.last.is_empty() && *self.last >= *bytes {
            let (key, last) = (envelope::describe(bytes), envelope::describe(&self.last));
            self.report.problems.push(Problem::Structure(format!(
                "the keys {last} and {key} are not in ascending order"
            )));
        }
        self.last = bytes.to_vec();
        let Some(key) = Key::decode(bytes) else {
            self.report
                .problems
                .push(Problem::UnknownKey(envelope::describe(bytes)));
            return;
        };
        let verdict = envelope::open(bytes, sealed)
            .map_err(|error| error.to_string())
            .and_then(|record| {
                verify(bytes, key.kind(), &record, sequence)?;
                Ok(record)
            });
        self.follow_log(&key, verdict.as_ref().ok());
        self.owners.note(&key, verdict.as_ref().ok());
        let mismatch = match &verdict {
            Ok(record) => self.tally.record(&key, record),
            Err(_) => None,
        };
        self.count_problem(mismatch);
        match verdict {
            Ok(_) => *self.report.records.entry(key.kind()).or_default() += 1,
            Err(why) => self.report.problems.push(Problem::Record(format!("{key:?}"), why)),
        }
    }

    /// Counts log entries. Key order puts a log's head before its entries, and the entries in the order
    /// of their numbers.
    fn follow_log(&mut self, key: &Key, record: Option<&Record>) {
        let begin = |expected| Log {
            partition: key.partition().clone(),
            expected,
            last: None,
            gap: false,
        };
        match key.kind() {
            Kind::LogHead => {
                self.end_log();
                self.log = Some(begin(record.and_then(|record| number(&[], record).ok())));
            }
            Kind::LogEntry => {
                if self.log.as_ref().is_none_or(|log| log.partition != *key.partition()) {
                    self.end_log();
                    self.log = Some(begin(Some(0)));
                }
                if let Some(log) = &mut self.log {
                    let number = key.item().parse().ok();
                    log.gap |= match (log.last, number) {
                        // Entries before it may be removed.
                        (None, Some(first)) => first == 0,
                        (Some(last), Some(number)) => number != last + 1,
                        (_, None) => true,
                    };
                    log.last = number.or(log.last);
                }
            }
            _ => {}
        }
    }

    fn end_log(&mut self) {
        let Some(Log {
            partition,
            expected,
            last,
            gap,
        }) = self.log.take()
        else {
            return;
        };
        if gap || expected.zip(last).is_some_and(|(expected, last)| expected != last) {
            let head = Key::new(partition.clone(), Kind::LogHead, "");
            let expected = expected.map_or("an unknown number".into(), |expected| expected.to_string());
            let last = last.map_or("unreadable".into(), |last| last.to_string());
            let what = if gap { ", with a gap between them" } else { "" };
            let problem = Problem::Log(format!(
                "the last entry of the log of {head:?} should be {expected} and is {last}{what}"
            ));
            self.logs.push((partition, problem));
        }
    }
}

/// Which workspaces there are, and which workspace each record belongs to.
#[derive(Default)]
struct Owners {
    existing: BTreeSet<WorkspaceId>,
    /// The workspaces that are being removed.
    removed: BTreeSet<WorkspaceId>,
    /// The number of records that name a workspace, besides its own and that of its removal.
    records: BTreeMap<WorkspaceId, u64>,
}

impl Owners {
    fn note(&mut self, key: &Key, record: Option<&Record>) {
        match (key.kind(), key.partition()) {
            (Kind::Workspace, Partition::Workspace(id)) => drop(self.existing.insert(*id)),
            (Kind::Removal, _) => self.removed.extend(key.item().parse::<WorkspaceId>()),
            _ => {
                if let Some(id) = owner(key, record) {
                    *self.records.entry(id).or_default() += 1;
                }
            }
        }
    }
}

/// The workspace that a record belongs to; `None` where it belongs to none, or does not say.
fn owner(key: &Key, record: Option<&Record>) -> Option<WorkspaceId> {
    /// A record that names its workspace in its value, of which nothing else is read.
    #[derive(serde::Deserialize)]
    struct Owned {
        workspace_id: WorkspaceId,
    }
    key.workspace().or_else(|| {
        key.kind().link()?;
        let owned = serde_json::from_slice::<Owned>(&record?.value).ok()?;
        Some(owned.workspace_id)
    })
}

fn verify(key: &[u8], kind: Kind, record: &Record, sequence: u64) -> Result<(), String> {
    if record.version > sequence {
        return Err(format!("version {} is ahead of the version sequence", record.version));
    }
    serde_json::from_slice::<&serde_json::value::RawValue>(&record.value)
        .map_err(|error| format!("the value is not a JSON text: {error}"))?;
    match kind.is_number() {
        true => number(key, record).map(drop).map_err(|error| error.to_string()),
        false => Ok(()),
    }
}
