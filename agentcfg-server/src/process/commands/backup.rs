//! `backup`: a copy of the store in a file, or on standard output.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, IsTerminal, PipeWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::error::CommandError;
use super::preconditions::require_named_directory;
use super::program::program;
use super::stdout::{note, say};
use super::store::{EnvVars, check_hint, directory_with_store};
use crate::process::backend::{BackupError, RestoreError, open_store_to_read, verify_backup};
use crate::process::cli::BackupArgs;
use crate::process::config::{Config, Flags};
use crate::process::control::{self, ControlError};
use crate::process::datadir::{DataDir, DataDirError};
use crate::process::files::{self, directory_of};

pub(super) fn run(args: &BackupArgs, environment: impl EnvVars) -> Result<ExitCode, CommandError> {
    let config = Config::load(Flags::from(args), environment)?;
    require_named_directory(&config)?;
    // A running server can still copy a store whose file was removed.
    let running = DataDir::open(&config.data).ok();
    let running = running.filter(|dir| !config.is_shared() && dir.socket_path().exists());
    let dir = match running {
        Some(dir) => dir,
        None => directory_with_store(&config, args.data.is_some())?,
    };
    match args.out.as_os_str() == STANDARD_OUTPUT {
        true => to_standard_output(args, &dir, config.cache_mb),
        false => to_file(args, &dir, config.cache_mb),
    }
}

/// The name that stands for standard output.
const STANDARD_OUTPUT: &str = "-";

fn to_file(args: &BackupArgs, dir: &DataDir, cache_mb: u64) -> Result<ExitCode, CommandError> {
    let mut draft = Draft::create(&args.out)?;
    write(args, dir, cache_mb, &mut draft.file)?;
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

/// Writes a copy that is verified on its way: a broken one ends with an error, after which what was written must be
/// discarded.
fn to_standard_output(args: &BackupArgs, dir: &DataDir, cache_mb: u64) -> Result<ExitCode, CommandError> {
    let out = io::stdout();
    if out.is_terminal() {
        return Err("--out - writes the copy to standard output, which is a terminal; redirect it".into());
    }
    let (read, pipe) = io::pipe()?;
    let verification = thread::spawn(move || {
        let copy = decompressed(read).map_err(RestoreError::Input);
        copy.and_then(verify_backup).map_err(|error| error.to_string())
    });
    let mut tee = Tee {
        out: out.lock(),
        pipe: Some(pipe),
        bytes: 0,
    };
    let written = write(args, dir, cache_mb, &mut tee);
    let bytes = tee.bytes;
    drop(tee);
    let verified = verification
        .join()
        .unwrap_or_else(|_| Err("the verification ended".to_owned()));
    written?;
    verified.map_err(|error| format!("the copy is broken, discard it: {error}"))?;
    // Standard output is the copy.
    note!("wrote {bytes} bytes to standard output");
    Ok(ExitCode::SUCCESS)
}

/// A copy of what goes to standard output for its verification.
struct Tee<W> {
    out: W,
    /// `None` once the verification has failed, which says why.
    pipe: Option<PipeWriter>,
    bytes: u64,
}

impl<W: Write> Write for Tee<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        if let Some(pipe) = &mut self.pipe
            && pipe.write_all(&bytes[..written]).is_err()
        {
            self.pipe = None;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes the copy of the store, from its file or by the server that runs on the directory.
fn write(args: &BackupArgs, dir: &DataDir, cache_mb: u64, out: &mut dyn Write) -> Result<(), CommandError> {
    if !args.compress {
        return write_plain(args, dir, cache_mb, out);
    }
    let mut out = GzEncoder::new(out, Compression::default());
    write_plain(args, dir, cache_mb, &mut out)?;
    let flushed = out.finish().and_then(Write::flush);
    flushed.map_err(|error| unwritable(&args.out, &error).into())
}

fn write_plain(args: &BackupArgs, dir: &DataDir, cache_mb: u64, out: &mut dyn Write) -> Result<(), CommandError> {
    match dir.lock_to_read() {
        Ok(_lock) => {
            dir.require_store()?;
            let store = open_store_to_read(dir, cache_mb)?;
            store.backup(out).map_err(|error| match error {
                BackupError::Output(error) => unwritable(&args.out, &error),
                error => format!("{error}; {}", check_hint(dir)),
            })?;
        }
        // A running server has the store open, so it makes the copy.
        Err(DataDirError::Locked { path, holder }) => {
            control::request_backup(dir, out).map_err(|error| match error {
                ControlError::Output(source) => unwritable(&args.out, &source),
                error => format!(
                    "{} is in use by {holder}, and it did not give a copy: {error}; if the store is damaged, stop the server, and {}",
                    path.display(),
                    check_hint(dir)
                ),
            })?;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

fn exists_already(out: &Path) -> String {
    format!(
        "{} exists already and is left as it is; name a new file with --out",
        out.display()
    )
}

/// Reads a backup that may be compressed.
///
/// # Errors
///
/// When its beginning cannot be read.
pub(super) fn decompressed(input: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    const GZIP: &[u8] = &[0x1f, 0x8b];
    let mut input = BufReader::new(input);
    // A plain backup begins with a name.
    let is_compressed = input.fill_buf()?.starts_with(GZIP);
    Ok(match is_compressed {
        true => Box::new(MultiGzDecoder::new(input)),
        false => Box::new(input),
    })
}

/// The message for a backup that cannot be written, with advice for the operator.
fn unwritable(out: &Path, error: &io::Error) -> String {
    let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let (place, advice) = match out.as_os_str() == STANDARD_OUTPUT {
        true if error.kind() == io::ErrorKind::BrokenPipe => ("standard output".into(), "what reads it has ended; "),
        true if is_full => ("standard output".into(), "free some space there; "),
        true => ("standard output".into(), ""),
        false if is_full => (
            out.to_string_lossy(),
            "free some space there, or name another file with --out; ",
        ),
        false => (out.to_string_lossy(), "name another file with --out; "),
    };
    format!("cannot write {place}: {error}; {advice}the store was not changed")
}

/// A temporary file beside its final place; it is removed on drop unless it is kept.
struct Draft {
    path: PathBuf,
    file: File,
}

impl Draft {
    fn create(out: &Path) -> Result<Self, CommandError> {
        if out.try_exists().map_err(|error| unwritable(out, &error))? {
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
                _ => unwritable(out, &error),
            }
        })?;
        Ok(Self { path, file })
    }

    /// Reads the written backup back and verifies it.
    fn verify(&mut self) -> Result<(), CommandError> {
        self.file.flush()?;
        let written = decompressed(File::open(&self.path)?)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_that_cannot_be_written_names_the_place_and_the_way_out() {
        let said = |out: &str, kind: io::ErrorKind| unwritable(Path::new(out), &kind.into());
        let closed = said("-", io::ErrorKind::BrokenPipe);
        assert!(closed.starts_with("cannot write standard output: "), "{closed}");
        assert!(
            closed.contains("what reads it has ended") && !closed.contains("space"),
            "{closed}"
        );
        let full = said("/mnt/copy", io::ErrorKind::StorageFull);
        assert!(
            full.starts_with("cannot write /mnt/copy: ") && full.contains("free some space"),
            "{full}"
        );
        let other = said("/mnt/copy", io::ErrorKind::PermissionDenied);
        assert!(!other.contains("space") && other.contains("another file"), "{other}");
    }
}
