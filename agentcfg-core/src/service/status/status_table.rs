//! The statuses of a workspace as a table that follows the changes, and the texts made of it.
//!
//! A row is decoded when its record changes. The JSON text is kept in blocks of rows, and only blocks with a row that
//! shows something else are written again. An ordered set of the moments at which reports end finds the rows that grow
//! old.
//!
//! The wall clock decides only how old a report is when its record is read first. From then on it ends by the monotonic
//! clock, so a wall clock that is set lets no report count longer than its time-to-live, and none end early.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::RandomState;
use std::sync::Arc;

use bytes::Bytes;

use super::super::AgentList;
use super::super::records::{ChangedRecords, Encoded, StoredStatus};
use super::status_list::{StatusPiece, Texts};
use crate::clock::Moment;
use crate::error::{Error, ErrorKind};
use crate::model::{AgentId, AgentStatus, Cursor, LiveStatus, StatusChange, StatusEvent, TextId};

/// The number of rows in a block of text. A change of one row writes the whole block again, and an answer has one piece
/// for each block.
const BLOCK: usize = 256;

/// The length of a typical entry in bytes.
const OF_ENTRY: usize = 160;

/// The statuses of the agents of one list.
pub(in crate::service) struct Table {
    /// Distinguishes tables that were not made from each other, whose changes are numbered independently.
    generation: u64,
    /// The cursor of the list that the rows follow.
    cursor: Cursor,
    /// The identifiers and display names, concatenated.
    names: Box<str>,
    rows: Vec<Row>,
    /// The rows in the order of their identifiers.
    by_id: Box<[u32]>,
    /// The text of each block, unless a row of it has changed.
    blocks: Vec<Option<StatusPiece>>,
    /// The rows whose report was not there at the last [`Self::at`], which decides when it ends.
    undecided: Vec<u32>,
    /// The rows by the end of their current report, on the monotonic clock.
    ends: BTreeSet<(i64, u32)>,
    /// The rows by the number of their last change.
    changes: BTreeMap<u64, u32>,
    last: u64,
    /// The time-to-live of a report in milliseconds.
    ttl: i64,
    hasher: RandomState,
    texts: Option<Arc<Texts>>,
}

#[derive(Default)]
struct Row {
    /// Where the identifier and the display name end in `names`. The identifier starts where the row before ends.
    id_end: u32,
    name_end: u32,
    /// A hash of the record, by which an unchanged record is recognised; 0 without a record.
    fingerprint: u64,
    /// The number of the last change of the row or of the time of its report.
    number: u64,
    /// Whether the report counts.
    is_live: bool,
    /// When the report ends, on the monotonic clock; `None` until that is decided.
    ends_at: Option<i64>,
    report: Option<Box<StoredStatus>>,
}

/// A position in the changes of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::service) struct TablePosition {
    generation: u64,
    cursor: Cursor,
    number: u64,
}

/// What has changed in a table since a [`TablePosition`].
pub(in crate::service) enum Delta {
    /// All rows, because the table is another one.
    All(Vec<StatusEvent>),
    /// The rows that have changed.
    Rows(Vec<(usize, StatusEvent)>),
}

