//! Rules for texts. Lengths count Unicode scalar values; no text may have a NUL character.

use std::fmt::Display;

use super::{Described, Rule};
use crate::model::FieldValues;
use crate::validate::{Faults, MAX_PROVIDER_KEY};

/// At most `MAX` characters.
pub(crate) struct Text<const MAX: usize>;

/// 1 to `MAX` characters.
pub(crate) struct TextFromOne<const MAX: usize>;

/// 1 to `MAX` characters, at least one of which is not white space.
pub(crate) struct NotBlank<const MAX: usize>;

/// A provider's credential: 1–500 visible ASCII characters. A fault names the length of the text alone, never its characters.
pub(crate) struct Credential;

impl<const MAX: usize> Rule for Text<MAX> {
    type Value = String;

    fn check(text: &String, field: &str, faults: &mut Faults) {
        at_most(text, MAX, field, faults);
    }
}

impl<const MAX: usize> Described for Text<MAX> {
    const VALUES: FieldValues = FieldValues::Text { max_length: MAX };
}

impl<const MAX: usize> Rule for TextFromOne<MAX> {
    type Value = String;

    fn check(text: &String, field: &str, faults: &mut Faults) {
        from_one(text, MAX, field, faults);
    }
}

impl<const MAX: usize> Rule for NotBlank<MAX> {
    type Value = String;

    fn check(text: &String, field: &str, faults: &mut Faults) {
        not_blank(text, MAX, field, faults);
    }
}

impl<const MAX: usize> Described for NotBlank<MAX> {
    const VALUES: FieldValues = FieldValues::Text { max_length: MAX };
}

impl Rule for Credential {
    type Value = String;

    fn check(text: &String, field: &str, faults: &mut Faults) {
        length_from_one(text, MAX_PROVIDER_KEY, field, faults);
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            faults.push(field, "must have visible ASCII characters only");
        }
    }
}

/// Refuses the character that some databases cannot hold.
pub(crate) fn without_nul(text: &str, field: impl Display, faults: &mut Faults) {
    if text.contains('\0') {
        faults.push(field, "must not contain a NUL character");
    }
}

pub(crate) fn length_at_most(text: &str, max: usize, field: impl Display, faults: &mut Faults) {
    let length = text.chars().count();
    if length > max {
        faults.push(field, format_args!("must be at most {max} characters, got {length}"));
    }
}

fn at_most(text: &str, max: usize, field: impl Display, faults: &mut Faults) {
    without_nul(text, &field, faults);
    length_at_most(text, max, &field, faults);
}

pub(super) fn from_one(text: &str, max: usize, field: impl Display, faults: &mut Faults) {
    if text.is_empty() {
        faults.push(&field, format_args!("must be 1 to {max} characters, got 0"));
    }
    at_most(text, max, field, faults);
}

pub(super) fn not_blank(text: &str, max: usize, field: impl Display, faults: &mut Faults) {
    if !text.is_empty() && text.chars().all(char::is_whitespace) {
        faults.push(&field, "must not be blank");
    }
    from_one(text, max, field, faults);
}

pub(crate) fn length_from_one(text: &str, max: usize, field: impl Display, faults: &mut Faults) {
    let length = text.chars().count();
    if !(1..=max).contains(&length) {
        faults.push(field, format_args!("must be 1 to {max} characters, got {length}"));
    }
}
