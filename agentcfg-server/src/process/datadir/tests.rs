use std::os::unix::fs::PermissionsExt;
use std::sync::Barrier;

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_new_directory_is_its_owners_alone() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a/b");
    let dir = DataDir::open_or_create(&path).unwrap();
    assert_eq!(mode(dir.path()), 0o700);
    assert!(!dir.has_store().unwrap());
    DataDir::open_or_create(&path).unwrap();
    DataDir::open(&path).unwrap();
}

#[test]
fn a_missing_directory_and_a_file_are_told_apart() {
    let temp = tempfile::tempdir().unwrap();
    let missing = DataDir::open(temp.path().join("none")).unwrap_err();
    assert!(matches!(missing, DataDirError::Missing { .. }));
    assert!(
        missing.to_string().contains("agentcfg-server serve --data"),
        "{missing}"
    );
    let file = temp.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = DataDir::open_or_create(&path).unwrap_err();
        assert!(matches!(error, DataDirError::NotADirectory { .. }), "{error}");
    }
}

#[test]
fn a_directory_that_cannot_be_created_has_no_advice_to_create_it() {
    let temp = tempfile::tempdir().unwrap();
    let link = temp.path().join("link");
    std::os::unix::fs::symlink(temp.path().join("gone"), &link).unwrap();
    let error = DataDir::open_or_create(&link).unwrap_err().to_string();
    assert!(error.ends_with("it is a symbolic link that leads nowhere"), "{error}");
    let error = DataDir::open_or_create("/proc/agentcfg").unwrap_err().to_string();
    assert!(error.starts_with("cannot create /proc/agentcfg: "), "{error}");
}

#[test]
fn errors_of_the_file_system_name_a_way_out() {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem, StorageFull};
    for (kind, words) in [
        (PermissionDenied, "permission denied"),
        (ReadOnlyFilesystem, "read-only"),
        (StorageFull, "space"),
    ] {
        let text = DataDirError::from_io("create", Path::new("/d"), kind.into()).to_string();
        assert!(
            text.contains("cannot create /d") && text.contains(words) && text.contains("--data"),
            "{text}"
        );
    }
}

#[test]
fn a_directory_that_is_not_writable_cannot_be_locked() {
    let temp = tempfile::tempdir().unwrap();
    fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o500)).unwrap();
    if fs::write(temp.path().join("probe"), "").is_ok() {
        eprintln!("NOT TESTED: this user may write to read-only directories");
        return;
    }
    let dir = DataDir::open(temp.path()).unwrap();
    assert!(matches!(dir.lock().unwrap_err(), DataDirError::Denied { .. }));
    assert!(matches!(dir.session_secret().unwrap_err(), DataDirError::Denied { .. }));
}

#[test]
fn the_error_names_the_process_that_holds_the_lock() {
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::open(temp.path()).unwrap();
    let mut lock = dir.lock().unwrap();
    let text = dir.lock().unwrap_err().to_string();
    assert!(text.contains(&format!("process {};", std::process::id())), "{text}");
    lock.announce("127.0.0.1:7420", TokenSource::Directory).unwrap();
    let text = dir.lock().unwrap_err().to_string();
    assert!(text.contains("which serves 127.0.0.1:7420; stop it first"), "{text}");
    assert!(dir.session_secret().is_ok(), "tokens need no lock");
    drop(lock);
    let text = fs::read_to_string(dir.path().join("lock")).unwrap();
    assert!(text.contains("listen"), "the file stays");
    drop(dir.lock().unwrap());
    assert_eq!(mode(&dir.path().join("lock")), 0o600);
}

#[test]
fn a_holder_that_does_not_serve_leaves_the_lock_file_as_it_was() {
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::open(temp.path()).unwrap();
    let file = dir.path().join("lock");
    dir.lock()
        .unwrap()
        .announce("127.0.0.1:7420", TokenSource::Settings)
        .unwrap();
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("pid ", "pid 1")).unwrap();
    let before = fs::read(&file).unwrap();
    let lock = dir.lock().unwrap();
    let held = dir.lock().unwrap_err().to_string();
    assert!(held.contains(&format!("process {};", std::process::id())), "{held}");
    assert_eq!(dir.served_address(), None);
    let guards = || (dir.token_source(), dir.refuse_lost_store().is_err());
    assert_eq!(
        guards(),
        (TokenSource::Settings, true),
        "also if the process is killed now"
    );
    drop(lock);
    assert_eq!(fs::read(&file).unwrap(), before);
    drop(dir.lock_quietly().unwrap());
    assert_eq!(fs::read(&file).unwrap(), before);
    dir.lock()
        .unwrap()
        .announce("127.0.0.1:1", TokenSource::Provider)
        .unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 3);
    assert_eq!(guards(), (TokenSource::Provider, true));
}

