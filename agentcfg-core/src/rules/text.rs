//! Rules for texts. Lengths count Unicode scalar values; no text may have a NUL character.

use super::Described;
use crate::body::Rule;
use crate::model::FieldValues;
use crate::validate::text::{at_most, from_one, length_from_one, not_blank, without_nul};
use crate::validate::{DEFAULT_PERSONA_PROMPT, Faults, MAX_PERSONA_PROMPT, MAX_PROVIDER_KEY};

/// At most `MAX` characters.
pub(crate) struct Text<const MAX: usize>;

/// 1 to `MAX` characters.
pub(crate) struct TextFromOne<const MAX: usize>;

/// 1 to `MAX` characters, at least one of which is not white space.
pub(crate) struct NotBlank<const MAX: usize>;

/// A persona: at most as many characters as the deployment allows.
pub(crate) struct Persona;

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

impl Persona {
    /// The fault of a persona that is longer than this limit of the deployment.
    pub(crate) fn fault(text: &str, max: u32) -> Option<String> {
        // A text has no more characters than bytes.
        let length = match text.len() {
            bytes if bytes <= max as usize => return None,
            _ => text.chars().count(),
        };
        (length > max as usize).then(|| {
            format!("must be at most {max} characters, got {length} (the setting max_persona_prompt is the limit)")
        })
    }
}

impl Rule for Persona {
    type Value = String;

    fn check(text: &String, field: &str, faults: &mut Faults) {
        without_nul(text, field, faults);
        let Some(fault) = Self::fault(text, faults.max_persona()) else {
            return;
        };
        match Self::fault(text, MAX_PERSONA_PROMPT) {
            Some(_) => faults.push(field, fault),
            None => faults.push_unless_stored(field, fault),
        }
    }
}

impl Described for Persona {
    const VALUES: FieldValues = FieldValues::Text {
        max_length: DEFAULT_PERSONA_PROMPT as usize,
    };
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
