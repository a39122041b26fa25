//! The status list as callers get it: its JSON text in pieces that requests share.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::sync::OnceCell;

use super::super::records;
use crate::error::Error;
use crate::model::AgentStatus;

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
    /// The array in pieces, of which there is at least one.
    pieces: Box<[StatusPiece]>,
    entries: usize,
    /// The length of the array.
    length: usize,
    /// Another form of the array, made on first use.
    encoded: OnceCell<Bytes>,
}

impl Texts {
    pub(super) fn new(pieces: Box<[StatusPiece]>, entries: usize) -> Self {
        Self {
            length: pieces.iter().map(|piece| piece.text().len()).sum(),
            pieces,
            entries,
            encoded: OnceCell::new(),
        }
    }
}

/// A piece of the text of a [`StatusList`]. Lists share the pieces in which nothing has changed between them, with what
/// callers derived from them. Clones share everything.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
/// # fn main() -> Outcome { run(async |service, ada, studio| {
/// let (first, second) = (service.status_list(&ada, studio).await?, service.status_list(&ada, studio).await?);
/// assert_eq!(first.pieces()[0].text().as_ptr(), second.pieces()[0].text().as_ptr());
/// # Ok(()) }) }
/// ```
#[derive(Debug, Clone)]
pub struct StatusPiece {
    shared: Arc<Piece>,
}

#[derive(Debug)]
struct Piece {
    text: Bytes,
    /// Another form of the text, made on first use.
    form: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl StatusPiece {
    pub(super) fn new(text: Bytes) -> Self {
        let form = OnceLock::new();
        Self {
            shared: Arc::new(Piece { text, form }),
        }
    }

    /// The JSON text of the piece.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.status_list(&ada, studio).await?;
    /// assert_eq!(*list.pieces()[0].text(), list.json(), "a short list is one piece");
    /// # Ok(()) }) }
    /// ```
    pub fn text(&self) -> &Bytes {
        &self.shared.text
    }

    /// Another form of the text, such as a compressed one. The piece keeps the form of the first call and shares it.
    ///
    /// # Errors
    ///
    /// What `make` gives; then the next call tries again.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.status_list(&ada, studio).await?;
    /// let length = list.pieces()[0].form(|text| Ok::<_, std::io::Error>(text.len()))?;
    /// assert_eq!(length, list.json_len());
    /// # Ok(()) }) }
    /// ```
    pub fn form<T: Clone + Send + Sync + 'static, E>(&self, make: impl FnOnce(&Bytes) -> Result<T, E>) -> Result<T, E> {
        let kept = self.shared.form.get().and_then(|form| form.downcast_ref::<T>());
        if let Some(kept) = kept {
            return Ok(kept.clone());
        }
        let made = make(&self.shared.text)?;
        // A concurrent call may have stored its form first. A caller with another type gets a form of its own each
        // time.
        let _ = self.shared.form.set(Box::new(made.clone()));
        Ok(made)
    }

    /// Whether the piece has another form already.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// assert!(!service.status_list(&ada, studio).await?.pieces()[0].has_form());
    /// # Ok(()) }) }
    /// ```
    pub fn has_form(&self) -> bool {
        self.shared.form.get().is_some()
    }
}

impl StatusList {
    pub(super) fn new(texts: Arc<Texts>) -> Self {
        Self { texts }
    }

    /// A list that is not shared, of these entries.
    pub(super) fn of(entries: &[AgentStatus]) -> Result<Self, Error> {
        let json = serde_json::to_vec(entries).map_err(records::not_written)?;
        let whole = StatusPiece::new(json.into());
        Ok(Self::new(Arc::new(Texts::new([whole].into(), entries.len()))))
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

    /// The entries as a JSON array. A list of several pieces is copied; see [`Self::json_parts`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.status_list(&ada, studio).await?;
    /// assert_eq!(list.json().len(), list.json_len());
    /// # Ok(()) }) }
    /// ```
    pub fn json(&self) -> Bytes {
        match self.pieces() {
            [whole] => whole.text().clone(),
            _ => self.json_parts().concat().into(),
        }
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
        self.texts.pieces.iter().map(|piece| piece.text().clone()).collect()
    }

    /// The pieces, of which there is at least one.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.status_list(&ada, studio).await?;
    /// assert_eq!(list.pieces().len(), list.json_parts().len());
    /// # Ok(()) }) }
    /// ```
    pub fn pieces(&self) -> &[StatusPiece] {
        &self.texts.pieces
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

    /// Another form of the JSON array, such as a compressed one, which `make` makes of its [pieces](Self::pieces).
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
    /// let form = list.encoded(async |pieces| Ok::<_, std::io::Error>(pieces[0].text().clone())).await?;
    /// assert_eq!(form, list.json());
    /// # Ok(()) }) }
    /// ```
    pub async fn encoded<F, E>(&self, make: impl FnOnce(Vec<StatusPiece>) -> F) -> Result<Bytes, E>
    where
        F: Future<Output = Result<Bytes, E>>,
    {
        let making = self.texts.encoded.get_or_try_init(|| make(self.pieces().to_vec()));
        making.await.cloned()
    }
}
