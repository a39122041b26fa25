//! Guarantee 10: changes are complete.
//!
//! A store that reports no positions passes: each call reads all records.

use std::collections::BTreeMap;

use super::super::Position;
use super::*;

fn report(item: &str) -> Key {
    Key::in_workspace(workspace(2), Kind::Status, item)
}

/// A reader that applies changes to the records that it has read.
#[derive(Default)]
struct Reader {
    seen: BTreeMap<Box<str>, Value>,
    position: Option<Position>,
}

impl Reader {
    /// Reads the changes; returns whether all records were read.
    async fn follow(&mut self, store: &Arc<dyn Store>) -> bool {
        let partition = Partition::Workspace(workspace(2));
        let changes = store.changed_since(&partition, Kind::Status, self.position).await;
        let changes = changes.expect("changes can be read");
        assert!(changes.is_all || self.position.is_some());
        if changes.is_all {
            self.seen.clear();
        }
        for (key, record) in changes.entries {
            assert_eq!((key.partition(), key.kind()), (&partition, Kind::Status));
            match record {
                Some(record) => self.seen.insert(key.item().into(), parse(&record)),
                None => self.seen.remove(key.item()),
            };
        }
        self.position = changes.position;
        changes.is_all
    }

    async fn has_what_a_scan_finds(&self, store: &Arc<dyn Store>) {
        let scan = Scan::all(Partition::Workspace(workspace(2)), Kind::Status);
        let found = store.scan(&scan).await.expect("a scan succeeds").entries;
        let found: BTreeMap<Box<str>, Value> = found
            .iter()
            .map(|(key, record)| (key.item().into(), parse(record)))
            .collect();
        assert_eq!(self.seen, found);
    }
}

/// A reader has what was put, replaced, deleted and made again, and nothing of other kinds and partitions.
pub async fn changes_are_those_since_the_position(store: Arc<dyn Store>) {
    let mut reader = Reader::default();
    assert!(reader.follow(&store).await, "nothing was read yet");
    reader.has_what_a_scan_finds(&store).await;
    let others = [
        put(&Key::in_workspace(workspace(3), Kind::Status, "a"), 1),
        put(&Key::in_workspace(workspace(2), Kind::Agent, "b"), 1),
    ];
    write(&store, others).await;
    for step in [
        vec![
            put(&report("a"), 1),
            put(&report("b"), 1),
            append(workspace(2), "entry"),
        ],
        vec![put(&report("a"), 2)],
        vec![],
        vec![put(&report("c"), 1)],
    ] {
        let is_told = reader.position.is_some();
        write(&store, step).await;
        let read_all = reader.follow(&store).await;
        assert_eq!(
            read_all, !is_told,
            "nothing was deleted, so there is no need to read all"
        );
        reader.has_what_a_scan_finds(&store).await;
    }
    for step in [
        vec![Write::Delete(report("b"))],
        vec![put(&report("b"), 3)],
        vec![Write::Delete(report("a")), put(&report("d"), 1)],
    ] {
        write(&store, step).await;
        reader.follow(&store).await;
        reader.has_what_a_scan_finds(&store).await;
    }
    // Deleted and put again between two reads.
    write(&store, [Write::Delete(report("b"))]).await;
    write(&store, [put(&report("b"), 4)]).await;
    reader.follow(&store).await;
    reader.has_what_a_scan_finds(&store).await;
    // A reader that was away for several changes.
    let mut late = Reader {
        seen: reader.seen.clone(),
        ..reader
    };
    for number in 0..20 {
        write(&store, [put(&report(&format!("e{}", number % 7)), number)]).await;
    }
    late.follow(&store).await;
    late.has_what_a_scan_finds(&store).await;
}

/// A reader that puts changes over each other has all that concurrent writers were answered.
pub async fn a_reader_of_changes_has_each_answered_commit(store: Arc<dyn Store>) {
    const WRITERS: u64 = 4;
    const WRITES: u64 = 60;
    let mut writing = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let store = Arc::clone(&store);
        writing.spawn(async move {
            let key = report(&format!("a{writer}"));
            for number in 1..=WRITES {
                // One in eight changes is a deletion, and the last one is none.
                match number % 8 {
                    3 => write(&store, [Write::Delete(key.clone())]).await,
                    _ => write(&store, [put(&key, number)]).await,
                };
            }
        });
    }
    let mut reader = Reader::default();
    while !writing.is_empty() {
        reader.follow(&store).await;
        if writing.try_join_next().is_none() {
            tokio::task::yield_now().await;
        }
    }
    reader.follow(&store).await;
    assert_eq!(reader.seen.len() as u64, WRITERS);
    assert!(reader.seen.values().all(|value| *value == WRITES), "{:?}", reader.seen);
    reader.has_what_a_scan_finds(&store).await;
}
