//! The conversion of files without block checksums.

use super::super::blocks::Form;
use super::super::open::form;
use super::super::{OpenError, Problem, check};
use super::*;

fn plain(place: &Path) -> std::path::PathBuf {
    let path = place.join("store.redb");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/store-v1.redb");
    std::fs::copy(golden, &path).unwrap();
    path
}

#[tokio::test]
async fn a_plain_file_is_converted() {
    let place = tempfile::tempdir().unwrap();
    let path = plain(place.path());
    assert!(!check(&path).unwrap().block_checksums);
    // The draft of a conversion that was killed.
    let leftover = place.path().join(".store.redb.1-0.tmp");
    std::fs::write(&leftover, b"half").unwrap();
    let store = open(&path);
    let found = store.get(&[agent("first")]).await.unwrap();
    assert!(found[0].is_some());
    drop(store);
    let report = check(&path).unwrap();
    // The file was made without the workspace's own record.
    assert!(
        report.block_checksums && matches!(report.problems[..], [Problem::Remains(..)]),
        "{report:?}"
    );
    assert!(!leftover.exists());
    assert_eq!(place.path().read_dir().unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn a_converted_file_keeps_its_permissions_and_its_place_behind_a_link() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    let path = plain(place.path());
    for mode in [0o600, 0o640] {
        let elsewhere = tempfile::tempdir().unwrap();
        let (link, target) = (
            elsewhere.path().join("store.redb"),
            elsewhere.path().join("target.redb"),
        );
        std::fs::copy(&path, &target).unwrap();
        std::fs::set_permissions(&target, PermissionsExt::from_mode(mode)).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        drop(open(&link));
        assert!(link.is_symlink());
        assert_eq!(form(&target).unwrap(), Some(Form::Blocks));
        assert_eq!(target.metadata().unwrap().permissions().mode() & 0o777, mode);
    }
}

#[test]
fn a_file_that_another_process_holds_is_not_converted() {
    let place = tempfile::tempdir().unwrap();
    let path = plain(place.path());
    let holder = redb::Database::open(&path).unwrap();
    let error = RedbStore::open(&path, RedbOptions::default()).unwrap_err();
    assert!(matches!(error, OpenError::Held), "{error:?}");
    assert_eq!(place.path().read_dir().unwrap().count(), 1);
    drop(holder);
    assert_eq!(form(&path).unwrap(), Some(Form::Plain));
    drop(open(&path));
}

/// After a refusal, the file is byte for byte what it was and no draft is left.
#[test]
fn a_damaged_plain_file_is_refused_and_not_changed() {
    let place = tempfile::tempdir().unwrap();
    let path = plain(place.path());
    let whole = std::fs::read(&path).unwrap();
    let mut refused = 0;
    for at in (4096..whole.len()).step_by(397) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&path, &bytes).unwrap();
        match RedbStore::open(&path, RedbOptions::default()) {
            Ok(store) => drop(store),
            Err(OpenError::Damaged(_)) => {
                refused += 1;
                assert_eq!(form(&path).unwrap(), Some(Form::Plain));
                assert!(std::fs::read(&path).unwrap() == bytes, "byte {at}");
            }
            Err(other) => panic!("{other} for byte {at}"),
        }
        assert_eq!(place.path().read_dir().unwrap().count(), 1, "no draft is left behind");
    }
    assert!(refused > 10, "{refused}");
}

#[test]
fn a_file_of_a_newer_block_format_is_refused_untouched() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    drop(open(&path));
    let mut bytes = std::fs::read(&path).unwrap();
    for sector in bytes[..2 * 4096].chunks_exact_mut(512) {
        sector[11] = 2;
        let checksum = crc32fast::hash(&sector[..508]);
        sector[508..].copy_from_slice(&checksum.to_be_bytes());
    }
    std::fs::write(&path, &bytes).unwrap();
    let expected = |error: &OpenError| matches!(error, OpenError::TooNew { found: 2, supported: 1 });
    let error = RedbStore::open(&path, RedbOptions::default()).unwrap_err();
    assert!(expected(&error), "{error:?}");
    let error = check(&path).unwrap_err();
    assert!(expected(&error), "{error:?}");
    assert!(std::fs::read(&path).unwrap() == bytes);
}
