//! The usual encodings of bytes: hexadecimal and base64.

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Lower-case hexadecimal digits.
pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Base64 without padding.
pub fn base64(bytes: impl AsRef<[u8]>) -> String {
    encode(bytes.as_ref(), STANDARD)
}

/// Base64 for URLs, without padding, as tokens use it.
pub fn base64url(bytes: impl AsRef<[u8]>) -> String {
    encode(bytes.as_ref(), URL)
}

fn encode(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..=chunk.len() {
            let index = group >> (18 - 6 * digit) & 63;
            text.push(char::from(alphabet[index as usize]));
        }
    }
    text
}
