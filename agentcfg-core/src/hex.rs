//! Hexadecimal digits.

/// The bytes as lower-case digits.
pub(crate) fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Fills the bytes with the digits of a text, lower or upper case, and tells whether it has exactly as many.
pub(crate) fn decode(text: &str, bytes: &mut [u8]) -> bool {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    rest.is_empty()
        && pairs.len() == bytes.len()
        && pairs.iter().zip(bytes).all(|([high, low], byte)| {
            let value = digit(*high).zip(digit(*low)).map(|(high, low)| high << 4 | low);
            value.map(|value| *byte = value).is_some()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_all_else_refused() {
        let every: Vec<u8> = (0..=255).collect();
        let text = encode(&every);
        assert!(text.starts_with("000102") && text.ends_with("feff"));
        let mut read = vec![0; 256];
        assert!(decode(&text, &mut read) && read == every);
        assert!(decode(&text.to_uppercase(), &mut read) && read == every);
        for bad in ["", "0", "000", "0000", "0g", "+1", " 1", "é"] {
            assert!(!decode(bad, &mut [0]), "{bad}");
        }
    }
}
