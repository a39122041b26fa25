//! The file of `agentcfg login` and `agentcfg context`: servers with their credentials, by name.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use agentcfg_client::model::WorkspaceId;
use etcetera::BaseStrategy;

use crate::failure::{Code, CommandFailure, Result};

/// The context of `agentcfg login` where no other one is in use.
pub const DEFAULT: &str = "default";

/// The key of the context in use.
const CURRENT: &str = "context";
/// The key of the table of the contexts other than the default one, whose fields are those of the file.
const NAMED: &str = "contexts";

/// A server, a credential for it, and the workspace that was named or that the credential has alone.
#[derive(Clone)]
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

/// The content of the file.
#[derive(Debug)]
pub struct Contexts {
    /// The context in use. It may be missing, as the default one before the first login.
    current: String,
    by_name: BTreeMap<String, Credentials>,
}

impl Default for Contexts {
    fn default() -> Self {
        Self {
            current: DEFAULT.to_owned(),
            by_name: BTreeMap::new(),
        }
    }
}

impl Contexts {
    /// The name of the context in use.
    pub fn current(&self) -> &str {
        &self.current
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Credentials)> {
        self.by_name
            .iter()
            .map(|(name, credentials)| (name.as_str(), credentials))
    }

    /// The name and the content of a context, or of the one in use. `None` for the default one before the first login.
    ///
    /// # Errors
    ///
    /// For a context of another name that is not there.
    pub fn get<'a>(&'a self, name: Option<&'a str>) -> Result<Option<(&'a str, &'a Credentials)>> {
        let name = name.unwrap_or(&self.current);
        match self.by_name.get(name) {
            Some(found) => Ok(Some((name, found))),
            None if name == DEFAULT => Ok(None),
            None => Err(self.missing(name)),
        }
    }

    /// The failure of a command that needs a context which is not there.
    pub fn missing(&self, name: &str) -> CommandFailure {
        let known: Vec<_> = self.by_name.keys().map(String::as_str).collect();
        let hint = match known.is_empty() {
            true => "`agentcfg context add NAME --url URL` adds one.".to_owned(),
            false => format!("There are: {}. `agentcfg context add` adds one.", known.join(", ")),
        };
        CommandFailure::with_code(Code::NotFound, format_args!("there is no context {name}")).hint(hint)
    }

    /// Uses a context from now on.
    pub fn select(&mut self, name: &str) -> Result<()> {
        self.get(Some(name))?;
        name.clone_into(&mut self.current);
        Ok(())
    }

    pub fn set(&mut self, name: &str, credentials: Credentials) {
        self.by_name.insert(name.to_owned(), credentials);
    }

    /// Removes a context, and tells whether there was one. After the one in use it is the default one.
    pub fn remove(&mut self, name: &str) -> bool {
        if self.current == name {
            DEFAULT.clone_into(&mut self.current);
        }
        self.by_name.remove(name).is_some()
    }
}

/// Checks the name of a context.
pub fn check_name(name: &str) -> Result<()> {
    let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    match (1..=50).contains(&name.len()) && name.chars().all(is_valid) {
        true => Ok(()),
        false => Err(CommandFailure::error(
            "the name of a context must be 1 to 50 of a-z, 0-9, - and _",
        )),
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

/// Reads the file; without one there are no contexts.
pub fn read(path: &Path) -> Result<Contexts> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Contexts::default()),
        Err(error) => return Err(CommandFailure::io(path.display(), &error)),
    };
    // The error of the parser would quote the line, which may be the one with the secret.
    parse(&text).ok_or_else(|| {
        let message = format!("{} is not a file of `agentcfg login`", path.display());
        CommandFailure::error(message).hint("Sign in again with `agentcfg login`.")
    })
}

