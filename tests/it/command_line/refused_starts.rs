//! A start that is refused, and the commands that only read, leave every byte of the data directory.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use agentcfg_tests::harness::{Builder, Run, Server, Studio};
use serde_json::json;

/// The files of a directory with their content.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file());
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// A command with a path as its last argument.
fn command(arguments: &[&str], path: &Path) -> Run {
    Run::new(arguments.iter().copied().map(OsStr::new).chain([path.as_os_str()]))
}

/// A data directory with a workspace, after its server has stopped in order or was killed.
fn left_behind(is_killed: bool) -> Server {
    let server = Server::builder().set("default_plan", "enterprise").start();
    let studio = Studio::on(&server);
    studio.create("writer", &json!({})).expect(201);
    match is_killed {
        true => server.kill(),
        false => server.stop(),
    }
    server
}

#[test]
fn a_refused_start_leaves_every_byte() {
    let other_key = "0".repeat(64);
    for is_killed in [false, true] {
        let server = left_behind(is_killed);
        let dir = server.data();
        let start = |settings: &[(&str, &str)]| {
            let run = command(&["serve", "--listen", "127.0.0.1:0", "--data"], dir);
            let set =
                |run: Run, (name, value): &(&str, &str)| run.env(&format!("AGENTCFG_{}", name.to_uppercase()), value);
            settings.iter().fold(run, set).finish()
        };
        let before = files(dir);
        for (settings, said) in [
            (&[("status_ttl", "2m")][..], "status_ttl"),
            (&[("max_persona_prompt", "0")], "max_persona_prompt"),
            (&[("max_persona_prompt", "200001")], "max_persona_prompt"),
            (&[("session_provider", "magic")], "session_provider"),
            (&[("session_provider", "jwks")], "jwks"),
            (&[("session_secret", "")], "session_secret"),
            (&[("session_secret", "short")], "session_secret"),
            (&[("master_keys", "no key")], "master_keys"),
            (&[("master_keys", &other_key)], "needs"),
            (&[("tls_cert", "/none.pem"), ("tls_key", "/none.key")], "tls_cert"),
            (&[("tls_cert", "/none.pem")], "tls_key"),
            (&[("outbound_ca_file", "/none.pem")], "outbound_ca_file"),
            (&[("outbound_proxy", "no address")], "outbound_proxy"),
            (&[("otlp_endpoint", "no address")], "otlp_endpoint"),
            (&[("openai_base_url", "no address")], "openai_base_url"),
            (&[("anthropic_base_url", "https://x.example/v1")], "anthropic_base_url"),
            (&[("provider_api_key_none", "sk-none")], "none"),
            (&[("provider_api_key_openai_file", "/none")], "openai"),
            (&[("metrics_listen", "203.0.113.1:1")], "metrics_listen"),
            (&[("metrics_listen", "nowhere")], "metrics_listen"),
            (&[("public_url", "nowhere")], "public_url"),
            (&[("log", "no=such=filter")], "log"),
            (&[("webhook_allowed_hosts", "a b")], "webhook_allowed_hosts"),
            (&[("workspace_creation", "nobody")], "workspace_creation"),
            (&[("default_plan", "gold")], "default_plan"),
            (&[("trusted_proxies", "everywhere")], "trusted_proxies"),
            (&[("no_such_setting", "1")], "no_such_setting"),
            (&[("database_url", "mysql://x/y")], "database_url"),
        ] {
            let message = start(settings).failed_with(&[]);
            assert!(message.to_lowercase().contains(said), "{settings:?}: {message}");
            assert!(files(dir) == before, "{settings:?} changed a file, killed: {is_killed}");
        }
        // The file of the master keys is missing, is another one, or is damaged.
        let key = dir.join("master.key");
        let content = fs::read(&key).unwrap();
        for (replaced, said) in [
            (None, "needs the master key"),
            (Some("garbage"), "master.key"),
            (Some(&*other_key), "needs"),
        ] {
            fs::remove_file(&key).unwrap();
            if let Some(text) = replaced {
                fs::write(&key, text).unwrap();
                fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
            }
            let before = files(dir);
            start(&[]).failed_with(&[said]);
            assert!(files(dir) == before, "{replaced:?}, killed: {is_killed}");
            fs::write(&key, &content).unwrap();
        }
        assert!(files(dir) == before);
    }
}

