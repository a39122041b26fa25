//! The usual encodings of bytes: hexadecimal and base64.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Lower-case hexadecimal digits.
pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    base16ct::lower::encode_string(bytes.as_ref())
}

/// Base64 without padding.
pub fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD_NO_PAD.encode(bytes)
}

/// Base64 for URLs, without padding, as tokens use it.
pub fn base64url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
