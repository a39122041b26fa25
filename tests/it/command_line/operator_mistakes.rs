//! What the commands say where operators go wrong.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use agentcfg_tests::harness::{Run, Server, Studio, run, scratch, until};
use serde_json::json;

#[test]
fn a_mistake_in_the_file_is_shown_with_the_line_as_it_should_be() {
    for (text, said) in [
        (
            "listen = 127.0.0.1:7420\n",
            r#"settings.toml:1: the text of listen must be in double quotes: listen = "127.0.0.1:7420""#,
        ),
        ("operators = [ada]\n", r#"operators = ["ada"]"#),
        (
            "log = \"info\"\nstatus_ttl = 2m\n",
            "settings.toml:2: status_ttl must be a whole number of seconds",
        ),
        (
            "[server]\nlisten = \"127.0.0.1:0\"\n",
            "unknown setting server (settings.toml:1): [server] is a table",
        ),
        ("max_streams = \"5\"\n", "without quotes"),
    ] {
        let dir = scratch();
        fs::write(dir.path().join("settings.toml"), text).unwrap();
        Run::new(["serve", "--config", "settings.toml"])
            .in_dir(&dir)
            .finish()
            .failed_with(&[said]);
    }
}

#[test]
fn every_command_reads_the_data_directory_from_the_file() {
    let dir = scratch();
    let server = Server::builder().data(dir.path().join("data")).start();
    server.stop();
    fs::write(dir.path().join("a.toml"), format!("data = {:?}\n", server.data())).unwrap();
    fs::set_permissions(dir.path().join("a.toml"), fs::Permissions::from_mode(0o644)).unwrap();
    let run = |arguments: &[&str]| Run::new(arguments).in_dir(&dir).finish();
    run(&["token", "--user", "ada", "--config", "a.toml"]).succeeded();
    run(&["check", "--config", "a.toml"]).succeeded();
    run(&["backup", "--config", "a.toml", "--out", "copy"]).succeeded();
    run(&["login-link", "--config", "a.toml", "--user", "ada"]).succeeded();
    run(&["rotate-master-key", "--config", "a.toml"]).succeeded();
    run(&["restore", "--config", "a.toml", "--from", "copy"]).failed_with(&["already has a store"]);
    fs::write(dir.path().join("b.toml"), "data = \"new\"\n").unwrap();
    run(&["restore", "--config", "b.toml", "--from", "copy"]).succeeded();
    assert!(dir.path().join("new/store.redb").is_file());
    assert!(!dir.path().join("agentcfg-data").exists());
}

#[test]
fn every_command_reads_the_data_directory_from_the_environment() {
    let dir = scratch();
    let server = Server::builder().data(dir.path().join("data")).start();
    let run = |data: &str, arguments: &[&str]| {
        let run = Run::new(arguments).in_dir(&dir).env("AGENTCFG_DATA", data);
        run.finish().succeeded()
    };
    run("data", &["token", "--user", "ada"]);
    // The server that carries it out has another working directory.
    let rotated = run("data", &["rotate-master-key"]);
    let file = dir.path().canonicalize().unwrap().join("data/master.key");
    assert!(
        rotated.contains(&format!("keep a new copy of {} now", file.display())),
        "{rotated}"
    );
    server.stop();
    run("data", &["check"]);
    run("data", &["backup", "--out", "copy"]);
    run("new", &["restore", "--from", "copy"]);
    assert!(dir.path().join("new/store.redb").is_file());
    // The keys of a database are no file.
    for (variable, value) in [
        ("AGENTCFG_DATABASE_URL", "postgres://x@127.0.0.1:1/x"),
        ("AGENTCFG_ETCD_ENDPOINTS", "http://127.0.0.1:1"),
    ] {
        let rotated = Run::new(["rotate-master-key", "--drop-old"]).in_dir(&dir);
        let rotated = rotated.env(variable, value).env("AGENTCFG_DATA", "data");
        rotated.finish().failed_with(&["is set", "master_keys"]);
    }
    for arguments in [&["check"][..], &["rotate-master-key"]] {
        Run::new(arguments)
            .in_dir(&dir)
            .finish()
            .failed_with(&["--data", "AGENTCFG_DATA"]);
    }
}

#[test]
fn settings_without_effect_are_reported() {
    let dir = scratch();
    let said = |variables: &[(&str, &str)]| {
        let builder = Server::builder().data(dir.path().join("data"));
        let server = variables
            .iter()
            .fold(builder, |builder, (name, value)| builder.env(name, value))
            .start();
        server.stop();
        server.stderr()
    };
    let issuer = ("AGENTCFG_OIDC_ISSUER", "https://id.example.com");
    assert!(said(&[issuer]).contains("oidc_issuer is not used: session_provider is local"));
    let others = said(&[
        ("AGENTCFG_OIDC_CLIENT_SECRET", "a secret"),
        ("AGENTCFG_USERINFO_APIKEY", "a-key"),
        ("AGENTCFG_ETCD_PREFIX", "studio"),
        ("AGENTCFG_DATABASE_WAIT", "5"),
    ]);
    for (name, why) in [
        ("oidc_client_secret", "session_provider is local"),
        ("userinfo_apikey", "session_provider is local"),
        ("etcd_prefix", "etcd_endpoints is not set"),
        ("database_wait", "the store is in the data directory"),
    ] {
        assert!(
            others.contains(&format!("{name} is not used: {why}")),
            "{name}: {others}"
        );
    }
    let client = ("AGENTCFG_URL", "http://127.0.0.1:7420");
    assert!(!said(&[client]).contains("is not used"));
    let empty = ("AGENTCFG_LOG", "");
    Run::new(["serve"])
        .in_dir(&dir)
        .env(empty.0, empty.1)
        .finish()
        .failed_with(&["AGENTCFG_LOG", "log filter"]);
}

#[test]
fn a_migration_names_what_can_be_moved() {
    let dir = scratch();
    for (from, to) in [("mysql://x", "new"), ("old", "redis://x")] {
        let arguments = ["migrate", "--from", from, "--to", to];
        Run::new(arguments)
            .in_dir(&dir)
            .finish()
            .failed_with(&["postgres://", "etcd", "no other URL"]);
    }
    Run::new(["migrate", "--from", "old", "--to", "postgres://127.0.0.1:9/x"])
        .in_dir(&dir)
        .finish()
        .failed_with(&["old does not exist; check the path"]);
}

#[test]
fn commands_for_directories_name_the_tools_of_the_database() {
    let url = ("AGENTCFG_DATABASE_URL", "postgres://u:hunter2@127.0.0.1:9/x");
    let dir = scratch();
    fs::write(dir.path().join("copy"), "no backup").unwrap();
    for arguments in [
        &["check"][..],
        &["check", "--data", "nowhere"],
        &["check", "--data", "."],
        &["backup", "--out", "b"],
        &["backup", "--data", "nowhere", "--out", "b"],
        &["restore", "--from", "copy"],
        &["restore", "--data", "new", "--from", "copy"],
    ] {
        let finished = Run::new(arguments).in_dir(&dir).env(url.0, url.1).finish();
        let said = finished.failed_with(&["database_url", "pg_dump"]);
        assert!(!said.contains("hunter2"), "{said}");
    }
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
}

#[test]
fn a_restore_that_fails_leaves_nothing_behind() {
    let dir = scratch();
    fs::write(dir.path().join("copy"), "no backup").unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();
    for data in ["new", "empty"] {
        Run::new(["restore", "--from", "copy", "--data", data])
            .in_dir(&dir)
            .finish()
            .failed_with(&["cannot restore copy"]);
    }
    assert!(!dir.path().join("new").exists());
    assert_eq!(fs::read_dir(dir.path().join("empty")).unwrap().count(), 0);
}

#[test]
fn a_session_key_that_is_gone_is_reported() {
    let dir = scratch();
    let server = Server::builder().data(dir.path().join("data")).start();
    let token = server.token("ada");
    server.stop();
    assert!(
        !server.stderr().contains("session.key is missing"),
        "{}",
        server.stderr()
    );
    fs::remove_file(server.data().join("session.key")).unwrap();
    let again = Server::builder().data(server.data()).start();
    assert!(again.stderr().contains("session.key is missing"), "{}", again.stderr());
    again.get("/api/whoami").bearer(token).send().expect(401);
    again.stop();
    fs::remove_file(server.data().join("session.key")).unwrap();
    let data = server.data().to_str().unwrap();
    let finished = run(["token", "--user", "ada", "--data", data]);
    assert!(finished.stderr.contains("session.key was missing"), "{finished:?}");
    finished.succeeded();
}

#[test]
fn a_secret_in_a_file_that_others_can_read_is_reported() {
    let dir = scratch();
    let secret = dir.path().join("secret");
    fs::write(&secret, "s".repeat(40)).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    let server = Server::builder().set("session_secret_file", &secret).start();
    assert!(server.stderr().contains("chmod 600"), "{}", server.stderr());
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let server = Server::builder().set("session_secret_file", &secret).start();
    assert!(!server.stderr().contains("chmod 600"), "{}", server.stderr());
}

#[test]
fn the_access_log_names_the_caller_and_no_secret() {
    let server = Server::builder()
        .set("access_log", "true")
        .set("log_format", "json")
        .set("log", "warn")
        .start();
    let studio = Studio::on(&server);
    let target = format!("/api/agents/configs?workspace_id={}&agent_id=hunter2", studio.id);
    let answer = server
        .get(&target)
        .bearer(&studio.owner)
        .header("X-Request-Id", "mine-1")
        .send();
    let line_of = |request: &str| {
        until("the line is there", || {
            let log = server.stderr();
            let line = log.lines().find(|line| line.contains(request))?;
            Some(serde_json::from_str::<serde_json::Value>(line).unwrap())
        })
    };
    let line = line_of("mine-1");
    assert_eq!(line["method"], "GET");
    assert_eq!(line["route"], "/api/agents/configs");
    assert_eq!(line["status"], answer.status);
    assert_eq!(line["request_id"], "mine-1");
    assert_eq!(line["client"], "127.0.0.1");
    assert_eq!(line["bytes"], answer.number("content-length"));
    assert!(line["duration_ms"].as_f64().is_some_and(|time| time > 0.0), "{line}");
    assert!(
        line["caller"].as_str().is_some_and(|caller| !caller.is_empty()),
        "{line}"
    );
    // Also of a request over its limit, so that the owner of the key can be found.
    let limited = studio.key_with(&json!({"rate_limit": 1}));
    for (id, status) in [("mine-2", 200), ("mine-3", 429)] {
        let request = server.get(&target).bearer(&limited.key).header("X-Request-Id", id);
        request.send().expect(status);
        assert_eq!(line_of(id)["caller"], limited.id.as_str());
    }
    // Also of a key that is refused, so that its user can be found.
    let revoked = studio.key("read");
    studio.revoke(&revoked);
    let (start, end) = revoked.key.split_at(revoked.key.len() - 1);
    let mistyped = format!("{start}{}", if end == "0" { "1" } else { "0" });
    for (id, key) in [
        ("mine-4", &*revoked.key),
        ("mine-7", &mistyped),
        ("mine-5", "svc_live_mistyped"),
    ] {
        let request = server.get(&target).bearer(key).header("X-Request-Id", id);
        request.send().expect(401);
    }
    for id in ["mine-4", "mine-7"] {
        assert_eq!(line_of(id)["refused_key"], revoked.id.as_str());
    }
    assert!(line_of("mine-5").get("refused_key").is_none());
    server
        .get("/readyz")
        .header("X-Request-Id", "mine-6")
        .send()
        .expect(200);
    server
        .get("/openapi.json")
        .header("X-Request-Id", "mine-7")
        .send()
        .expect(200);
    line_of("mine-7");
    let log = server.stderr();
    assert!(!log.contains("mine-6"), "probes are left out: {log}");
    assert!(!log.contains(&revoked.key), "{log}");
    assert!(!log.contains("hunter2") && !log.contains(&studio.owner), "{log}");
    let quiet = Server::builder().set("log", "debug").start();
    quiet.get("/healthz").send().expect(200);
    assert!(!quiet.stderr().contains("access:"), "{}", quiet.stderr());
}

#[test]
fn variables_of_the_client_may_be_set_beside_the_server() {
    let dir = scratch();
    let with_client = |arguments: &[&str]| {
        let run = Run::new(arguments).in_dir(&dir).env("AGENTCFG_API_KEY", "svc_live_x");
        run.env("AGENTCFG_URL", "http://127.0.0.1:7420")
            .env("AGENTCFG_WORKSPACE", "x")
            .env("AGENTCFG_CA_FILE", "x")
            .finish()
    };
    with_client(&["mcp-config", "claude-code"]).succeeded();
    with_client(&["token", "--user", "ada", "--data", "data"]).succeeded();
}

#[test]
fn a_wrong_path_is_named_as_what_it_is() {
    let dir = scratch();
    fs::write(dir.path().join("plain"), "x").unwrap();
    let server = Server::builder().data(dir.path().join("data")).start();
    let run = |arguments: &[&str]| Run::new(arguments).in_dir(&dir).finish();
    run(&["serve", "--listen", "127.0.0.1:0", "--data", "plain/below"]).failed_with(&["plain is a file"]);
    run(&["backup", "--data", "data", "--out", "gone/copy"]).failed_with(&["gone does not exist", "--out"]);
    run(&["restore", "--from", "data", "--data", "new"]).failed_with(&["data is a directory", "--from"]);
    for content in ["", "x"] {
        fs::write(dir.path().join("plain"), content).unwrap();
        run(&["restore", "--from", "plain", "--data", "new"])
            .failed_with(&["it does not begin with the bytes of a backup"]);
    }
    drop(server);
}

#[test]
fn the_access_log_takes_the_client_from_proxies_that_are_trusted() {
    for (trusted, client) in [("10.0.0.0/8", "127.0.0.1"), ("127.0.0.0/8, 10.0.0.0/8", "192.0.2.7")] {
        let server = Server::builder()
            .set("access_log", "true")
            .set("log_format", "json")
            .set("trusted_proxies", trusted)
            .start();
        let request = server.get("/openapi.json").header("X-Request-Id", "mine-1");
        request
            .header("X-Forwarded-For", "203.0.113.9, 192.0.2.7, 10.0.0.2")
            .send()
            .expect(200);
        let line = until("the line is there", || {
            let log = server.stderr();
            let line = log.lines().find(|line| line.contains("mine-1"))?;
            Some(serde_json::from_str::<serde_json::Value>(line).unwrap())
        });
        assert_eq!(line["client"], client);
    }
    let dir = scratch();
    Run::new(["check-config"])
        .in_dir(&dir)
        .env("AGENTCFG_TRUSTED_PROXIES", "proxy.internal")
        .finish()
        .failed_with(&["AGENTCFG_TRUSTED_PROXIES", "10.0.0.0/8", "proxy.internal"]);
}

#[test]
fn a_trusted_proxy_names_the_client_by_the_proxy_protocol() {
    let speaking = |trusted: &str| {
        Server::builder()
            .set("access_log", "true")
            .set("log_format", "json")
            .set("trusted_proxies", trusted)
            .set("proxy_protocol", "true")
            .start()
    };
    let exchange = |server: &Server, header: &[u8], id: &str| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let request =
            format!("GET /openapi.json HTTP/1.1\r\nHost: x\r\nX-Request-Id: {id}\r\nConnection: close\r\n\r\n");
        stream.write_all(&[header, request.as_bytes()].concat()).unwrap();
        let mut answer = Vec::new();
        // A connection that is refused is reset where some of the request is unread.
        let _ = stream.read_to_end(&mut answer);
        answer
    };
    let client = |server: &Server, id: &str| {
        let line = until("the line is there", || {
            let log = server.stderr();
            let line = log.lines().find(|line| line.contains(id) && line.contains("client"))?;
            Some(serde_json::from_str::<serde_json::Value>(line).unwrap())
        });
        line["client"].as_str().unwrap().to_owned()
    };
    let binary = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\x0a\0\0\x01\x30\x39\0\x50";
    let local = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
    let server = speaking("127.0.0.1");
    for (header, id, address) in [
        (&binary[..], "v2", "192.0.2.7"),
        (b"PROXY TCP4 198.51.100.3 10.0.0.1 9 80\r\n", "v1", "198.51.100.3"),
        (local, "local", "127.0.0.1"),
    ] {
        let answer = exchange(&server, header, id);
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{id}");
        assert_eq!(client(&server, id), address);
    }
    assert_eq!(
        exchange(&server, b"", "none"),
        b"",
        "a trusted proxy must name its client"
    );
    assert!(
        server
            .stderr()
            .contains("a trusted proxy sent no header of the PROXY protocol")
    );
    // The word of others counts for nothing.
    let server = speaking("10.0.0.0/8");
    assert!(exchange(&server, binary, "stranger").starts_with(b"HTTP/1.1 400"));
    assert!(exchange(&server, b"", "plain").starts_with(b"HTTP/1.1 200"));
    assert_eq!(client(&server, "plain"), "127.0.0.1");
    let dir = scratch();
    Run::new(["check-config"])
        .in_dir(&dir)
        .env("AGENTCFG_PROXY_PROTOCOL", "true")
        .finish()
        .failed_with(&["proxy_protocol needs trusted_proxies"]);
}
