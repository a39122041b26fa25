//! Blocks with a valid checksum and wrong content: zeros, random bytes, another block, or the same block at another
//! moment. The block checksums cannot find them, and they break what the engine assumes of its pages. The verification
//! at the start does: the file is refused and left unchanged. In a file that is open, the checksums in memory find
//! them. No call gives a wrong answer, aborts the process or hangs.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use redb::StorageBackend;

use super::super::super::{CommitError, StoreError};
use super::super::blocks::{BLOCK, Blocks};
use super::super::check::check_backend;
use super::super::error::OpenError;
use super::checkpoint::after_checkpoint;
use super::faulty_disk::options;
use super::memory::Memory;
use super::*;

/// How long all calls of one case may take.
const CASE_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
struct Figures {
    planted_in_closed_files: usize,
    refused_at_open: usize,
    planted_in_open_files: usize,
    refused_calls: usize,
    closed_by_a_write: usize,
    reported: usize,
    without_effect: usize,
}

/// A store file at several moments, the last one closed in order, with its content.
struct Moments {
    earlier: Vec<Vec<u8>>,
    /// After the last commit, which was a checkpoint.
    killed: Vec<u8>,
    closed: Vec<u8>,
    content: Vec<(Key, Record)>,
}

async fn moments() -> Moments {
    let memory = Memory::default();
    let store = memory.open_with(&options().checkpoint_from(0)).unwrap();
    fill(&store).await;
    let mut earlier = vec![memory.bytes().clone()];
    for round in 0..6 {
        for number in 0..8 {
            let text = format!("\"{}\"", "x".repeat((round * 8 + number) * 397 % 9000));
            let item = format!("agent-{}", (round * 5 + number) % 23);
            store.commit(batch([], [put(&item, &text)])).await.unwrap();
        }
        earlier.push(memory.bytes().clone());
    }
    let content = dump(&store).await;
    let killed = after_checkpoint(&memory).await;
    drop(store);
    let closed = memory.bytes().clone();
    Moments {
        earlier,
        killed,
        closed,
        content,
    }
}

/// The content of a block of a file; zeros beyond its end.
fn block_of(file: &[u8], block: u64) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK];
    let blocks = Blocks::new(Memory::new(file.to_vec()));
    if blocks.read(block * BLOCK as u64, &mut bytes).is_err() {
        bytes.fill(0);
    }
    bytes
}

impl Moments {
    /// Plants one or two blocks in a file.
    fn plant(&self, memory: &Memory, dice: &mut Dice) {
        let blocks = Blocks::new(memory.clone());
        let count = blocks.count().unwrap();
        for _ in 0..1 + dice.below(2) {
            // The first block is the engine's header.
            let block = 1 + dice.below(count as usize - 1) as u64;
            let content = match dice.below(5) {
                0 => vec![0; BLOCK],
                1 => (0..BLOCK).map(|_| dice.below(256) as u8).collect(),
                2 => block_of(&self.closed, 1 + dice.below(count as usize - 1) as u64),
                3 => {
                    let mut content = block_of(&self.closed, block);
                    for _ in 0..1 + dice.below(4) {
                        // The head of a page is at its beginning.
                        let bound = [64, BLOCK][dice.below(2)];
                        let place = dice.below(bound);
                        content[place] = dice.below(256) as u8;
                    }
                    content
                }
                _ => block_of(&self.earlier[dice.below(self.earlier.len())], block),
            };
            blocks.plant(block, &content).unwrap();
        }
    }
}

