//! A list of agents as callers get it: its JSON text, and what is made of it on demand.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::sync::OnceCell;

use super::desk::Desk;
use crate::model::Agent;

/// Texts from this length on are worth an allocation that keeps them shared.
const LARGE: usize = 64 << 10;

/// What a list takes beside its texts.
const OVERHEAD: usize = 512;

/// The active agents of a workspace at one revision, in the order of the list, with their JSON text.
/// Clones share everything.
#[derive(Debug, Clone)]
pub struct AgentList {
    whole: Arc<Whole>,
    /// Which of the agents this list shows.
    range: Range<usize>,
}

/// All agents of a workspace at one revision.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) revision: u64,
    /// The JSON array of all the agents.
    pub(super) json: Bytes,
    /// Where each agent is in `json` and in `names`.
    pub(super) rows: Box<[Row]>,
    /// The identifiers and display names of all the agents, one behind the other.
    pub(super) names: Box<str>,
    /// The decoded agents, once somebody asked for them.
    pub(super) agents: OnceLock<Vec<Agent>>,
    /// Another form of `json`, once somebody asked for it.
    pub(super) encoded: OnceCell<Bytes>,
    /// Where lists of the workspace are made, if this one may be kept for others.
    pub(super) desk: Option<Arc<Desk>>,
}

/// Where one agent's texts end. Each starts where the one before ends; in `json` there is one byte between two.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) json: usize,
    pub(super) agent_id: usize,
    pub(super) display_name: usize,
}

impl Whole {
    /// The memory that the list takes.
    pub(super) fn bytes(&self) -> usize {
        // Decoded records take about twice the room of their text.
        let agents = self.agents.get().map_or(0, |_| 2 * self.json.len());
        let encoded = self.encoded.get().map_or(0, Bytes::len);
        self.json.len() + size_of_val(&*self.rows) + self.names.len() + agents + encoded + OVERHEAD
    }

    /// Where the texts of some agents are in `json`, without the brackets around them.
    fn span(&self, range: &Range<usize>) -> Range<usize> {
        if range.is_empty() {
            return 1..1;
        }
        let start = match range.start {
            0 => 1,
            n => self.rows[n - 1].json + 1,
        };
        start..self.rows[range.end - 1].json
    }
}

impl AgentList {
    pub(super) fn new(whole: Arc<Whole>) -> Self {
        let range = 0..whole.rows.len();
        Self { whole, range }
    }

    pub(super) fn whole(&self) -> &Arc<Whole> {
        &self.whole
    }

    /// The workspace's revision at which the list was read.
    pub(in crate::service) fn revision(&self) -> u64 {
        self.whole.revision
    }

    /// A part of this list.
    pub(in crate::service) fn page(mut self, offset: usize, limit: usize) -> Self {
        let len = self.whole.rows.len();
        let start = offset.min(len);
        self.range = start..start.saturating_add(limit).min(len);
        self
    }

    /// The identifier and the display name of each agent.
    pub(in crate::service) fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        let whole = &*self.whole;
        self.range.clone().map(move |i| {
            let start = i.checked_sub(1).map_or(0, |before| whole.rows[before].display_name);
            let Row {
                agent_id, display_name, ..
            } = whole.rows[i];
            (&whole.names[start..agent_id], &whole.names[agent_id..display_name])
        })
    }

    /// How many agents there are in the list.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether there is no agent in the list.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The agents.
    ///
    /// They are decoded from the JSON text when they are first asked for, and then shared like it.
    pub fn agents(&self) -> &[Agent] {
        let mut decoded_now = false;
        let agents = self.whole.agents.get_or_init(|| {
            decoded_now = true;
            serde_json::from_slice(&self.whole.json).unwrap_or_else(|error| {
                // What `Agent` wrote, `Agent` reads, so that this is a fault of ours.
                tracing::error!(%error, "a list that was written cannot be read");
                Vec::new()
            })
        });
        if decoded_now {
            self.grew();
        }
        agents.get(self.range.clone()).unwrap_or_default()
    }

    /// The agents as a JSON array.
    ///
    /// Of a whole list nothing is copied; for a part of one see [`Self::json_parts`].
    pub fn json(&self) -> Bytes {
        if self.is_whole() {
            return self.lend(self.whole.json.clone());
        }
        Bytes::from([b"[", &self.whole.json[self.whole.span(&self.range)], b"]"].concat())
    }

    /// The pieces that are the agents as a JSON array when they are put together. Nothing is copied.
    pub fn json_parts(&self) -> Vec<Bytes> {
        if self.is_whole() {
            return vec![self.json()];
        }
        let agents = self.whole.json.slice(self.whole.span(&self.range));
        vec![Bytes::from_static(b"["), self.lend(agents), Bytes::from_static(b"]")]
    }

    /// The length of the JSON array.
    pub fn json_len(&self) -> usize {
        self.whole.span(&self.range).len() + "[]".len()
    }

    /// Another form of the JSON array, such as a compressed one, which `make` makes of its [parts](Self::json_parts).
    ///
    /// A whole list keeps that form and shares it like its text, so `make` must be the same in every call. It runs
    /// once, however many ask at the same time; when it fails or its caller leaves, the next one tries. A part of a
    /// list keeps nothing.
    ///
    /// # Errors
    ///
    /// What `make` gives.
    pub async fn encoded<F, E>(&self, make: impl FnOnce(Vec<Bytes>) -> F) -> Result<Bytes, E>
    where
        F: Future<Output = Result<Bytes, E>>,
    {
        if !self.is_whole() {
            return make(self.json_parts()).await;
        }
        if let Some(encoded) = self.whole.encoded.get() {
            return Ok(self.lend(encoded.clone()));
        }
        let mut made_now = false;
        let making = self.whole.encoded.get_or_try_init(|| {
            made_now = true;
            make(self.json_parts())
        });
        let encoded = making.await?.clone();
        if made_now {
            self.grew();
        }
        Ok(self.lend(encoded))
    }

    fn is_whole(&self) -> bool {
        self.range.len() == self.whole.rows.len()
    }

    /// Has a list that takes more memory now weighed again.
    fn grew(&self) {
        if let Some(desk) = &self.whole.desk {
            desk.weigh_again(&self.whole);
        }
    }

    /// A text of this list for a caller who may hold it for long. As long as it is held, others find a list that is
    /// too large to be kept.
    fn lend(&self, text: Bytes) -> Bytes {
        let Some(desk) = &self.whole.desk else { return text };
        if text.len() < LARGE || desk.keeps(&self.whole) {
            return text;
        }
        Bytes::from_owner(Lent {
            text,
            _list: Arc::clone(&self.whole),
        })
    }
}

/// A text that keeps its list alive.
struct Lent {
    text: Bytes,
    _list: Arc<Whole>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}
