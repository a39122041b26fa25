//! A list of agents as callers get it.

use std::ops::Deref;

use super::list_text::ListText;
use crate::error::{Error, ErrorKind};
use crate::model::{Agent, Tagged};

/// The agents that a filter chose, in the order of the list, with their JSON [text](ListText). Clones share everything.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
/// # fn main() -> Outcome { run(async |service, ada, studio| {
/// let list = service.list_agents(&ada, studio, &Default::default()).await?.value;
/// assert_eq!(list.len(), list.agents()?.len());
/// assert!(list.json().starts_with(b"[{"));
/// # Ok(()) }) }
/// ```
#[derive(Debug, Clone)]
pub struct AgentList {
    text: ListText,
    /// The version of the agent that the filter named.
    version: Option<u64>,
}

impl Deref for AgentList {
    type Target = ListText;

    fn deref(&self) -> &ListText {
        &self.text
    }
}

impl AgentList {
    pub(in crate::service) fn new(text: ListText) -> Self {
        Self { text, version: None }
    }

    /// The list of one agent, with its version.
    pub(in crate::service) fn with_version(self, version: Option<u64>) -> Self {
        Self { version, ..self }
    }

    /// The number of the version of the agent that [`AgentFilter::agent_id`](crate::model::AgentFilter::agent_id)
    /// names; `None` for a list of all agents and for an empty one.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let writer = AgentFilter::default().agent_id(Some("writer".parse()?));
    /// assert_eq!(service.list_agents(&ada, studio, &writer).await?.value.version(), Some(1));
    /// # Ok(()) }) }
    /// ```
    pub fn version(&self) -> Option<u64> {
        self.version
    }

    /// The text, without what belongs to agents alone.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.list_agents(&ada, studio, &Default::default()).await?.value;
    /// assert_eq!(list.clone().into_text().json(), list.json());
    /// # Ok(()) }) }
    /// ```
    pub fn into_text(self) -> ListText {
        self.text
    }

    pub(in crate::service) fn tagged(self) -> Tagged<Self> {
        Tagged {
            tag: self.text.tag(),
            value: self,
        }
    }

    /// A part of this list.
    pub(in crate::service) fn page(self, offset: usize, limit: usize) -> Self {
        Self {
            text: self.text.page(offset, limit),
            ..self
        }
    }

    /// The agents.
    ///
    /// They are decoded from the JSON text on first use, and then shared like it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`] when the text cannot be decoded, which is a fault of this library or of the machine.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.list_agents(&ada, studio, &Default::default()).await?.value;
    /// assert_eq!(list.agents()?[0].display_name, "Writer");
    /// # Ok(()) }) }
    /// ```
    pub fn agents(&self) -> Result<&[Agent], Error> {
        if let Some(agents) = self.text.whole().agents.get() {
            return Ok(self.shown(agents));
        }
        let decoded = decode(&self.text.whole().json)?;
        let agents = self.text.whole().agents.get_or_init(|| decoded);
        self.text.grew();
        Ok(self.shown(agents))
    }

    /// The agents, of which nothing is kept: a part of a long list is decoded without the rest.
    ///
    /// # Errors
    ///
    /// As [`Self::agents`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let first = AgentFilter::default().limit(1);
    /// let list = service.list_agents(&ada, studio, &first).await?.value;
    /// assert_eq!(list.decode()?, list.agents()?);
    /// # Ok(()) }) }
    /// ```
    pub fn decode(&self) -> Result<Vec<Agent>, Error> {
        decode(&self.json())
    }

    fn shown<'a>(&self, agents: &'a [Agent]) -> &'a [Agent] {
        agents.get(self.text.range()).unwrap_or_default()
    }
}

fn decode(json: &[u8]) -> Result<Vec<Agent>, Error> {
    serde_json::from_slice(json)
        .map_err(|error| Error::new(ErrorKind::Internal, "the list of agents could not be read").because(error))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock};

    use bytes::Bytes;
    use tokio::sync::OnceCell;

    use super::super::list_text::{Row, Whole};
    use super::*;
    use crate::model::Tag;

    #[test]
    fn a_list_that_cannot_be_decoded_is_an_error_and_not_empty() {
        let damaged = Whole {
            cursor: format!("k3j9x0ab-{}-c1", uuid::Uuid::nil()).parse().unwrap(),
            tag: Tag::list("k3j9x0ab".parse().unwrap(), 1),
            json: Bytes::from_static(b"[{}]"),
            rows: Box::new([Row {
                json: 3,
                agent_id: 0,
                display_name: 0,
            }]),
            names: "".into(),
            agents: OnceLock::new(),
            encoded: OnceCell::new(),
            cache: None,
        };
        let error = AgentList::new(ListText::new(Arc::new(damaged))).agents().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
    }
}
