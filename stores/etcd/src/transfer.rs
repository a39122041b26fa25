//! Export and import of a whole store as one stream, to migrate it from one engine to another.
//!
//! An import is many transactions. So the facts of the store say that it is under way, and until it has ended, no
//! server opens the store; the next import removes what an earlier one has left. The records keep the versions of the
//! stream, which their envelopes name. Later versions are greater, because the facts have the greatest version of the
//! stream as their base.

use std::io::{BufReader, BufWriter, Read, Write};
use std::sync::atomic::Ordering;

use agentcfg_core::store::{
    BUILD_FIELD, BuildField, Digesting, Key, StoreError, StreamReader, StreamWriter, TransferError, Transferred,
    envelope,
};
use tokio::time::Instant;

use super::error::{CallFailure, Refusal};
use super::health::MAX_BYTES;
use super::layout::{ClusterFacts, Imported};
use super::protocol::{Headed, KeyValue, RangeRequest, RangeResponse, RequestOp, TxnRequest, path};
use super::transaction_outcome::TransactionOutcome;
use super::{EtcdOptions, EtcdStore, layout};

/// The greatest number of records that one request reads or writes.
const RECORDS: usize = 500;
/// The greatest number of bytes that several records have together in one transaction. A longer record is compressed,
/// and alone.
const BYTES: usize = 1 << 20;

