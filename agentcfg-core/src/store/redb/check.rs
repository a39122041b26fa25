//! Checks: whether a store file is what was written, page by page and record by record.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::OpenOptions;
use std::path::Path;

use redb::backends::FileBackend;
use redb::{Database, ReadableDatabase, ReadableTable};

use super::super::plan::number;
use super::super::{Key, Kind, Partition, Record, envelope};
use super::RedbOptions;
use super::error::{Fault, OpenError, shielded};
use super::open::{builder, guarded, refuse_empty};
use super::overlay::Overlay;
use super::schema::{RECORDS, read_sequence, verify_format};

/// What a [`check`] saw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// How many sound records of each kind there are.
    pub records: BTreeMap<Kind, u64>,
    /// What is wrong, in the order in which it was found.
    pub problems: Vec<Problem>,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}

/// One thing that is wrong with a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The pages of the file do not fit together.
    Structure(String),
    /// A record is under bytes that are no key of a kind known here.
    UnknownKey(String),
    /// A record is damaged or not a JSON text. The first text names it, the second says why.
    Record(String, String),
    /// A log has another number of entries than its head says, or a gap.
    Log(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Structure(why) => write!(f, "the structure of the file is damaged: {why}"),
            Self::UnknownKey(key) => write!(f, "{key} is no key"),
            Self::Record(key, why) => write!(f, "record {key}: {why}"),
            Self::Log(why) => f.write_str(why),
        }
    }
}

/// Verifies the structure of a store file and the checksum and form of each record in it.
///
/// The file is not changed. One that was not closed is recovered in memory first, so that is no
/// problem in itself.
///
/// # Errors
///
/// [`OpenError`] when there is nothing to report on: the file is held by a server, cannot be read, or
/// is too damaged to be opened at all.
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
    let path = path.as_ref();
    refuse_empty(path)?;
    let mut database = guarded(|| {
        // Writing is never done, but locks that exclude others ask for the right to.
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let overlay = Overlay::new(FileBackend::new(file)?)?;
        let database = builder(&RedbOptions::default()).create_with_backend(overlay)?;
        verify_format(&database)?;
        Ok(database)
    })?;
    let mut walk = Walk::default();
    let walked = shielded(|| walk.database(&database)).unwrap_or_else(|panic| Err(Fault::Damage(panic)));
    let mut report = walk.report;
    if let Err(fault) = walked {
        report.problems.push(Problem::Structure(fault.text().to_owned()));
    }
    match shielded(|| database.check_integrity()) {
        Ok(Ok(true)) => {}
        Ok(Ok(false)) => report
            .problems
            .push(Problem::Structure("pages do not match their checksums".into())),
        Ok(Err(error)) => report.problems.push(Problem::Structure(error.to_string())),
        Err(panic) => report.problems.push(Problem::Structure(panic)),
    }
    // A database that found its pages damaged may panic while it closes.
    let _ = shielded(|| drop(database));
    Ok(report)
}

/// The state of a walk over all records in the order of their keys.
#[derive(Default)]
struct Walk {
    report: CheckReport,
    log: Option<Log>,
}

/// The log of the workspace that the walk is in.
struct Log {
    partition: Partition,
    /// What its head says; `None` when that cannot be read, which is a problem of its own.
    said: Option<u64>,
    entries: u64,
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
        self.end_log();
        Ok(())
    }

    fn record(&mut self, bytes: &[u8], sealed: &[u8], sequence: u64) {
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
        match verdict {
            Ok(_) => *self.report.records.entry(key.kind()).or_default() += 1,
            Err(why) => self.report.problems.push(Problem::Record(format!("{key:?}"), why)),
        }
    }

    /// A log's head comes before its entries, and these come in the order of their numbers.
    fn follow_log(&mut self, key: &Key, record: Option<&Record>) {
        let begin = |said| Log {
            partition: key.partition().clone(),
            said,
            entries: 0,
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
                    log.entries += 1;
                    log.gap |= key.item().parse() != Ok(log.entries);
                }
            }
            _ => {}
        }
    }

    fn end_log(&mut self) {
        let Some(Log {
            partition,
            said,
            entries,
            gap,
        }) = self.log.take()
        else {
            return;
        };
        if gap || said.is_some_and(|said| said != entries) {
            let head = Key::new(partition, Kind::LogHead, "");
            let said = said.map_or("an unknown number of".into(), |said| said.to_string());
            let what = if gap { " with a gap" } else { "" };
            self.report.problems.push(Problem::Log(format!(
                "the log of {head:?} should have {said} entries and has {entries}{what}"
            )));
        }
    }
}

fn verify(key: &[u8], kind: Kind, record: &Record, sequence: u64) -> Result<(), String> {
    if record.version > sequence {
        return Err(format!("version {} is ahead of the version sequence", record.version));
    }
    serde_json::from_slice::<&serde_json::value::RawValue>(&record.value)
        .map_err(|error| format!("not a JSON text: {error}"))?;
    match kind {
        Kind::Counter | Kind::LogHead => number(key, record).map(drop).map_err(|error| error.to_string()),
        _ => Ok(()),
    }
}
