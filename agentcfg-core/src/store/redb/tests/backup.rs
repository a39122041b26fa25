//! Backups are complete, consistent and verified.

use super::super::super::{BUILD, FORMAT, OtherFormat};
use super::super::{BackupError, BackupSummary, RestoreError, check, restore, verify_backup};
use super::*;

async fn backup() -> (Vec<u8>, Vec<(Key, Record)>, BackupSummary) {
    let place = tempfile::tempdir().unwrap();
    let store = open(&place.path().join("store.redb"));
    fill(&store).await;
    let mut copy = Vec::new();
    let summary = store.backup(&mut copy).unwrap();
    (copy, dump(&store).await, summary)
}

#[tokio::test]
async fn a_backup_restores_every_record() {
    let (copy, records, made) = backup().await;
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    assert_eq!(restore(&copy[..], &path).unwrap(), made);
    assert_eq!(made.records, records.len() as u64);

    let report = check(&path).unwrap();
    assert!(report.is_sound(), "{report:?}");
    let store = open(&path);
    assert_eq!(dump(&store).await, records);
    // The sequence continues after the backup's sequence, not after its greatest record version.
    let committed = store.commit(batch([], [put("agent-3", "1")])).await.unwrap();
    assert_eq!(committed.numbers, [made.sequence + 1]);
    let mut again = Vec::new();
    drop(store);
    restore(&copy[..], place.path().join("second.redb")).unwrap();
    open(&place.path().join("second.redb")).backup(&mut again).unwrap();
    assert!(again == copy, "a backup of the restored store has the same bytes");
}

#[tokio::test]
async fn a_backup_is_one_snapshot_while_commits_go_on() {
    let place = tempfile::tempdir().unwrap();
    let store = open(&place.path().join("store.redb"));
    fill(&store).await;
    let before = dump(&store).await;

    /// An output that commits to the store during the backup, at each write.
    struct Interfering<'a>(&'a RedbStore, Vec<u8>);
    impl std::io::Write for Interfering<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let late = batch(
                [],
                [
                    put("agent-0", "\"late\""),
                    put("zz", "1"),
                    Write::Delete(agent("agent-1")),
                ],
            );
            block_on(self.0.commit(late)).unwrap();
            self.1.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut out = Interfering(&store, Vec::new());
    store.backup(&mut out).unwrap();
    let copy = out.1;
    assert_ne!(dump(&store).await, before);
    restore(&copy[..], place.path().join("restored.redb")).unwrap();
    assert_eq!(dump(&open(&place.path().join("restored.redb"))).await, before);
}

/// Waits for a commit on a thread that is already inside a runtime.
fn block_on<T: Send>(future: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let wait = || {
            tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap()
                .block_on(future)
        };
        scope.spawn(wait).join().unwrap()
    })
}

#[tokio::test]
async fn every_truncation_and_every_changed_byte_is_detected() {
    let place = tempfile::tempdir().unwrap();
    let store = open(&place.path().join("small.redb"));
    store.commit(batch([], [put("a", "1"), put("b", "{}")])).await.unwrap();
    let mut copy = Vec::new();
    store.backup(&mut copy).unwrap();

    let path = place.path().join("restored.redb");
    let refused = |bytes: &[u8], what: &str| {
        let error = restore(bytes, &path).expect_err(what);
        let known = matches!(error, RestoreError::Damaged(_) | RestoreError::OtherFormat(_));
        assert!(known, "{error:?} for {what}");
        assert!(!path.exists(), "{what}");
    };
    for length in 0..copy.len() {
        refused(&copy[..length], &format!("a truncation at {length}"));
    }
    for position in 0..copy.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut changed = copy.clone();
            changed[position] ^= change;
            refused(&changed, &format!("byte {position} changed by {change:#x}"));
        }
    }
    let mut longer = copy.clone();
    longer.push(0);
    refused(&longer, "one byte after the end");
    let names = place.path().read_dir().unwrap().count();
    assert_eq!(names, 1, "no draft is left behind");
    assert!(restore(&copy[..], &path).is_ok());
}

#[tokio::test]
async fn a_backup_of_another_format_names_the_build_that_made_it() {
    let (copy, _, made) = backup().await;
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("restored.redb");
    let written = |format: u32, build: &[u8]| {
        let mut other = copy.clone();
        other[8..12].copy_from_slice(&format.to_be_bytes());
        other[12..44].fill(0);
        other[12..12 + build.len()].copy_from_slice(build);
        other
    };
    assert!(written(FORMAT, BUILD.as_bytes()) == copy);
    for (format, named) in [(1, None), (FORMAT - 1, Some("7.1.0")), (FORMAT + 1, Some("7.1.0"))] {
        let other = written(format, b"7.1.0");
        let expected = OtherFormat {
            found: format,
            build: named.map(str::to_owned),
        };
        for error in [
            restore(&other[..], &path).unwrap_err(),
            verify_backup(&other[..]).unwrap_err(),
        ] {
            assert!(
                matches!(&error, RestoreError::OtherFormat(other) if *other == expected),
                "{error:?}"
            );
        }
        assert!(!path.exists());
    }
    // Another build with the same format.
    let mut other = written(FORMAT, b"0.1.9");
    let end = other.len() - 4;
    let checksum = crc32fast::hash(&other[..end]);
    other[end..].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(restore(&other[..], &path).unwrap(), made);
}

#[tokio::test]
async fn a_restore_never_replaces_a_file() {
    let (copy, _, _) = backup().await;
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    std::fs::write(&path, b"precious").unwrap();
    assert!(matches!(restore(&copy[..], &path), Err(RestoreError::Exists)));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

#[tokio::test]
async fn input_and_output_errors_are_distinguished() {
    struct Broken;
    impl std::io::Write for Broken {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::ConnectionReset.into())
        }
    }
    let place = tempfile::tempdir().unwrap();
    let store = open(&place.path().join("store.redb"));
    assert!(matches!(store.backup(Broken), Err(BackupError::Output(_))));
    assert!(store.is_ready(), "an output error is not a failure of the store");
    assert!(matches!(
        restore(Broken, place.path().join("new.redb")),
        Err(RestoreError::Input(_))
    ));
    let (copy, _, _) = backup().await;
    let nowhere = place.path().join("absent/new.redb");
    assert!(matches!(restore(&copy[..], nowhere), Err(RestoreError::Output(_))));
    store.close();
    assert!(matches!(store.backup(Vec::new()), Err(BackupError::Store(_))));
}