impl Table {
    /// A table for the agents of a list, in a new generation, or one that takes over the rows of an older table. Also
    /// returns the agents that the older one lacks: their records must be read and [set](Self::set).
    pub(super) fn new(list: &AgentList, ttl: i64, older: Option<Self>, generation: u64) -> (Self, Vec<Box<str>>) {
        let mut names = String::new();
        let mut rows = Vec::with_capacity(list.len());
        for (agent_id, display_name) in list.names() {
            names.push_str(agent_id);
            let id_end = place(names.len());
            names.push_str(display_name);
            let name_end = place(names.len());
            rows.push(Row {
                id_end,
                name_end,
                ..Row::default()
            });
        }
        let (generation, hasher, last) = match &older {
            Some(older) => (older.generation, older.hasher.clone(), older.last),
            None => (generation, RandomState::new(), 0),
        };
        let mut table = Self {
            generation,
            cursor: list.cursor(),
            names: names.into(),
            // An empty list still has one block.
            blocks: vec![None; rows.len().div_ceil(BLOCK).max(1)],
            by_id: (0..place(rows.len())).collect(),
            rows,
            undecided: Vec::new(),
            ends: BTreeSet::new(),
            changes: BTreeMap::new(),
            last,
            ttl,
            hasher,
            texts: None,
        };
        let mut by_id = std::mem::take(&mut table.by_id);
        by_id.sort_unstable_by(|a, b| table.agent_id(*a as usize).cmp(table.agent_id(*b as usize)));
        table.by_id = by_id;
        let mut missing = Vec::new();
        let mut older = older;
        for i in 0..table.rows.len() {
            let before = older.as_mut().and_then(|older| {
                let found = older.find(table.agent_id(i))?;
                let row = &mut older.rows[found];
                Some((row.fingerprint, row.report.take(), row.ends_at))
            });
            match before {
                Some((fingerprint, report, ends_at)) => {
                    let row = &mut table.rows[i];
                    (row.fingerprint, row.report, row.ends_at) = (fingerprint, report, ends_at);
                    table.place_end(i);
                }
                None => missing.push(table.agent_id(i).into()),
            }
        }
        (table, missing)
    }

    /// The cursor of the list that the rows follow.
    pub(super) fn cursor(&self) -> Cursor {
        self.cursor
    }

    fn agent_id(&self, i: usize) -> &str {
        let start = i.checked_sub(1).map_or(0, |before| self.rows[before].name_end as usize);
        &self.names[start..self.rows[i].id_end as usize]
    }

    fn display_name(&self, i: usize) -> &str {
        let row = &self.rows[i];
        &self.names[row.id_end as usize..row.name_end as usize]
    }

    fn find(&self, agent_id: &str) -> Option<usize> {
        let found = self
            .by_id
            .binary_search_by(|i| self.agent_id(*i as usize).cmp(agent_id))
            .ok()?;
        Some(self.by_id[found] as usize)
    }

    /// Applies records that have changed, or those of all agents. Unchanged records are not decoded.
    ///
    /// # Errors
    ///
    /// When a record is not one of a report.
    pub(super) fn apply(&mut self, changed: ChangedRecords<StoredStatus>) -> Result<(), Error> {
        let is_all = changed.is_all;
        let mut is_found = vec![!is_all; self.rows.len()];
        for (agent_id, record) in changed.into_items() {
            // A report of a deleted agent has no row.
            if let Some(i) = self.find(&agent_id) {
                is_found[i] = true;
                self.set_row(i, record.as_ref())?;
            }
        }
        for i in is_found
            .iter()
            .enumerate()
            .filter(|(_, found)| !**found)
            .map(|(i, _)| i)
        {
            self.set_row(i, None)?;
        }
        Ok(())
    }

    /// Sets the record of an agent, or its absence.
    ///
    /// # Errors
    ///
    /// When the record is not one of a report.
    pub(super) fn set(&mut self, agent_id: &str, record: Option<&Encoded<StoredStatus>>) -> Result<(), Error> {
        match self.find(agent_id) {
            Some(i) => self.set_row(i, record),
            None => Ok(()),
        }
    }

    fn set_row(&mut self, i: usize, record: Option<&Encoded<StoredStatus>>) -> Result<(), Error> {
        let fingerprint = record.map_or(0, |record| record.fingerprint(&self.hasher).max(1));
        if fingerprint == self.rows[i].fingerprint {
            return Ok(());
        }
        let report = record.map(Encoded::value).transpose()?.map(Box::new);
        if let Some(end) = self.rows[i].ends_at.take() {
            self.ends.remove(&(end, place(i)));
        }
        let row = &mut self.rows[i];
        let shows_the_same = shown(row.report.as_deref()) == shown(report.as_deref()) && row.is_live;
        (row.report, row.fingerprint) = (report, fingerprint);
        self.place_end(i);
        // Whether the report counts is decided when the time is known; until then the row counts as one that does.
        self.touch(i, !shows_the_same);
        Ok(())
    }

