//! Checkpoints: after them a start does not read the whole file, although no process has closed it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::blocks::BLOCK;
use super::super::open::builder;
use super::faulty_disk::{Disk, Operation, options};
use super::memory::Memory;
use super::*;

/// The content of the file of an open store after a checkpoint, as the end of its process would leave it.
pub(super) async fn after_checkpoint(memory: &Memory) -> Vec<u8> {
    loop {
        let image = memory.bytes().clone();
        let file = Blocks::new(Memory::new(image.clone()));
        let mut without_repair = builder(&options());
        without_repair.set_repair_callback(redb::RepairSession::abort);
        if without_repair.create_with_backend(file).is_ok() {
            return image;
        }
        tokio::task::yield_now().await;
    }
}

/// Opens the file and returns how many reads that took, and the content.
async fn reads_of_a_start(image: Vec<u8>) -> (usize, Vec<(Key, Record)>) {
    let disk = Disk::of(image);
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    disk.set_hook(move |operation| {
        counter.fetch_add(usize::from(operation == Operation::Read), Ordering::Relaxed);
        Ok(())
    });
    let store = disk.store(&options());
    let reads = count.load(Ordering::Relaxed);
    (reads, dump(&store).await)
}

/// Commits until the file has some megabytes.
async fn grow(store: &RedbStore) {
    fill(store).await;
    for round in 0..60 {
        let text = format!("\"{}\"", "x".repeat(5_000));
        let writes = (0..20).map(|number| put(&format!("long-{round}-{number}"), &text));
        store.commit(batch([], writes)).await.unwrap();
    }
}

#[tokio::test]
async fn a_start_after_a_kill_reads_the_whole_file_only_without_a_checkpoint() {
    for checkpoint_from in [0, u64::MAX] {
        let memory = Memory::default();
        let store = memory.open_with(&options().checkpoint_from(checkpoint_from)).unwrap();
        grow(&store).await;
        let content = dump(&store).await;
        let image = match checkpoint_from {
            0 => after_checkpoint(&memory).await,
            _ => memory.bytes().clone(),
        };
        let blocks = image.len() / BLOCK;
        let (reads, found) = reads_of_a_start(image).await;
        assert!(found == content, "the content is another one");
        match checkpoint_from {
            0 => assert!(reads < blocks / 8, "{reads} reads of {blocks} blocks"),
            _ => assert!(reads > blocks / 2, "{reads} reads of {blocks} blocks"),
        }
    }
}

#[tokio::test]
async fn a_file_that_was_just_opened_gets_a_checkpoint() {
    let memory = Memory::default();
    let store = memory.open_with(&options().checkpoint_from(u64::MAX)).unwrap();
    grow(&store).await;
    let killed = memory.bytes().clone();
    // It is recovered, which leaves no allocator state.
    let memory = Memory::new(killed);
    let reopened = memory.open_with(&options().checkpoint_from(0)).unwrap();
    let image = after_checkpoint(&memory).await;
    let (reads, found) = reads_of_a_start(image).await;
    assert!(reads < memory.bytes().len() / BLOCK / 8, "{reads} reads");
    assert!(found == dump(&reopened).await);
}
