//! Another reader of YAML: PyYAML, which reads version 1.1.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, iter};

use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::any::any_definition;
use super::definition::lines_of;

/// Reads pairs of YAML and JSON, and fails at the first that are not equal, also in their types.
const COMPARE: &str = "
import json, sys, yaml

def same(one, other):
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other

pairs = json.load(sys.stdin.buffer)
for text, definition in pairs:
    read = yaml.safe_load(text)
    if not same(read, {'definition': definition}):
        sys.exit(f'{text}\\n{ascii(read)}\\n{ascii(definition)}')
print(len(pairs))
";

#[test]
fn pyyaml_reads_any_definition_equally() {
    let Some(python) = python() else {
        let reason = "no Python has the module yaml; run: scripts/python.sh";
        println!("NOT RUN {}: {reason}", file!());
        assert_ne!(
            env::var("CI").as_deref(),
            Ok("true"),
            "with CI=true every test must run: {reason}"
        );
        return;
    };
    let mut random = TestRunner::deterministic();
    let definitions = iter::repeat_with(|| any_definition().new_tree(&mut random).unwrap().current()).take(1000);
    let typical =
        json!({"n": [1e300, 1.5e-300, 1e16, -0.0, u64::MAX, i64::MIN], "k".repeat(2000): {"l".repeat(1500): "a\nb"}});
    let pairs: Vec<(String, Value)> = definitions
        .chain([typical, json!({})])
        .map(|definition| (lines_of(&definition), definition))
        .collect();
    let mut reader = Command::new(python)
        .args(["-c", COMPARE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let written = reader
        .stdin
        .take()
        .unwrap()
        .write_all(&serde_json::to_vec(&pairs).unwrap());
    let output = reader.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    written.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), pairs.len().to_string());
}

/// A Python with PyYAML: that of the tests, or that of the system.
fn python() -> Option<PathBuf> {
    let target = match env::var_os("CARGO_TARGET_DIR") {
        Some(target) => target.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"),
    };
    let has_yaml = |python: &PathBuf| {
        let import = Command::new(python)
            .args(["-c", "import yaml"])
            .stderr(Stdio::null())
            .status();
        import.is_ok_and(|status| status.success())
    };
    [target.join("python/bin/python"), "python3".into()]
        .into_iter()
        .find(has_yaml)
}
