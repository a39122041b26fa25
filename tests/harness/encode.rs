//! The usual encodings of bytes: hexadecimal and base64.

use base64ct::{Base64Unpadded, Base64UrlUnpadded, Encoding};

/// Lower-case hexadecimal digits.
pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Base64 without padding.
pub fn base64(bytes: impl AsRef<[u8]>) -> String {
    Base64Unpadded::encode_string(bytes.as_ref())
}

/// Base64 for URLs, without padding, as tokens use it.
pub fn base64url(bytes: impl AsRef<[u8]>) -> String {
    Base64UrlUnpadded::encode_string(bytes.as_ref())
}
