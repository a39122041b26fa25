//! The file that `agentcfg login` writes.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use agentcfg_client::model::WorkspaceId;
use etcetera::BaseStrategy;

use crate::failure::{CommandFailure, Result};

/// A server, a credential for it, and the workspace if the credential has a single one.
pub struct Credentials {
    pub url: String,
    /// An API key or a session token.
    pub secret: String,
    pub workspace: Option<WorkspaceId>,
}

/// Shows no secret.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secret = &"[redacted]";
        f.debug_struct("Credentials")
            .field("url", &self.url)
            .field("secret", secret)
            .finish_non_exhaustive()
    }
}

/// The path of the file: `agentcfg/credentials.toml` in the directory of the user's settings.
pub fn path() -> Result<PathBuf> {
    let home = etcetera::choose_base_strategy().map_err(|_| {
        CommandFailure::error("your home directory is not known")
            .hint("Set HOME, or AGENTCFG_URL and AGENTCFG_API_KEY.")
    })?;
    Ok(home.config_dir().join("agentcfg").join("credentials.toml"))
}

/// Reads the file; `None` if there is none.
pub fn read(path: &Path) -> Result<Option<Credentials>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CommandFailure::io(path.display(), &error)),
    };
    // The error of the parser would quote the line, which may be the one with the secret.
    let broken = || {
        let message = format!("{} is not a file of `agentcfg login`", path.display());
        CommandFailure::error(message).hint("Sign in again with `agentcfg login`.")
    };
    let table: toml::Table = text.parse().map_err(|_| broken())?;
    let field = |name: &str| table.get(name).and_then(toml::Value::as_str);
    Ok(Some(Credentials {
        url: field("url").ok_or_else(broken)?.to_owned(),
        secret: field("api_key").ok_or_else(broken)?.to_owned(),
        workspace: field("workspace").map(str::parse).transpose().map_err(|_| broken())?,
    }))
}

/// Writes the file, which only its owner can read, in one step.
pub fn write(path: &Path, credentials: &Credentials) -> Result<()> {
    let mut table = toml::Table::new();
    table.insert("url".into(), credentials.url.clone().into());
    table.insert("api_key".into(), credentials.secret.clone().into());
    if let Some(workspace) = credentials.workspace {
        table.insert("workspace".into(), workspace.to_string().into());
    }
    save(path, &table.to_string()).map_err(|error| CommandFailure::io(path.display(), &error))
}

fn save(path: &Path, text: &str) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(dir)?;
    // A temporary file has the mode 0600 from the start.
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Removes the file, and tells whether there was one.
pub fn remove(path: &Path) -> Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(CommandFailure::io(path.display(), &error)),
    }
}

/// Why the file must be protected; `None` if only its owner can read it.
#[cfg(unix)]
pub fn exposure(path: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = fs::metadata(path).ok()?.permissions().mode();
    let path = path.display();
    (mode & 0o077 != 0).then(|| format!("warning: other users can read {path}; protect it with: chmod 600 {path}"))
}

#[cfg(not(unix))]
pub fn exposure(_: &Path) -> Option<String> {
    None
}
