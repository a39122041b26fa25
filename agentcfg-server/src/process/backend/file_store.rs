//! Opening the store in a data directory, with its share of the caches.

use std::path::Path;

use agentcfg_core::AgentCfg;
use agentcfg_core::error::causes;
use agentcfg_core::store::redb::{CompactError, Compacted, RedbOptions, RedbStore};

use super::BackendError;
use crate::process::datadir::{DataDir, DataLock};

/// The shares of the caches of a server, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheShares {
    /// Pages of the file. A small share: the operating system caches the file too, and a read of many pages, such as an
    /// export, must not fill the memory of the process.
    pub pages: u64,
    /// Records that are read often.
    pub records: u64,
    /// Lists of agents.
    pub lists: u64,
}

impl CacheShares {
    /// The shares of the setting `cache_mb`.
    pub fn of(cache_mb: u64) -> Self {
        let all = cache_mb << 20;
        let pages = all / 8;
        let records = (all - pages) / 2;
        Self {
            pages,
            records,
            lists: all - pages - records,
        }
    }
}

/// Opens the store in a data directory that this process holds.
///
/// # Errors
///
/// [`BackendError::Store`] with advice for the operator.
pub fn open_store(lock: &DataLock, cache_mb: u64) -> Result<RedbStore, BackendError> {
    open_file(&lock.dir().store_path(), lock.dir(), cache_mb)
}

/// Opens the store in a data directory for reads and backups, and changes no byte of it.
///
/// # Errors
///
/// [`BackendError::Store`] with advice for the operator.
pub fn open_store_to_read(dir: &DataDir, cache_mb: u64) -> Result<RedbStore, BackendError> {
    RedbStore::open_to_read(dir.store_path(), options(cache_mb)).map_err(|source| BackendError::in_dir(dir, source))
}

/// Finishes the removal of deleted workspaces, so that a compacted file has nothing of them.
///
/// # Errors
///
/// Why it could not, in a sentence. The file can be compacted all the same.
pub async fn finish_removals(service: &AgentCfg) -> Result<(), String> {
    let removed = service.remove_deleted_workspaces().await;
    removed.map(drop).map_err(|error| {
        let why = causes(&error).map(ToString::to_string).collect::<Vec<_>>().join(": ");
        format!("the file still has records of deleted workspaces, whose removal failed: {why}")
    })
}

/// Compacts the file of a store. `say` gets a line about the progress now and then; the last one is returned.
///
/// # Errors
///
/// When the store is damaged, or there is no room for the new file.
pub fn compact(store: &RedbStore, mut say: impl FnMut(String) + Send + 'static) -> Result<String, CompactError> {
    let done = store.compact(move |records| say(format!("copied {records} records")))?;
    let Compacted {
        records,
        bytes_before,
        bytes_after,
        ..
    } = done;
    Ok(format!(
        "compacted {records} records: {bytes_before} bytes before, {bytes_after} bytes now"
    ))
}

pub(super) fn open_file(path: &Path, dir: &DataDir, cache_mb: u64) -> Result<RedbStore, BackendError> {
    RedbStore::open(path, options(cache_mb)).map_err(|source| BackendError::in_dir(dir, source))
}

fn options(cache_mb: u64) -> RedbOptions {
    let shares = CacheShares::of(cache_mb);
    let bytes = |share| usize::try_from(share).unwrap_or(usize::MAX);
    RedbOptions::default()
        .cache_bytes(bytes(shares.pages))
        .hot_bytes(bytes(shares.records))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use agentcfg_core::model::{NewAgent, NewWorkspace, Plan};
    use bytes::Bytes;

    use super::*;
    use crate::process::config::Config;
    use crate::process::server::Server;

    /// Whether a list of 600 KB stays cached after its reader has dropped it.
    async fn keeps_a_long_list(cache_mb: u64) -> bool {
        let place = tempfile::tempdir().unwrap();
        let config = Config {
            data: place.path().join("data"),
            cache_mb,
            default_plan: Plan::Enterprise,
            ..Config::default()
        };
        let server = Server::open(config).await.unwrap();
        let service = server.service();
        let ada = service.trusted_user("ada").unwrap();
        let new = NewWorkspace::new("Studio");
        let workspace = service.create_workspace(&ada, new).await.unwrap().id;
        for number in 0..30 {
            let mut agent = NewAgent::new(workspace, format!("a{number}").parse().unwrap(), "A");
            agent.persona_prompt = Some("\u{10ffff}".repeat(5000));
            service.create_agent(&ada, agent).await.unwrap();
        }
        // Another form of the list is made once, as long as the list is cached.
        let made = AtomicUsize::new(0);
        for _ in 0..2 {
            let list = service.list_agents(&ada, workspace, &Default::default()).await.unwrap();
            let make = |_| async {
                made.fetch_add(1, Ordering::Relaxed);
                Ok::<_, Infallible>(Bytes::new())
            };
            list.value.encoded(make).await.unwrap();
        }
        made.into_inner() == 1
    }

    #[tokio::test]
    async fn the_cache_setting_bounds_the_lists_too() {
        let CacheShares { pages, records, lists } = CacheShares::of(192);
        assert_eq!(pages + records + lists, 192 << 20);
        assert!(keeps_a_long_list(192).await);
        assert!(
            keeps_a_long_list(2).await,
            "one list can have more than half of their share"
        );
        assert!(!keeps_a_long_list(1).await);
    }
}
