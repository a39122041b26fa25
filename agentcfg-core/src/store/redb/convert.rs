//! Conversion of a store file without block checksums, which an older release wrote.
//!
//! The records are copied into a new file beside the old one, and the new file then replaces the old one atomically. The old file
//! is read through an [`Overlay`] and is not changed, so a kill at any point leaves one of the two files, undamaged. The next
//! conversion removes the draft of one that was killed.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use redb::backends::FileBackend;
use redb::{Database, ReadableDatabase, ReadableTable};

use super::RedbOptions;
use super::blocks::Blocks;
use super::error::OpenError;
use super::open::{Draft, builder, fault_while_creating, verify_format_untouched};
use super::opened_file::OpenedFile;
use super::overlay::Overlay;
use super::schema::{RECORDS, begin_write, initialise, into_open_error, read_sequence, verify_format};

/// Converts the file at `path` to the form with block checksums. It keeps its permissions and its owner.
///
/// A file whose pages do not match the engine's checksums is refused and not changed, because its damage would get valid block
/// checksums. A damaged record in an undamaged page is copied as it is, and reads of it keep failing.
pub(super) fn convert(path: &Path, options: &RedbOptions) -> Result<(), OpenError> {
    // A rename to a symbolic link would replace the link and leave the old file where the link points to.
    let path = &path.canonicalize()?;
    verify_format_untouched(options, FileBackend::new(File::open(path)?)?)?;
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let opened = OpenedFile::of(path, &file)?;
    let metadata = file.metadata()?;
    let mut old = builder(options).create_with_backend(Overlay::new(FileBackend::new(file)?))?;
    // Until this process got the lock, another one may have converted the file and committed to the new one.
    if opened.lost(0).is_some() {
        return Err(OpenError::Held);
    }
    verify_format(&old)?;
    tracing::info!(
        bytes = metadata.len(),
        "converting the store file to the form with block checksums"
    );
    if !old.check_integrity()? {
        return Err(OpenError::Damaged("pages do not match their checksums".into()));
    }
    Draft::clear(path)?;
    let (draft, file) = Draft::create(path)?;
    keep_access(&file, &metadata)?;
    let new = builder(options).create_with_backend(Blocks::new(FileBackend::new(file)?))?;
    copy(&old, &new)?;
    drop(new);
    draft.replace()?;
    tracing::info!("the store file was converted");
    Ok(())
}

/// Gives a file the owner and the permissions of another one, so that who runs the conversion does not matter.
#[cfg(unix)]
fn keep_access(file: &File, from: &std::fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let now = file.metadata()?;
    if (now.uid(), now.gid()) != (from.uid(), from.gid()) {
        fchown(file, Some(from.uid()), Some(from.gid())).map_err(|error| {
            let message = format!(
                "the converted file cannot get the owner {}:{} of the old one, start once as that user: {error}",
                from.uid(),
                from.gid()
            );
            io::Error::new(error.kind(), message)
        })?;
    }
    file.set_permissions(from.permissions())
}

#[cfg(not(unix))]
fn keep_access(_file: &File, _from: &std::fs::Metadata) -> io::Result<()> {
    Ok(())
}

/// Copies each sealed record as it is, and verifies the order of the keys.
fn copy(old: &Database, new: &Database) -> Result<(), OpenError> {
    let snapshot = old.begin_read().map_err(into_open_error)?;
    let sequence = read_sequence(&snapshot)?;
    let source = snapshot.open_table(RECORDS).map_err(into_open_error)?;
    let transaction = begin_write(new).map_err(fault_while_creating)?;
    initialise(&transaction, sequence).map_err(fault_while_creating)?;
    {
        let mut records = transaction.open_table(RECORDS).map_err(output)?;
        let mut last: Option<Vec<u8>> = None;
        for entry in source.iter().map_err(into_open_error)? {
            let (key, sealed) = entry.map_err(into_open_error)?;
            if last.as_deref().is_some_and(|last| last >= key.value()) {
                return Err(OpenError::Damaged("the keys are not in ascending order".into()));
            }
            records.insert(key.value(), sealed.value()).map_err(output)?;
            last = Some(key.value().to_vec());
        }
    }
    transaction.commit().map_err(output)
}

/// Reports an engine error on the new file as an I/O error: the new file has no old data that could be damaged.
fn output(error: impl std::error::Error) -> OpenError {
    OpenError::Io(io::Error::other(error.to_string()))
}