/// Where the secrets are in the settings, the lock file alone shows that there was a store.
#[test]
fn a_lost_store_is_refused_until_it_is_restored() {
    let master_keys = "7".repeat(64);
    let secrets = [
        ("session_secret", "a secret of a test that has enough bytes"),
        ("master_keys", &*master_keys),
    ];
    let with = |builder: Builder| {
        secrets
            .iter()
            .fold(builder, |builder, (name, value)| builder.set(name, *value))
    };
    let server = with(Server::builder()).start();
    let dir = server.data();
    let backup = dir.join("backup");
    command(&["backup", "--data", dir.to_str().unwrap(), "--out"], &backup)
        .finish()
        .succeeded();
    server.kill();
    fs::remove_file(dir.join("store.redb")).unwrap();
    let start = || {
        let run = command(&["serve", "--listen", "127.0.0.1:0", "--data"], dir);
        let set = |run: Run, (name, value): &(&str, &str)| run.env(&format!("AGENTCFG_{}", name.to_uppercase()), value);
        secrets.iter().fold(run, set).finish()
    };
    start().failed_with(&["has lock but no store"]);
    // What could not be restored changes nothing of that.
    fs::write(dir.join("no-backup"), "garbage").unwrap();
    let restore =
        |from: &str| command(&["restore", "--from", dir.join(from).to_str().unwrap(), "--data"], dir).finish();
    restore("no-backup").failed_with(&["cannot restore"]);
    start().failed_with(&["has lock but no store"]);
    restore("backup").succeeded();
    with(Server::builder()).data(dir).start().stop();
}

#[test]
fn a_backup_and_a_check_only_read() {
    for is_killed in [false, true] {
        let server = left_behind(is_killed);
        let (dir, out) = (server.data(), tempfile::tempdir().unwrap());
        let before = files(dir);
        let (copy, restored) = (out.path().join("copy"), out.path().join("restored"));
        command(&["check", "--data"], dir).finish().succeeded();
        let text = dir.to_str().unwrap();
        command(&["backup", "--data", text, "--out"], &copy)
            .finish()
            .succeeded();
        assert!(files(dir) == before, "killed: {is_killed}");
        // A backup of a file that was not closed in order has all that was acknowledged.
        let text = copy.to_str().unwrap();
        command(&["restore", "--from", text, "--data"], &restored)
            .finish()
            .succeeded();
        command(&["check", "--data"], &restored).finish().succeeded();
    }
}

/// The lock file shows that there was a store, and where the secret of the session tokens is.
#[test]
fn a_command_that_locks_the_directory_leaves_the_lock_file() {
    let secret = "a secret of a test that has enough bytes";
    let server = Server::builder().set("session_secret", secret).start();
    server.stop();
    let dir = server.data();
    let lock = fs::read(dir.join("lock")).unwrap();
    let migrated = ["migrate", "--to", "postgres://127.0.0.1:1/none", "--from"];
    for arguments in [
        &["compact", "--data"][..],
        &["login-link", "--user", "ada", "--data"],
        &["rotate-master-key", "--data"],
        &migrated,
    ] {
        let run = command(arguments, dir).finish();
        match arguments == migrated {
            true => drop(run.failed_with(&["cannot reach the database"])),
            false => drop(run.succeeded()),
        }
        assert!(fs::read(dir.join("lock")).unwrap() == lock, "{arguments:?}");
    }
    command(&["token", "--user", "ada", "--data"], dir)
        .finish()
        .failed_with(&["in the setting session_secret"]);
    fs::remove_file(dir.join("store.redb")).unwrap();
    fs::remove_file(dir.join("master.key")).unwrap();
    command(&["serve", "--listen", "127.0.0.1:0", "--data"], dir)
        .finish()
        .failed_with(&["has lock but no store"]);
}
