//! The README lists the settings that there are, with their defaults.

// Tests may panic.
#![allow(clippy::expect_used)]

use std::path::Path;

use agentcfg_server::process::{DEFAULT_TOML, SETTINGS};

fn readme() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    std::fs::read_to_string(path).expect("the README is beside the crates")
}

/// The rows of the table of settings: the keys, and the cell of their defaults.
fn rows(readme: &str) -> Vec<(Vec<&str>, &str)> {
    let section = readme
        .split("## Settings")
        .nth(1)
        .and_then(|rest| rest.split("\n## ").next())
        .expect("a section");
    section
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split(" | ");
            let keys = cells.next()?.split(", ").map(|key| key.trim_matches('`'));
            Some((keys.collect(), cells.next()?))
        })
        .collect()
}

#[test]
fn the_readme_lists_every_setting_and_no_other() {
    let readme = readme();
    let listed: Vec<&str> = rows(&readme).into_iter().flat_map(|(keys, _)| keys).collect();
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

/// What a cell says of a key: it has one part for each key, one for all, or one that is "`value` for the <end of the key>".
fn part<'a>(cell: &'a str, keys: &[&str], key: &str) -> &'a str {
    let parts: Vec<&str> = cell.split(", ").collect();
    let named = parts
        .iter()
        .find_map(|part| part.split_once(" for the ").filter(|(_, end)| key.ends_with(end)));
    let index = keys.iter().position(|other| *other == key);
    match (named, index) {
        (Some((value, _)), _) => value,
        (None, Some(index)) if parts.len() == keys.len() => parts[index],
        _ => parts[0],
    }
}

/// Whether words of the README are this default; a setting without one is a comment in the default file.
fn is_said(words: &str, default: Option<&toml::Value>) -> bool {
    const COUNTS: [&str; 8] = ["none", "one", "two", "three", "four", "five", "six", "seven"];
    match default {
        None => ["none", "by discovery"].contains(&words) || words.starts_with("file `"),
        Some(toml::Value::String(text)) => match words {
            "off" => text.is_empty(),
            "the providers' own" => text.starts_with("https://api."),
            words => words == format!("`{text}`"),
        },
        Some(toml::Value::Array(values)) => COUNTS.get(values.len()) == Some(&words),
        Some(toml::Value::Boolean(value)) => words == format!("`{value}`"),
        Some(value) => words == value.to_string(),
    }
}

#[test]
fn the_readme_names_the_defaults_of_the_default_file() {
    let defaults: toml::Table = DEFAULT_TOML.parse().expect("a TOML file");
    let readme = readme();
    for (keys, cell) in rows(&readme) {
        for key in &keys {
            let (words, default) = (part(cell, &keys, key), defaults.get(*key));
            assert!(is_said(words, default), "{key}: {words:?} is not {default:?}");
        }
    }
}

#[test]
fn the_readme_is_short() {
    let lines = readme().lines().count();
    assert!(lines < 200, "{lines} lines");
}
