//! What a restored directory needs to start.

use agentcfg_core::model::{NewAgent, NewWorkspace, Plan, Provider};
use agentcfg_core::secret::ProviderCredential;
use agentcfg_core::service::ModelRequest;

use std::path::{Path, PathBuf};

use super::*;
use crate::process::cli::BackupArgs;
use crate::process::commands::backup::run as backup;
use crate::process::server::Server;

const CANARY: &str = "sk-canary";

fn server(data: &Path) -> Result<Server, crate::process::server::StartError> {
    block_on(Server::open(Config {
        data: data.to_owned(),
        default_plan: Plan::Pro,
        cache_mb: 1,
        ..Config::default()
    }))
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    runtime().unwrap().block_on(future)
}

/// Makes a directory, with a provider key saved or without, and a backup of it.
fn backed_up(temp: &Path, with_key: bool) -> (PathBuf, PathBuf) {
    let (data, out) = (temp.join("old"), temp.join("backup"));
    let server = server(&data).unwrap();
    block_on(async {
        let service = server.service();
        let ada = service.trusted_user("ada").unwrap();
        let new = NewWorkspace::new("Studio");
        let studio = service.create_workspace(&ada, new).await.unwrap();
        let agent = NewAgent::new(studio.id, "writer".parse().unwrap(), "Writer");
        service.create_agent(&ada, agent).await.unwrap();
        if with_key {
            let key = ProviderCredential::new(CANARY).unwrap();
            service
                .save_provider_key(&ada, studio.id, Provider::OPENAI, &key)
                .await
                .unwrap();
        }
    });
    drop(server);
    backup(
        &BackupArgs {
            data: Some(data.clone()),
            config: None,
            out: out.clone(),
            compress: false,
        },
        [],
    )
    .unwrap();
    let key = fs::read_to_string(data.join("master.key")).unwrap();
    let key = key.lines().last().unwrap();
    let copy = fs::read(&out).unwrap();
    assert!(!copy.windows(key.len()).any(|window| window == key.as_bytes()));
    (data, out)
}

fn args(from: &Path, data: &Path, discard_provider_keys: bool) -> RestoreArgs {
    RestoreArgs {
        from: from.to_owned(),
        data: Some(data.to_owned()),
        config: None,
        discard_provider_keys,
    }
}

fn restored(from: &Path, data: &Path, discard_provider_keys: bool) {
    run(&args(from, data, discard_provider_keys), []).unwrap();
}

fn saved_key(server: &Server) -> Option<String> {
    block_on(async {
        let ada = server.service().trusted_user("ada").unwrap();
        let call = server
            .service()
            .resolve_model_call(
                &ada,
                None,
                "writer",
                &ModelRequest::new(Provider::OPENAI, "v1/responses"),
            )
            .await;
        call.ok().map(|call| call.first.credential.expose().to_owned())
    })
}

#[test]
fn a_backup_without_provider_keys_starts_with_a_fresh_master_key() {
    let temp = tempfile::tempdir().unwrap();
    let (old, out) = backed_up(temp.path(), false);
    let new = temp.path().join("new");
    restored(&out, &new, false);
    drop(server(&new).unwrap());
    let key = fs::read(new.join("master.key")).unwrap();
    assert_ne!(key, fs::read(old.join("master.key")).unwrap());
}

#[test]
fn a_backup_with_provider_keys_waits_for_its_master_key() {
    let temp = tempfile::tempdir().unwrap();
    let (old, out) = backed_up(temp.path(), true);
    let new = temp.path().join("new");
    restored(&out, &new, false);
    assert!(!new.join("master.key").exists());
    let error = server(&new).map(drop).unwrap_err().to_string();
    assert!(error.contains("master.key is missing"), "{error}");
    assert!(!new.join("session.key").exists(), "a refused start makes no secret");
    fs::copy(old.join("master.key"), new.join("master.key")).unwrap();
    assert_eq!(saved_key(&server(&new).unwrap()).as_deref(), Some(CANARY));

    // The key may also be there before.
    let other = temp.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::copy(old.join("master.key"), other.join("master.key")).unwrap();
    restored(&out, &other, false);
    assert_eq!(saved_key(&server(&other).unwrap()).as_deref(), Some(CANARY));
}

