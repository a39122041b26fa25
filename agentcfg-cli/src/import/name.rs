//! Identifiers of agents from the names in a source.

use agentcfg_core::validate::MAX_AGENT_ID;

/// An identifier from a name: small letters, digits, `-` and `_`, and at most 50 of them. Other characters become hyphens; a name
/// without any letter or digit of ASCII is spelled by the numbers of its characters.
pub fn identifier(name: &str) -> String {
    let plain = joined(name.chars().map(|c| match c.to_ascii_lowercase() {
        c if c.is_ascii_alphanumeric() || c == '_' => c.to_string(),
        _ => "-".to_owned(),
    }));
    match plain.is_empty() {
        false => plain,
        true => joined(
            name.chars()
                .filter(|c| c.is_alphanumeric())
                .map(|c| format!("u{:x}-", u32::from(c))),
        ),
    }
}

/// The pieces as one text without hyphens at its ends or in a row.
fn joined(pieces: impl Iterator<Item = String>) -> String {
    let text: String = pieces.collect();
    let words: Vec<&str> = text.split('-').filter(|word| !word.is_empty()).collect();
    let mut joined = words.join("-");
    joined.truncate(MAX_AGENT_ID);
    joined.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_made_from_names() {
        for (name, id) in [
            ("Code Reviewer", "code-reviewer"),
            ("help/triage", "help-triage"),
            ("  --a__b--  ", "a__b"),
            ("写手", "u5199-u624b"),
            ("Überprüfer", "berpr-fer"),
            ("***", ""),
        ] {
            assert_eq!(identifier(name), id, "{name}");
        }
        assert_eq!(identifier(&"ab ".repeat(40)).len(), MAX_AGENT_ID);
    }
}
