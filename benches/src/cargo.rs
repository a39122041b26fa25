//! Builds the programs under measurement, so that one command runs a benchmark on the current sources.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Failure;

/// Builds a binary in release mode and returns its path. `args` select it.
pub fn build(args: &[&str]) -> Result<PathBuf, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--release", "--locked", "--quiet"])
        .args(["--message-format", "json-render-diagnostics"])
        .args(args)
        .current_dir(root())
        .stderr(Stdio::inherit());
    // Cargo sets these for the benchmark's own package; inherited, they would make every build script run again.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") || text.starts_with("CARGO_BIN_EXE_") {
            command.env_remove(name);
        }
    }
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("`cargo build --release {}` failed", args.join(" ")).into());
    }
    let messages = String::from_utf8(output.stdout)?;
    let executable = messages.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message.get("executable")?.as_str().map(PathBuf::from)
    });
    Ok(executable.ok_or_else(|| format!("cargo built no program of {}", args.join(" ")))?)
}

/// The root of the workspace.
pub fn root() -> &'static Path {
    const HERE: &str = env!("CARGO_MANIFEST_DIR");
    Path::new(HERE).parent().unwrap_or(Path::new(HERE))
}
