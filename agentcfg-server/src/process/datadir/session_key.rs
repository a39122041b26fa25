//! The secret that signs local session tokens.

use std::fmt;
use std::io::Read;
use std::path::Path;

use agentcfg_core::clock::{Entropy, SystemEntropy};
use base64ct::{Base64UrlUnpadded, Encoding};
use zeroize::Zeroizing;

use super::error::DataDirError;
use super::secret_file::{self, GroupRights};

pub(super) const NAME: &str = "session.key";
const LENGTH: usize = 32;
/// A new secret is this many random bytes in base64, which are [`LENGTH`] characters: as text, the file can be given to
/// a server without a data directory, as the setting `session_secret`.
const RANDOM: usize = LENGTH / 4 * 3;

/// 32 bytes that `Debug` does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionSecret([u8; LENGTH]);

impl SessionSecret {
    /// The bytes themselves.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SessionSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

pub(super) fn load_or_create(dir: &Path) -> Result<SessionSecret, DataDirError> {
    match load(dir, GroupRights::TakenBack) {
        Err(DataDirError::Missing { .. }) => {}
        other => return other,
    }
    let mut random = Zeroizing::new([0; RANDOM]);
    SystemEntropy
        .fill(&mut *random)
        .map_err(|error| DataDirError::Randomness(error.to_string()))?;
    let secret = Zeroizing::new(Base64UrlUnpadded::encode_string(&*random));
    secret_file::create(dir, NAME, secret.as_bytes())?;
    // The file is read back, because another process may have created it first.
    load(dir, GroupRights::TakenBack)
}

pub(super) fn load(dir: &Path, rights: GroupRights) -> Result<SessionSecret, DataDirError> {
    let path = dir.join(NAME);
    let failed = |source| DataDirError::from_io("read", &path, source);
    let (mut file, exposed) = secret_file::open(&path, rights).map_err(failed)?;
    if let Some(mode) = exposed {
        return Err(DataDirError::KeyExposed { path, mode });
    }
    let length = file.metadata().map_err(failed)?.len();
    if length != LENGTH as u64 {
        return Err(DataDirError::KeyLength { path, length });
    }
    let mut secret = [0; LENGTH];
    file.read_exact(&mut secret).map_err(failed)?;
    Ok(SessionSecret(secret))
}
