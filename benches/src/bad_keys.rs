//! Bad credentials, one kind for each check that a server can refuse them at.

use agentcfg_core::clock::SystemEntropy;
use agentcfg_core::model::Environment;
use agentcfg_core::token;

use crate::Failure;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const PREFIX_AND_ID: usize = 29;
const CHECKSUM: usize = 6;

/// Malformed keys: random words, and keys with a mistyped character.
pub fn malformed(count: usize) -> Result<Vec<String>, Failure> {
    (0..count)
        .map(|i| {
            let key = fresh()?;
            Ok(match i % 3 {
                0 => key[PREFIX_AND_ID..].to_owned(),
                1 => key.replace("svc_live_", "svc_life_"),
                _ => {
                    let other = if key.ends_with('0') { "1" } else { "0" };
                    format!("{}{other}", &key[..key.len() - 1])
                }
            })
        })
        .collect()
}

/// Well-formed keys that were never issued.
pub fn unknown(count: usize) -> Result<Vec<String>, Failure> {
    (0..count).map(|_| fresh()).collect()
}

/// The identifiers of these keys with wrong secrets and valid checksums.
pub fn wrong_secrets(keys: &[String], count: usize) -> Result<Vec<String>, Failure> {
    (0..count)
        .map(|i| {
            let (known, other) = (&keys[i % keys.len()], fresh()?);
            let secret = &other[PREFIX_AND_ID..other.len() - CHECKSUM];
            let text = format!("{}{secret}", &known[..PREFIX_AND_ID]);
            let key = format!("{text}{}", checksum(&text));
            if token::parse(&key) == token::parse(known) {
                Ok(key)
            } else {
                Err("the form of API keys has changed".into())
            }
        })
        .collect()
}

fn fresh() -> Result<String, Failure> {
    Ok(token::mint(Environment::Production, &SystemEntropy)?
        .plaintext
        .to_string())
}

fn checksum(text: &str) -> String {
    let mut rest = crc32fast::hash(text.as_bytes());
    let mut digits = [b'0'; CHECKSUM];
    for digit in digits.iter_mut().rev() {
        *digit = ALPHABET[(rest % 62) as usize];
        rest /= 62;
    }
    digits.iter().copied().map(char::from).collect()
}
