//! The store file: atomic creation, exclusive lock, and refusal of other files.

use redb::Database;

use super::super::schema::META;
use super::super::{OpenError, check};
use super::*;

fn open_error(path: &Path) -> OpenError {
    RedbStore::open(path, RedbOptions::default()).map(drop).unwrap_err()
}

#[tokio::test]
async fn committed_records_survive_reopening() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    let store = open(&path);
    fill(&store).await;
    let before = dump(&store).await;
    drop(store);

    let store = open(&path);
    assert_eq!(dump(&store).await, before);
    let greatest = before.iter().map(|(_, record)| record.version).max().unwrap();
    let append = Write::Append {
        log: workspace(),
        value: b"0".to_vec(),
    };
    let committed = store.commit(batch([], [put("agent-3", "1"), append])).await.unwrap();
    assert!(committed.numbers[0] > greatest, "versions continue");
    assert_eq!(committed.numbers[1], 41, "log numbers continue");
    let names: Vec<_> = place
        .path()
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["store.redb"], "nothing else is left behind");
}

#[tokio::test]
async fn a_file_that_was_not_closed_cleanly_is_recovered() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    let store = open(&path);
    fill(&store).await;
    let crashed = place.path().join("crashed.redb");
    std::fs::copy(&path, &crashed).unwrap();
    let bytes = std::fs::read(&crashed).unwrap();
    assert!(check(&crashed).unwrap().is_sound());
    assert!(
        std::fs::read(&crashed).unwrap() == bytes,
        "a check does not change the file"
    );
    assert_eq!(dump(&open(&crashed)).await, dump(&store).await);
}

#[test]
fn a_file_is_locked_exclusively() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    let store = open(&path);
    assert!(matches!(open_error(&path), OpenError::Held));
    assert!(matches!(check(&path), Err(OpenError::Held)));
    drop(store);
    drop(open(&path));
}

#[cfg(unix)]
#[test]
fn a_new_file_is_accessible_to_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    drop(open(&path));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_newer_format_is_refused_and_left_unchanged() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    drop(open(&path));
    let database = raw(&path);
    let transaction = database.begin_write().unwrap();
    transaction.open_table(META).unwrap().insert("format", 9).unwrap();
    transaction.commit().unwrap();
    drop(database);

    let bytes = std::fs::read(&path).unwrap();
    assert!(matches!(
        open_error(&path),
        OpenError::TooNew { found: 9, supported: 1 }
    ));
    assert!(matches!(
        check(&path),
        Err(OpenError::TooNew { found: 9, supported: 1 })
    ));
    assert!(std::fs::read(&path).unwrap() == bytes);
}

#[test]
fn a_file_that_is_not_a_store_is_refused_and_left_unchanged() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    drop(open(&path));
    let whole = std::fs::read(&path).unwrap();
    let foreign = place.path().join("foreign.redb");
    drop(Database::create(&foreign).unwrap());

    let mut contents = vec![
        b"".to_vec(),
        b"x".to_vec(),
        b"no database at all".repeat(1000),
        vec![0; 8192],
    ];
    contents.push(std::fs::read(&foreign).unwrap());
    contents.extend([9, 64, 320, 4096, 8192, whole.len() / 2, whole.len() - 1].map(|length| whole[..length].to_vec()));
    for content in contents {
        let path = place.path().join("other.redb");
        std::fs::write(&path, &content).unwrap();
        let error = open_error(&path);
        assert!(
            matches!(error, OpenError::Damaged(_)),
            "{error:?} for {} bytes",
            content.len()
        );
        let error = check(&path).map(|report| report.problems);
        assert!(
            matches!(error, Err(OpenError::Damaged(_))),
            "{error:?} for {} bytes",
            content.len()
        );
        assert!(std::fs::read(&path).unwrap() == content);
    }
}

#[test]
fn an_unusable_path_is_an_io_error() {
    let place = tempfile::tempdir().unwrap();
    for path in [place.path().join("absent/store.redb"), place.path().to_owned()] {
        let error = open_error(&path);
        assert!(matches!(error, OpenError::Io(_)), "{error:?}");
    }
    assert!(matches!(check(place.path().join("absent.redb")), Err(OpenError::Io(_))));
    assert!(!place.path().join("absent.redb").exists());
}

#[test]
fn drafts_left_by_a_crash_do_not_block_a_new_store() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    // The counter is shared with the other tests of this process, so take many names in advance.
    for count in 0..2000 {
        std::fs::write(
            place
                .path()
                .join(format!(".store.redb.{}-{count}.tmp", std::process::id())),
            b"",
        )
        .unwrap();
    }
    drop(open(&path));
}
