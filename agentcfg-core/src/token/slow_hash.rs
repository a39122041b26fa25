//! The slow hash, with pooled memory.
//!
//! A hash needs some megabytes. If each hash allocated and freed them, small long-lived allocations would
//! fragment the freed memory and the next hash would need new pages: a server that saw a few hundred
//! keys for the first time would hold hundreds of megabytes.

use std::sync::Mutex;

use crate::sync::lock;

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

/// The pool of buffers.
static POOL: Mutex<Vec<Vec<Block>>> = Mutex::new(Vec::new());

/// The maximum size of the pool. It never holds more buffers than hashes ran at the same time.
const MAX_POOLED: usize = 8;

/// Why a text cannot be hashed.
type Failed = Box<dyn std::error::Error>;

/// The argon2id hash of a text under this salt, as a PHC string.
pub(super) fn hash(text: &[u8], salt: &[u8], params: Params) -> Result<String, Failed> {
    let mut bytes = [0; Params::DEFAULT_OUTPUT_LEN];
    let written = ParamsString::try_from(&params)?;
    let (algorithm, version) = (Algorithm::Argon2id, Version::V0x13);
    fill(text, salt, Argon2::new(algorithm, version, params), &mut bytes)?;
    let hash = PasswordHash {
        algorithm: algorithm.ident(),
        version: Some(version.into()),
        params: written,
        salt: Some(Salt::new(salt)?),
        hash: Some(Output::new(&bytes)?),
    };
    Ok(hash.to_string())
}

/// Whether a PHC string is a hash of this text.
pub(super) fn verify(text: &[u8], phc: &str) -> Result<bool, Failed> {
    let hash = PasswordHash::new(phc)?;
    let (Some(salt), Some(expected)) = (&hash.salt, &hash.hash) else {
        return Ok(false);
    };
    let algorithm = Algorithm::try_from(hash.algorithm.as_str())?;
    let version = hash.version.map(Version::try_from).transpose()?.unwrap_or_default();
    let argon2 = Argon2::new(algorithm, version, Params::try_from(&hash)?);
    let mut bytes = vec![0; expected.len()];
    fill(text, salt.as_ref(), argon2, &mut bytes)?;
    Ok(bytes.ct_eq(expected.as_bytes()).into())
}

fn fill(text: &[u8], salt: &[u8], argon2: Argon2<'_>, out: &mut [u8]) -> Result<(), Failed> {
    let mut memory = pool().pop().unwrap_or_default();
    let blocks = argon2.params().block_count();
    memory.resize(memory.len().max(blocks), Block::new());
    let filled = argon2.hash_password_into_with_memory(text, salt, out, &mut memory[..blocks]);
    memory.iter_mut().for_each(Zeroize::zeroize);
    let mut pool = pool();
    if pool.len() < MAX_POOLED {
        pool.push(memory);
    }
    Ok(filled?)
}

fn pool() -> std::sync::MutexGuard<'static, Vec<Vec<Block>>> {
    lock(&POOL)
}

#[cfg(test)]
mod tests {
    use argon2::PasswordVerifier;

    use super::*;

    #[test]
    fn hashes_match_the_reference_implementation() {
        // Made by the reference implementation.
        let known = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
        assert!(verify(b"password", known).unwrap());
        assert!(!verify(b"passwore", known).unwrap());
        for kib in [8, 512, 64] {
            let params = Params::new(kib, 1, 1, None).unwrap();
            let phc = hash(b"text", b"sixteen bytes it", params).unwrap();
            let parsed = PasswordHash::new(&phc).unwrap();
            assert!(Argon2::default().verify_password(b"text", &parsed).is_ok(), "{phc}");
            assert!(verify(b"text", &phc).unwrap());
            assert!(!verify(b"other", &phc).unwrap());
        }
        for bad in ["", "$argon2id$v=19$m=64,t=1,p=1", "$scrypt$ln=1,r=1,p=1$c29tZXNhbHQ"] {
            assert!(!verify(b"text", bad).unwrap_or(false), "{bad}");
        }
    }
}
