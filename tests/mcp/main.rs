//! Official clients of the Model Context Protocol, `rmcp`, `@modelcontextprotocol/client` and `mcp` in Python, and its
//! conformance suite.

// Tests watch real processes in real time.
#![allow(clippy::disallowed_methods)]

mod conformance;
mod python;
mod rust;
mod typescript;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Where the programs of the tests are, and the packages of npm.
fn sdk() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk")
}

/// Runs a program, which must succeed, and reads the lines of JSON that it prints.
#[track_caller]
fn lines(program: &mut Command) -> Vec<Value> {
    let output = program.output().unwrap();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{stdout}\n{stderr}");
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