    /// Stores when the report of a row ends. Until [`Self::at`] decides, it counts as live.
    fn place_end(&mut self, i: usize) {
        let row = &mut self.rows[i];
        row.is_live = row.report.is_some();
        match row.ends_at {
            Some(end) => _ = self.ends.insert((end, place(i))),
            None if row.is_live => self.undecided.push(place(i)),
            None => {}
        }
    }

    /// Gives the row a new change number, and drops the text of its block if it shows something else.
    fn touch(&mut self, i: usize, shows_another: bool) {
        self.last += 1;
        let before = std::mem::replace(&mut self.rows[i].number, self.last);
        self.changes.remove(&before);
        self.changes.insert(self.last, place(i));
        if shows_another {
            self.blocks[i / BLOCK] = None;
            self.texts = None;
        }
    }

    /// Decides which reports count at this moment.
    pub(super) fn at(&mut self, moment: Moment) {
        for i in std::mem::take(&mut self.undecided) {
            let row = &mut self.rows[i as usize];
            // A report may be there no longer, or twice in the list.
            if let (Some(report), None) = (&row.report, row.ends_at) {
                let age = moment
                    .now
                    .unix_millis()
                    .saturating_sub(report.reported_at.unix_millis());
                let end = moment.steady_millis.saturating_add(self.ttl - age.clamp(0, self.ttl));
                row.ends_at = Some(end);
                self.ends.insert((end, i));
            }
        }
        while let Some((end, i)) = self
            .ends
            .first()
            .copied()
            .filter(|(end, _)| *end <= moment.steady_millis)
        {
            self.ends.remove(&(end, i));
            self.rows[i as usize].is_live = false;
            self.touch(i as usize, true);
        }
    }

    /// When the first live report ends, on the monotonic clock. Until then the last [`Self::at`] holds.
    pub(in crate::service) fn ages_at(&self) -> Option<i64> {
        self.ends.first().map(|(end, _)| *end)
    }

    /// The status entry of a row.
    fn entry(&self, i: usize) -> AgentStatus {
        let report = self.rows[i].report.as_deref().filter(|_| self.rows[i].is_live);
        // The identifiers in a list are those of records, which were checked.
        entry(AgentId::wrap(self.agent_id(i).into()), self.display_name(i), report)
    }

    /// The status entry of a row, with the time of its report.
    pub(in crate::service) fn event(&self, i: usize) -> StatusEvent {
        let status = self.entry(i);
        StatusEvent {
            agent_id: status.agent_id,
            display_name: status.display_name,
            status: status.status,
            current_task_id: status.current_task_id,
            current_task_title: status.current_task_title,
            reported_at: self.rows[i].report.as_ref().map(|report| report.reported_at),
        }
    }

    /// The last report of each agent, also where it counts no longer.
    pub(super) fn reports(&self) -> Vec<StatusChange> {
        let reports = self.rows.iter().enumerate().filter_map(|(i, row)| {
            let report = row.report.as_deref()?;
            Some(StatusChange {
                agent_id: AgentId::wrap(self.agent_id(i).into()),
                at: report.reported_at,
                status: report.status,
                current_task_id: report.current_task_id.clone(),
                current_task_title: report.current_task_title.clone(),
            })
        });
        reports.collect()
    }

    /// The agents without a report.
    pub(super) fn unreported(&self) -> Vec<AgentId> {
        let rows = self.rows.iter().enumerate();
        let unreported = rows.filter(|(_, row)| row.report.is_none());
        unreported
            .map(|(i, _)| AgentId::wrap(self.agent_id(i).into()))
            .collect()
    }

    pub(super) fn entries(&self) -> Vec<AgentStatus> {
        (0..self.rows.len()).map(|i| self.entry(i)).collect()
    }

