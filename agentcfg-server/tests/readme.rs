//! The README lists the settings that there are.

use std::path::Path;

use agentcfg_server::process::SETTINGS;

#[test]
fn the_readme_lists_every_setting_and_no_other() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = std::fs::read_to_string(path).expect("the README is beside the crates");
    let section = readme
        .split("## Settings")
        .nth(1)
        .and_then(|rest| rest.split("\n## ").next())
        .expect("a section");
    let listed: Vec<&str> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(" | ").next())
        .flat_map(|keys| keys.split(", ").map(|key| key.trim_matches('`')))
        .collect();
    for setting in SETTINGS {
        assert!(listed.contains(&setting.name), "{} is not in the README", setting.name);
    }
    for key in &listed {
        assert!(
            SETTINGS.iter().any(|setting| setting.name == *key),
            "{key} in the README is no setting"
        );
    }
}

#[test]
fn the_readme_is_short() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let lines = std::fs::read_to_string(path)
        .expect("the README is beside the crates")
        .lines()
        .count();
    assert!(lines < 200, "{lines} lines");
}
