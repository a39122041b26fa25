//! The file of the master keys: text, one key a line, the sealing one first.

use std::io::Read;
use std::path::Path;

use agentcfg_core::clock::SystemEntropy;
use agentcfg_core::vault::{MasterKey, Vault};
use zeroize::Zeroizing;

use super::error::DataDirError;
use super::secret_file::{self, GroupRights};

pub(super) const NAME: &str = "master.key";

const HEAD: &str = "# Master keys of agentcfg-server, one a line. The first one seals the saved provider keys, all open them.\n\
                    # Without this file they cannot be opened, and backups of the store do not contain it: keep a copy.\n";

/// The length of the longest file that is read. It has room for hundreds of keys.
const LONGEST: u64 = 64 << 10;

/// The keys in the file, or `None` when there is no file.
pub(super) fn load(dir: &Path, rights: GroupRights) -> Result<Option<Vec<MasterKey>>, DataDirError> {
    let path = dir.join(NAME);
    let failed = |source| match DataDirError::from_io("read", &path, source) {
        DataDirError::Missing { .. } => None,
        other => Some(other),
    };
    let (file, exposed) = match secret_file::open(&path, rights) {
        Ok(opened) => opened,
        Err(error) => return failed(error).map_or(Ok(None), Err),
    };
    if let Some(mode) = exposed {
        return Err(DataDirError::MasterKeyExposed { path, mode });
    }
    let mut text = Zeroizing::new(String::with_capacity(4096));
    let read = file.take(LONGEST).read_to_string(&mut text);
    read.map_err(|source| DataDirError::from_io("read", &path, source))?;
    let mut keys: Vec<MasterKey> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bad = |rule: String| DataDirError::MasterKeyFile {
            path: path.clone(),
            line: number + 1,
            rule,
        };
        let key: MasterKey = line.parse().map_err(|rule| bad(format!("{rule}")))?;
        if keys.iter().any(|other| other.id() == key.id()) {
            return Err(bad(format!("is the master key {} a second time", key.id())));
        }
        keys.push(key);
    }
    if keys.is_empty() {
        return Err(DataDirError::MasterKeyFile {
            path,
            line: 1,
            rule: "there is no key in the file".into(),
        });
    }
    Ok(Some(keys))
}

/// Creates the file with a fresh key, unless it exists.
pub(super) fn create(dir: &Path) -> Result<(), DataDirError> {
    let key = generate()?;
    secret_file::create(dir, NAME, text(std::slice::from_ref(&key)).as_bytes())
}

/// Replaces the keys in the file.
pub(super) fn replace(dir: &Path, keys: &[MasterKey]) -> Result<(), DataDirError> {
    // The next start would refuse keys that are not a valid keyring.
    Vault::new(keys.to_vec()).map_err(|error| DataDirError::MasterKeyFile {
        path: dir.join(NAME),
        line: 1,
        rule: error.to_string(),
    })?;
    secret_file::replace(dir, NAME, text(keys).as_bytes())
}

pub(super) fn generate() -> Result<MasterKey, DataDirError> {
    MasterKey::generate(&SystemEntropy).map_err(|error| DataDirError::Randomness(error.to_string()))
}

fn text(keys: &[MasterKey]) -> Zeroizing<String> {
    // Allocated once, because a vector that grows leaves copies of the keys in freed memory.
    let mut text = Zeroizing::new(String::with_capacity(HEAD.len() + keys.len() * 65));
    text.push_str(HEAD);
    for key in keys {
        text.push_str(&key.expose_text());
        text.push('\n');
    }
    text
}
