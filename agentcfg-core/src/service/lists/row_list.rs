//! A list with rows of one type, as callers get it.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::DeserializeOwned;

use super::list_text::ListText;
use crate::error::{Error, ErrorKind};
use crate::model::Tagged;

/// Rows of one type, with their JSON [text](ListText). Clones share everything.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
/// # fn main() -> Outcome { run(async |service, ada, studio| {
/// let list = service.released(&ada, studio, "latest", None).await?.value;
/// assert_eq!(list.len(), list.decode()?.len());
/// # Ok(()) }) }
/// ```
pub struct RowList<T> {
    text: ListText,
    rows: PhantomData<fn() -> T>,
}

impl<T> Clone for RowList<T> {
    fn clone(&self) -> Self {
        Self::new(self.text.clone())
    }
}

impl<T> fmt::Debug for RowList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RowList").field(&self.text).finish()
    }
}

impl<T> Deref for RowList<T> {
    type Target = ListText;

    fn deref(&self) -> &ListText {
        &self.text
    }
}

impl<T> RowList<T> {
    pub(in crate::service) fn new(text: ListText) -> Self {
        Self {
            text,
            rows: PhantomData,
        }
    }

    pub(super) fn tagged(text: ListText) -> Tagged<Self> {
        Tagged {
            tag: text.tag(),
            value: Self::new(text),
        }
    }

    /// The first rows, at most this many.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.current_versions(&ada, Some(studio)).await?;
    /// assert_eq!((list.len(), list.first(0).len()), (1, 0));
    /// # Ok(()) }) }
    /// ```
    #[must_use]
    pub fn first(self, limit: usize) -> Self {
        Self::new(self.text.page(0, limit))
    }

    /// The text, without the type of its rows.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.released(&ada, studio, "latest", None).await?.value;
    /// assert_eq!(list.clone().into_text().json(), list.json());
    /// # Ok(()) }) }
    /// ```
    pub fn into_text(self) -> ListText {
        self.text
    }
}

impl<T: DeserializeOwned> RowList<T> {
    /// The rows.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`] when the text cannot be decoded, which is a fault of this library or of the machine.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.released(&ada, studio, "latest", None).await?.value;
    /// assert_eq!(list.decode()?[0].config.display_name, "Writer");
    /// # Ok(()) }) }
    /// ```
    pub fn decode(&self) -> Result<Vec<T>, Error> {
        serde_json::from_slice(&self.json())
            .map_err(|error| Error::new(ErrorKind::Internal, "the list could not be read").because(error))
    }
}
