//! The status list as callers get it: its JSON text in pieces that requests share.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::OnceCell;

/// The live status of the active agents of a workspace as JSON text, in the order of the list. Clones share everything.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
/// # fn main() -> Outcome { run(async |service, ada, studio| {
/// let list = service.status_list(&ada, studio).await?;
/// assert!(list.json().starts_with(br#"[{"agent_id":"writer""#));
/// # Ok(()) }) }
/// ```
#[derive(Debug, Clone)]
pub struct StatusList {
    texts: Arc<Texts>,
}

#[derive(Debug)]
pub(super) struct Texts {
    /// The entries in blocks, with the commas between them and without the brackets around them.
    blocks: Box<[Bytes]>,
    entries: usize,
    /// The length of the array.
    length: usize,
    /// Another form of the array, made on first use.
    encoded: OnceCell<Bytes>,
}

impl Texts {
    pub(super) fn new(blocks: Box<[Bytes]>, entries: usize) -> Self {
        Self {
            length: blocks.iter().map(Bytes::len).sum::<usize>() + "[]".len(),
            blocks,
            entries,
            encoded: OnceCell::new(),
        }
    }
}

impl StatusList {
    pub(super) fn new(texts: Arc<Texts>) -> Self {
        Self { texts }
    }

    /// How many entries there are.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// assert_eq!(service.status_list(&ada, studio).await?.len(), 1);
    /// # Ok(()) }) }
    /// ```
    pub fn len(&self) -> usize {
        self.texts.entries
    }

    /// Whether there is no entry, because there is no active agent.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// assert!(!service.status_list(&ada, studio).await?.is_empty());
    /// # Ok(()) }) }
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries as a JSON array. They are copied; for a long list see [`Self::json_parts`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.status_list(&ada, studio).await?;
    /// assert_eq!(list.json().len(), list.json_len());
    /// # Ok(()) }) }
    /// ```
    pub fn json(&self) -> Bytes {
        self.json_parts().concat().into()
    }

    /// The pieces that are the entries as a JSON array when they are put together. Nothing is copied.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.status_list(&ada, studio).await?;
    /// assert_eq!(list.json_parts().concat(), list.json());
    /// # Ok(()) }) }
    /// ```
    pub fn json_parts(&self) -> Vec<Bytes> {
        let bracket = |text| std::iter::once(Bytes::from_static(text));
        let blocks = self.texts.blocks.iter().cloned();
        bracket(b"[").chain(blocks).chain(bracket(b"]")).collect()
    }

    /// The length of the JSON array.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// println!("Content-Length: {}", service.status_list(&ada, studio).await?.json_len());
    /// # Ok(()) }) }
    /// ```
    pub fn json_len(&self) -> usize {
        self.texts.length
    }

    /// Another form of the JSON array, such as a compressed one, which `make` makes of its [parts](Self::json_parts).
    ///
    /// The list keeps that form and shares it like its text, so `make` must be the same in every call. It runs once for
    /// concurrent calls; when it fails or its caller is cancelled, the next call tries.
    ///
    /// # Errors
    ///
    /// What `make` gives.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.status_list(&ada, studio).await?;
    /// // A real one would compress.
    /// let lines = list.encoded(async |parts| Ok::<_, std::io::Error>([parts.concat(), b"\n".to_vec()].concat().into())).await?;
    /// assert_eq!(lines.len(), list.json_len() + 1);
    /// # Ok(()) }) }
    /// ```
    pub async fn encoded<F, E>(&self, make: impl FnOnce(Vec<Bytes>) -> F) -> Result<Bytes, E>
    where
        F: Future<Output = Result<Bytes, E>>,
    {
        let making = self.texts.encoded.get_or_try_init(|| make(self.json_parts()));
        making.await.cloned()
    }
}
