//! The forms in which a secret can leak without being seen at first sight.

use agentcfg_tests::harness::{base64, base64url, hex};

/// The secret itself, in hexadecimal digits and in base 64, wherever in a longer text it began.
pub(super) fn disguises(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![
        secret.to_vec(),
        hex(secret).into_bytes(),
        hex(secret).to_ascii_uppercase().into_bytes(),
    ];
    let encoders: [fn(Vec<u8>) -> String; 2] = [|bytes| base64(bytes), |bytes| base64url(bytes)];
    for encode in encoders {
        for before in 0..3 {
            let text = encode([vec![0; before], secret.to_vec()].concat());
            // The first digits share bits with what came before, and the last one with what comes after.
            let first = (before * 8).div_ceil(6);
            all.push(text.as_bytes()[first..text.len() - 1].to_vec());
        }
    }
    all.push(secret.iter().rev().copied().collect());
    all
}

pub(super) fn contains(bytes: &[u8], pattern: &[u8]) -> bool {
    // The first byte sorts out nearly everything before the whole is compared.
    let first = pattern[0];
    bytes.len() >= pattern.len()
        && (0..=bytes.len() - pattern.len()).any(|at| bytes[at] == first && bytes[at..].starts_with(pattern))
}

#[test]
fn a_secret_is_found_in_every_disguise() {
    let secret = b"correct-horse-battery-staple";
    for before in ["", "x", "xy", "xyz"] {
        let text = [before.as_bytes(), secret, b" and more"].concat();
        for told in [
            hex(&text),
            base64(&text),
            base64url(&text),
            String::from_utf8(text.clone()).unwrap(),
        ] {
            let found = disguises(secret)
                .iter()
                .any(|disguise| contains(told.as_bytes(), disguise));
            assert!(found, "{told}");
        }
    }
    assert!(
        !disguises(secret)
            .iter()
            .any(|disguise| contains(b"nothing to see here", disguise))
    );
}
