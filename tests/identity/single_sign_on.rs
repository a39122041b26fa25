//! The example of an app whose users open the dashboard with the app's session, in a real browser.

use std::path::Path;
use std::process::Command;

use agentcfg_tests::harness::{example, not_run};

#[test]
fn users_of_an_app_open_the_dashboard_without_a_second_sign_in() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboard");
    if Command::new("node").arg("--version").output().is_err() {
        return not_run("Node.js is missing");
    }
    if !folder.join("node_modules/playwright-core").exists() {
        return not_run("run: npm ci --prefix tests/dashboard");
    }
    let mut command = Command::new("node");
    command.args(["--test", "single-sign-on.mjs"]).current_dir(&folder);
    let output = command
        .env("SINGLE_SIGN_ON", example("single_sign_on"))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
