//! `backup` and `check`: commands on the store as a whole.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::error::CommandError;
use super::preconditions::require_named_directory;
use super::program::program;
use super::stdout::say;
use crate::process::backend::{
    self, BackendError, BackupError, DatabaseLocation, OpenError, open_store_to_read, verify_backup,
};
use crate::process::cli::{BackupArgs, CheckArgs};
use crate::process::config::{Config, Flags};
use crate::process::control::{self, ControlError};
use crate::process::datadir::{DataDir, DataDirError};
use crate::process::files::{self, directory_of};

/// The environment variables, which tests leave out.
pub(super) trait Environment: IntoIterator<Item = (OsString, OsString)> {}

impl<I: IntoIterator<Item = (OsString, OsString)>> Environment for I {}

pub(super) fn backup(args: &BackupArgs, environment: impl Environment) -> Result<ExitCode, CommandError> {
    let config = Config::load(Flags::from(args), environment)?;
    require_named_directory(&config)?;
    // A running server can still copy a store whose file was removed.
    let running = DataDir::open(&config.data).ok();
    let running = running.filter(|dir| !config.is_shared() && dir.socket_path().exists());
    let dir = match running {
        Some(dir) => dir,
        None => directory_with_store(&config, args.data.is_some())?,
    };
    let mut draft = Draft::create(&args.out)?;
    match dir.lock_to_read() {
        Ok(_lock) => {
            dir.require_store()?;
            let store = open_store_to_read(&dir, config.cache_mb)?;
            store.backup(&mut draft.file).map_err(|error| match error {
                BackupError::Output(_) => format!("{error}; {OTHER_OUT}"),
                error => format!("{error}; {}", check_hint(&dir)),
            })?;
        }
        // A running server has the store open, so it makes the copy.
        Err(DataDirError::Locked { path, holder }) => {
            control::request_backup(&dir, &mut draft.file).map_err(|error| match error {
                ControlError::Output(source) => format!("cannot write {}: {source}; {OTHER_OUT}", args.out.display()),
                error => format!(
                    "{} is in use by {holder}, and it did not give a copy: {error}; if the store is damaged, stop the server, and {}",
                    path.display(),
                    check_hint(&dir)
                ),
            })?;
        }
        Err(error) => return Err(error.into()),
    }
    draft.verify()?;
    let bytes = draft.keep(&args.out).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists_already(&args.out),
        _ => format!("cannot write {}: {error}", args.out.display()),
    })?;
    say!(
        "wrote {bytes} bytes to {out}\n\
         put it back with: {program} restore --from {out} --data NEW_DIR",
        out = args.out.display(),
        program = program()
    );
    Ok(ExitCode::SUCCESS)
}

fn exists_already(out: &Path) -> String {
    format!(
        "{} exists already and is left as it is; name a new file with --out",
        out.display()
    )
}

/// The advice for a backup that cannot be written.
const OTHER_OUT: &str = "free some space there, or name another file with --out; the store was not changed";

/// The advice to check a store.
fn check_hint(dir: &DataDir) -> String {
    format!("{} check --data {} says what is wrong", program(), dir.path().display())
}

pub(super) fn check(args: &CheckArgs, environment: impl Environment) -> Result<ExitCode, CommandError> {
    let config = Config::load(Flags::from(args), environment)?;
    require_named_directory(&config)?;
    let dir = directory_with_store(&config, args.data.is_some())?;
    let _lock = dir.lock_to_read()?;
    let report = backend::check(dir.store_path()).map_err(|error| match error {
        OpenError::Damaged(_) => format!(
            "the store in {} is not sound: {error}; restore a backup into a new directory with `agentcfg-server restore`",
            dir.path().display()
        ),
        // The error does not concern the store itself.
        source => BackendError::in_dir(&dir, source).to_string(),
    })?;
    for problem in &report.problems {
        say!("{problem}");
    }
    for (workspace, left) in &report.removals {
        say!(
            "the workspace {workspace} was deleted, and {left} records of it are left; a server removes them once it runs"
        );
    }
    let records: u64 = report.records.values().sum();
    if report.is_sound() {
        say!("sound: {records} records in {}", dir.path().display());
        return Ok(ExitCode::SUCCESS);
    }
    say!(
        "{} problems, {records} sound records in {}; restore a backup into a new directory with `agentcfg-server restore`",
        report.problems.len(),
        dir.path().display()
    );
    Ok(ExitCode::FAILURE)
}

/// The data directory, which must have a store. With `database_url` or `etcd_endpoints` the store is in the database,
/// unless the command line names a directory that has one, such as from before a migration.
fn directory_with_store(config: &Config, is_named: bool) -> Result<DataDir, CommandError> {
    let dir = DataDir::open(&config.data).and_then(|dir| dir.require_store().map(|()| dir));
    match (dir, DatabaseLocation::of(config)) {
        (Ok(dir), None) => Ok(dir),
        (Ok(dir), Some(_)) if is_named => Ok(dir),
        (Err(error), None) => Err(error.into()),
        (Err(error), Some(location)) if is_named => {
            Err(format!("{error}; {}, and {}", location.is_set(), location.other_tools()).into())
        }
        (_, Some(location)) => Err(format!("{}, and {}", location.is_set(), location.other_tools()).into()),
    }
}

/// A temporary file beside its final place; it is removed on drop unless it is kept.
struct Draft {
    path: PathBuf,
    file: File,
}

impl Draft {
    fn create(out: &Path) -> Result<Self, CommandError> {
        if out.try_exists()? {
            return Err(exists_already(out).into());
        }
        // The name contains the process id, and the file must not exist, so no other file is overwritten.
        let mut path = out.as_os_str().to_owned();
        path.push(format!(".{}.partial", std::process::id()));
        let path = PathBuf::from(path);
        // Only the owner may read the file: it has names, prompts and hashes of keys.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(|error| {
            let dir = directory_of(out);
            match error.kind() {
                io::ErrorKind::NotFound => format!(
                    "cannot write {}: {} does not exist; create it, or name another file with --out",
                    out.display(),
                    dir.display()
                ),
                _ => format!("cannot write {}: {error}", out.display()),
            }
        })?;
        Ok(Self { path, file })
    }

    /// Reads the written backup back and verifies it.
    fn verify(&mut self) -> Result<(), CommandError> {
        self.file.flush()?;
        let written = File::open(&self.path)?;
        verify_backup(written)
            .map(drop)
            .map_err(|error| format!("the written backup cannot be read back and was removed: {error}").into())
    }

    /// Gives the file its final name, once all of it is on disk.
    fn keep(mut self, out: &Path) -> io::Result<u64> {
        self.file.flush()?;
        self.file.sync_all()?;
        let bytes = self.file.metadata()?.len();
        files::publish(&self.path, out)?;
        Ok(bytes)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