#[test]
fn a_backup_whose_master_key_is_lost_gives_up_its_provider_keys() {
    let temp = tempfile::tempdir().unwrap();
    let (_, out) = backed_up(temp.path(), true);
    let new = temp.path().join("new");
    restored(&out, &new, true);
    let server = server(&new).unwrap();
    assert_eq!(saved_key(&server), None);
    block_on(async {
        let ada = server.service().trusted_user("ada").unwrap();
        let studio = server.service().list_workspaces(&ada).await.unwrap()[0].workspace.id;
        assert!(
            server
                .service()
                .list_provider_keys(&ada, studio)
                .await
                .unwrap()
                .is_empty()
        );
        let log = server.service().audit_log(&ada, studio, 0, 1).await.unwrap();
        assert_eq!(log[0].action.as_str(), "provider_key.deleted");
    });
}

/// Older and newer ones, with the name of the build that made them.
#[test]
fn a_backup_of_another_format_is_refused_and_leaves_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let (_, out) = backed_up(temp.path(), false);
    let new = temp.path().join("new");
    let whole = fs::read(&out).unwrap();
    for (format, build, expected) in [
        (1, "", "made by a build of agentcfg before 0.1.0 with format 1;"),
        (900, "7.1.0", "made by agentcfg 7.1.0 with format 900;"),
    ] {
        let mut bytes = whole.clone();
        bytes[8..12].copy_from_slice(&u32::to_be_bytes(format));
        bytes[12..44].fill(0);
        bytes[12..12 + build.len()].copy_from_slice(build.as_bytes());
        fs::write(&out, bytes).unwrap();
        let error = run(&args(&out, &new, false), []).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!new.join("store.redb").exists());
    }
}

#[test]
fn a_restore_that_fails_can_be_repeated() {
    let temp = tempfile::tempdir().unwrap();
    let (old, out) = backed_up(temp.path(), true);
    let new = temp.path().join("new");
    fs::create_dir(&new).unwrap();
    let key = new.join("master.key");
    fs::copy(old.join("master.key"), &key).unwrap();
    let mode = |mode| fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    mode(0o644);
    // As a killed process leaves it.
    for left in ["store.redb.staged", ".store.redb.staged.12-3.tmp"] {
        fs::write(new.join(left), "half of a store").unwrap();
    }
    let error = run(&args(&out, &new, false), []).unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
    let left: Vec<_> = fs::read_dir(&new)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["master.key"]);
    mode(0o600);
    restored(&out, &new, false);
    assert_eq!(saved_key(&server(&new).unwrap()).as_deref(), Some(CANARY));
}

#[test]
fn configured_master_keys_count() {
    let temp = tempfile::tempdir().unwrap();
    let (old, out) = backed_up(temp.path(), true);
    let service = |keys: &str| {
        let config = Config {
            master_keys: vec![crate::secret::Secret::new(keys.to_owned())],
            ..Config::default()
        };
        let dir = tempfile::tempdir().unwrap();
        let lock = DataDir::open(dir.path()).unwrap().lock().unwrap();
        fill(&lock, File::open(&out).unwrap(), &config, false)
            .unwrap()
            .join("\n")
    };
    let file = fs::read_to_string(old.join("master.key")).unwrap();
    let told = service(file.lines().last().unwrap());
    assert!(told.contains("the setting master_keys opens"), "{told}");
    let told = service(&"ab".repeat(32));
    assert!(
        told.contains("before you start") && told.contains("master_keys has another key"),
        "{told}"
    );
}
