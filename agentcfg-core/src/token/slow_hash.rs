//! The slow hash, with pooled memory.
//!
//! A hash needs some megabytes. If each hash allocated and freed them, small long-lived allocations would
//! fragment the freed memory and the next hash would need new pages: a server that saw a few hundred
//! keys for the first time would hold hundreds of megabytes.

use std::sync::Mutex;

use crate::sync::lock;

use argon2::{Argon2, Block, Params};
use ctutils::CtEq;
use zeroize::Zeroize;

use super::phc::{ALGORITHM, Phc, VERSION};

/// The pool of buffers.
static POOL: Mutex<Vec<Vec<Block>>> = Mutex::new(Vec::new());

/// The maximum size of the pool. It never holds more buffers than hashes ran at the same time.
const MAX_POOLED: usize = 8;

/// The argon2id hash of a text under this salt, as a PHC string.
pub(super) fn hash(text: &[u8], salt: &[u8], params: Params) -> argon2::Result<String> {
    let mut hash = vec![0; Params::DEFAULT_OUTPUT_LEN];
    fill(text, salt, &params, &mut hash)?;
    let salt = salt.to_vec();
    Ok(Phc { params, salt, hash }.to_string())
}

/// Whether a PHC string is a hash of this text.
pub(super) fn verify(text: &[u8], phc: &str) -> bool {
    let Ok(expected) = phc.parse::<Phc>() else {
        return false;
    };
    let mut hash = vec![0; expected.hash.len()];
    let filled = fill(text, &expected.salt, &expected.params, &mut hash);
    filled.is_ok() && hash.ct_eq(&expected.hash).into()
}

fn fill(text: &[u8], salt: &[u8], params: &Params, out: &mut [u8]) -> argon2::Result<()> {
    let argon2 = Argon2::new(ALGORITHM, VERSION, params.clone());
    let mut memory = pool().pop().unwrap_or_default();
    let blocks = params.block_count();
    memory.resize(memory.len().max(blocks), Block::new());
    let filled = argon2.hash_password_into_with_memory(text, salt, out, &mut memory[..blocks]);
    memory.iter_mut().for_each(Zeroize::zeroize);
    let mut pool = pool();
    if pool.len() < MAX_POOLED {
        pool.push(memory);
    }
    filled
}

fn pool() -> std::sync::MutexGuard<'static, Vec<Vec<Block>>> {
    lock(&POOL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_match_the_reference_implementation() {
        // Made by the reference implementation.
        let known = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
        let params = Params::new(256, 2, 1, None).unwrap();
        assert_eq!(hash(b"password", b"somesalt", params).unwrap(), known);
        assert!(verify(b"password", known));
        assert!(!verify(b"passwore", known));
        for kib in [8, 512, 64] {
            let params = Params::new(kib, 1, 1, None).unwrap();
            let phc = hash(b"text", b"sixteen bytes it", params).unwrap();
            assert!(verify(b"text", &phc) && !verify(b"other", &phc), "{phc}");
        }
        for bad in ["", "$argon2id$v=19$m=64,t=1,p=1", "$scrypt$ln=1,r=1,p=1$c29tZXNhbHQ"] {
            assert!(!verify(b"text", bad), "{bad}");
        }
    }
}
