//! The form of a packed record: a JSON object whose first field, behind the revision that the store adds, is `packed`,
//! and begins with the length of the whole record.

/// The fields of an agent that are packed where they are long.
pub(super) const FIELDS: [&str; 2] = ["persona_prompt", "definition"];

/// The text behind `"packed":`; `None` where the record is not packed.
pub(super) fn packed(value: &[u8]) -> Option<&[u8]> {
    let fields = match value.strip_prefix(b"{\"revision\":") {
        Some(rest) => rest.get(rest.iter().position(|byte| *byte == b',')? + 1..)?,
        None => value.get(1..)?,
    };
    fields.strip_prefix(b"\"packed\":")
}

/// Whether the record is packed.
pub(in super::super) fn is_packed(value: &[u8]) -> bool {
    packed(value).is_some()
}

/// The length of the record's text with all that was packed.
pub(in super::super) fn unpacked_length(value: &[u8]) -> usize {
    let bytes = packed(value).and_then(|packed| packed.strip_prefix(b"{\"bytes\":"));
    let digits = bytes
        .unwrap_or_default()
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    let length = digits.fold(0_usize, |number, digit| {
        number.saturating_mul(10).saturating_add(usize::from(digit - b'0'))
    });
    length.max(value.len())
}
