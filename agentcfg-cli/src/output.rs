//! What a command prints: tables and texts for people, JSON for programs.

use std::io::{self, IsTerminal, Stderr, Stdout, Write};

use agentcfg_client::model::{Changes, Timestamp};
use agentcfg_core::validate::DEFAULT_LIMIT;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use comfy_table::{ContentArrangement, Row, Table, presets};
use serde::Serialize;

use crate::args::{Color, Format};
use crate::failure::Result;

/// Styles for parts of texts. They are removed where the output has no colours.
pub const BOLD: Style = Style::new().bold();
pub const DIM: Style = Style::new().dimmed();
pub const ADDED: Style = AnsiColor::Green.on_default();
pub const CHANGED: Style = AnsiColor::Yellow.on_default();
pub const REMOVED: Style = AnsiColor::Red.on_default();

/// Standard output, and standard error for messages.
pub struct Output {
    format: Format,
    stdout: AutoStream<Stdout>,
    stderr: AutoStream<Stderr>,
    /// The columns of the terminal; `None` where standard output is none.
    width: Option<u16>,
}

impl Output {
    pub fn new(format: Format, color: Color) -> Self {
        let choice = match color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        let width = || {
            console::Term::stdout()
                .size_checked()
                .map_or(80, |(_, columns)| columns)
        };
        Self {
            format,
            stdout: AutoStream::new(io::stdout(), choice),
            stderr: AutoStream::new(io::stderr(), choice),
            width: io::stdout().is_terminal().then(width),
        }
    }

    /// Prints JSON from now on.
    pub fn use_json(&mut self) {
        self.format = Format::Json;
    }

    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Whether standard output is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.width.is_some()
    }

    /// Prints a value as JSON if the user wants that, else as text.
    pub fn show<T: Serialize>(&mut self, value: &T, text: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if self.is_json() { self.json(value) } else { text(self) }
    }

    pub fn json<T: Serialize>(&mut self, value: &T) -> Result<()> {
        let json = serde_json::to_string_pretty(value)?;
        self.exact(&json, printable_json, "\n")
    }

    /// Prints a value as JSON in one line.
    pub fn json_line<T: Serialize>(&mut self, value: &T) -> Result<()> {
        let json = serde_json::to_string(value)?;
        self.exact(&json, printable_json, "\n")
    }

    /// Prints a line of text.
    pub fn line(&mut self, text: impl std::fmt::Display) -> Result<()> {
        writeln!(self.stdout, "{text}")?;
        Ok(self.stdout.flush()?)
    }

    /// Prints a text of another origin. A file or a pipe gets it byte for byte; a terminal gets no control characters,
    /// which could change what it shows.
    pub fn text(&mut self, text: &str) -> Result<()> {
        self.exact(text, printable_lines, "")
    }

    /// Prints a text and its end. They go past the stream for styles, which removes escape sequences.
    fn exact(&mut self, text: &str, on_terminal: fn(&str) -> String, end: &str) -> Result<()> {
        self.stdout.flush()?;
        let shown = self.is_terminal().then(|| on_terminal(text));
        let mut stdout = io::stdout().lock();
        stdout.write_all(shown.as_deref().unwrap_or(text).as_bytes())?;
        stdout.write_all(end.as_bytes())?;
        Ok(stdout.flush()?)
    }

    /// Prints a message for the user to standard error.
    pub fn note(&mut self, text: impl std::fmt::Display) {
        // There is no other place for a message.
        let _ = writeln!(self.stderr, "{text}");
    }

    /// Says that a table may not have all rows, where it has as many as a page without a limit.
    pub fn note_of_page(&mut self, rows: usize, limit: Option<u32>) {
        if limit.is_none() && rows as u64 == DEFAULT_LIMIT && !self.is_json() {
            self.note(format_args!(
                "These are {rows}. There may be more: see --limit and --before."
            ));
        }
    }

    /// Prints rows below a header. On a terminal a row has one line, and what does not fit is cut off.
    pub fn table(&mut self, header: &[&str], rows: Vec<Vec<String>>) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(header.to_vec());
        match self.width {
            Some(width) => table
                .set_width(width)
                .set_content_arrangement(ContentArrangement::Dynamic),
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        for cells in rows {
            let mut row = Row::from(cells.iter().map(|cell| printable(cell)).collect::<Vec<_>>());
            row.max_height(1);
            table.add_row(row);
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        for (i, line) in table.lines().enumerate() {
            let style = if i == 0 { BOLD } else { Style::new() };
            writeln!(self.stdout, "{style}{}{style:#}", line.trim_end())?;
        }
        Ok(self.stdout.flush()?)
    }
}

/// A text in a line: characters that control the terminal are escaped.
pub fn printable(text: &str) -> String {
    escape(text, controls_a_terminal)
}

/// A text of several lines: characters that control the terminal are escaped, but for line feeds and tabs.
pub fn printable_lines(text: &str) -> String {
    escape(text, |c| controls_a_terminal(c) && !matches!(c, '\n' | '\t'))
}

/// Control characters, and those that reorder the text around them (bidirectional embeddings, overrides and isolates),
/// with which a text could look like another one.
fn controls_a_terminal(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// JSON in which characters that control the terminal are escapes of JSON. Those below U+0020 are escaped already, but
/// for the line feeds between values.
fn printable_json(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        match controls_a_terminal(c) && c != '\n' {
            true => printable += &format!("\\u{:04x}", u32::from(c)),
            false => printable.push(c),
        }
    }
    printable
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        match is_escaped(c) {
            true => printable.extend(c.escape_default()),
            false => printable.push(c),
        }
    }
    printable
}

/// A time in a table: to the minute, in UTC.
pub fn minute(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{}Z", text.get(..16).unwrap_or(&text))
}

/// The names of what changed, in a line. An apply of many agents has thousands of them.
pub fn changed(changes: &Changes) -> String {
    const SHOWN: usize = 8;
    let mut names: Vec<_> = changes.keys().take(SHOWN).map(|name| printable(name)).collect();
    if changes.len() > SHOWN {
        names.push(format!("and {} more", changes.len() - SHOWN));
    }
    names.join(" ")
}

/// A value that may be absent, in a table.
pub fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_control_characters() {
        assert_eq!(printable("a\u{1b}[2J\n\u{9b}é"), "a\\u{1b}[2J\\n\\u{9b}é");
        assert_eq!(printable_lines("a\u{1b}]\n\tb\r"), "a\\u{1b}]\n\tb\\r");
        assert_eq!(printable("ada\u{202e}nimda\u{2066}"), "ada\\u{202e}nimda\\u{2066}");
        assert_eq!(printable("שלום"), "שלום");
        let json = serde_json::json!({"a": "\u{1b}\u{7f}\u{9b}\u{202e}é"});
        let shown = printable_json(&serde_json::to_string_pretty(&json).unwrap());
        assert_eq!(shown, "{\n  \"a\": \"\\u001b\\u007f\\u009b\\u202eé\"\n}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), json);
    }
}
