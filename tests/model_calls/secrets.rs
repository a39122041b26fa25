//! Canary secrets: the tests use provider keys in every way, and search for them in every place.

use std::fs;
use std::path::Path;

use agentcfg_tests::harness::{base64, base64url, hex};
use serde_json::json;

use crate::fixture::{MANAGED, save_key, stage_with};
use crate::upstream::{Reply, events, whole};

const CANARY: &str = "sk-canary-provider-key-7f3a9b";
const PROMPT: &str = "canary of a prompt";

/// The encodings in which a text can hide unchanged in another.
fn encodings(secret: &str) -> Vec<String> {
    let mut all = vec![secret.to_owned(), hex(secret), hex(secret).to_ascii_uppercase()];
    for before in 0..3 {
        let shifted = [vec![0; before], secret.as_bytes().to_vec()].concat();
        for text in [base64(&shifted), base64url(&shifted)] {
            // The first and the last digits depend on the surrounding bytes.
            all.push(text[(before * 8).div_ceil(6)..text.len() - 1].to_owned());
        }
    }
    all
}

fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.is_file() {
            found.push((path.display().to_string(), fs::read(path).unwrap()));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_provider_receives_a_provider_key() {
    let stage = stage_with(|builder| {
        builder
            .set("log", "trace")
            .set("model_call_first_byte_timeout", "1")
            .set("model_call_idle_timeout", "1")
    })
    .await;
    let studio = stage.studio();
    let key = studio.key_with(&json!({"scope": "write"})).key;
    for provider in ["openai", "anthropic"] {
        save_key(&studio, provider, CANARY);
    }
    let mut places = Vec::new();
    for path in [
        "openai/v1/chat/completions",
        "openai/v1/responses",
        "anthropic/v1/messages",
    ] {
        let call = || {
            stage
                .call_with(path, &key)
                .json(&json!({"messages": [{"role": "user", "content": PROMPT}]}))
        };
        // Uses the key in every way that a call can end.
        let (_release, released) = tokio::sync::oneshot::channel();
        for reply in [
            Reply::LikeProvider,
            whole(401, &[("content-type", "application/json")], "{}"),
            Reply::Close,
            Reply::Delayed(released),
        ] {
            stage.upstream.next(reply);
            places.push((
                path.to_owned(),
                format!("{:?}", call().send().await.whole().await).into_bytes(),
            ));
            let seen = stage.upstream.seen().await;
            assert!(format!("{:?}", seen.headers).contains(CANARY));
            assert!(String::from_utf8_lossy(&seen.body).contains(PROMPT));
        }
        let (reply, feed) = events();
        stage.upstream.next(reply);
        let mut answer = call().send().await;
        feed.send("data: 1\n\n").await;
        feed.cut().await;
        while let Ok(Some(_)) = answer.next().await {}
        call().of("nobody").send().await.whole().await.expect(404);
    }
    for target in ["models", "provider-keys", "audit-log"] {
        let target = format!("/api/{target}?workspace_id={}", studio.id);
        let answer = studio.server.get(&target).bearer(&studio.owner).send().expect(200);
        places.push((target, answer.body));
    }
    stage.server.stop();
    places.push(("the log".to_owned(), stage.server.stderr().into_bytes()));
    places.push(("standard output".to_owned(), stage.server.stdout().into_bytes()));
    places.extend(files(stage.server.data()));
    assert!(
        places
            .iter()
            .any(|(name, bytes)| name == "the log" && bytes.len() > 1000)
    );
    for (name, bytes) in &places {
        let text = String::from_utf8_lossy(bytes);
        for secret in [CANARY, MANAGED, &key] {
            for disguise in encodings(secret) {
                assert!(!text.contains(&disguise), "{secret} is in {name} as {disguise}");
            }
        }
        assert!(!text.contains(PROMPT), "a prompt is in {name}");
    }
}

#[test]
fn a_secret_is_found_in_every_encoding() {
    for before in ["", "x", "xy", "xyz"] {
        let text = format!("{before}{CANARY} and more");
        for hidden in [text.clone(), hex(&text), base64(&text), base64url(&text)] {
            assert!(
                encodings(CANARY).iter().any(|disguise| hidden.contains(disguise)),
                "{hidden}"
            );
        }
    }
}
