//! The store file: atomic creation, exclusive lock, and refusal of other files.

use redb::Database;

use super::super::super::{FORMAT, OtherFormat};
use super::super::error::require_unwinding;
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

/// Changes each sector of the head, with its checksum.
fn edit_head(bytes: &mut [u8], edit: impl Fn(&mut [u8])) {
    for slot in [0, 8192] {
        for sector in bytes[slot..slot + 4096].chunks_exact_mut(512) {
            edit(sector);
            let checksum = crc32fast::hash(&sector[..508]);
            sector[508..].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}

/// Also a file that was not closed cleanly, which an open would first recover, and one of a length that this format has
/// not.
#[tokio::test]
async fn another_format_is_refused_and_left_unchanged() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    let store = open(&path);
    fill(&store).await;
    let open_file = std::fs::read(&path).unwrap();
    drop(store);
    let mut longer = std::fs::read(&path).unwrap();
    longer.push(0);
    for (format, build, named) in [
        (1, "0.0.9", None),
        (FORMAT - 1, "0.1.0", Some("0.1.0")),
        (FORMAT + 1, "7.1.0-rc.1", Some("7.1.0-rc.1")),
        (FORMAT + 1, "", None),
        (FORMAT + 1, "\x1b[31m", None),
    ] {
        for mut bytes in [open_file.clone(), longer.clone()] {
            edit_head(&mut bytes, |sector| {
                sector[8..12].copy_from_slice(&format.to_be_bytes());
                sector[12..44].fill(0);
                sector[12..12 + build.len()].copy_from_slice(build.as_bytes());
            });
            let path = place.path().join("other.redb");
            std::fs::write(&path, &bytes).unwrap();
            let expected = OtherFormat {
                found: format,
                build: named.map(str::to_owned),
            };
            for error in [open_error(&path), check(&path).unwrap_err()] {
                assert!(
                    matches!(&error, OpenError::OtherFormat(other) if *other == expected),
                    "{error:?}"
                );
            }
            assert!(std::fs::read(&path).unwrap() == bytes);
        }
    }
}

/// The head keeps the name of the build that made the file, whichever build writes it later.
#[tokio::test]
async fn a_file_names_the_build_that_made_it() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    drop(open(&path));
    let named = |bytes: &[u8]| {
        let sectors = [0, 8192]
            .into_iter()
            .flat_map(|slot| bytes[slot..slot + 4096].chunks_exact(512));
        sectors.map(|sector| sector[12..44].to_vec()).collect::<Vec<_>>()
    };
    let mut bytes = std::fs::read(&path).unwrap();
    assert!(
        named(&bytes)
            .iter()
            .all(|name| name.starts_with(super::super::super::BUILD.as_bytes()))
    );
    edit_head(&mut bytes, |sector| sector[12..44].fill(b'9'));
    std::fs::write(&path, &bytes).unwrap();
    let store = open(&path);
    fill(&store).await;
    drop(store);
    assert!(
        named(&std::fs::read(&path).unwrap())
            .iter()
            .all(|name| *name == [b'9'; 32])
    );
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

/// An app in which a panic ends the process cannot contain damage.
#[test]
fn an_app_without_unwinding_is_refused() {
    assert!(require_unwinding(false).is_ok());
    let refused = require_unwinding(true).unwrap_err();
    assert!(refused.to_string().contains("panic = \"unwind\""), "{refused}");
}
