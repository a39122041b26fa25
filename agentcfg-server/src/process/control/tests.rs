use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};

use super::socket::at;
use super::*;
use crate::process::datadir::DataDir;

/// More than one frame, and no multiple of one.
fn content() -> Vec<u8> {
    (0..300_001_u32).map(|n| (n % 251) as u8).collect()
}

async fn ask(dir: &DataDir) -> (Result<u64, ControlError>, Vec<u8>) {
    let dir = dir.clone();
    tokio::task::spawn_blocking(move || {
        let mut out = Vec::new();
        (request_backup(&dir, &mut out), out)
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn a_backup_arrives_whole() {
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::open(temp.path()).unwrap();
    let lock = dir.lock().unwrap();
    let control = spawn(&lock, |_, out| {
        for part in content().chunks(777) {
            out.write_all(part)?;
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(
        fs::metadata(dir.socket_path()).unwrap().permissions().mode() & 0o777,
        0o600
    );
    for _ in 0..2 {
        let (length, out) = ask(&dir).await;
        assert_eq!(length.unwrap(), 300_001);
        assert!(out == content());
    }
    drop(control);
    assert!(!dir.socket_path().exists());
    assert!(matches!(ask(&dir).await.0, Err(ControlError::NotRunning { .. })));
}

#[tokio::test]
async fn a_failure_and_a_panic_are_no_backups() {
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::open(temp.path()).unwrap();
    let lock = dir.lock().unwrap();
    let control = spawn(&lock, |_, out| {
        out.write_all(b"half")?;
        Err(io::Error::other("disk on fire"))
    })
    .unwrap();
    match ask(&dir).await.0 {
        Err(ControlError::Server(message)) => assert_eq!(message, "disk on fire"),
        other => panic!("{other:?}"),
    }
    drop(control);
    let control = spawn(&lock, |_, _| panic!("as asked")).unwrap();
    for _ in 0..2 {
        assert!(matches!(ask(&dir).await.0, Err(ControlError::Broken)));
    }
    drop(control);
}

#[tokio::test]
async fn a_long_path_and_a_stale_socket_are_no_trouble() {
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::open_or_create(temp.path().join("a".repeat(100)).join("b".repeat(100))).unwrap();
    let stale = at(&dir.socket_path(), |path| UnixListener::bind(path)).unwrap();
    drop(stale);
    assert!(matches!(ask(&dir).await.0, Err(ControlError::NotRunning { .. })));
    let lock = dir.lock().unwrap();
    let _control = spawn(&lock, |_, out| out.write_all(b"x")).unwrap();
    assert_eq!(ask(&dir).await.0.unwrap(), 1);
}

#[tokio::test]
async fn a_file_in_the_place_of_the_socket_is_left_alone() {
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::open(temp.path()).unwrap();
    fs::write(dir.socket_path(), "precious").unwrap();
    let error = spawn(&dir.lock().unwrap(), |_, _| Ok(())).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read(dir.socket_path()).unwrap(), b"precious");
}

#[tokio::test]
async fn other_orders_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::open(temp.path()).unwrap();
    let _control = spawn(&dir.lock().unwrap(), |_, _| Ok(())).unwrap();
    let path = dir.socket_path();
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = UnixStream::connect(path).unwrap();
        stream.write_all(b"backup 2\n").unwrap();
        let mut out = Vec::new();
        stream.read_to_end(&mut out).unwrap();
        out
    });
    assert!(answer.await.unwrap().starts_with(b"x"));
}

#[test]
fn whatever_is_cut_is_noticed() {
    let mut sent = Vec::new();
    let running = std::sync::atomic::AtomicBool::new(false);
    frames::send(&mut sent, &running, &|out| out.write_all(&content())).unwrap();
    for length in [0, 1, 4, 5, 100, 65_541, sent.len() - 9, sent.len() - 1] {
        let received = frames::receive(&mut &sent[..length], &mut Vec::new());
        assert!(matches!(received, Err(ControlError::Broken)), "{length}");
    }
    let mut without_a_frame = sent[65_541..].to_vec();
    assert!(matches!(
        frames::receive(&mut &without_a_frame[..], &mut Vec::new()),
        Err(ControlError::Broken)
    ));
    without_a_frame[0] = b'?';
    assert!(matches!(
        frames::receive(&mut &without_a_frame[..], &mut Vec::new()),
        Err(ControlError::Protocol)
    ));
    running.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(frames::send(&mut sent, &running, &|out| out.write_all(b"x")).is_err());
}
