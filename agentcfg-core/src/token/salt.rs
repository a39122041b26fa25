//! The salt of a slow hash: random bytes, and a check value of the hashed key.
//!
//! Without the check value, each wrong key would cost a slow hash, and an attacker who knows a key's
//! identifier could exhaust the processors. The check value rejects all but one in 2³² wrong keys at the
//! cost of one fast hash. It depends on the random part, which only the store knows, so an attacker
//! cannot choose texts that pass. An attacker who has stolen the store gains 32 of the 256 bits of a
//! secret: 224 remain.

use ctutils::CtEq;
use sha2::{Digest, Sha256};

use super::phc::Phc;
use crate::clock::{Entropy, EntropyError};

const RANDOM: usize = 16;
const CHECK: usize = 4;
const LENGTH: usize = RANDOM + CHECK;

/// A new salt for a text.
pub(super) fn make(text: &[u8], entropy: &dyn Entropy) -> Result<[u8; LENGTH], EntropyError> {
    let mut salt = [0; LENGTH];
    let (random, check) = salt.split_at_mut(RANDOM);
    entropy.fill(random)?;
    check.copy_from_slice(&check_value(random, text));
    Ok(salt)
}

/// Whether a PHC string may be a hash of this text; `false` is certain. A salt without a check value
/// passes.
pub(super) fn may_match(text: &[u8], phc: &str) -> bool {
    let Ok(Phc { salt, .. }) = phc.parse() else {
        return true;
    };
    let Ok(salt) = <&[u8; LENGTH]>::try_from(&salt[..]) else {
        return true;
    };
    let (random, check) = salt.split_at(RANDOM);
    check_value(random, text)[..].ct_eq(check).into()
}

fn check_value(random: &[u8], text: &[u8]) -> [u8; CHECK] {
    let hash = Sha256::new().chain_update(random).chain_update(text).finalize();
    std::array::from_fn(|i| hash[i])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemEntropy;
    use crate::token::{hash, verify};

    #[test]
    fn only_the_text_may_match() {
        let phc = hash("right", &SystemEntropy).unwrap();
        assert!(may_match(b"right", &phc));
        for wrong in ["", "wrong", "right ", "Right"] {
            assert!(!may_match(wrong.as_bytes(), &phc), "{wrong:?}");
        }
        let again = hash("right", &SystemEntropy).unwrap();
        assert_ne!(phc.split('$').nth(4), again.split('$').nth(4), "each salt is different");
    }

    #[test]
    fn a_hash_with_another_salt_is_left_to_the_slow_check() {
        let params = argon2::Params::new(8, 1, 1, None).unwrap();
        let phc = super::super::slow_hash::hash(b"right", &[7; RANDOM], params).unwrap();
        assert!(may_match(b"right", &phc) && may_match(b"wrong", &phc));
        assert!(verify("right", &phc) && !verify("wrong", &phc));
        assert!(may_match(b"right", "not a hash") && !verify("right", "not a hash"));
    }
}