    /// The changes since a position, and the current position.
    pub(in crate::service) fn since(&self, seen: Option<TablePosition>) -> (Delta, TablePosition) {
        let position = TablePosition {
            generation: self.generation,
            cursor: self.cursor,
            number: self.last,
        };
        let is_same = |seen: &TablePosition| (seen.generation, seen.cursor) == (self.generation, self.cursor);
        let delta = match seen.filter(is_same) {
            None => Delta::All((0..self.rows.len()).map(|i| self.event(i)).collect()),
            Some(seen) => {
                let changed = self.changes.range(seen.number.saturating_add(1)..);
                Delta::Rows(changed.map(|(_, i)| (*i as usize, self.event(*i as usize))).collect())
            }
        };
        (delta, position)
    }

    /// The entries as JSON. Blocks without a change keep their text.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`] when an entry cannot be written, which none does.
    pub(super) fn texts(&mut self) -> Result<Arc<Texts>, Error> {
        if let Some(texts) = &self.texts {
            return Ok(Arc::clone(texts));
        }
        for block in 0..self.blocks.len() {
            if self.blocks[block].is_none() {
                self.blocks[block] = Some(self.write_block(block)?);
            }
        }
        let blocks = self.blocks.iter().flatten().cloned().collect();
        let texts = Arc::new(Texts::new(blocks, self.rows.len()));
        self.texts = Some(Arc::clone(&texts));
        Ok(texts)
    }

    /// The text of a block: its entries with separators, and the brackets of the array at its ends.
    fn write_block(&self, block: usize) -> Result<StatusPiece, Error> {
        let rows = block * BLOCK..((block + 1) * BLOCK).min(self.rows.len());
        let mut text = Vec::with_capacity(rows.len() * OF_ENTRY + 2);
        for i in rows {
            text.push(if i == 0 { b'[' } else { b',' });
            serde_json::to_writer(&mut text, &self.entry(i))
                .map_err(|error| Error::new(ErrorKind::Internal, "the list could not be written").because(error))?;
        }
        if self.rows.is_empty() {
            text.push(b'[');
        }
        if block + 1 == self.blocks.len() {
            text.push(b']');
        }
        text.shrink_to_fit();
        Ok(StatusPiece::new(Bytes::from(text)))
    }

    /// The estimated length of the texts that [`Self::texts`] will write.
    pub(super) fn unwritten_bytes(&self) -> usize {
        self.blocks.iter().filter(|block| block.is_none()).count() * BLOCK.min(self.rows.len()) * OF_ENTRY
    }

    /// The estimated memory of the table with its texts.
    pub(super) fn bytes(&self) -> usize {
        /// The memory of a row's report and its entries in the ordered sets.
        const OF_ROW: usize = 192;
        let text: usize = self.blocks.iter().flatten().map(|block| block.text().len()).sum();
        // The strings of a report are in the text too, and compressed texts are a part of it.
        2 * text + self.names.len() + self.rows.len() * (size_of::<Row>() + OF_ROW)
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }
}

/// The parts of a report that the list shows.
fn shown(report: Option<&StoredStatus>) -> Option<(LiveStatus, Option<&str>, Option<&str>)> {
    report.map(|report| {
        let title = report.current_task_title.as_deref();
        (report.status, report.current_task_id.as_deref(), title)
    })
}

/// The entry of an agent, from its report if that is live.
pub(super) fn entry(agent_id: AgentId, display_name: &str, report: Option<&StoredStatus>) -> AgentStatus {
    let (status, current_task_id, current_task_title) = match report {
        Some(report) => (
            report.status,
            report.current_task_id.clone(),
            report.current_task_title.clone(),
        ),
        None => (LiveStatus::Offline, None, None),
    };
    AgentStatus {
        agent_id,
        display_name: display_name.to_owned(),
        status,
        current_task_id,
        current_task_title,
    }
}

/// A position in the rows or their names, which `u32` always holds: a workspace has neither 4 billion agents nor 4 GiB
/// of names.
fn place(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
