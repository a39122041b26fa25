//! The keys of a statement on many rows.

use agentcfg_core::store::{Key, PartitionKind, StoreError};

use super::super::pipeline::Param;
use super::super::table::{Location, Table};

/// The keys of a statement as arrays.
pub(super) struct Keys {
    pub(super) scopes: Param,
    pub(super) items: Vec<String>,
}

impl Keys {
    pub(super) fn of<'k>(table: &Table, keys: impl Iterator<Item = &'k Key>) -> Result<Self, StoreError> {
        let (mut uuids, mut names, mut items) = (Vec::new(), Vec::new(), Vec::new());
        for key in keys {
            match Location::of_key(key)?.scope {
                Param::Uuid(id) => uuids.push(id),
                Param::Text(name) => names.push(name),
                other => return Err(StoreError::Misuse(format!("{key:?} has no place: {other:?}"))),
            }
            items.push(key.item().to_owned());
        }
        let scopes = match table.kind.partition_kind() {
            PartitionKind::Workspace => Param::Uuids(uuids),
            PartitionKind::Global => Param::Texts(names),
        };
        Ok(Self { scopes, items })
    }

    /// The scopes of the keys, each once, and for each key the place of its own among them, from 1 on. Keys of one
    /// scope follow each other.
    pub(super) fn workspaces(&self) -> (Param, Param) {
        let (mut workspaces, mut places) = (Vec::new(), Vec::new());
        if let Param::Uuids(scopes) = &self.scopes {
            for scope in scopes {
                if workspaces.last() != Some(scope) {
                    workspaces.push(*scope);
                }
                places.push(workspaces.len() as i64);
            }
        }
        (Param::Uuids(workspaces), Param::Numbers(places))
    }

    /// Each key as a scope and an item.
    pub(super) fn names(&self) -> Vec<(Param, String)> {
        scopes(&self.scopes).into_iter().zip(self.items.clone()).collect()
    }
}

/// Each scope of an array of scopes.
fn scopes(array: &Param) -> Vec<Param> {
    match array {
        Param::Uuids(ids) => ids.iter().copied().map(Param::Uuid).collect(),
        Param::Texts(names) => names.iter().cloned().map(Param::Text).collect(),
        _ => Vec::new(),
    }
}
