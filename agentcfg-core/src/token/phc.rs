//! The text of a hash, in the PHC string format: `$argon2id$v=19$m=4096,t=1,p=1$SALT$HASH`.

use std::fmt;
use std::str::FromStr;

use argon2::{Algorithm, Params, Version};
use base64ct::{Base64Unpadded, Encoding};

/// A hash of argon2id, and what it was made with.
#[derive(Debug)]
pub(super) struct Phc {
    pub(super) params: Params,
    pub(super) salt: Vec<u8>,
    pub(super) hash: Vec<u8>,
}

/// What is no hash of argon2id in this format.
#[derive(Debug)]
pub(super) struct InvalidPhc;

/// The algorithm and the version that are written and read.
pub(super) const ALGORITHM: Algorithm = Algorithm::Argon2id;
pub(super) const VERSION: Version = Version::V0x13;

impl fmt::Display for Phc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (memory, passes, lanes) = (self.params.m_cost(), self.params.t_cost(), self.params.p_cost());
        let [salt, hash] = [&self.salt, &self.hash].map(|bytes| Base64Unpadded::encode_string(bytes));
        let version = u32::from(VERSION);
        write!(
            f,
            "${ALGORITHM}$v={version}$m={memory},t={passes},p={lanes}${salt}${hash}"
        )
    }
}

impl FromStr for Phc {
    type Err = InvalidPhc;

    fn from_str(text: &str) -> Result<Self, InvalidPhc> {
        let parts: Vec<&str> = text.split('$').collect();
        let ["", algorithm, version, params, salt, hash] = parts[..] else {
            return Err(InvalidPhc);
        };
        let number = |text: &str, name: &str| text.strip_prefix(name)?.parse::<u32>().ok();
        if algorithm != ALGORITHM.as_str() || number(version, "v=") != Some(VERSION.into()) {
            return Err(InvalidPhc);
        }
        let numbers: Vec<_> = params.split(',').zip(["m=", "t=", "p="]).collect();
        let numbers: Option<Vec<u32>> = numbers.into_iter().map(|(text, name)| number(text, name)).collect();
        let Some([memory, passes, lanes]) = numbers.as_deref() else {
            return Err(InvalidPhc);
        };
        let bytes = |text: &str| Base64Unpadded::decode_vec(text).map_err(|_| InvalidPhc);
        let (salt, hash) = (bytes(salt)?, bytes(hash)?);
        let params = Params::new(*memory, *passes, *lanes, Some(hash.len())).map_err(|_| InvalidPhc)?;
        Ok(Self { params, salt, hash })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_all_else_refused() {
        let text = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
        let read: Phc = text.parse().unwrap();
        let costs = (read.params.m_cost(), read.params.t_cost(), read.params.p_cost());
        assert_eq!(
            (costs, &read.salt[..], read.hash.len()),
            ((256, 2, 1), &b"somesalt"[..], 32)
        );
        assert_eq!(read.to_string(), text);
        for (part, other) in [
            ("$argon2id", "argon2id"),
            ("argon2id", "argon2d"),
            ("v=19", "v=16"),
            ("v=19$", ""),
            ("m=256", "m=1"),
            ("m=256", "k=256"),
            ("m=256", "m=99999999999"),
            (",p=1", ""),
            ("t=2,p=1", "p=1,t=2"),
            ("c29tZXNhbHQ", "c29tZXNhbHR"),
            ("c29tZXNhbHQ", "c29tZXNhbHQ="),
            ("Gi/4", "Gi/4$"),
            ("$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", ""),
            ("nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", ""),
        ] {
            assert!(text.contains(part), "{part}");
            assert!(
                text.replacen(part, other, 1).parse::<Phc>().is_err(),
                "{part} -> {other}"
            );
        }
    }
}
