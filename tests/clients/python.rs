//! `openapi-python-client`, which must generate without a warning.

use std::process::Command;

use agentcfg_tests::harness::{Studio, python};

use crate::{as_caller, described, run, saw_the_api, sdk};

#[test]
fn the_generated_package_works() {
    let Some(python) = python() else {
        return;
    };
    let studio = Studio::open();
    let dir = described(&studio);
    run(Command::new(&python)
        .args([
            "-m",
            "openapi_python_client",
            "generate",
            "--fail-on-warning",
            "--meta",
            "none",
        ])
        .args(["--path", "openapi.json", "--output-path", "agentcfg_client", "--config"])
        .arg(sdk().join("generated.yml"))
        .current_dir(dir.path()));
    let mut program = Command::new(&python);
    program.arg(sdk().join("generated.py")).env("PYTHONPATH", dir.path());
    saw_the_api(&run(as_caller(&mut program, &studio)), "agent_id must");
}