impl EtcdStore {
    /// Connects as [`EtcdStore::connect`] does, and also to a store whose import was cut off.
    ///
    /// # Errors
    ///
    /// See [`ConnectError`](super::ConnectError).
    ///
    /// ```no_run
    /// # async fn example(options: agentcfg_etcd::EtcdOptions) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_etcd::EtcdStore;
    /// let store = EtcdStore::connect_to_import(&options).await?;
    /// store.import(std::fs::File::open("agentcfg.backup")?).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect_to_import(options: &EtcdOptions) -> Result<Self, super::ConnectError> {
        Self::open(options, true).await
    }

    /// Fails while other processes are connected to this store.
    ///
    /// A process that was killed counts as connected until its lease expires, which takes half a minute.
    ///
    /// # Errors
    ///
    /// [`TransferError::InUse`].
    ///
    /// ```no_run
    /// # async fn example(store: agentcfg_etcd::EtcdStore) -> Result<(), Box<dyn std::error::Error>> {
    /// store.require_unused().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn require_unused(&self) -> Result<(), TransferError> {
        let (first, end) = self.cluster.layout.servers();
        let servers = RangeRequest {
            keys_only: true,
            ..RangeRequest::between(first, end)
        };
        let found: RangeResponse = self.ask(path::RANGE, &servers).await?;
        let own = self.cluster.layout.server(self.cluster.identity.process());
        match found.kvs.iter().filter(|server| server.key != own).count() {
            0 => Ok(()),
            others => Err(TransferError::InUse(i64::try_from(others).unwrap_or(i64::MAX))),
        }
    }

    /// Whether an import into this store was begun and has not succeeded. The next import begins again.
    ///
    /// # Errors
    ///
    /// When the cluster does not answer.
    ///
    /// ```no_run
    /// # async fn example(options: agentcfg_etcd::EtcdOptions) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_etcd::EtcdStore;
    /// let store = EtcdStore::connect_to_import(&options).await?;
    /// println!("{}", store.has_unfinished_import().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn has_unfinished_import(&self) -> Result<bool, TransferError> {
        Ok(self.facts().await?.is_importing)
    }

    /// Writes a consistent snapshot of all records in the backup format of the embedded store.
    ///
    /// # Errors
    ///
    /// See [`TransferError`].
    ///
    /// ```no_run
    /// # async fn example(store: agentcfg_etcd::EtcdStore) -> Result<(), Box<dyn std::error::Error>> {
    /// let exported = store.export(std::fs::File::create("agentcfg.backup")?).await?;
    /// println!("{} records", exported.records);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn export(&self, out: impl Write) -> Result<Transferred, TransferError> {
        let facts = self.facts().await?;
        self.write_all(out, &BUILD_FIELD, &facts).await
    }

    /// Imports a backup of the embedded store, or an [export](Self::export), into a store without records, and verifies
    /// it by reading all records back.
    ///
    /// No server opens the store before the import has succeeded. An import that failed or was cut off is repeated.
    ///
    /// # Errors
    ///
    /// See [`TransferError`].
    ///
    /// ```no_run
    /// # async fn example(store: agentcfg_etcd::EtcdStore) -> Result<(), Box<dyn std::error::Error>> {
    /// let imported = store.import(std::fs::File::open("agentcfg.backup")?).await?;
    /// println!("{} records", imported.records);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn import(&self, input: impl Read) -> Result<Transferred, TransferError> {
        let facts = self.facts().await?;
        if !facts.is_importing {
            let there = self.export(std::io::sink()).await?;
            if there.records > 0 {
                return Err(TransferError::NotEmpty(there.records));
            }
        }
        let begun = ClusterFacts {
            is_importing: true,
            imported: None,
            ..facts.clone()
        };
        self.put_facts(&begun).await?;
        // The epoch of the empty store goes as well, and what an earlier import has left.
        let (first, end) = self.cluster.layout.records();
        self.write(vec![RequestOp::delete_range(first, end)]).await?;
        let mut input = Digesting::new(input);
        let (build, sequence) = self.read_all(&mut input).await?;
        let base = facts.base.max(sequence);
        self.cluster.base.store(base, Ordering::Relaxed);
        let (revision, _) = self.last_change().await?;
        let imported = Imported { revision };
        let ended = ClusterFacts {
            base,
            is_importing: false,
            imported: Some(imported),
            ..facts
        };
        // The digest has the sequence in it, which depends on the facts.
        let arrived = self.write_all(std::io::sink(), &build, &ended).await?;
        if arrived.digest != input.digest() {
            return Err(TransferError::VerificationFailed);
        }
        self.put_facts(&ended).await?;
        Ok(arrived)
    }

    async fn ask<Q, A>(&self, path: &'static str, request: &Q) -> Result<A, StoreError>
    where
        Q: prost::Message + Clone + 'static,
        A: prost::Message + Default + Headed + 'static,
    {
        let deadline = self.cluster.read_deadline();
        self.cluster
            .client
            .repeat(path, request, deadline)
            .await
            .map_err(CallFailure::of_read)
    }

    async fn facts(&self) -> Result<ClusterFacts, StoreError> {
        let found: RangeResponse = self
            .ask(path::RANGE, &RangeRequest::key(self.cluster.layout.facts()))
            .await?;
        let facts = found
            .kvs
            .first()
            .and_then(|stored| serde_json::from_slice(&stored.value).ok());
        facts.ok_or_else(|| StoreError::Corrupt("the facts of the store cannot be read".into()))
    }

    async fn put_facts(&self, facts: &ClusterFacts) -> Result<(), StoreError> {
        let text = serde_json::to_vec(facts).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        self.write(vec![RequestOp::put(self.cluster.layout.facts(), text, 0)])
            .await
    }

    /// Executes changes exactly once: one whose answer is lost could arrive after a later change.
    async fn write(&self, success: Vec<RequestOp>) -> Result<(), StoreError> {
        let cluster = &self.cluster;
        let deadline = Instant::now() + cluster.commit_timeout;
        loop {
            let txn = TxnRequest {
                success: success.clone(),
                ..TxnRequest::default()
            };
            match cluster
                .identity
                .send(&cluster.client, &cluster.layout, txn, deadline)
                .await?
            {
                TransactionOutcome::Executed(_) => return Ok(()),
                TransactionOutcome::Nothing(why) if Instant::now() >= deadline => {
                    return Err(StoreError::Unavailable(why));
                }
                TransactionOutcome::Nothing(_) | TransactionOutcome::Refused(_) => {}
            }
        }
    }

    /// Writes the records of a stream; returns the build that made it, and the greatest version of its store.
    async fn read_all(&self, input: impl Read) -> Result<(BuildField, u64), TransferError> {
        let mut stream = StreamReader::begin(BufReader::new(input))?;
        let sequence = stream.sequence;
        let (mut puts, mut bytes) = (Vec::new(), 0);
        while let Some((key, sealed)) = stream.next()? {
            envelope::open(&key, &sealed)?;
            if Key::decode(&key).is_none() {
                return Err(TransferError::Damaged(format!(
                    "{} is no key",
                    envelope::describe(&key)
                )));
            }
            let sealed = match sealed.len() > BYTES {
                true => layout::compress(sealed),
                false => sealed,
            };
            let length = key.len() + sealed.len();
            if length > MAX_BYTES {
                let why = format!(
                    "record {} has {length} bytes after compression",
                    envelope::describe(&key)
                );
                return Err(StoreError::TooLarge(why).into());
            }
            if puts.len() >= RECORDS || bytes + length > BYTES && !puts.is_empty() {
                self.write(std::mem::take(&mut puts)).await?;
                bytes = 0;
            }
            bytes += length;
            puts.push(RequestOp::put(self.cluster.layout.record(&key), sealed, 0));
        }
        if !puts.is_empty() {
            self.write(puts).await?;
        }
        Ok((stream.build, sequence))
    }

    async fn write_all(
        &self,
        out: impl Write,
        build: &BuildField,
        facts: &ClusterFacts,
    ) -> Result<Transferred, TransferError> {
        let (last, revision) = self.last_change().await?;
        let base = self.cluster.base();
        // As long as nothing was changed since an import, the greatest version is that of the stream.
        let sequence = match facts.imported {
            Some(imported) if last <= imported.revision => base,
            _ => layout::version(base, last),
        };
        let mut digesting = Digesting::new(out);
        let mut stream = StreamWriter::begin_as(BufWriter::new(&mut digesting), sequence, build)?;
        let mut pages = Pages::of(self, revision);
        while let Some(page) = pages.next().await? {
            for stored in &page {
                let key = self.cluster.layout.encoded(&stored.key);
                let record = layout::open(base, key, stored)?.record;
                stream.record(key, &envelope::seal(key, record.version, &record.value))?;
            }
        }
        let records = stream.end()?;
        let digest = digesting.digest();
        Ok(Transferred {
            records,
            sequence,
            digest,
        })
    }

    /// The revision of the last change of a record, deletions included, and the revision that this was read at. The
    /// epoch does not count, because no stream has it.
    async fn last_change(&self) -> Result<(i64, i64), TransferError> {
        let deleted = RangeRequest::key(self.cluster.layout.deleted());
        let deleted: RangeResponse = self.ask(path::RANGE, &deleted).await?;
        let revision = deleted.header.map_or(0, |header| header.revision);
        let mut last = deleted.kvs.first().map_or(0, |stored| stored.mod_revision);
        let epoch = self.cluster.layout.record(&Key::epoch().encode());
        let mut pages = Pages {
            keys_only: true,
            ..Pages::of(self, revision)
        };
        while let Some(page) = pages.next().await? {
            let records = page.iter().filter(|stored| stored.key != epoch);
            last = records.map(|stored| stored.mod_revision).fold(last, i64::max);
        }
        Ok((last, revision))
    }
}

