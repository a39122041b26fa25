//! Reading many records in pieces of bounded size.

use super::AgentCfg;
use super::blocking::{blocking_if, is_long};
use super::records::{self, Encoded, Entity, EntityKey, Entries, NumberKey, Query, Scanned, Stored};
use super::retry::Rounds;
use crate::error::Error;
use crate::model::WorkspaceId;

/// The greatest number of records in a piece.
pub(super) const RECORDS: usize = 256;
/// The length of the values at which a piece ends, in bytes. Records differ in size by a factor of ten thousand.
pub(super) const BYTES: usize = 512 << 10;

/// The records of one kind in pieces, each of them a snapshot of its own.
pub(super) struct Chunks<T> {
    /// The entries that were not read yet; `None` at the end.
    rest: Option<Entries<T>>,
}

impl<T: Entity> Chunks<T> {
    /// Reads these entries. Their limit, if they have one, becomes that of each piece.
    pub(super) fn of(entries: Entries<T>) -> Self {
        let records = entries.most().min(RECORDS);
        Self {
            rest: Some(entries.bounded(records, BYTES)),
        }
    }

    /// The next piece, of at least one record; `None` after the last one. Other tasks of the async worker run before
    /// it.
    ///
    /// Pieces are of several moments, so this suits records that never change, such as those of a log, and readers to
    /// which each record is a matter of its own.
    pub(super) async fn next(&mut self, service: &AgentCfg) -> Result<Option<Scanned<T>>, Error> {
        let next = self.next_with(service, Vec::<NumberKey>::new()).await?;
        Ok(next.map(|(found, _)| found).filter(|found| !found.is_empty()))
    }

    /// As [`Self::next`], with the records of a query in the same snapshot, such as the head of the log, which tells
    /// the moment. The last piece may have no records.
    pub(super) async fn next_with<Q: Query>(
        &mut self,
        service: &AgentCfg,
        query: Q,
    ) -> Result<Option<(Scanned<T>, Q::Found)>, Error> {
        let Some(entries) = self.rest.clone() else {
            return Ok(None);
        };
        tokio::task::yield_now().await;
        let (found, with) = service.scan_with(entries.clone(), query).await?;
        self.rest = match found.has_more() {
            true => Some(entries.after_item(found.last_item())),
            false => None,
        };
        Ok(Some((found, with)))
    }
}

/// The values of a piece; those of a long one are decoded on the blocking pool.
pub(super) async fn values<T: Entity + Send + 'static>(piece: Scanned<T>) -> Result<Vec<T>, Error> {
    decoded(piece, |record| record.value()).await
}

/// What each record of a piece is decoded to, for a long one on the blocking pool.
pub(super) async fn decoded<T: Entity + 'static, R: Send + 'static>(
    piece: Scanned<T>,
    decode: impl FnMut(Encoded<T>) -> Result<R, Error> + Send + 'static,
) -> Result<Vec<R>, Error> {
    let is_long = is_long(piece.len(), piece.bytes());
    blocking_if(is_long, move || piece.into_iter().map(decode).collect()).await?
}

impl AgentCfg {
    /// Reads records by their keys in one snapshot; long ones are decoded on the blocking pool.
    pub(super) async fn read_many<T: Entity + Send + 'static>(
        &self,
        keys: Vec<EntityKey<T>>,
    ) -> Result<Vec<Option<Stored<T>>>, Error> {
        let keys = keys.into_iter().map(EntityKey::encoded).collect::<Vec<_>>();
        let found: Vec<Option<Encoded<T>>> = self.read(keys).await?;
        let (count, bytes) = (found.len(), found.iter().flatten().map(Encoded::bytes).sum());
        let decode = move || {
            let found = found.into_iter();
            found.map(|record| record.map(Encoded::decode).transpose()).collect()
        };
        blocking_if(is_long(count, bytes), decode).await?
    }

    /// Reads the records of one kind together with others whose keys follow from theirs, all in one snapshot.
    pub(super) async fn scan_linked<T: Entity, Q: Query>(
        &self,
        entries: Entries<T>,
        query: impl Fn(&[EntityKey<T>]) -> Result<Q, Error>,
    ) -> Result<(Scanned<T>, Q::Found), Error> {
        let mut keys: Vec<EntityKey<T>> = Vec::new();
        let mut rounds = Rounds::default();
        loop {
            let (found, linked) = self.scan_with(entries.clone(), query(&keys)?).await?;
            if found.keys().eq(keys.iter().map(EntityKey::raw)) {
                return Ok((found, linked));
            }
            keys = found.into_keys().collect();
            rounds.lost().await?;
        }
    }

    /// Reads the entries of a log after a revision, up to another one at least, and returns the last that was read.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Gone`](crate::ErrorKind::Gone) where entries among them were removed.
    pub(super) async fn log_between<T: Entity + Send + 'static>(
        &self,
        workspace: WorkspaceId,
        mut read: u64,
        last: u64,
        mut visit: impl FnMut(T),
    ) -> Result<u64, Error> {
        let after = records::audit_entry::<T>(workspace, read);
        let mut pieces = Chunks::of(Entries::in_workspace(workspace).after(&after));
        while read < last {
            let found = pieces.next(self).await?;
            let next = found.as_ref().and_then(Scanned::first_key);
            let next = next.map(|key| key.entry_number()).transpose()?;
            let (Some(found), true) = (found, next == Some(read + 1)) else {
                let first = self.first_entry(workspace).await?;
                return Err(self.entries_are_removed(format_args!("revision {read}"), first));
            };
            for entry in values(found).await? {
                read += 1;
                visit(entry);
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use uuid::Uuid;

    use super::*;
    use crate::service::records::StoredEntry;
    use crate::store::{Batch, MemoryStore, Store, Write};

    #[tokio::test]
    async fn pieces_have_each_record_once_and_end_at_their_bytes() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let log = WorkspaceId::new(Uuid::from_u128(1));
        // Three of these have more bytes than a piece.
        for _ in 0..10 {
            let value = vec![b' '; 200_000];
            let writes = vec![Write::Append { log, value }];
            let checks = Vec::new();
            store.commit(Batch { checks, writes }).await.unwrap();
        }
        let service = AgentCfg::builder(store).build();
        let entries = || Entries::<StoredEntry>::in_workspace(log);
        let expected = [
            (entries(), vec![3, 3, 3, 1]),
            (entries().limit(2), vec![2; 5]),
            (entries().descending(), vec![3, 3, 3, 1]),
        ];
        for (entries, expected) in expected {
            let mut pieces = Chunks::of(entries);
            let (mut lengths, mut numbers) = (Vec::new(), Vec::new());
            while let Some(piece) = pieces.next(&service).await.unwrap() {
                lengths.push(piece.len());
                numbers.extend(piece.into_keys().map(|key| key.entry_number().unwrap()));
            }
            assert_eq!(lengths, expected);
            numbers.sort_unstable();
            assert_eq!(numbers, (1..=10).collect::<Vec<_>>());
        }
    }
}
