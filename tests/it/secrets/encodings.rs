//! The encodings in which a leaked secret can hide.

use agentcfg_tests::harness::{base64, base64url, hex};

/// The secret itself, in hexadecimal, and in base64 at every alignment within a longer text.
pub(super) fn encodings(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![
        secret.to_vec(),
        hex(secret).into_bytes(),
        hex(secret).to_ascii_uppercase().into_bytes(),
    ];
    let encoders: [fn(Vec<u8>) -> String; 2] = [|bytes| base64(bytes), |bytes| base64url(bytes)];
    for encode in encoders {
        for before in 0..3 {
            let text = encode([vec![0; before], secret.to_vec()].concat());
            // The first digits share bits with the preceding bytes, and the last one with the following bytes.
            let first = (before * 8).div_ceil(6);
            all.push(text.as_bytes()[first..text.len() - 1].to_vec());
        }
    }
    all.push(secret.iter().rev().copied().collect());
    all
}

pub(super) fn contains(bytes: &[u8], pattern: &[u8]) -> bool {
    // Comparing the first byte rejects nearly all positions cheaply.
    let first = pattern[0];
    bytes.len() >= pattern.len()
        && (0..=bytes.len() - pattern.len()).any(|at| bytes[at] == first && bytes[at..].starts_with(pattern))
}

#[test]
fn a_secret_is_found_in_every_encoding() {
    let secret = b"correct-horse-battery-staple";
    for before in ["", "x", "xy", "xyz"] {
        let text = [before.as_bytes(), secret, b" and more"].concat();
        for text in [
            hex(&text),
            base64(&text),
            base64url(&text),
            String::from_utf8(text.clone()).unwrap(),
        ] {
            let found = encodings(secret)
                .iter()
                .any(|encoding| contains(text.as_bytes(), encoding));
            assert!(found, "{text}");
        }
    }
    assert!(
        !encodings(secret)
            .iter()
            .any(|encoding| contains(b"nothing to see here", encoding))
    );
}
