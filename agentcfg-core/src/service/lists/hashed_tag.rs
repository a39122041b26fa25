//! Tags by a hash of what is shown.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use crate::model::{AgentId, Epoch, Tag};

/// The tag of a text: equal texts have equal tags, on each server. That of a caller who may see some agents alone has
/// another tag than that of all.
pub(super) fn hashed(epoch: Epoch, text: &[u8], limits: Option<&BTreeSet<AgentId>>) -> Tag {
    let mut hash = Sha256::new_with_prefix(text);
    for agent_id in limits.into_iter().flatten() {
        hash.update([0]);
        hash.update(agent_id.as_bytes());
    }
    let hash = hash.finalize();
    let start = hash.first_chunk().copied().unwrap_or_default();
    Tag::state(epoch, u64::from_be_bytes(start))
}
