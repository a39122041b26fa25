//! Flipped bits anywhere in the file: no wrong answer, no abort, and no damaged store that is reported as sound.

use std::collections::BTreeMap;

use super::super::super::{CommitError, StoreError};
use super::super::blocks::Blocks;
use super::super::check::check_backend;
use super::super::error::OpenError;
use super::super::restore;
use super::memory::Memory;
use super::*;

type Model = BTreeMap<Key, Record>;

#[derive(Debug, Default)]
struct Figures {
    flips: usize,
    refused_at_open: usize,
    refused_reads: usize,
    refused_writes: usize,
    closed_by_a_write: usize,
    healed: usize,
    refused_backups: usize,
    reported: usize,
    without_effect: usize,
}

fn partitions() -> Vec<Partition> {
    let globals = (0..40).map(|number| Partition::Global(format!("key-{number}").into()));
    std::iter::once(Partition::Workspace(workspace()))
        .chain(globals)
        .collect()
}

/// The kinds of records of a partition that [`fill`] and [`write`] write.
fn filled(partition: &Partition) -> Vec<Kind> {
    match partition {
        Partition::Workspace(_) => kinds(partition).collect(),
        Partition::Global(_) => vec![Kind::ApiKey],
    }
}

/// Reads everything by key and by scan. Each answer must be that of the model; returns the number of refusals.
async fn read_all(store: &RedbStore, model: &Model, what: &str) -> usize {
    let mut refused = 0;
    for key in model.keys() {
        match store.get(std::slice::from_ref(key)).await {
            Ok(found) => assert_eq!(found[0].as_ref(), model.get(key), "{what}: {key:?}"),
            Err(error) => refused += refusal(&error, what),
        }
    }
    for partition in partitions() {
        for kind in filled(&partition) {
            let expected = model
                .iter()
                .filter(|(key, _)| *key.partition() == partition && key.kind() == kind);
            match store.scan(&Scan::all(partition.clone(), kind)).await {
                Ok(found) => {
                    let found = found.entries.iter().map(|(key, record)| (key, record));
                    assert!(found.eq(expected), "{what}: a list of {kind:?} is wrong");
                }
                Err(error) => refused += refusal(&error, what),
            }
        }
    }
    refused
}

/// Damage must be reported as damage, and not as a panic of the engine.
fn refusal(error: &StoreError, what: &str) -> usize {
    assert!(!error.to_string().contains("internal error"), "{what}: {error}");
    1
}

/// A batch of [`write`], and the model after it was committed.
fn written(model: &Model, number: usize) -> (Batch, Model) {
    let (changed, added) = (
        agent(&format!("agent-{}", number * 7 + 10)),
        agent(&format!("new-{number}")),
    );
    let gone = agent(&format!("agent-{}", number * 9 + 4));
    let head = Key::log_head(workspace());
    let version = model.values().map(|record| record.version).max().unwrap();
    let entry = std::str::from_utf8(&model[&head].value)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        + 1;
    let mut model = model.clone();
    let mut put = |key: &Key, offset, value: &[u8]| {
        let record = Record {
            version: version + offset,
            value: value.into(),
        };
        model.insert(key.clone(), record);
    };
    put(&changed, 1, b"\"changed\"");
    put(&added, 2, b"1");
    put(&Key::log_entry(workspace(), entry), 3, b"\"late\"");
    put(&head, 4, entry.to_string().as_bytes());
    model.remove(&gone);
    let writes = [
        Write::Put(changed, b"\"changed\"".to_vec()),
        Write::Put(added, b"1".to_vec()),
        Write::Delete(gone),
        Write::Append {
            log: workspace(),
            value: b"\"late\"".to_vec(),
        },
    ];
    (batch([], writes), model)
}

/// Commits a few writes of each kind, and applies those that were answered to the model. Returns the number of
/// refusals, or the two possible states after a commit of unknown outcome.
async fn write(store: &RedbStore, model: &mut Model, what: &str) -> Result<usize, [Model; 2]> {
    let mut refused = 0;
    for number in 0..3 {
        let (batch, after) = written(model, number);
        match store.commit(batch).await {
            Ok(_) => *model = after,
            // A page of the engine's own tables, which only the commit reads.
            Err(CommitError::Store(StoreError::OutcomeUnknown(error))) => {
                assert!(error.contains("does not match its checksum"), "{what}: {error}");
                return Err([std::mem::take(model), after]);
            }
            Err(CommitError::Store(error)) => refused += refusal(&error, what),
            Err(other) => panic!("{what}: {other}"),
        }
    }
    Ok(refused)
}

