//! The order of keys in a transaction, and the first version of a key.

use agentcfg_core::store::Key;
use sha2::{Digest, Sha256};

/// The place of a key in the order in which all transactions lock rows: by kind, so that a statement can lock those of
/// several partitions, and then by key. The head of a log precedes each record that has a revision of it.
pub(super) type Order = (u8, Vec<u8>);

pub(super) fn order(key: &Key) -> Order {
    (key.kind() as u8, key.encode())
}

/// The first version of a key.
///
/// It is derived from the key, so that versions of different records differ: a client that compares one
/// record's entity tag with another record gets a mismatch.
pub(super) fn first_version(base: u64, key: &Key) -> u64 {
    let mut bytes = [0; 8];
    bytes[3..].copy_from_slice(&Sha256::digest(key.encode())[..5]);
    base + 1 + u64::from_be_bytes(bytes)
}
