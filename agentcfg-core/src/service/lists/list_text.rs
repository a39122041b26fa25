//! The text of a list: its JSON, and forms that are derived from it on demand.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::sync::OnceCell;

use crate::model::{Agent, Cursor, Tag};

/// The length from which a text is shared instead of copied.
const LARGE: usize = 64 << 10;

/// The memory that a list takes besides its texts.
const OVERHEAD: usize = 2048;

/// The text of a list of agents or of their releases: a JSON array. Clones share everything.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
/// # fn main() -> Outcome { run(async |service, ada, studio| {
/// let text = service.list_agents(&ada, studio, &Default::default()).await?.value.into_text();
/// assert!(text.json().starts_with(b"[{"));
/// # Ok(()) }) }
/// ```
#[derive(Debug, Clone)]
pub struct ListText {
    whole: Arc<Whole>,
    /// The range of the rows that this list shows.
    range: Range<usize>,
}

/// A whole list of a workspace at one revision.
#[derive(Debug)]
pub(in crate::service) struct Whole {
    pub(super) cursor: Cursor,
    /// The tag of the whole list.
    pub(super) tag: Tag,
    /// The JSON array of all rows.
    pub(super) json: Bytes,
    /// Where each row is in `json` and in `names`.
    pub(super) rows: Box<[Row]>,
    /// The identifiers and display names of all the agents, concatenated.
    pub(super) names: Box<str>,
    /// The decoded agents of a list of agents, made on first use.
    pub(super) agents: OnceLock<Vec<Agent>>,
    /// Another form of `json`, made on first use.
    pub(super) encoded: OnceCell<Bytes>,
    /// The cache that may keep this list, if it may be cached.
    pub(super) cache: Option<Arc<dyn ListCache>>,
}

/// The cache of a list.
pub(in crate::service) trait ListCache: std::fmt::Debug + Send + Sync {
    /// Whether the cache has this list.
    fn has(&self, list: &Arc<Whole>) -> bool;

    /// Tells the cache that the list takes more memory.
    fn update_size(&self, list: &Arc<Whole>);
}

/// Where the texts of one row end. Each text starts where the one before ends; in `json` one byte is between two.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) json: usize,
    pub(super) agent_id: usize,
    pub(super) display_name: usize,
}

impl Whole {
    /// The memory that the list takes.
    pub(super) fn bytes(&self) -> usize {
        // Decoded records take about twice the memory of their text.
        let agents = self.agents.get().map_or(0, |_| 2 * self.json.len());
        let encoded = self.encoded.get().map_or(0, Bytes::len);
        self.json.len() + size_of_val(&*self.rows) + self.names.len() + agents + encoded + OVERHEAD
    }

    /// The range of the texts of some agents in `json`, without the brackets.
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

impl ListText {
    pub(super) fn new(whole: Arc<Whole>) -> Self {
        let range = 0..whole.rows.len();
        Self { whole, range }
    }

    pub(super) fn whole(&self) -> &Arc<Whole> {
        &self.whole
    }

    /// The range of the rows that this list shows.
    pub(super) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    pub(super) fn tag(&self) -> Tag {
        self.whole.tag
    }

    /// The workspace's revision at which the list was read, or the one that [`AsOf::Revision`](crate::model::AsOf)
    /// names.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.list_agents(&ada, studio, &Default::default()).await?.value;
    /// let then = AgentFilter::default().as_of(AsOf::Revision(list.revision()));
    /// service.delete_agent(&ada, Some(studio), "writer", &Precondition::None).await?;
    /// assert_eq!(service.list_agents(&ada, studio, &then).await?.value.json(), list.json());
    /// # Ok(()) }) }
    /// ```
    pub fn revision(&self) -> u64 {
        self.whole.cursor.revision()
    }

