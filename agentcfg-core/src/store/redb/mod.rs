//! The embedded store: one file, without a database server.
//!
//! Each read runs on the caller's thread in its own snapshot. One writer thread does group commit: it
//! applies the queued batches in one transaction, syncs once, and then answers each batch. After an
//! engine failure the writer thread reopens the file with exponential back-off; until that succeeds,
//! each call returns [`StoreError::Unavailable`](super::StoreError::Unavailable).
//!
//! # The form of a backup
//!
//! All numbers are big-endian.
//!
//! | part | bytes |
//! | --- | --- |
//! | head | the 8 bytes `AGENTCFG`, the [format](super::FORMAT) (4), the build that made it, then zeros (32), the store's version sequence (8) |
//! | each record, keys ascending | `01`, length of the key (4), length of the envelope (4), key, envelope |
//! | end | `00`, the number of records (8), CRC-32 of everything before it (4) |
//!
//! No bytes follow the end. A truncated stream lacks the end, and a modified stream fails the
//! checksum. Keys are encoded by [`Key::encode`](super::Key::encode), records by
//! [`envelope::seal`](super::envelope::seal).

mod agent_counts;
mod backup;
mod blocks;
mod check;
mod checkpoint;
mod compact;
mod compacted;
mod draft;
mod error;
mod health;
mod open;
mod opened_file;
mod options;
mod overlay;
mod queue;
mod read;
mod record_cache;
mod recovery;
mod room;
mod schema;
mod scrub;
mod shared_state;
mod store;
#[cfg(test)]
mod tests;
mod writer;

pub use self::backup::{BackupError, BackupSummary, RestoreError, restore, verify_backup};
pub use self::check::{CheckReport, Problem, check};
pub use self::compacted::{CompactError, Compacted};
pub use self::error::OpenError;
pub use self::options::RedbOptions;
pub use self::scrub::{Condition, Scrub};
pub use self::shared_state::Status;
pub use self::store::RedbStore;
