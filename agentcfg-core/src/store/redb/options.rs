//! The options of a store.

use std::time::Duration;

use crate::model::into_field::settable;

settable! {
    /// Memory limits, queue limits and retry pauses of a [`RedbStore`](super::RedbStore).
    ///
    /// ```
    /// use agentcfg_core::store::redb::RedbOptions;
    /// let small = RedbOptions::default().cache_bytes(8 << 20).hot_bytes(8 << 20);
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    RedbOptions {
        /// Size of the engine's page cache in bytes.
        cache_bytes: usize,
        /// Size of the cache of hot records in bytes. Reading a cached record needs no transaction.
        hot_bytes: usize,
        /// Capacity of the writer's queue in batches. A commit to a full queue returns
        /// [`StoreError::Unavailable`](super::super::StoreError::Unavailable) (back-pressure).
        queue_depth: usize,
        /// The most batches in one group commit, which bounds how long each of them waits; 0 counts as 1.
        group_size: usize,
        /// Length of the file in bytes from which it gets checkpoints: a commit also saves which pages of the file are
        /// free, unless another one did a short while ago, and then the idle writer saves it. A start after a crash
        /// reads the whole file to find them if the last commit did not.
        checkpoint_from: u64,
        /// After a failure, the pause before the second attempt to reopen the file. The pause doubles
        /// with each further attempt.
        min_backoff: Duration,
        /// The upper bound of the pause between two attempts.
        max_backoff: Duration,
    }
}

impl Default for RedbOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 64 << 20,
            hot_bytes: 64 << 20,
            queue_depth: 1024,
            group_size: 1024,
            checkpoint_from: 256 << 20,
            min_backoff: Duration::from_millis(50),
            max_backoff: Duration::from_secs(5),
        }
    }
}
