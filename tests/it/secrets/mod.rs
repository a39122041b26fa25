//! Canary secrets: the tests use them in every way, and then search for them in every place.

mod encodings;

use std::fs;
use std::path::Path;

use agentcfg_tests::harness::{Server, Studio, Wire, forged, free_address, run, scratch};
use base64ct::{Base64, Encoding};
use serde_json::json;

use self::encodings::{contains, encodings};

const SESSION_SECRET: &str = "canary-of-the-session-secret-0123456789";
const PROVIDER_KEY: &str = "sk-canary-of-a-provider-key-0123456789";
const PROMPT: &str = "canary-of-a-persona-prompt";

/// A secret, with the one place that may contain it.
struct Canary {
    name: &'static str,
    text: String,
}

/// All files below a directory with their bytes, except sockets.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        if entry.file_type().unwrap().is_file() {
            found.push((entry.path().display().to_string(), fs::read(entry.path()).unwrap()));
        } else if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        }
    }
    found
}

/// Uses valid and invalid credentials, and returns every response except those whose purpose is to show a secret.
fn use_everything(studio: &Studio<'_>, keys: &[String], tokens: &[String]) -> Vec<(String, Vec<u8>)> {
    let server = studio.server;
    let mut answers = Vec::new();
    let mut keep = |response: agentcfg_tests::harness::Response| {
        answers.push((response.request.clone(), format!("{response:?}").into_bytes()));
    };
    let id = studio.id;
    keep(studio.create("writer", &json!({"persona_prompt": "harmless"})));
    for credential in keys.iter().chain(tokens) {
        for target in [
            format!("/api/agents/configs?workspace_id={id}"),
            format!("/api/agents/status?workspace_id={id}"),
            format!("/api/workspaces/members?workspace_id={id}"),
            format!("/api/api-keys?workspace_id={id}"),
            format!("/api/audit-log?workspace_id={id}"),
            "/api/workspaces".to_owned(),
            "/nowhere".to_owned(),
            "/openapi.json".to_owned(),
        ] {
            keep(server.get(target).bearer(credential).send());
        }
        keep(
            server
                .patch("/api/agents/configs?agent_id=writer")
                .bearer(credential)
                .text("{broken")
                .send(),
        );
        keep(
            server
                .patch("/api/agents/configs?agent_id=writer")
                .bearer(credential)
                .json(&json!({"role": "x"}))
                .send(),
        );
        // Twice, with another scheme, and with a typing error.
        keep(
            server
                .get("/api/workspaces")
                .bearer(credential)
                .bearer(credential)
                .send(),
        );
        keep(
            server
                .get("/api/workspaces")
                .header("Authorization", format!("Basic {credential}"))
                .send(),
        );
        keep(server.get("/api/workspaces").bearer(format!("{credential}x")).send());
    }
    answers
}