#[test]
fn the_session_secret_is_made_once() {
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::open(temp.path()).unwrap();
    let barrier = Barrier::new(8);
    let secrets: Vec<SessionSecret> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    dir.session_secret().unwrap()
                })
            })
            .collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(secrets.iter().all(|secret| *secret == secrets[0]));
    assert_eq!(mode(&dir.path().join("session.key")), 0o600);
    let text = fs::read_to_string(dir.path().join("session.key")).unwrap();
    assert_eq!((text.as_bytes(), text.len()), (secrets[0].as_bytes(), 32));
    assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "it can be a setting");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no drafts stay behind");
    assert_eq!(format!("{:?}", secrets[0]), "[redacted]");
    let other = tempfile::tempdir().unwrap();
    assert_ne!(
        DataDir::open(other.path()).unwrap().session_secret().unwrap(),
        secrets[0]
    );
}

#[test]
fn the_rights_that_a_kubelet_gives_to_the_group_are_taken_back() {
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::open(temp.path()).unwrap();
    let secret = dir.session_secret().unwrap();
    let path = dir.path().join("session.key");
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    // What `fsGroup` makes of a volume at each start of a pod.
    for (folder, file) in [(0o2770, 0o660), (0o2775, 0o660), (0o2770, 0o640)] {
        set(temp.path(), folder);
        set(&path, file);
        assert_eq!(dir.session_secret().unwrap(), secret);
        assert_eq!(mode(&path), 0o600);
    }
    // Strangers may read it, or the folder is none of a volume.
    for (folder, file) in [(0o2770, 0o664), (0o2770, 0o604), (0o770, 0o660)] {
        set(temp.path(), folder);
        set(&path, file);
        let error = dir.session_secret().unwrap_err();
        assert!(
            matches!(error, DataDirError::KeyExposed { mode, .. } if mode == file),
            "{error}"
        );
        assert_eq!(mode(&path), file);
    }
}

#[test]
fn a_bad_session_key_is_refused_and_left_as_it_is() {
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::open(temp.path()).unwrap();
    let path = dir.path().join("session.key");
    fs::write(&path, [7; 32]).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let error = dir.session_secret().unwrap_err();
    assert!(matches!(error, DataDirError::KeyExposed { mode: 0o640, .. }));
    assert!(error.to_string().contains("chmod 600"), "{error}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    assert_eq!(dir.session_secret().unwrap().as_bytes(), [7; 32]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&path, "short").unwrap();
    assert!(matches!(
        dir.session_secret().unwrap_err(),
        DataDirError::KeyLength { length: 5, .. }
    ));
    assert_eq!(fs::read(&path).unwrap(), b"short");
}

#[test]
fn commands_can_insist_on_a_store_or_on_none() {
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::open(temp.path()).unwrap();
    assert!(matches!(dir.require_store(), Err(DataDirError::NoStore { .. })));
    dir.require_no_store().unwrap();
    fs::write(dir.store_path(), "").unwrap();
    dir.require_store().unwrap();
    assert!(matches!(dir.require_no_store(), Err(DataDirError::HasStore { .. })));
}

#[test]
fn keys_without_their_store_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::open(temp.path()).unwrap();
    dir.refuse_lost_store().unwrap();
    // `token` may run before the first start.
    dir.session_secret().unwrap();
    dir.refuse_lost_store().unwrap();
    let mut lock = dir.lock().unwrap();
    dir.refuse_lost_store().unwrap();
    lock.announce("127.0.0.1:7420", TokenSource::Directory).unwrap();
    let error = dir.refuse_lost_store().unwrap_err().to_string();
    assert!(
        error.contains("session.key") && error.contains("restore --from"),
        "{error}"
    );
    dir.make_master_key().unwrap();
    let error = dir.refuse_lost_store().unwrap_err().to_string();
    assert!(error.contains("master.key"), "{error}");
    fs::write(dir.store_path(), "").unwrap();
    dir.refuse_lost_store().unwrap();
}
