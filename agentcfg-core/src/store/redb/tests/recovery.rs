//! The store recovers from disk failures.

use std::io;
use std::sync::Arc;

use super::super::super::{CommitError, StoreError};
use super::super::shared_state::{Status, StoreState};
use super::super::writer::commit_group;
use super::faulty_disk::{Disk, Operation, options};
use super::*;

use Operation::{Open, Read, Resize, Sync, Write as Put};

fn unavailable<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Unavailable(_)))
}

#[tokio::test]
async fn a_failed_commit_has_an_unknown_outcome_and_the_store_recovers() {
    let disk = Disk::default();
    let store = disk.store(&options());
    store.commit(batch([], [put("a", "1")])).await.unwrap();

    disk.fail(&[Open, Sync]);
    let outcome = store.commit(batch([], [put("a", "2")])).await;
    assert!(
        matches!(outcome, Err(CommitError::Store(StoreError::OutcomeUnknown(_)))),
        "{outcome:?}"
    );
    assert_eq!((store.status(), store.is_ready()), (Status::Recovering, false));
    // The last committed state is served meanwhile.
    let found = store.get(&[agent("a")]).await.unwrap()[0].clone().unwrap();
    assert_eq!(&*found.value, b"1");
    let all = Scan::all(Partition::Workspace(workspace()), Kind::Agent);
    assert_eq!(store.scan(&all).await.unwrap().entries, [(agent("a"), found)]);
    let refused = store.commit(batch([], [put("a", "3")])).await;
    assert!(
        matches!(refused, Err(CommitError::Store(StoreError::Unavailable(_)))),
        "{refused:?}"
    );

    disk.work();
    assert!(store.until_ready().await);
    let found = store.get(&[agent("a")]).await.unwrap()[0].clone().unwrap();
    assert!([&b"1"[..], b"2"].contains(&&*found.value), "{found:?}");
    let check = Check::Version(agent("a"), found.version);
    let committed = store.commit(batch([check], [put("a", "4")])).await.unwrap();
    assert!(committed.numbers[0] > found.version);
}

#[tokio::test]
async fn the_answer_of_a_commit_is_correct_at_every_point_of_failure() {
    // The disk fails from its nth operation on, for each n until the commit succeeds.
    for allowed in 0_u32.. {
        let disk = Disk::default();
        let store = disk.store(&options());
        fill(&store).await;
        let before = dump(&store).await;

        let mut left = allowed;
        disk.set_hook(move |_| {
            left = left.checked_sub(1).ok_or(io::Error::other("injected disk failure"))?;
            Ok(())
        });
        let long = format!("\"{}\"", "x".repeat(200_000));
        let entry = Write::Append {
            log: workspace(),
            value: b"0".to_vec(),
        };
        let outcome = store.commit(batch([], [put("a", &long), entry])).await;
        disk.work();
        assert!(store.until_ready().await);

        let after = dump(&store).await;
        let applied = after.len() == before.len() + 2;
        match &outcome {
            Ok(_) => assert!(applied),
            Err(CommitError::Store(StoreError::OutcomeUnknown(_))) => assert!(applied || after == before),
            Err(CommitError::Store(StoreError::Unavailable(_))) => assert_eq!(after, before),
            Err(other) => panic!("{other:?} after {allowed} operations"),
        }
        if outcome.is_ok() {
            assert!(allowed > 4, "a commit takes more than {allowed} operations");
            return;
        }
    }
}

/// A bad sector: the calls that need it are refused, the engine does not fail, and no repair reads the whole file.
#[tokio::test]
async fn a_failed_read_of_a_block_fails_that_call_only() {
    let disk = Disk::default();
    let store = disk.store(&RedbOptions {
        hot_bytes: 0,
        ..options()
    });
    fill(&store).await;
    disk.fail(&[Read]);
    assert!(unavailable(store.get(&[agent("agent-1")]).await));
    let refused = store.commit(batch([], [put("a", "1")])).await;
    assert!(
        matches!(&refused, Err(CommitError::Store(StoreError::Unavailable(why))) if why.contains("cannot be read")),
        "{refused:?}"
    );
    assert!(store.is_ready());
    disk.work();
    assert!(store.get(&[agent("agent-1")]).await.unwrap()[0].is_some());
    assert!(store.commit(batch([], [put("a", "1")])).await.is_ok());
    assert_eq!(store.condition().failures, 0);
    assert!(store.condition().damaged_blocks > 0);
}

#[tokio::test]
async fn a_store_that_cannot_recover_can_be_closed() {
    let disk = Disk::default();
    let store = disk.store(&options());
    disk.fail(&[Open, Sync]);
    assert!(store.commit(batch([], [put("a", "1")])).await.is_err());
    store.close();
    assert_eq!(store.status(), Status::Closed);
    assert!(!store.until_ready().await);
}

#[test]
fn a_failed_group_commit_has_a_verdict_for_each_batch() {
    let disk = Disk::default();
    let shared = StoreState::new(disk.opener(&options())().unwrap(), &options(), Arc::default());
    let (verdicts, fault) = commit_group(&shared, vec![batch([], [put("there", "1")])], false);
    assert!(verdicts[0].is_ok() && fault.is_none());

    disk.fail(&[Sync]);
    let group = vec![
        batch([Check::Absent(agent("there"))], [put("a", "1")]),
        batch([], [put("b", "1")]),
        batch([Check::Absent(agent("b"))], [put("b", "2")]),
        batch([], [put("c", "1")]),
    ];
    let (verdicts, fault) = commit_group(&shared, group, false);
    assert!(fault.is_some());
    // Refused because of committed state: correct whether or not the group was committed.
    assert_eq!(verdicts[0], Err(CommitError::Conflict(0)));
    assert!(matches!(
        verdicts[1],
        Err(CommitError::Store(StoreError::OutcomeUnknown(_)))
    ));
    // Refused because of the group's own write, which may not exist: unavailable, not a conflict.
    assert!(matches!(
        verdicts[2],
        Err(CommitError::Store(StoreError::Unavailable(_)))
    ));
    assert!(matches!(
        verdicts[3],
        Err(CommitError::Store(StoreError::OutcomeUnknown(_)))
    ));
}

#[test]
fn a_group_that_fails_before_its_commit_is_unavailable() {
    let disk = Disk::default();
    let shared = StoreState::new(disk.opener(&options())().unwrap(), &options(), Arc::default());
    disk.fail(&[Read, Put, Resize]);
    let (verdicts, fault) = commit_group(
        &shared,
        vec![batch([], [put("a", "1")]), batch([], [put("b", "1")])],
        false,
    );
    assert!(fault.is_none(), "nothing was written: {fault:?}");
    assert_eq!(verdicts.len(), 2);
    for verdict in verdicts {
        assert!(
            matches!(verdict, Err(CommitError::Store(StoreError::Unavailable(_)))),
            "{verdict:?}"
        );
    }
}

#[test]
fn reopening_the_file_starts_a_new_generation() {
    let disk = Disk::default();
    let shared = StoreState::new(disk.opener(&options())().unwrap(), &options(), Arc::default());
    let (_sender, queue) = std::sync::mpsc::sync_channel(1);
    let before = shared.generation();
    disk.healer().heal(&shared, &queue);
    assert_ne!(shared.generation(), before);
    assert_eq!(shared.status(), Status::Ready);
}
