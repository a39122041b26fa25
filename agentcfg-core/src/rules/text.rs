//! Rules for texts. Lengths count Unicode scalar values; no text may have a NUL character.

use super::Described;
use crate::body::Rule;
use crate::model::FieldValues;
use crate::validate::text::{at_most, from_one, length_from_one, not_blank};
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
