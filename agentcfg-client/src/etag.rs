//! Entity tags: versions of records and lists.

use std::fmt;

use agentcfg_core::model::Expected;

/// The entity tag of a response, exactly as the server sent it.
///
/// Pass it to [`Precondition::matches`](agentcfg_core::model::Precondition::matches) to change a
/// record only if it is still this version, or to
/// [`Client::list_agents_if_changed`](crate::Client::list_agents_if_changed) to skip a list that did not change.
///
/// ```
/// use agentcfg_client::{Etag, model::Precondition};
/// let etag = Etag::from("\"k3j9x0ab-a7\"");
/// let unchanged = Precondition::matches(&etag);
/// assert!(unchanged.is_met_by("k3j9x0ab-a7".parse()?));
/// # Ok::<(), agentcfg_client::model::InvalidTag>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Etag(Box<str>);

impl Etag {
    /// A tag that matches no record. It replaces a header that a proxy removed: a conditional
    /// change with it fails with 412 instead of overwriting a newer version.
    pub(crate) fn unmatched() -> Self {
        Self("\"\"".into())
    }

    /// The tag with its quotes.
    ///
    /// ```
    /// use agentcfg_client::Etag;
    /// let stored = Etag::from("\"k3j9x0ab-a7\"").as_str().to_owned();
    /// assert_eq!(Etag::from(stored).as_str(), "\"k3j9x0ab-a7\"");
    /// ```
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Restores a tag that was stored as text, quotes included.
impl From<&str> for Etag {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

/// Restores a tag that was stored as text, quotes included.
impl From<String> for Etag {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

/// As a condition. A tag that a proxy has changed is sent back as it came.
impl From<&Etag> for Expected {
    fn from(etag: &Etag) -> Self {
        let text = etag.0.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let tag = text.and_then(|text| text.parse().ok());
        tag.map_or_else(|| Self::Unknown(etag.to_string()), Self::Tag)
    }
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A value with the entity tag of its version.
///
/// ```no_run
/// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
/// if let Some(writer) = client.get_agent(workspace, "writer").await? {
///     println!("{:?} is the version {}", writer.value.role, writer.etag);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Tagged<T> {
    /// The value.
    pub value: T,
    /// The entity tag of this version. If a proxy removed the header, a tag that matches nothing.
    pub etag: Etag,
}
