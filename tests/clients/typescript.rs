//! `openapi-typescript` and `openapi-fetch`, compiled with every strict check.

use std::os::unix::fs::symlink;
use std::process::Command;

use agentcfg_tests::harness::{Studio, not_run};

use crate::{as_caller, described, run, saw_the_api, sdk};

#[test]
fn the_generated_types_fit_the_answers() {
    let packages = sdk().join("node_modules");
    let missing = ["openapi-typescript", "openapi-fetch", "typescript"]
        .into_iter()
        .find(|package| !packages.join(package).exists());
    if let Some(package) = missing {
        return not_run(&format!(
            "{package} is missing; run: npm ci --prefix {}",
            sdk().display()
        ));
    }
    let studio = Studio::open();
    let dir = described(&studio);
    let program = |name: &str| {
        let mut command = Command::new(packages.join(".bin").join(name));
        command.current_dir(dir.path());
        command
    };
    symlink(&packages, dir.path().join("node_modules")).unwrap();
    std::fs::copy(sdk().join("generated.ts"), dir.path().join("generated.ts")).unwrap();
    std::fs::write(dir.path().join("package.json"), r#"{"type": "module"}"#).unwrap();
    run(program("openapi-typescript").args(["openapi.json", "--output", "schema.ts"]));
    let options = "--strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --target es2022 --module nodenext \
                   --lib es2022,dom,dom.iterable generated.ts";
    run(program("tsc").args(options.split(' ')));
    let printed = run(as_caller(
        Command::new("node").arg(dir.path().join("generated.js")),
        &studio,
    ));
    saw_the_api(&printed, "display_name is required");
}