#[test]
fn no_secret_is_found_anywhere_in_any_encoding() {
    let metrics = free_address();
    let builder = Server::builder()
        .set("log", "trace")
        .set("session_rate_limit", "1000000")
        .set("default_plan", "enterprise");
    let server = builder.set("metrics_listen", metrics.to_string()).start();
    let studio = Studio::on(&server);
    let live = studio.key("admin");
    let revoked = studio.key_with(&json!({"environment": "production"}));
    let tokens = [
        studio.owner.clone(),
        server.fresh_token("somebody", 60),
        forged(&studio.user),
    ];
    let providers = format!("/api/provider-keys?workspace_id={}", studio.id);
    let request = server.put(format!("{providers}&provider=openai")).bearer(&studio.owner);
    let saved = request.json(&json!({"api_key": PROVIDER_KEY})).send().expect(200);
    let webhook = studio.webhook("https://localhost/");
    let on_webhook = |path: &str| format!("/api/webhooks{path}?webhook_id={}", webhook["id"].as_str().unwrap());
    let rotate = server.post(on_webhook("/rotate-secret")).bearer(&studio.owner);
    let rotated = rotate.send().expect(200).json();
    let mut places = use_everything(&studio, &[live.key.clone(), revoked.key.clone()], &tokens);
    places.push((
        "the answer to a saved provider key".into(),
        format!("{saved:?}").into_bytes(),
    ));
    let test = server
        .post(on_webhook("/test"))
        .bearer(&studio.owner)
        .send()
        .expect(200);
    places.push(("the answer to a test".into(), format!("{test:?}").into_bytes()));
    for target in [
        providers,
        format!("/api/models?workspace_id={}", studio.id),
        format!("/api/webhooks?workspace_id={}", studio.id),
        on_webhook("/deliveries"),
    ] {
        let answer = server.get(&target).bearer(&studio.owner).send().expect(200);
        places.push((target, format!("{answer:?}").into_bytes()));
    }
    studio.revoke(&revoked);
    places.extend(use_everything(&studio, std::slice::from_ref(&revoked.key), &[]));
    studio.change("writer", &json!({"persona_prompt": PROMPT})).expect(200);
    let scrape = Wire::connect(metrics)
        .send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        .receive("GET")
        .unwrap();
    places.push(("the metrics".into(), scrape.body));

    let backups = scratch();
    let [copy, new] = ["copy", "new"].map(|name| backups.path().join(name).to_str().unwrap().to_owned());
    let data = server.data().to_str().unwrap();
    let mut said = run(["backup", "--data", data, "--out", &copy]).succeeded();
    let hot = files(server.data());
    server.stop();
    said += &run(["restore", "--from", &copy, "--data", &new]).succeeded();
    said += &run(["check", "--data", data]).succeeded();
    let log = server.stderr().into_bytes();
    assert!(contains(&log, b"shutting down"), "the file is not the log");
    places.push(("the log".into(), log.clone()));
    places.push((
        "the commands' output".into(),
        format!("{said}{}", server.stdout()).into_bytes(),
    ));
    places.extend(hot);
    places.extend(files(server.data()));
    places.extend(files(backups.path()));

    let secret = |key: &str| key[key.len() - 49..].to_owned();
    let mut canaries = vec![
        Canary {
            name: "a key",
            text: secret(&live.key),
        },
        Canary {
            name: "a revoked key",
            text: secret(&revoked.key),
        },
    ];
    canaries.extend(tokens.iter().map(|token| Canary {
        name: "a session token's signature",
        text: token.rsplit('.').next().unwrap().to_owned(),
    }));
    for Canary { name, text } in &canaries {
        assert_is_nowhere(name, text.as_bytes(), &places);
    }
    assert_is_nowhere("a provider key", PROVIDER_KEY.as_bytes(), &places);
    for webhook in [&webhook, &rotated] {
        let secret = webhook["secret"].as_str().unwrap().strip_prefix("whsec_").unwrap();
        assert_is_nowhere("a webhook's secret", secret.as_bytes(), &places);
        let bytes = Base64::decode_vec(secret).unwrap();
        assert_is_nowhere("the bytes of a webhook's secret", &bytes, &places);
    }
    for (name, file) in [
        ("the secret of the session tokens", "session.key"),
        ("the master key", "master.key"),
    ] {
        let bytes = fs::read(server.data().join(file)).unwrap();
        let secret = if file == "master.key" {
            master_key(&bytes)
        } else {
            bytes
        };
        let elsewhere: Vec<_> = places
            .iter()
            .filter(|(place, _)| !place.ends_with(file))
            .cloned()
            .collect();
        assert_is_nowhere(name, &secret, &elsewhere);
    }
    assert_is_nowhere("a body", PROMPT.as_bytes(), &[("the log".into(), log)]);

    // The search itself works: it finds the prompt in the store and its copies.
    let found = places.iter().filter(|(_, bytes)| contains(bytes, PROMPT.as_bytes()));
    assert!(found.count() >= 3, "the search does not find the prompt");
}

/// The only key in the file of the master keys, which stores it as hexadecimal digits.
fn master_key(file: &[u8]) -> Vec<u8> {
    let digits = std::str::from_utf8(file).unwrap().lines().last().unwrap();
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[track_caller]
fn assert_is_nowhere(name: &str, secret: &[u8], places: &[(String, Vec<u8>)]) {
    for encoding in encodings(secret) {
        for (place, bytes) in places {
            assert!(
                !contains(bytes, &encoding),
                "{name} is in {place} as {:?}",
                String::from_utf8_lossy(&encoding)
            );
        }
    }
}

#[test]
fn a_secret_from_the_environment_stays_out_of_log_data_and_backup() {
    let server = Server::builder()
        .set("log", "trace")
        .set("session_secret", SESSION_SECRET)
        .start();
    server.get("/api/workspaces").bearer(forged("u")).send().expect(401);
    let backups = scratch();
    let copy = backups.path().join("copy");
    run([
        "backup",
        "--data",
        server.data().to_str().unwrap(),
        "--out",
        copy.to_str().unwrap(),
    ])
    .succeeded();
    server.stop();
    let mut places = files(server.data());
    places.extend(files(backups.path()));
    places.push((
        "the log".into(),
        format!("{}{}", server.stdout(), server.stderr()).into_bytes(),
    ));
    assert_is_nowhere("the session secret", SESSION_SECRET.as_bytes(), &places);
}

#[test]
fn the_client_shows_no_credential_when_it_is_printed() {
    let studio = Studio::open();
    let key = studio.key("read").key;
    for credential in [&key, &studio.owner] {
        let shown = format!("{:?}", studio.server.client(credential));
        assert!(!shown.contains(credential.as_str()), "{shown}");
    }
}

#[test]
fn a_key_is_stored_as_its_identifier_and_a_hash() {
    let server = Server::start();
    let studio = Studio::on(&server);
    let key = studio.key("admin");
    server.stop();
    let store = fs::read(server.data().join("store.redb")).unwrap();
    assert!(contains(&store, key.id.as_bytes()));
    assert!(contains(&store, b"$argon2id$"));
    assert!(!contains(&store, &key.key.as_bytes()[29..]));
}
