//! Writing a list: agents are pushed in any order, and dropped once their text is written.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use tokio::sync::OnceCell;
use uuid::Uuid;

use super::agent_list::{AgentList, ListCache, Row, Whole};
use crate::error::{Error, ErrorKind};
use crate::model::{Agent, AgentId, Cursor, Tag, Timestamp};

/// The writer of a list. It holds the text of each agent and its place in the order, so that the decoded records of a
/// long list are never in memory together.
pub(in crate::service) struct ListWriter {
    text: Vec<u8>,
    pieces: Vec<Piece>,
}

struct Piece {
    order: (Timestamp, Uuid),
    text: Range<usize>,
    agent_id: AgentId,
    display_name: String,
}

impl ListWriter {
    /// Starts a list with a text of about this length.
    pub(in crate::service) fn new(length: usize) -> Self {
        Self {
            text: Vec::with_capacity(length),
            pieces: Vec::new(),
        }
    }

    /// Adds an agent.
    pub(in crate::service) fn push(&mut self, agent: Agent) -> Result<(), Error> {
        let start = self.text.len();
        serde_json::to_writer(&mut self.text, &agent)
            .map_err(|error| Error::new(ErrorKind::Internal, "the list could not be written").because(error))?;
        self.pieces.push(Piece {
            order: (agent.created_at, agent.id),
            text: start..self.text.len(),
            agent_id: agent.agent_id,
            display_name: agent.display_name,
        });
        Ok(())
    }

    /// Ends the list: puts the agents in order. `cache` is the cache that may keep it.
    pub(in crate::service) fn finish(mut self, cursor: Cursor, cache: Option<Arc<dyn ListCache>>) -> AgentList {
        self.pieces.sort_unstable_by_key(|piece| piece.order);
        let mut json = Vec::with_capacity(self.text.len() + self.pieces.len().max(1) + 1);
        let mut names = String::with_capacity(self.pieces.iter().map(Piece::names).sum());
        let mut rows = Vec::with_capacity(self.pieces.len());
        json.push(b'[');
        for piece in self.pieces {
            if json.len() > 1 {
                json.push(b',');
            }
            json.extend_from_slice(&self.text[piece.text]);
            names.push_str(&piece.agent_id);
            let agent_id = names.len();
            names.push_str(&piece.display_name);
            rows.push(Row {
                json: json.len(),
                agent_id,
                display_name: names.len(),
            });
        }
        json.push(b']');
        AgentList::new(Arc::new(Whole {
            cursor,
            tag: Tag::list(cursor.epoch(), cursor.revision()),
            json: json.into(),
            rows: rows.into(),
            names: names.into(),
            agents: OnceLock::new(),
            encoded: OnceCell::new(),
            cache,
        }))
    }
}

impl Piece {
    fn names(&self) -> usize {
        self.agent_id.len() + self.display_name.len()
    }
}