    /// The position in the change feed at which the list was read: the changes after it lead from this list to the one
    /// now.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.list_agents(&ada, studio, &Default::default()).await?.value;
    /// assert!(service.changes(&ada, studio, list.cursor(), 100).await?.events.is_empty());
    /// # Ok(()) }) }
    /// ```
    pub fn cursor(&self) -> Cursor {
        self.whole.cursor
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

    /// How many rows the list has.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.list_agents(&ada, studio, &Default::default()).await?.value;
    /// assert_eq!(list.len(), 1);
    /// # Ok(()) }) }
    /// ```
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether the list has no row.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.list_agents(&ada, studio, &Default::default()).await?.value;
    /// assert!(!list.is_empty());
    /// # Ok(()) }) }
    /// ```
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The rows as a JSON array.
    ///
    /// Of a whole list nothing is copied; for a part of one see [`Self::json_parts`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.list_agents(&ada, studio, &Default::default()).await?.value;
    /// let body = list.json();
    /// assert_eq!(body.len(), list.json_len());
    /// # Ok(()) }) }
    /// ```
    pub fn json(&self) -> Bytes {
        if self.is_whole() {
            return self.shared(self.whole.json.clone());
        }
        Bytes::from([b"[", &self.whole.json[self.whole.span(&self.range)], b"]"].concat())
    }

    /// The pieces that are the rows as a JSON array when they are put together. Nothing is copied.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.list_agents(&ada, studio, &Default::default()).await?.value;
    /// assert_eq!(list.json_parts().concat(), list.json());
    /// # Ok(()) }) }
    /// ```
    pub fn json_parts(&self) -> Vec<Bytes> {
        if self.is_whole() {
            return vec![self.json()];
        }
        let agents = self.whole.json.slice(self.whole.span(&self.range));
        vec![Bytes::from_static(b"["), self.shared(agents), Bytes::from_static(b"]")]
    }

    /// The length of the JSON array.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.list_agents(&ada, studio, &Default::default()).await?.value;
    /// println!("Content-Length: {}", list.json_len());
    /// # Ok(()) }) }
    /// ```
    pub fn json_len(&self) -> usize {
        self.whole.span(&self.range).len() + "[]".len()
    }

    /// Another form of the JSON array, such as a compressed one, which `make` makes of its [parts](Self::json_parts).
    ///
    /// A whole list keeps that form and shares it like its text, so `make` must be the same in every call. It runs
    /// once for concurrent calls; when it fails or its caller is cancelled, the next call tries. A part of a
    /// list keeps nothing.
    ///
    /// # Errors
    ///
    /// What `make` gives.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.list_agents(&ada, studio, &Default::default()).await?.value;
    /// // A real one would compress.
    /// let lines = list.encoded(async |parts| Ok::<_, std::io::Error>([parts.concat(), b"\n".to_vec()].concat().into())).await?;
    /// assert_eq!(lines.len(), list.json_len() + 1);
    /// # Ok(()) }) }
    /// ```
    pub async fn encoded<F, E>(&self, make: impl FnOnce(Vec<Bytes>) -> F) -> Result<Bytes, E>
    where
        F: Future<Output = Result<Bytes, E>>,
    {
        if !self.is_whole() {
            return make(self.json_parts()).await;
        }
        if let Some(encoded) = self.whole.encoded.get() {
            return Ok(self.shared(encoded.clone()));
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
        Ok(self.shared(encoded))
    }

    /// Whether readers share the text: it is that of the current state. The text of an earlier moment belongs to one
    /// reader.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// assert!(service.list_agents(&ada, studio, &Default::default()).await?.value.is_shared());
    /// # Ok(()) }) }
    /// ```
    pub fn is_shared(&self) -> bool {
        self.whole.cache.is_some()
    }

    fn is_whole(&self) -> bool {
        self.range.len() == self.whole.rows.len()
    }

    /// Tells the cache that the list takes more memory now.
    pub(super) fn grew(&self) {
        if let Some(cache) = &self.whole.cache {
            cache.update_size(&self.whole);
        }
    }

    /// A text of this list for a response, which may hold it for long. While it is held, other requests find even a
    /// list that is too large for the cache.
    fn shared(&self, text: Bytes) -> Bytes {
        let Some(cache) = &self.whole.cache else { return text };
        if text.len() < LARGE || cache.has(&self.whole) {
            return text;
        }
        Bytes::from_owner(SharedText {
            text,
            _list: Arc::clone(&self.whole),
        })
    }
}

/// A text that keeps its list alive.
struct SharedText {
    text: Bytes,
    _list: Arc<Whole>,
}

impl AsRef<[u8]> for SharedText {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}