/// Uses a store in every way. Each answer is that of the content; returns how many calls were refused.
async fn use_all(store: &RedbStore, content: &[(Key, Record)]) -> usize {
    let mut content: BTreeMap<Key, Record> = content.iter().cloned().collect();
    let mut refused = 0;
    for round in 0..2 {
        for (key, record) in &content {
            match store.get(std::slice::from_ref(key)).await {
                Ok(found) => assert_eq!(found[0].as_ref(), Some(record), "{key:?}"),
                Err(_) => refused += 1,
            }
        }
        for kind in kinds(&Partition::Workspace(workspace())) {
            let all = Scan::all(Partition::Workspace(workspace()), kind);
            match store.scan(&all).await {
                Ok(found) => {
                    let own = content
                        .iter()
                        .filter(|(key, _)| *key.partition() == Partition::Workspace(workspace()) && key.kind() == kind);
                    let found = found.entries.iter().map(|(key, record)| (key, record));
                    assert!(found.eq(own), "a list of {kind:?} is wrong");
                }
                Err(_) => refused += 1,
            }
        }
        for number in 0..6 {
            let key = agent(&format!("agent-{}", number + round * 6));
            let value = format!("\"{}\"", "y".repeat(number * 1500)).into_bytes();
            let write = Write::Put(key.clone(), value.clone());
            match store.commit(batch([], [write])).await {
                Ok(committed) => {
                    let record = Record {
                        version: committed.numbers[0],
                        value: value.into(),
                    };
                    content.insert(key, record);
                }
                Err(CommitError::Store(StoreError::OutcomeUnknown(_))) => return refused + 1,
                Err(CommitError::Store(_)) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
        refused += usize::from(store.backup(Vec::new()).is_err());
    }
    refused
}

/// Plants in a file that no process has open, which is refused unless its content is right.
async fn try_closed(moments: &Moments, dice: &mut Dice, figures: &mut Figures) {
    figures.planted_in_closed_files += 1;
    let is_closed = dice.below(2) == 0;
    let memory = Memory::new(if is_closed { &moments.closed } else { &moments.killed }.clone());
    moments.plant(&memory, dice);
    let image = memory.bytes().clone();
    let report = check_backend(Blocks::new(Memory::new(image.clone())));
    let is_sound = report.is_ok_and(|report| report.is_sound());
    figures.reported += usize::from(!is_sound);
    match memory.open() {
        Ok(store) => {
            let refused = use_all(&store, &moments.content).await;
            assert_eq!(refused, 0, "the file was accepted");
            figures.without_effect += 1;
        }
        Err(OpenError::Damaged(_)) => {
            assert!(!is_sound, "refused, but reported as sound");
            // The recovery of a file that was not closed may have changed it.
            assert!(!is_closed || *memory.bytes() == image, "a refused file is changed");
            let again = memory.open().map(drop);
            assert!(matches!(again, Err(OpenError::Damaged(_))), "refused once: {again:?}");
            figures.refused_at_open += 1;
        }
        Err(other) => panic!("{other}"),
    }
}

/// Plants in a file that is open.
async fn try_open(moments: &Moments, dice: &mut Dice, figures: &mut Figures) {
    figures.planted_in_open_files += 1;
    let memory = Memory::new(moments.closed.clone());
    let store = memory.open().unwrap();
    moments.plant(&memory, dice);
    let refused = use_all(&store, &moments.content).await;
    figures.refused_calls += refused;
    figures.closed_by_a_write += usize::from(!store.is_ready());
    figures.without_effect += usize::from(refused == 0);
    store.close();
}

#[test]
fn a_planted_block_is_found_and_neither_aborts_nor_hangs() {
    let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    let moments = Arc::new(runtime().block_on(moments()));
    let mut dice = Dice::new();
    let mut figures = Figures::default();
    for case in 0..cases(150) {
        let (sender, receiver) = mpsc::channel();
        let (moments, mut now) = (Arc::clone(&moments), std::mem::take(&mut figures));
        let mut own = Dice(dice.below(usize::MAX) as u64);
        let trying = thread::spawn(move || {
            match case % 2 {
                0 => runtime().block_on(try_closed(&moments, &mut own, &mut now)),
                _ => runtime().block_on(try_open(&moments, &mut own, &mut now)),
            }
            let _ = sender.send(now);
        });
        match receiver.recv_timeout(CASE_TIMEOUT) {
            Ok(now) => figures = now,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("case {case} hangs"),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let panic = trying.join().map_err(|panic| panic.downcast_ref::<String>().cloned());
                panic!("case {case}: {panic:?}");
            }
        }
    }
    println!("FIGURES planted blocks: {figures:?}");
    assert!(figures.refused_at_open > 0 && figures.refused_calls > 0, "{figures:?}");
}

/// Each sync seals a file, so a start that skips the verification of the whole file is one of a file that nothing but
/// the engine has changed.
#[tokio::test]
async fn each_sync_seals_a_file() {
    let is_sealed = |bytes: &[u8]| Blocks::new(Memory::new(bytes.to_vec())).is_sealed().unwrap();
    let memory = Memory::default();
    let store = memory.open().unwrap();
    assert!(is_sealed(&memory.bytes()), "it is new");
    fill(&store).await;
    assert!(is_sealed(&memory.bytes()), "it has commits");
    drop(store);
    assert!(is_sealed(&memory.bytes()), "it is closed");
    let blocks = Blocks::new(memory.clone());
    blocks.plant(1, &[7; BLOCK]).unwrap();
    assert!(!is_sealed(&memory.bytes()), "a block was replaced with its checksum");
}
