//! Clients that generators of others make of the OpenAPI document, against the real binary.

// Tests watch real processes in real time.
#![allow(clippy::disallowed_methods)]

mod python;
mod typescript;

use std::path::{Path, PathBuf};
use std::process::Command;

use agentcfg_tests::harness::{Studio, scratch};
use serde_json::{Value, json};

/// Where the programs of the tests are, and the packages of npm.
fn sdk() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk")
}

/// A new folder with the OpenAPI document as the server answers it.
fn described(studio: &Studio<'_>) -> tempfile::TempDir {
    let dir = scratch();
    let document = studio.server.get("/openapi.json").send().expect(200);
    std::fs::write(dir.path().join("openapi.json"), document.body).unwrap();
    dir
}

/// Runs a command, which must succeed, and returns what it printed.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{command:?}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

/// The command with what a program of these tests reads.
fn as_caller<'a>(command: &'a mut Command, studio: &Studio<'_>) -> &'a mut Command {
    command
        .env("AGENTCFG_URL", studio.server.url())
        .env("WORKSPACE_ID", studio.id.to_string())
        .env("AGENTCFG_API_KEY", studio.key("admin").key)
}

/// Checks what a program saw: each field is typed, the tag works, and a failure is one field.
#[track_caller]
fn saw_the_api(printed: &str, refusal: &str) {
    let mut seen: Value = serde_json::from_str(printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
    let mut error_of = |name: &str| {
        let error = seen[name].as_object_mut().unwrap().remove("error").unwrap();
        error.as_str().unwrap().to_owned()
    };
    assert!(error_of("stale").contains("ETag"));
    assert!(error_of("refused").contains(refusal));
    for call in ["chat", "other"] {
        let error = error_of(call);
        assert!(error.contains("saved no key for openai"), "{error}");
    }
    assert_eq!(
        seen,
        json!({
            "made": {"type": "ai", "role": null, "capabilities": []},
            "names": ["writer"],
            "changed": {"role": "Author", "parameters": {"creativity": 0.4}},
            "stale": {"status": 412},
            "refused": {"status": 400},
            "chat": {"status": 503},
            "other": {"status": 503},
            "scope": "admin",
        })
    );
}