fn parse(text: &str) -> Option<Contexts> {
    let mut table: toml::Table = text.parse().ok()?;
    let mut contexts = Contexts::default();
    match table.remove(CURRENT) {
        None => {}
        Some(current) => current.as_str()?.clone_into(&mut contexts.current),
    }
    match table.remove(NAMED) {
        None => {}
        Some(toml::Value::Table(named)) => {
            for (name, fields) in named {
                contexts.set(&name, of_table(fields.as_table()?)?);
            }
        }
        Some(_) => return None,
    }
    if !table.is_empty() {
        contexts.set(DEFAULT, of_table(&table)?);
    }
    Some(contexts)
}

fn of_table(table: &toml::Table) -> Option<Credentials> {
    let field = |name: &str| table.get(name).and_then(toml::Value::as_str);
    Some(Credentials {
        url: field("url")?.to_owned(),
        secret: field("api_key")?.to_owned(),
        workspace: field("workspace").map(str::parse).transpose().ok()?,
    })
}

fn to_table(credentials: &Credentials) -> toml::Table {
    let mut table = toml::Table::new();
    table.insert("url".into(), credentials.url.clone().into());
    table.insert("api_key".into(), credentials.secret.clone().into());
    if let Some(workspace) = credentials.workspace {
        table.insert("workspace".into(), workspace.to_string().into());
    }
    table
}

/// Writes the file, which only its owner can read, in one step. Without a context there is none.
pub fn write(path: &Path, contexts: &Contexts) -> Result<()> {
    let failed = |error: io::Error| CommandFailure::io(path.display(), &error);
    if contexts.by_name.is_empty() {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        };
    }
    let mut table = toml::Table::new();
    let mut named = toml::Table::new();
    for (name, credentials) in contexts.iter() {
        match name {
            DEFAULT => table.extend(to_table(credentials)),
            _ => drop(named.insert(name.to_owned(), to_table(credentials).into())),
        }
    }
    if contexts.current != DEFAULT {
        table.insert(CURRENT.into(), contexts.current.clone().into());
    }
    if !named.is_empty() {
        table.insert(NAMED.into(), named.into());
    }
    save(path, &table.to_string()).map_err(failed)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(url: &str) -> Credentials {
        Credentials {
            url: url.to_owned(),
            secret: "svc_test_canary".to_owned(),
            workspace: None,
        }
    }

    #[test]
    fn contexts_are_kept_beside_the_login() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agentcfg/credentials.toml");
        let mut contexts = read(&path).unwrap();
        assert_eq!((contexts.current(), contexts.iter().count()), (DEFAULT, 0));
        contexts.set("staging", credentials("http://staging"));
        contexts.set(DEFAULT, credentials("http://login"));
        contexts.select("staging").unwrap();
        write(&path, &contexts).unwrap();

        let mut read_back = read(&path).unwrap();
        assert_eq!(read_back.get(None).unwrap().unwrap().1.url, "http://staging");
        assert_eq!(read_back.get(Some(DEFAULT)).unwrap().unwrap().1.url, "http://login");
        let missing = read_back.get(Some("other")).unwrap_err();
        assert_eq!(
            (missing.code(), missing.to_string().as_str()),
            (Code::NotFound, "there is no context other")
        );
        assert!(!format!("{read_back:?}").contains("canary"));
        assert!(read_back.remove("staging") && !read_back.remove("staging"));
        assert_eq!(read_back.current(), DEFAULT);
        assert!(read_back.remove(DEFAULT));
        write(&path, &read_back).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn the_file_of_a_login_alone_is_read_and_written_as_ever() {
        let text = "url = \"http://login\"\napi_key = \"svc_test_x\"\n";
        let contexts = parse(text).unwrap();
        assert_eq!(contexts.get(None).unwrap().unwrap().1.url, "http://login");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("credentials.toml");
        write(&path, &contexts).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        for broken in [
            "url = 5",
            "api_key = \"x\"",
            "contexts = 5",
            "context = 5",
            "[contexts]\nx = 5",
            "x",
        ] {
            assert!(parse(broken).is_none(), "{broken}");
        }
    }

    #[test]
    fn a_name_is_one_of_a_key_in_the_file() {
        for name in ["staging", "eu-1", "a_b", "7"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "Staging", "a.b", "a b", "é", &"a".repeat(51)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
