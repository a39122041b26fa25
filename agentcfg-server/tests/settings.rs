//! `docs/settings.md` lists the settings that there are, with their defaults, and says which are secrets.

// Tests may panic.
#![allow(clippy::expect_used)]

use std::path::Path;

use agentcfg_server::process::{DEFAULT_TOML, SETTINGS};

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/settings.md");
    std::fs::read_to_string(path).expect("the page of the settings")
}

/// The rows of the tables: key, default and meaning.
fn rows(page: &str) -> Vec<(&str, &str, &str)> {
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.strip_suffix('|')?.splitn(3, " | ");
        Some((cells.next()?.trim_end_matches('`'), cells.next()?, cells.next()?))
    });
    rows.collect()
}

#[test]
fn the_page_lists_every_setting_once_and_no_other() {
    let page = page();
    let listed: Vec<&str> = rows(&page).into_iter().map(|(key, _, _)| key).collect();
    let settings: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
    assert_eq!(listed, settings);
}

#[test]
fn the_page_says_which_settings_are_secrets() {
    let page = page();
    for ((key, _, meaning), setting) in rows(&page).into_iter().zip(SETTINGS) {
        assert_eq!(meaning.starts_with("**Secret.**"), setting.secret, "{key}");
    }
}

/// Whether words of the page are this default; a setting without one is a comment in the default file.
fn is_said(words: &str, default: Option<&toml::Value>) -> bool {
    match default {
        None => ["none", "by discovery"].contains(&words) || words.starts_with("file `"),
        Some(toml::Value::String(text)) if text.is_empty() => words == "off",
        Some(toml::Value::String(text)) => words == format!("`{text}`"),
        Some(toml::Value::Array(values)) if values.is_empty() => words == "none",
        Some(toml::Value::Array(values)) => words.split(' ').next() == Some(values.len().to_string().as_str()),
        Some(value) => words == format!("`{value}`"),
    }
}

#[test]
fn the_page_names_the_defaults_of_the_default_file() {
    let defaults: toml::Table = DEFAULT_TOML.parse().expect("a TOML file");
    let page = page();
    for (key, words, _) in rows(&page) {
        let default = defaults.get(key);
        assert!(is_said(words, default), "{key}: {words:?} is not {default:?}");
    }
}