/// After a commit of unknown outcome, the store is refused or has one of the two possible states.
async fn verify_outcome(memory: &Memory, allowed: [Model; 2], figures: &mut Figures, what: &str) {
    let is_sound = check_backend(Blocks::new(memory.clone())).is_ok_and(|report| report.is_sound());
    match memory.open() {
        Ok(store) => {
            let mut found = Model::new();
            for partition in partitions() {
                for kind in filled(&partition) {
                    match store.scan(&Scan::all(partition.clone(), kind)).await {
                        Ok(scanned) => found.extend(scanned.entries),
                        Err(_) => return assert!(!is_sound, "{what}: reported as sound"),
                    }
                }
            }
            assert!(allowed.contains(&found), "{what}: {} records", found.len());
            figures.healed += 1;
        }
        Err(OpenError::Damaged(_)) => {
            assert!(!is_sound, "{what}: reported as sound");
            figures.closed_by_a_write += 1;
        }
        Err(other) => panic!("{what}: {other}"),
    }
}

async fn try_flip(image: &[u8], model: &Model, bit: usize, figures: &mut Figures) {
    let what = format!("bit {bit} of {}", image.len() * 8);
    let mut bytes = image.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    let memory = Memory::new(bytes);
    let mut model = model.clone();
    figures.flips += 1;
    let store = match memory.open() {
        Ok(store) => store,
        Err(OpenError::Damaged(error)) => {
            assert!(!error.contains("internal error"), "{what}: {error}");
            figures.refused_at_open += 1;
            return;
        }
        Err(other) => panic!("{what}: {other}"),
    };
    let reads = read_all(&store, &model, &what).await;
    let writes = match write(&store, &mut model, &what).await {
        Ok(writes) => writes,
        Err(allowed) => {
            drop(store);
            return verify_outcome(&memory, allowed, figures, &what).await;
        }
    };
    let reads = reads + read_all(&store, &model, &what).await;
    figures.refused_reads += usize::from(reads > 0);
    figures.refused_writes += usize::from(writes > 0);

    let mut copy = Vec::new();
    match store.backup(&mut copy) {
        Ok(made) => {
            assert_eq!(made.records, model.len() as u64, "{what}: a backup lacks records");
            assert_eq!(reads, 0, "{what}: a backup of what cannot be read");
            if figures.flips.is_multiple_of(16) {
                let place = tempfile::tempdir().unwrap();
                let path = place.path().join("restored.redb");
                restore(&copy[..], &path).unwrap();
                assert_eq!(read_all(&super::open(&path), &model, &what).await, 0, "{what}");
            }
        }
        Err(_) => figures.refused_backups += 1,
    }
    drop(store);
    let bytes = memory.bytes().clone();
    match check_backend(Blocks::new(Memory::new(bytes.clone()))) {
        Ok(report) if report.is_sound() => {
            assert_eq!(
                report.records.values().sum::<u64>(),
                model.len() as u64,
                "{what}: {report:?}"
            );
            let store = Memory::new(bytes).open().unwrap();
            assert_eq!(read_all(&store, &model, &what).await, 0, "{what}: reported as sound");
            figures.without_effect += usize::from(reads + writes == 0);
        }
        _ => figures.reported += 1,
    }
}

#[tokio::test]
async fn a_flipped_bit_changes_no_answer() {
    let memory = Memory::default();
    let store = memory.open().unwrap();
    fill(&store).await;
    let model: Model = dump(&store).await.into_iter().collect();
    let unclosed = memory.bytes().clone();
    drop(store);
    let closed = memory.bytes().clone();

    let mut dice = Dice::new();
    let mut figures = Figures::default();
    let used: Vec<usize> = (0..closed.len())
        .filter(|place| closed[*place] != 0 || unclosed[*place] != 0)
        .collect();
    for number in 0..cases(1_000) {
        // Most of the file is empty. One flip in eight may go there.
        let place = match dice.below(8) {
            0 => dice.below(closed.len()),
            _ => used[dice.below(used.len())],
        };
        // The recovery of a file that was not closed reads all of it, and so finds damage at the start.
        let image = if number % 4 == 0 { &unclosed } else { &closed };
        try_flip(image, &model, place * 8 + dice.below(8), &mut figures).await;
    }
    println!("FIGURES bit flips: {figures:?}");
    assert!(
        figures.refused_reads > 0 && figures.reported > 0 && figures.refused_backups > 0,
        "{figures:?}"
    );
}
