use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use agentcfg_core::Caller;
use agentcfg_core::model::{NewAgent, NewWorkspace, Plan, Provider, WorkspaceId};
use agentcfg_core::secret::ProviderCredential;
use agentcfg_core::service::{ModelRequest, Settings};
use agentcfg_core::store::{MemoryStore, Store};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::*;
use crate::process::backend::{BackendError, open_store};
use crate::process::config::Secret;
use crate::process::control::{self, ControlError, Order};
use crate::process::server::{Server, StartError, bind};

const CANARY: &str = "sk-canary-0123456789-abcdefghij";

fn config(data: &Path) -> Config {
    Config {
        data: data.to_owned(),
        default_plan: Plan::Pro,
        cache_mb: 1,
        ..Config::default()
    }
}

fn ada(service: &AgentCfg) -> Caller {
    service.trusted_user("ada").unwrap()
}

/// A workspace with an agent and a saved key.
async fn fill(service: &AgentCfg) -> WorkspaceId {
    let ada = ada(service);
    let studio = service
        .create_workspace(&ada, NewWorkspace::new("Studio"))
        .await
        .unwrap();
    let agent = NewAgent::new(studio.id, "writer".parse().unwrap(), "Writer");
    service.create_agent(&ada, agent).await.unwrap();
    let key = ProviderCredential::new(CANARY).unwrap();
    service
        .save_provider_key(&ada, studio.id, Provider::OPENAI, &key)
        .await
        .unwrap();
    studio.id
}

async fn opens(service: &AgentCfg) -> bool {
    let call = service
        .resolve_model_call(
            &ada(service),
            None,
            "writer",
            &ModelRequest::new(Provider::OPENAI, "v1/responses"),
        )
        .await;
    call.is_ok_and(|call| call.first.credential.expose() == CANARY)
}

