//! The agents of a workspace as one list, kept ready while the workspace's revision stands.

mod desk;
mod list;
mod write;

use std::sync::Arc;

use self::desk::Kept;
pub(super) use self::desk::Lists;
pub use self::list::AgentList;
pub(super) use self::write::Writer;
use super::AgentCfg;
use super::access::Access;
use super::schema;
use crate::error::Error;
use crate::model::Agent;
use crate::store::{Key, Kind, Partition, Scan};

/// So many attempts of others to make a list may fail before a waiting request tries on its own: where each failure
/// is a timeout, one after the other would take too long.
const PATIENCE: u64 = 2;

impl AgentCfg {
    /// All active agents of the workspace.
    pub(super) async fn agent_list(&self, access: &Access) -> Result<AgentList, Error> {
        let kept = self.inner.lists.get(access.workspace());
        if let Some(kept) = &kept
            && kept.stamp.is_some_and(|stamp| self.store().is_current(stamp))
        {
            return Ok(kept.list());
        }
        // The rest is rarer, and a future that holds it too would be moved about on every request.
        Box::pin(self.agent_list_at_revision(access, kept)).await
    }

    /// The list at the revision that the store says is the current one: what was kept, or one made anew.
    async fn agent_list_at_revision(&self, access: &Access, kept: Option<Kept>) -> Result<AgentList, Error> {
        let workspace = access.workspace();
        let head = Key::log_head(workspace);
        let stamp = self.store().stamp(&head);
        let revision = self.revision(access, &head).await?;
        let Some(list) = kept.map(|kept| kept.list()).filter(|list| list.revision() == revision) else {
            return self.make_list(access, revision).await;
        };
        if stamp.is_some() {
            self.inner.lists.keep(workspace, &list, stamp);
        }
        Ok(list)
    }

    /// The number of the last entry in the workspace's log.
    pub(super) async fn revision(&self, access: &Access, head: &Key) -> Result<u64, Error> {
        let record = match access.take_ahead() {
            Some(ahead) => ahead.head,
            None => self.store().get(std::slice::from_ref(head)).await?.pop().flatten(),
        };
        schema::number(head, record.as_ref())
    }

    /// Makes the list for all who want it now: one request reads it, and the others wait for that.
    async fn make_list(&self, access: &Access, seen: u64) -> Result<AgentList, Error> {
        let workspace = access.workspace();
        let desk = self.inner.lists.desk(workspace);
        let failures = desk.failures();
        let mut last = desk.turn().await;
        if let Some(list) = last.since(seen)
            && (list.revision() == seen || self.still_stands(access, &list).await?)
        {
            return Ok(list);
        }
        if desk.failures() - failures >= PATIENCE {
            drop(last);
            return self.read_list(access, None).await;
        }
        let stamp = self.store().stamp(&Key::log_head(workspace));
        let list = self.read_list(access, Some(Arc::clone(&desk))).await;
        match &list {
            Ok(list) => {
                last.set(list);
                self.inner.lists.keep(workspace, list, stamp);
            }
            Err(_) => desk.failed(),
        }
        list
    }

    /// Whether a list is one of this store. Revisions only grow, unless somebody restores an older state of a
    /// database under a running server.
    async fn still_stands(&self, access: &Access, list: &AgentList) -> Result<bool, Error> {
        let now = self.revision(access, &Key::log_head(access.workspace())).await?;
        Ok(now >= list.revision())
    }

    async fn read_list(&self, access: &Access, desk: Option<Arc<desk::Desk>>) -> Result<AgentList, Error> {
        let workspace = access.workspace();
        let head = Key::log_head(workspace);
        let scan = Scan::all(Partition::Workspace(workspace), Kind::Agent).with([head.clone()]);
        let scanned = self.store().scan(&scan).await?;
        let revision = schema::number(&head, scanned.with.first().and_then(Option::as_ref))?;
        // An agent's text is as long as its record.
        let mut list = Writer::new(scanned.entries.iter().map(|(_, record)| record.value.len()).sum());
        for (key, record) in scanned.entries {
            let agent: Agent = schema::decode(&key, &record)?;
            if agent.is_active {
                list.push(agent)?;
            }
        }
        Ok(list.finish(revision, desk))
    }
}
