//! The path of the binary under test.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Once, OnceLock};
use std::time::SystemTime;

use super::not_run;

/// A binary under test.
struct Binary {
    name: &'static str,
    /// The environment variable that can name its path.
    variable: &'static str,
    /// How cargo builds it.
    build: &'static [&'static str],
}

const SERVER: Binary = Binary {
    name: "agentcfg-server",
    variable: "AGENTCFG_TEST_BINARY",
    build: &["build", "--locked", "-p", "agentcfg-server"],
};

const COMMAND: Binary = Binary {
    name: "agentcfg",
    variable: "AGENTCFG_TEST_CLI",
    build: &["build", "--locked", "-p", "agentcfg-cli"],
};

/// The server under test: the one that `AGENTCFG_TEST_BINARY` names, else the newest one that cargo
/// built. If there is none, cargo builds it now.
pub fn server_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| SERVER.path())
}

/// The command `agentcfg` under test: as [`server_binary`], with `AGENTCFG_TEST_CLI`.
pub fn command_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| COMMAND.path())
}

impl Binary {
    fn path(&self) -> PathBuf {
        let Some(path) = env::var_os(self.variable) else {
            return self.newest().unwrap_or_else(|| {
                cargo(self.build);
                self.newest().expect("cargo built the binary")
            });
        };
        let path = PathBuf::from(path);
        assert!(path.is_file(), "{} is no file: {}", self.variable, path.display());
        path
    }

    fn newest(&self) -> Option<PathBuf> {
        let built = |path: &PathBuf| path.metadata().and_then(|found| found.modified()).ok();
        ["release", "quick", "debug"]
            .map(|profile| target().join(profile).join(self.name))
            .into_iter()
            .filter_map(|path| built(&path).map(|at| (at, path)))
            .max_by_key(|(at, _): &(SystemTime, _)| *at)
            .map(|(_, path)| path)
    }
}

/// An example: from the directory that `AGENTCFG_TEST_EXAMPLES` names, else from the target
/// directory. If it is missing, cargo builds all examples now.
pub fn example(name: &str) -> PathBuf {
    if let Some(dir) = env::var_os("AGENTCFG_TEST_EXAMPLES") {
        let path = PathBuf::from(dir).join(name);
        assert!(
            path.is_file(),
            "AGENTCFG_TEST_EXAMPLES has no {name}: {}",
            path.display()
        );
        return path;
    }
    static BUILD: Once = Once::new();
    let path = target().join("debug/examples").join(name);
    if !path.is_file() {
        BUILD.call_once(|| {
            cargo(&[
                "build",
                "--locked",
                "-p",
                "agentcfg-examples",
                "-p",
                "agentcfg-example-axum",
                "--examples",
            ])
        });
    }
    path
}

/// The target directory of the workspace.
pub(super) fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => dir.into(),
        None => workspace().join("target"),
    }
}

fn workspace() -> &'static Path {
    // The tests are a workspace member directly below the root.
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn cargo(arguments: &[&str]) {
    eprintln!("not built yet: cargo {}", arguments.join(" "));
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo).args(arguments).current_dir(workspace()).status();
    assert!(
        built.is_ok_and(|status| status.success()),
        "cargo {} failed",
        arguments.join(" ")
    );
}

/// Runs the tests of the suite `it` whose paths begin with `only`, without those of the skipped paths, prints the closing line,
/// and fails as they do.
pub fn run_end_to_end_suite(only: &str, skipped: &[&str], variables: &[(&str, &OsStr)]) {
    let Some(suite) = other_suite("it") else {
        not_run("the test binary `it` is missing (cargo test -p agentcfg-tests --no-run)");
        return;
    };
    let mut command = Command::new(suite);
    command
        .envs(variables.iter().copied())
        .env("AGENTCFG_TEST_BINARY", server_binary())
        .arg(only)
        .args(skipped.iter().flat_map(|test| ["--skip", test]));
    let output = command.output().expect("the suite runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let result = text.lines().find(|line| line.starts_with("test result:"));
    println!("{}", result.unwrap_or_default());
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && !text.contains("running 0 tests"),
        "{text}{log}"
    );
}

/// The newest build of another test binary of this package, in the directory of this one.
fn other_suite(suite: &str) -> Option<PathBuf> {
    let own = env::current_exe().expect("the path of this binary");
    let files = std::fs::read_dir(own.parent()?).ok()?.flatten();
    let named = files.filter(|file| {
        let name = file.file_name();
        let hash = name
            .to_str()
            .and_then(|name| name.strip_prefix(suite)?.strip_prefix('-'));
        hash.is_some_and(|hash| hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
    });
    let newest = named.max_by_key(|file| file.metadata().and_then(|found| found.modified()).ok());
    newest.map(|file| file.path())
}
