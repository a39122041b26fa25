//! The official SDKs as callers: `openai` and `@anthropic-ai/sdk` on Node.js.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use agentcfg_tests::harness::not_run;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::calls::TIMEOUT;
use crate::fixture::{MANAGED, PERSONA, Stage, stage, stage_with};
use crate::provider_formats::{self, WORDS};
use crate::upstream::{events, whole};

fn packages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk")
}

/// Whether the SDKs are installed; reports it if they are not.
#[track_caller]
fn are_installed() -> bool {
    let dir = packages();
    let node = std::process::Command::new("node").arg("--version").output();
    if !node.is_ok_and(|output| output.status.success()) {
        not_run("Node.js is missing");
        return false;
    }
    let missing = ["openai", "@anthropic-ai/sdk"]
        .into_iter()
        .find(|package| !dir.join("node_modules").join(package).exists());
    if let Some(package) = missing {
        not_run(&format!("{package} is missing; run: npm ci --prefix {}", dir.display()));
    }
    missing.is_none()
}

/// A Node.js program that uses the SDKs.
struct Program {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    /// Runs a source text with an API key for model calls.
    async fn run(stage: &Stage, source: &str, argument: &str) -> Self {
        let mut process = Command::new("node")
            .args(["--input-type=module", "-", argument])
            .current_dir(packages())
            .env("AGENTCFG_URL", stage.server.url())
            .env("AGENTCFG_API_KEY", stage.key())
            // The developer's environment must not reach the SDKs, and their requests must not leave the machine.
            .env("OPENAI_API_KEY", "sk-of-the-developer")
            .env("OPENAI_ORG_ID", "org-of-the-developer")
            .env("ANTHROPIC_API_KEY", "sk-of-the-developer")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut stdin = process.stdin.take().unwrap();
        stdin.write_all(source.as_bytes()).await.unwrap();
        drop(stdin);
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// Runs a part of `tests/sdk/caller.mjs`.
    async fn part(stage: &Stage, name: &str) -> Self {
        let source = std::fs::read_to_string(packages().join("caller.mjs")).unwrap();
        Self::run(stage, &source, name).await
    }

    async fn line(&mut self) -> String {
        let coming = tokio::time::timeout(TIMEOUT, self.lines.next_line());
        coming
            .await
            .expect("a line in time")
            .unwrap()
            .expect("a line before the end")
    }

    async fn json(&mut self) -> Value {
        let line = self.line().await;
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"))
    }

    async fn exits_successfully(mut self) {
        let ending = tokio::time::timeout(TIMEOUT, self.process.wait());
        assert!(ending.await.expect("an end in time").unwrap().success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sdks_decode_complete_and_streamed_responses() {
    if !are_installed() {
        return;
    }
    let stage = stage().await;
    for (part, model, place) in [
        ("chat", "gpt-5.5", "/messages/0"),
        ("responses", "gpt-5.5", "/instructions"),
        ("messages", "claude-sonnet-5-5", "/system"),
    ] {
        for streams in [false, true] {
            let name = if streams {
                format!("{part}-stream")
            } else {
                part.to_owned()
            };
            let mut program = Program::part(&stage, &name).await;
            let said = program.json().await;
            assert_eq!(said["text"], json!(WORDS.concat()), "{name}");
            assert_eq!(said["model"], json!(model), "{name}");
            if streams {
                assert_eq!(said["pieces"], json!(WORDS), "{name}");
            }
            program.exits_successfully().await;

            let seen = stage.upstream.seen().await;
            let body = seen.json();
            assert_eq!(body["model"], json!(model));
            let persona = body.pointer(place).unwrap();
            assert_eq!(persona.get("content").unwrap_or(persona), &json!(PERSONA), "{name}");
            let credential = match part {
                "messages" => seen.header("x-api-key").unwrap().to_owned(),
                _ => seen.header("authorization").unwrap().replace("Bearer ", ""),
            };
            assert_eq!(credential, MANAGED, "{name}");
            assert!(!seen.target.contains("agent_id"), "{name}");
            let headers = format!("{:?}", seen.headers);
            assert!(
                !headers.contains("of-the-developer") && !headers.contains("svc_"),
                "{headers}"
            );
        }
    }
    assert!(stage.upstream.has_no_unseen_request().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_piece_arrives_before_the_provider_has_finished() {
    if !are_installed() {
        return;
    }
    let stage = stage().await;
    for part in ["chat", "messages"] {
        let (reply, feed) = events();
        stage.upstream.next(reply);
        let mut program = Program::part(&stage, &format!("{part}-slowly")).await;
        if part == "messages" {
            feed.send(provider_formats::message_start("m")).await;
        }
        for word in WORDS {
            let piece = if part == "chat" {
                provider_formats::chat_event("m", word)
            } else {
                provider_formats::message_event(word)
            };
            feed.send(piece).await;
            assert_eq!(program.json().await, json!(word));
        }
        feed.send(if part == "chat" {
            provider_formats::chat_end("m")
        } else {
            provider_formats::message_end()
        })
        .await;
        drop(feed);
        assert_eq!(program.line().await, "done");
        program.exits_successfully().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_cancels_the_call_at_the_provider() {
    if !are_installed() {
        return;
    }
    let stage = stage().await;
    for part in ["chat", "messages"] {
        let (reply, feed) = events();
        stage.upstream.next(reply);
        let mut program = Program::part(&stage, &format!("{part}-abort")).await;
        if part == "messages" {
            feed.send(provider_formats::message_start("m")).await;
            feed.send(provider_formats::message_event("word")).await;
        } else {
            feed.send(provider_formats::chat_event("m", "word")).await;
        }
        assert_eq!(program.line().await, "aborted");
        // The program keeps running, so only the abort can end the call.
        tokio::time::timeout(TIMEOUT, feed.cancelled()).await.unwrap();
        program.process.kill().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_cut_is_an_error() {
    if !are_installed() {
        return;
    }
    let stage = stage().await;
    for part in ["chat", "messages"] {
        let (reply, feed) = events();
        stage.upstream.next(reply);
        let mut program = Program::part(&stage, &format!("{part}-cut")).await;
        if part == "messages" {
            feed.send(provider_formats::message_start("m")).await;
            feed.send(provider_formats::message_event("word")).await;
        } else {
            feed.send(provider_formats::chat_event("m", "word")).await;
        }
        feed.cut().await;
        assert_eq!(program.line().await, "failed");
        program.exits_successfully().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_those_of_the_provider_or_of_this_service() {
    if !are_installed() {
        return;
    }
    let stage = stage_with(|builder| builder.set("anthropic_base_url", "http://127.0.0.1:9")).await;
    let limited = r#"{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}"#;
    let fields = [
        ("content-type", "application/json"),
        ("retry-after", "7"),
        ("x-request-id", "req_1"),
    ];
    stage.upstream.next(whole(429, &fields, limited));
    let mut program = Program::part(&stage, "errors").await;
    let said = program.json().await;
    assert_eq!(
        said,
        json!({
            "limited": {"name": "RateLimitError", "status": 429, "code": "rate_limit_exceeded", "after": "7", "id": "req_1"},
            "soon": {"name": "BadRequestError", "status": 400, "names_model": true},
            "nobody": {"name": "NotFoundError", "status": 404},
            "stranger": {"name": "AuthenticationError", "status": 401},
            "unreachable": {"name": "InternalServerError", "status": 502},
        })
    );
    program.exits_successfully().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_resources_work_as_well() {
    if !are_installed() {
        return;
    }
    let stage = stage_with(|builder| builder.set("managed_paths", "v1/embeddings,v1/files")).await;
    let mut program = Program::part(&stage, "others").await;
    assert_eq!(
        program.json().await,
        json!({"embedding": [0.25, -0.5], "file": "file-1"})
    );
    program.exits_successfully().await;
    assert_eq!(stage.upstream.seen().await.target, "/v1/embeddings");
    let upload = stage.upstream.seen().await;
    assert_eq!(upload.target, "/v1/files");
    assert!(
        upload
            .header("content-type")
            .unwrap()
            .starts_with("multipart/form-data; boundary=")
    );
    assert!(String::from_utf8_lossy(&upload.body).contains("{\"a\":1}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_code_in_the_readme_runs() {
    if !are_installed() {
        return;
    }
    let readme = std::fs::read_to_string(packages().join("../../README.md")).unwrap();
    let (_, code) = readme.split_once("```js\n").expect("code in the README");
    let (code, _) = code.split_once("```").unwrap();
    let stage = stage().await;
    let mut program = Program::run(&stage, code, "").await;
    assert_eq!(program.line().await, WORDS.concat());
    for word in WORDS {
        assert_eq!(program.line().await, word);
    }
    program.exits_successfully().await;
    assert_eq!(stage.upstream.seen().await.json()["model"], "gpt-5.5");
    let seen = stage.upstream.seen().await;
    assert_eq!(seen.json()["system"], json!(PERSONA));
    assert_eq!(seen.header("x-api-key"), Some(MANAGED));
}
