//! Writing a list: rows are pushed in any order, each is freed once its text has its place in the list.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::list_text::{ListCache, ListText, Row, Whole};
use crate::error::{Error, ErrorKind};
use crate::model::{Agent, Cursor, Tag, Timestamp};

/// The writer of a list. It holds the text of each row and its place in the order, so that the decoded records of a
/// long list are never in memory together, nor its text twice.
#[derive(Default)]
pub(in crate::service) struct ListWriter {
    /// The bytes of all rows.
    len: usize,
    /// The identifiers and display names.
    names: String,
    rows: Vec<WrittenRow>,
    /// Where a row is written before its length is known.
    buffer: Vec<u8>,
}

/// What a row belongs to: the place of its agent in the list, and its names.
pub(in crate::service) struct ListedAgent<'a> {
    pub(in crate::service) order: (Timestamp, Uuid),
    pub(in crate::service) agent_id: &'a str,
    pub(in crate::service) display_name: &'a str,
}

struct WrittenRow {
    order: (Timestamp, Uuid),
    text: Box<[u8]>,
    agent_id: Range<usize>,
    display_name: Range<usize>,
}

impl ListWriter {
    /// The bytes of the rows.
    pub(in crate::service) fn len(&self) -> usize {
        self.len
    }

    /// Adds the record of an agent.
    pub(in crate::service) fn push_agent(&mut self, agent: &Agent) -> Result<(), Error> {
        let listed = ListedAgent {
            order: (agent.created_at, agent.id),
            agent_id: &agent.agent_id,
            display_name: &agent.display_name,
        };
        self.push(listed, agent)
    }

    /// Adds the row of an agent.
    pub(in crate::service) fn push(&mut self, agent: ListedAgent<'_>, row: &impl Serialize) -> Result<(), Error> {
        self.buffer.clear();
        serde_json::to_writer(&mut self.buffer, row)
            .map_err(|error| Error::new(ErrorKind::Internal, "the list could not be written").because(error))?;
        self.len += self.buffer.len();
        self.rows.push(WrittenRow {
            order: agent.order,
            text: self.buffer.as_slice().into(),
            agent_id: add(&mut self.names, agent.agent_id),
            display_name: add(&mut self.names, agent.display_name),
        });
        Ok(())
    }

    /// Adds a row after those before it.
    pub(in crate::service) fn push_next(&mut self, agent_id: &str, row: &impl Serialize) -> Result<(), Error> {
        let number = self.rows.len();
        let listed = ListedAgent {
            order: (Timestamp::from_unix_millis(0), Uuid::from_u128(number as u128)),
            agent_id,
            display_name: "",
        };
        self.push(listed, row)
    }

    /// Ends the list: puts the rows in order. `tag` makes its tag of the JSON text, and `cache` is the cache that may
    /// keep it.
    pub(in crate::service) fn finish(
        mut self,
        cursor: Cursor,
        tag: impl FnOnce(&[u8]) -> Tag,
        cache: Option<Arc<dyn ListCache>>,
    ) -> ListText {
        self.rows.sort_unstable_by_key(|row| row.order);
        let mut json = Vec::with_capacity(self.len + self.rows.len().max(1) + 1);
        let mut names = String::with_capacity(self.names.len());
        let mut rows = Vec::with_capacity(self.rows.len());
        json.push(b'[');
        for row in self.rows {
            if json.len() > 1 {
                json.push(b',');
            }
            json.extend_from_slice(&row.text);
            names.push_str(&self.names[row.agent_id]);
            let agent_id = names.len();
            names.push_str(&self.names[row.display_name]);
            rows.push(Row {
                json: json.len(),
                agent_id,
                display_name: names.len(),
            });
        }
        json.push(b']');
        ListText::new(Arc::new(Whole {
            cursor,
            tag: tag(&json),
            json: json.into(),
            rows: rows.into(),
            names: names.into(),
            agents: OnceLock::new(),
            encoded: OnceCell::new(),
            cache,
        }))
    }
}

/// Adds a name, and says where it is.
fn add(names: &mut String, name: &str) -> Range<usize> {
    let start = names.len();
    names.push_str(name);
    start..names.len()
}