/// All records at one revision, a page at a time.
struct Pages<'a> {
    store: &'a EtcdStore,
    revision: i64,
    keys_only: bool,
    /// Where the next page begins; `None` after the last one.
    first: Option<Vec<u8>>,
}

impl<'a> Pages<'a> {
    fn of(store: &'a EtcdStore, revision: i64) -> Self {
        Self {
            store,
            revision,
            keys_only: false,
            first: Some(store.cluster.layout.records().0),
        }
    }

    async fn next(&mut self) -> Result<Option<Vec<KeyValue>>, TransferError> {
        let Some(first) = self.first.take() else {
            return Ok(None);
        };
        let cluster = &self.store.cluster;
        let request = RangeRequest {
            limit: RECORDS as i64,
            revision: self.revision,
            keys_only: self.keys_only,
            ..RangeRequest::between(first, cluster.layout.records().1)
        };
        let page = cluster
            .client
            .repeat(path::RANGE, &request, cluster.read_deadline())
            .await;
        let page: RangeResponse = page.map_err(|failure| match failure {
            CallFailure::Refused(Refusal::Compacted) => {
                StoreError::Unavailable("the cluster compacted the revision of the export: try again".into())
            }
            other => other.of_read(),
        })?;
        if page.more {
            self.first = page.kvs.last().map(|last| [&last.key[..], &[0]].concat());
        }
        Ok(Some(page.kvs))
    }
}
