//! `openapi-typescript` and `openapi-fetch`, compiled with every strict check; and the sample of the README.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use agentcfg_tests::harness::{Studio, not_run, scratch};

use crate::{as_caller, described, run, saw_the_api, sdk};

/// Whether the packages are installed; reports it if they are not.
#[track_caller]
fn are_installed() -> bool {
    let packages = sdk().join("node_modules");
    let missing = ["openapi-typescript", "openapi-fetch", "typescript", "openai"]
        .into_iter()
        .find(|package| !packages.join(package).exists());
    if let Some(package) = missing {
        not_run(&format!(
            "{package} is missing; run: npm ci --prefix {}",
            sdk().display()
        ));
    }
    missing.is_none()
}

/// A program of a package, in a folder that finds the packages.
fn program(name: &str, dir: &Path) -> Command {
    let mut command = Command::new(sdk().join("node_modules/.bin").join(name));
    command.current_dir(dir);
    command
}

/// Makes a folder one of modules, which finds the packages.
fn prepare(dir: &Path) {
    symlink(sdk().join("node_modules"), dir.join("node_modules")).unwrap();
    std::fs::write(dir.join("package.json"), r#"{"type": "module"}"#).unwrap();
}

#[test]
fn the_generated_types_fit_the_answers() {
    if !are_installed() {
        return;
    }
    let studio = Studio::open();
    let dir = described(&studio);
    prepare(dir.path());
    std::fs::copy(sdk().join("generated.ts"), dir.path().join("generated.ts")).unwrap();
    run(program("openapi-typescript", dir.path()).args(["openapi.json", "--output", "schema.ts"]));
    let options = "--strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --target es2022 --module nodenext \
                   --lib es2022,dom,dom.iterable generated.ts";
    run(program("tsc", dir.path()).args(options.split(' ')));
    let printed = run(as_caller(
        Command::new("node").arg(dir.path().join("generated.js")),
        &studio,
    ));
    saw_the_api(&printed, "display_name is required");
}

#[test]
fn the_sample_of_the_readme_type_checks() {
    if !are_installed() {
        return;
    }
    let readme = std::fs::read_to_string(sdk().join("../../README.md")).unwrap();
    let (_, code) = readme.split_once("```js\n").expect("code in the README");
    let (code, _) = code.split_once("```").unwrap();
    let dir = scratch();
    prepare(dir.path());
    let process = "declare const process: { env: Record<string, string | undefined> };";
    std::fs::write(dir.path().join("sample.ts"), format!("{code}\n{process}\n")).unwrap();
    let options = "--strict --noEmit --skipLibCheck --target es2022 --module nodenext sample.ts";
    run(program("tsc", dir.path()).args(options.split(' ')));
}