async fn refused(config: Config) -> String {
    match Server::open(config).await {
        Err(error @ (StartError::MasterKeys(_) | StartError::Backend(BackendError::MasterKeys(_)))) => {
            error.to_string()
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it started"),
    }
}

fn key_file(data: &Path) -> std::path::PathBuf {
    data.join("master.key")
}

fn ids(data: &Path) -> Vec<KeyId> {
    let keys = DataDir::open(data).unwrap().master_keys().unwrap().unwrap();
    keys.iter().map(MasterKey::id).collect()
}

#[tokio::test]
async fn a_new_directory_gets_a_key_and_data_without_it_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let server = Server::open(config(&data)).await.unwrap();
    assert_eq!(
        fs::metadata(key_file(&data)).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let id = ids(&data)[0];
    drop(server);

    // The same holds while no provider key is saved.
    let moved = temp.path().join("moved");
    fs::rename(key_file(&data), &moved).unwrap();
    let error = refused(config(&data)).await;
    for words in [
        "master.key is missing",
        &id.to_string(),
        "AGENTCFG_MASTER_KEYS_FILE",
        "--discard-provider-keys",
    ] {
        assert!(error.contains(words), "{error}");
    }
    assert!(!key_file(&data).exists(), "no second key is made");

    let other = temp.path().join("other");
    drop(Server::open(config(&other)).await.unwrap());
    fs::copy(key_file(&other), key_file(&data)).unwrap();
    let error = refused(config(&data)).await;
    assert!(
        error.contains(&id.to_string()) && error.contains(&ids(&other)[0].to_string()),
        "{error}"
    );

    fs::rename(&moved, key_file(&data)).unwrap();
    let server = Server::open(config(&data)).await.unwrap();
    fill(server.service()).await;
    drop(server);
    assert!(opens(Server::open(config(&data)).await.unwrap().service()).await);
}

#[tokio::test]
async fn a_key_file_that_is_open_to_others_or_holds_something_else_is_refused_and_not_shown() {
    let temp = tempfile::tempdir().unwrap();
    drop(Server::open(config(temp.path())).await.unwrap());
    let path = key_file(temp.path());
    let good = fs::read_to_string(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let error = refused(config(temp.path())).await;
    assert!(
        error.contains("mode 640") && error.contains("rotate-master-key"),
        "{error}"
    );
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let key = good.lines().last().unwrap();
    for (text, words) in [
        (String::new(), "no key"),
        (format!("{good}\n{}\n", &key[1..]), ":5: must be 32 bytes"),
        (format!("{good}{key}\n"), "a second time"),
    ] {
        fs::write(&path, &text).unwrap();
        let error = refused(config(temp.path())).await;
        assert!(error.contains(words), "{error}");
        assert!(!error.contains(&key[1..]), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "it is left as it was");
    }
    fs::write(&path, format!("\n# a note\n  {key}  \r\n")).unwrap();
    Server::open(config(temp.path())).await.unwrap();
}

#[tokio::test]
async fn configured_keys_win_over_the_file_and_make_none() {
    let temp = tempfile::tempdir().unwrap();
    let with = |keys: &[u8]| Config {
        master_keys: keys
            .iter()
            .map(|byte| Secret::new(format!("{byte:02x}").repeat(32)))
            .collect(),
        ..config(temp.path())
    };
    let server = Server::open(with(&[1])).await.unwrap();
    assert!(!key_file(temp.path()).exists());
    fill(server.service()).await;
    drop(server);
    assert!(refused(config(temp.path())).await.contains("is missing"));
    assert!(refused(with(&[2])).await.contains("the setting master_keys has"));
    // The documented way to replace a configured key.
    assert!(opens(Server::open(with(&[1, 2])).await.unwrap().service()).await);
    let server = Server::open(with(&[2, 1])).await.unwrap();
    assert!(opens(server.service()).await);
    assert!(is_pending(server.service()).await.unwrap());
    drop(server);
    assert!(refused(with(&[2])).await.contains("needs the master key"));
    let server = Server::open(with(&[2, 1])).await.unwrap();
    server.service().rewrap_provider_keys(&mut |_| {}).await.unwrap();
    assert!(!is_pending(server.service()).await.unwrap());
    drop(server);
    assert!(opens(Server::open(with(&[2])).await.unwrap().service()).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reseal_says_whether_older_keys_are_still_needed() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let service = |keys: &[u8]| {
        let keys = keys
            .iter()
            .map(|byte| format!("{byte:02x}").repeat(32).parse().unwrap());
        let vault = Vault::new(keys.collect()).unwrap();
        let settings = Settings::default().default_plan(Plan::Pro);
        AgentCfg::builder(Arc::clone(&store))
            .settings(settings)
            .unwrap()
            .vault(vault)
            .build()
    };
    let old = service(&[1]);
    old.adopt_master_keys().await.unwrap();
    fill(&old).await;
    let (new, other) = (service(&[2, 1, 3]), service(&[3, 2, 1]));
    // A server with another first key starts when the first batch is sealed.
    let mut start_other = |_| {
        tokio::task::block_in_place(|| Handle::current().block_on(other.adopt_master_keys())).unwrap();
    };
    let outcome = reseal(&new, &mut start_other).await.unwrap();
    assert_eq!(outcome, Resealed::Superseded);
    let Resealed::Everything(done) = reseal(&other, &mut |_| {}).await.unwrap() else {
        panic!("the server with the new first key seals everything");
    };
    assert_eq!((done.examined, done.rewrapped, done.unreadable), (1, 1, 0));
    assert!(opens(&service(&[3])).await);
}

#[tokio::test]
async fn a_store_that_knows_no_key_opens_and_gets_one() {
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::open_or_create(temp.path()).unwrap();
    drop(open_store(&dir.lock().unwrap(), 1).unwrap());
    drop(Server::open(config(temp.path())).await.unwrap());
    let first = ids(temp.path());
    drop(Server::open(config(temp.path())).await.unwrap());
    assert_eq!(ids(temp.path()), first);
    fs::remove_file(key_file(temp.path())).unwrap();
    assert!(refused(config(temp.path())).await.contains("is missing"));
}

/// Rotates offline until `say` has been called this often, then drops the future as a kill would.
async fn killed_after(data: &Path, lines: usize, drop_old: bool) -> bool {
    let server = Server::open(config(data)).await.unwrap();
    let dir = server.dir().unwrap().clone();
    let service = server.service().clone();
    let (enough, reached) = oneshot::channel();
    let mut enough = Some(enough);
    let mut said = 0;
    let mut say = move |_| {
        said += 1;
        if said > lines {
            // The future is dropped at its next await, so nothing happens after this point.
            if let Some(enough) = enough.take() {
                let _ = enough.send(());
            }
        }
    };
    tokio::select! {
        biased;
        _ = reached => false,
        done = rotate(&service, &dir, drop_old, &mut say) => done.is_ok(),
    }
}

#[tokio::test]
async fn a_killed_rotation_leaves_a_directory_that_starts_and_is_resumed() {
    for drop_old in [false, true] {
        for lines in 0.. {
            let temp = tempfile::tempdir().unwrap();
            let server = Server::open(config(temp.path())).await.unwrap();
            fill(server.service()).await;
            drop(server);
            let old = ids(temp.path());
            let finished = killed_after(temp.path(), lines, drop_old).await;

            let server = Server::open(config(temp.path())).await.unwrap();
            assert!(opens(server.service()).await, "killed after {lines} lines");
            let mut said = Vec::new();
            let dir = server.dir().unwrap().clone();
            let pending = is_pending(server.service()).await.unwrap();
            rotate(server.service(), &dir, drop_old, &mut |line| said.push(line))
                .await
                .unwrap();
            assert_eq!(said[0].starts_with("resuming"), pending, "{said:?}");
            assert!(opens(server.service()).await);
            drop(server);
            let now = ids(temp.path());
            assert_eq!(now.contains(&old[0]), !drop_old, "{now:?}");
            assert!(opens(Server::open(config(temp.path())).await.unwrap().service()).await);
            if finished {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_kill_right_after_the_file_was_written_is_no_trouble_either() {
    let temp = tempfile::tempdir().unwrap();
    let server = Server::open(config(temp.path())).await.unwrap();
    fill(server.service()).await;
    drop(server);
    let dir = DataDir::open(temp.path()).unwrap();
    let both = dir.add_master_key(dir.master_keys().unwrap().unwrap()).unwrap();
    let server = Server::open(config(temp.path())).await.unwrap();
    assert!(is_pending(server.service()).await.unwrap());
    let mut said = Vec::new();
    rotate(server.service(), &dir, true, &mut |line| said.push(line))
        .await
        .unwrap();
    assert_eq!(
        said[0],
        format!("resuming the rotation to the master key {}", both[0].id())
    );
    assert_eq!(ids(temp.path()), [both[0].id()]);
}

/// Runs a server on its directory while `work` is done.
async fn running<T>(config: Config, work: impl AsyncFnOnce(AgentCfg, DataDir) -> T) -> T {
    let listener = bind(([127, 0, 0, 1], 0).into(), "listen").await.unwrap();
    let server = Server::open(config).await.unwrap();
    let (service, dir) = (server.service().clone(), server.dir().unwrap().clone());
    let (ready, is_ready) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(async move {
        let shutdown = async {
            let _ = stopped.await;
        };
        let ready = |_| {
            let _ = ready.send(());
        };
        server.run(listener, ready, shutdown).await.map(drop)
    });
    is_ready.await.unwrap();
    let result = work(service, dir).await;
    stop.send(()).unwrap();
    serving.await.unwrap().unwrap();
    result
}

async fn order(dir: &DataDir, drop_old: bool) -> (Result<u64, ControlError>, String) {
    let dir = dir.clone();
    let asked = tokio::task::spawn_blocking(move || {
        let mut out = Vec::new();
        let answer = control::request(&dir, &Order::RotateMasterKey { drop_old }, &mut out);
        (answer, String::from_utf8(out).unwrap())
    });
    asked.await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_server_rotates_and_uses_the_new_key_at_once() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().to_owned();
    running(config(temp.path()), async |service, dir| {
        fill(&service).await;
        let old = ids(&data);
        let (answer, out) = order(&dir, false).await;
        answer.unwrap();
        let both = ids(&data);
        assert_eq!(both[1..], old);
        assert!(out.starts_with(&format!("made the master key {}\n", both[0])), "{out}");
        assert!(
            out.contains("1 provider keys and webhooks checked, 1 sealed again"),
            "{out}"
        );
        assert_eq!(service.vault().unwrap().sealing_key(), both[0]);
        assert!(opens(&service).await);
        let (answer, out) = order(&dir, true).await;
        answer.unwrap();
        assert!(out.contains("removed from"), "{out}");
        assert_eq!(ids(&data).len(), 1);
        assert!(opens(&service).await);
    })
    .await;
    let server = Server::open(config(temp.path())).await.unwrap();
    assert!(opens(server.service()).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_configured_keys_explains_the_way() {
    let temp = tempfile::tempdir().unwrap();
    let config = Config {
        master_keys: vec![Secret::new("01".repeat(32))],
        ..config(temp.path())
    };
    let (answer, _) = running(config, async |_, dir| order(&dir, false).await).await;
    let error = answer.unwrap_err().to_string();
    assert!(
        error.contains("AGENTCFG_MASTER_KEYS") && error.contains("first place"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_finishes_what_a_kill_left() {
    let temp = tempfile::tempdir().unwrap();
    let server = Server::open(config(temp.path())).await.unwrap();
    fill(server.service()).await;
    drop(server);
    let dir = DataDir::open(temp.path()).unwrap();
    dir.add_master_key(dir.master_keys().unwrap().unwrap()).unwrap();
    running(config(temp.path()), async |service, _| {
        while is_pending(&service).await.unwrap() {
            tokio::task::yield_now().await;
        }
        assert!(opens(&service).await);
    })
    .await;
}
