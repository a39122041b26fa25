//! The records of the request path by their untyped keys.

use super::records;
pub(super) use super::records::{StoredApiKey, StoredUse, decode, encode, number};
use crate::model::WorkspaceId;
use crate::store::{Key, Partition};

pub(super) fn workspace(id: WorkspaceId) -> Key {
    records::workspace(id).into()
}

pub(super) fn member(workspace: WorkspaceId, user_id: &str) -> Key {
    records::member(workspace, user_id).into()
}

pub(super) fn api_key(key_id: &str) -> Key {
    records::api_key(key_id).into()
}

pub(super) fn key_use(key_id: &str) -> Key {
    records::key_use(key_id).into()
}

pub(super) fn memberships(user_id: &str) -> Partition {
    records::memberships(user_id)
}
