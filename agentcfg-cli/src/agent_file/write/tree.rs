//! Writes nested values as YAML.

use std::fmt::Write as _;

use super::block::{Blocks, INDENT, block};
use super::scalar::text;

/// The longest key that a reader takes without the sign of a key in front of it.
const LONG_KEY: usize = 1000;

/// A value that can be written.
pub(crate) trait Tree: Sized {
    fn shape(&self) -> Shape<'_, Self>;
}

/// What a value is. Lists and maps have at least one element.
pub(crate) enum Shape<'a, T> {
    List(&'a [T]),
    Map(Vec<(&'a str, &'a T)>),
    Text(&'a str),
    /// Anything else, as it is written.
    Scalar(String),
}

/// The lines of entries.
pub(crate) struct Lines {
    blocks: Blocks,
    text: String,
}

impl Lines {
    pub(crate) fn new(blocks: Blocks) -> Self {
        Self {
            blocks,
            text: String::new(),
        }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// A key and its value.
    pub(crate) fn entry(&mut self, indent: usize, key: &str, value: &impl Tree) {
        let key = text(key);
        let _ = match key.len() > LONG_KEY {
            true => write!(self.text, "{:indent$}? {key}\n{:indent$}:", "", ""),
            false => write!(self.text, "{:indent$}{key}:", ""),
        };
        match value.shape() {
            Shape::Map(entries) => {
                self.text.push('\n');
                for (key, value) in entries {
                    self.entry(indent + INDENT, key, value);
                }
            }
            Shape::List(items) => {
                self.text.push('\n');
                self.list(indent + INDENT, items);
            }
            shape => self.leaf(indent, shape),
        }
    }

    fn list(&mut self, indent: usize, items: &[impl Tree]) {
        for item in items {
            let _ = write!(self.text, "{:indent$}-", "");
            match item.shape() {
                Shape::Map(entries) => {
                    let start = self.text.len();
                    for (key, value) in entries {
                        self.entry(indent + INDENT, key, value);
                    }
                    // The first key stands beside the hyphen.
                    self.text.replace_range(start..start + indent + 1, "");
                }
                Shape::List(items) => {
                    self.text.push('\n');
                    self.list(indent + INDENT, items);
                }
                shape => self.leaf(indent, shape),
            }
        }
    }

    /// What follows a key or a hyphen on its line: a scalar, or the lines of a long text.
    fn leaf<T>(&mut self, indent: usize, shape: Shape<'_, T>) {
        let _ = match shape {
            Shape::Text(value) if self.blocks.has(value) => {
                block(indent, value, &mut self.text);
                Ok(())
            }
            Shape::Text(value) => writeln!(self.text, " {}", text(value)),
            Shape::Scalar(value) => writeln!(self.text, " {value}"),
            Shape::List(_) | Shape::Map(_) => Ok(()),
        };
    }
}
