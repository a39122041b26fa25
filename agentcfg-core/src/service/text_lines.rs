//! The comparison of texts line by line, as `diff` and `patch` know lines: each ends with a line feed, and a carriage
//! return is a character of a line.

use std::borrow::Cow;

use similar::TextDiff;

/// What `diff` writes after a last line that does not end.
const NO_LINE_FEED: &str = "\n\\ No newline at end of file";

/// Compares the lines of two texts.
pub(super) fn compare<R>(before: &str, after: &str, read: impl FnOnce(&TextDiff<'_, '_, str>) -> R) -> R {
    let (before, after) = (lines(before), lines(after));
    read(&TextDiff::from_slices(&texts(&before), &texts(&after)))
}

/// The lines without their ends, so that a last one that does not end is another one.
fn lines(text: &str) -> Vec<Cow<'_, str>> {
    let lines = text.split_inclusive('\n');
    let lines = lines.map(|line| match line.strip_suffix('\n') {
        Some(line) => Cow::Borrowed(line),
        None => Cow::Owned(format!("{line}{NO_LINE_FEED}")),
    });
    lines.collect()
}

fn texts<'a>(lines: &'a [Cow<'_, str>]) -> Vec<&'a str> {
    lines.iter().map(|line| &**line).collect()
}
