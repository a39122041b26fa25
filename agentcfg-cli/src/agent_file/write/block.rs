//! Texts of several lines as literal blocks, which a reviewer reads line by line.

use std::fmt::Write as _;

use super::scalar::is_visible;

/// Which texts of several lines are blocks.
#[derive(Clone, Copy)]
pub enum Blocks {
    None,
    /// Those without white space at an end that is easily lost.
    Trimmed,
    /// Those too that begin with a space or an empty line, or end with empty lines.
    All,
}

impl Blocks {
    /// Whether a text is a block: it has several lines, and a block keeps them exactly.
    pub fn has(self, text: &str) -> bool {
        let is_chosen = match self {
            Self::None => false,
            Self::Trimmed => !text.ends_with("\n\n") && !is_indented(text),
            Self::All => true,
        };
        let lines = text.trim_end_matches('\n');
        is_chosen
            && lines.contains('\n')
            && lines
                .split('\n')
                .all(|line| !line.ends_with(' ') && line.chars().all(is_visible))
    }
}

/// Whether a reader cannot find the indentation of a block in its first line.
fn is_indented(text: &str) -> bool {
    text.starts_with([' ', '\n'])
}

/// The spaces of one level.
pub const INDENT: usize = 2;

/// What follows a key or a hyphen that has this indentation.
pub fn block(outer: usize, text: &str, lines: &mut String) {
    let (end, content) = match text.strip_suffix('\n') {
        None => ("-", text),
        Some(content) if content.ends_with('\n') => ("+", content),
        Some(content) => ("", content),
    };
    let _ = match is_indented(text) {
        true => writeln!(lines, " |{INDENT}{end}"),
        false => writeln!(lines, " |{end}"),
    };
    for line in content.split('\n') {
        let indent = if line.is_empty() { 0 } else { outer + INDENT };
        let _ = writeln!(lines, "{:indent$}{line}", "");
    }
}
