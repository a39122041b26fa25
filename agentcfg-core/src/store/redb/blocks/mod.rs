//! Block checksums: a read returns what was written, or fails.
//!
//! The engine verifies the checksums of its pages only in a check of the whole file. This backend sits between the
//! engine and the file and verifies a checksum for each block of 4 KiB at each read from the file. See [`layout`] for
//! the form of the file.
//!
//! The checksums are written right before each sync, so one sync covers the blocks and their checksums. The engine
//! never overwrites a block that a committed state refers to. So a power loss causes no false alarm, whichever unsynced
//! writes are missing or torn: each block of the committed state was synced together with its checksum, and a torn
//! write of the block of checksums changes only the checksums of other blocks.
//!
//! Each sync writes a seal into the head, the digest of all checksums. A start that finds it right knows, after reading
//! a thousandth of the file, that no block was replaced together with its checksum. Otherwise the engine verifies the
//! whole file, and no sync seals it before.

mod backend;
mod checksums;
mod contain;
mod head;
mod last_committed;
mod layout;
#[cfg(test)]
mod tests;

pub(super) use self::backend::{Blocks, WeakBlocks};
pub(super) use self::contain::{Broken, Damage, contained, damage_of};
pub(super) use self::head::HeadFault;
pub(super) use self::last_committed::{Freeze, Frozen};
pub(super) use self::layout::BLOCK;
