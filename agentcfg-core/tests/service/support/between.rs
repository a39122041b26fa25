//! A store that runs a change of another client before a call: the interleaving that a test asks for.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use agentcfg_core::store::{Batch, CommitError, Committed, Key, Kind, Record, Scan, Scanned, Store, StoreError};

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A call of a store that names a kind of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Get(Kind),
    Scan(Kind),
    /// A commit that writes such a record.
    Commit(Kind),
}

struct Rule {
    call: Call,
    /// How many such calls pass before.
    skip: usize,
    work: Work,
}

/// A store whose calls are preceded by the changes that a test has asked for, each once.
pub struct Between {
    inner: Arc<dyn Store>,
    rules: Mutex<Vec<Rule>>,
    last_batch: Mutex<Option<Batch>>,
}

impl Between {
    pub fn new(inner: &Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            inner: Arc::clone(inner),
            rules: Mutex::default(),
            last_batch: Mutex::default(),
        })
    }

    /// Runs this before such a call, after `skip` others. Of several rules for one call the first one counts.
    pub fn before(&self, call: Call, skip: usize, work: impl Future<Output = ()> + Send + 'static) {
        let work = Box::pin(work);
        self.rules.lock().unwrap().push(Rule { call, skip, work });
    }

    /// How many of the changes have not been asked for yet.
    pub fn left(&self) -> usize {
        self.rules.lock().unwrap().len()
    }

    /// The kinds of the records that the last batch checked, and of those that it wrote.
    pub fn last_kinds(&self) -> (Vec<Kind>, Vec<Kind>) {
        let batch = self.last_batch.lock().unwrap();
        let batch = batch.as_ref().unwrap();
        let checks = batch.checks.iter().map(|check| check.key().kind());
        let writes = batch.writes.iter().map(|write| write.key().kind());
        (checks.collect(), writes.collect())
    }

    async fn comes(&self, is: impl Fn(Call) -> bool) {
        let work = {
            let mut rules = self.rules.lock().unwrap();
            match rules.iter().position(|rule| is(rule.call)) {
                Some(index) if rules[index].skip == 0 => Some(rules.remove(index).work),
                Some(index) => {
                    rules[index].skip -= 1;
                    None
                }
                None => None,
            }
        };
        if let Some(work) = work {
            work.await;
        }
    }
}

#[async_trait::async_trait]
impl Store for Between {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.inner)
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.comes(|call| keys.iter().any(|key| call == Call::Get(key.kind())))
            .await;
        self.inner.get(keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        self.comes(|call| call == Call::Scan(scan.kind)).await;
        self.inner.scan(scan).await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        let writes = |call| {
            let mut writes = batch.writes.iter();
            writes.any(|write| call == Call::Commit(write.key().kind()))
        };
        self.comes(writes).await;
        *self.last_batch.lock().unwrap() = Some(batch.clone());
        self.inner.commit(batch).await
    }
}
