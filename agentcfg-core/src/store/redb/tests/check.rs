//! A check finds damage anywhere in the file and does not change the file.

use super::super::super::envelope;
use super::super::schema::RECORDS;
use super::super::{Problem, check, restore};
use super::*;

#[tokio::test]
async fn a_sound_store_is_counted() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    let store = open(&path);
    fill(&store).await;
    drop(store);
    let bytes = std::fs::read(&path).unwrap();
    let report = check(&path).unwrap();
    assert!(report.is_sound(), "{report:?}");
    let counts: Vec<_> = report.records.into_iter().collect();
    let expected = [
        (Kind::Workspace, 1),
        (Kind::Counter, 1),
        (Kind::LogHead, 1),
        (Kind::Agent, 39),
        (Kind::LogEntry, 40),
        (Kind::ApiKey, 40),
    ];
    assert_eq!(counts, expected);
    assert!(std::fs::read(&path).unwrap() == bytes);
}

/// Changes bytes at many positions. A store that the check reports as sound must still read as before.
#[tokio::test]
async fn damage_is_reported_or_without_effect() {
    let place = tempfile::tempdir().unwrap();
    let mut copy = Vec::new();
    let before = {
        let store = open(&place.path().join("filled.redb"));
        fill(&store).await;
        store.backup(&mut copy).unwrap();
        dump(&store).await
    };
    // A restored file was written in one transaction, so it has few unused pages.
    let path = place.path().join("store.redb");
    restore(&copy[..], &path).unwrap();
    let whole = std::fs::read(&path).unwrap();

    // Only non-zero bytes and the header are changed: zero bytes belong mostly to unused pages.
    let used: Vec<usize> = (0..whole.len()).filter(|position| whole[*position] != 0).collect();
    let places = (0..320)
        .step_by(8)
        .chain(used.iter().copied().step_by((used.len() / 250).max(1)));
    let damaged = place.path().join("damaged.redb");
    let (mut reported, mut tried) = (0, 0);
    for position in places {
        let mut bytes = whole.clone();
        bytes[position] ^= 0xff;
        std::fs::write(&damaged, &bytes).unwrap();
        tried += 1;
        match check(&damaged) {
            Ok(report) if report.is_sound() => {
                let store = RedbStore::open(&damaged, RedbOptions::default()).unwrap();
                assert!(dump(&store).await == before, "damage at {position} was not reported");
            }
            _ => reported += 1,
        }
    }
    assert!(reported * 2 > tried, "{reported} of {tried} were reported");
}

#[tokio::test]
async fn every_kind_of_damaged_record_is_reported() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    let store = open(&path);
    fill(&store).await;
    drop(store);

    let database = raw(&path);
    let transaction = database.begin_write().unwrap();
    {
        let mut records = transaction.open_table(RECORDS).unwrap();
        let mut insert = |key: &[u8], bytes: &[u8]| drop(records.insert(key, bytes).unwrap());
        let key = |item| agent(item).encode();
        insert(b"\x09garbage", b"x");
        insert(&key("another-place"), &envelope::seal(&key("agent-1"), 1, b"1"));
        insert(&key("future"), &envelope::seal(&key("future"), 1 << 40, b"1"));
        insert(&key("not-json"), &envelope::seal(&key("not-json"), 1, b"{"));
        let counter = Key::in_workspace(workspace(), Kind::Counter, "bad").encode();
        insert(&counter, &envelope::seal(&counter, 1, b"\"three\""));
        records.remove(&*Key::log_entry(workspace(), 7).encode()).unwrap();
    }
    transaction.commit().unwrap();
    drop(database);

    let problems = check(&path).unwrap().problems;
    let count = |wanted: fn(&Problem) -> bool| problems.iter().filter(|problem| wanted(problem)).count();
    assert_eq!(
        count(|problem| matches!(problem, Problem::UnknownKey(_))),
        1,
        "{problems:?}"
    );
    assert_eq!(
        count(|problem| matches!(problem, Problem::Record(..))),
        4,
        "{problems:?}"
    );
    assert_eq!(count(|problem| matches!(problem, Problem::Log(_))), 1, "{problems:?}");
    assert_eq!(problems.len(), 6, "{problems:?}");
    assert!(problems.iter().any(|problem| problem.to_string().contains("future")));

    // A damaged record fails reads of itself only.
    let store = open(&path);
    assert!(store.get(&[agent("another-place")]).await.is_err());
    assert!(store.get(&[agent("agent-1")]).await.is_ok());
    let touching = batch([Check::Absent(agent("another-place"))], []);
    assert!(store.commit(touching).await.is_err());
    assert!(store.is_ready());
    assert!(store.backup(Vec::new()).is_err());
}

/// Which records a check finds of a workspace that has none of its own: the deleted workspaces, and the problems.
async fn checked(writes: impl IntoIterator<Item = Write>) -> (Vec<(WorkspaceId, u64)>, Vec<Problem>) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    let store = open(&path);
    store.commit(batch([], writes)).await.unwrap();
    drop(store);
    let report = check(&path).unwrap();
    (report.removals.into_iter().collect(), report.problems)
}

#[tokio::test]
async fn what_is_left_of_a_workspace_is_a_problem_unless_it_is_being_removed() {
    let id = workspace();
    let entry = Write::Put(Key::log_entry(id, 7), b"{}".to_vec());
    let membership = Write::Put(Key::global("ada", Kind::Membership, id.to_string()), b"{}".to_vec());
    let sealed = Key::global("provider-keys", Kind::SealedKey, format!("{id}/openai"));
    let sealed = Write::Put(sealed, b"{}".to_vec());
    let key = format!("{{\"workspace_id\":\"{id}\"}}").into_bytes();
    let key = Write::Put(Key::global("key", Kind::ApiKey, ""), key);
    let removal = Write::Put(Key::global("removals", Kind::Removal, id.to_string()), b"{}".to_vec());
    let all = [entry.clone(), membership, sealed, key];

    for one in &all[1..] {
        let (removals, problems) = checked([one.clone()]).await;
        assert_eq!((removals, problems), (vec![], vec![Problem::Remains(1, id)]), "{one:?}");
    }
    let (removals, problems) = checked(all.clone()).await;
    assert_eq!(removals, []);
    assert_eq!(problems.len(), 2, "the log has no head for its entry: {problems:?}");
    assert!(problems.contains(&Problem::Remains(4, id)));

    let (removals, problems) = checked(all.into_iter().chain([removal.clone()])).await;
    assert_eq!((removals, problems), (vec![(id, 4)], vec![]));
    let (removals, problems) = checked([removal]).await;
    assert_eq!((removals, problems), (vec![(id, 0)], vec![]));
}
