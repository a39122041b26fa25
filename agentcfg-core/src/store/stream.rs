//! A whole store as one byte stream, independent of the engine: the format of backups and of migrations
//! between engines. The [embedded store](super::redb#the-form-of-a-backup) documents it.
//!
//! Equal stores give equal streams, so comparing [`Digest`]s of streams compares stores.

use std::fmt;
use std::io::{self, Read, Write};

use sha2::{Digest as _, Sha256};

use super::{BUILD, FORMAT, Key, OtherFormat};

/// The first bytes of each backup.
const MAGIC: [u8; 8] = *b"AGENTCFG";

const RECORD: u8 = 1;
const END: u8 = 0;

/// The bytes of a build in the head of a stream or a file: its text and zeros.
pub type BuildField = [u8; 32];

/// The field of this build.
pub const BUILD_FIELD: BuildField = {
    let mut field = [0; 32];
    let (text, _) = field.split_at_mut(BUILD.len());
    text.copy_from_slice(BUILD.as_bytes());
    field
};

/// The refusal of another format, whose head has this field where a build is named.
pub(super) fn other_format(found: u32, field: &BuildField) -> OtherFormat {
    /// Before it, other bytes were there.
    const FIRST_WITH_BUILD: u32 = 2;
    let text = field.split(|byte| *byte == 0).next().unwrap_or_default();
    let is_build = found >= FIRST_WITH_BUILD && !text.is_empty() && text.iter().all(u8::is_ascii_graphic);
    OtherFormat {
        found,
        build: is_build.then(|| String::from_utf8_lossy(text).into_owned()),
    }
}

/// Why a [`StreamReader`] cannot read a stream. [`TransferError`](super::TransferError) is made from it.
#[derive(Debug)]
pub enum StreamFault {
    /// Reading the input failed.
    Io(io::Error),
    /// The stream has another format.
    Other(OtherFormat),
    /// The stream is not a backup, is truncated, or was modified.
    Damaged(String),
}

/// Writes a whole store record by record, in the order of the encoded keys.
///
/// ```
/// use agentcfg_core::store::{Key, Kind, StreamReader, StreamWriter, envelope};
/// let key = Key::global("store", Kind::Meta, "name").encode();
/// let mut bytes = Vec::new();
/// let mut stream = StreamWriter::begin(&mut bytes, 42)?;
/// stream.record(&key, &envelope::seal(&key, 7, b"\"north\""))?;
/// assert_eq!(stream.end()?, 1);
///
/// let mut stream = StreamReader::begin(&bytes[..]).map_err(agentcfg_core::store::TransferError::from)?;
/// assert_eq!(stream.sequence, 42);
/// while let Some((key, sealed)) = stream.next().map_err(agentcfg_core::store::TransferError::from)? {
///     assert_eq!(envelope::open(&key, &sealed)?.version, 7);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct StreamWriter<W> {
    out: W,
    checksum: crc32fast::Hasher,
    count: u64,
    /// The key that is left out: a store that is made from the stream gets an epoch of its own.
    epoch: Vec<u8>,
}

impl<W> fmt::Debug for StreamWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("StreamWriter");
        shown.field("count", &self.count).finish_non_exhaustive()
    }
}

impl<W: Write> StreamWriter<W> {
    /// Writes the head of a stream, with the greatest version that the store has assigned.
    ///
    /// # Errors
    ///
    /// Errors of writing to `out`.
    pub fn begin(out: W, sequence: u64) -> io::Result<Self> {
        Self::begin_as(out, sequence, &BUILD_FIELD)
    }

    /// Writes the head of a stream that names another build, to compare it with one that this build made.
    ///
    /// # Errors
    ///
    /// Errors of writing to `out`.
    pub fn begin_as(out: W, sequence: u64, build: &BuildField) -> io::Result<Self> {
        let mut stream = Self {
            out,
            checksum: crc32fast::Hasher::new(),
            count: 0,
            epoch: Key::epoch().encode(),
        };
        stream.put(&MAGIC)?;
        stream.put(&FORMAT.to_be_bytes())?;
        stream.put(build)?;
        stream.put(&sequence.to_be_bytes())?;
        Ok(stream)
    }

    /// Adds a record, as its encoded key and its [envelope](super::envelope), unless it is the store's epoch.
    ///
    /// # Errors
    ///
    /// Errors of writing to the output.
    pub fn record(&mut self, key: &[u8], sealed: &[u8]) -> io::Result<()> {
        if key == self.epoch {
            return Ok(());
        }
        let length = |part: &[u8]| {
            u32::try_from(part.len()).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a record is too long"))
        };
        self.put(&[RECORD])?;
        self.put(&length(key)?.to_be_bytes())?;
        self.put(&length(sealed)?.to_be_bytes())?;
        self.put(key)?;
        self.put(sealed)?;
        self.count += 1;
        Ok(())
    }

    /// Writes the end of the stream; returns the number of its records.
    ///
    /// # Errors
    ///
    /// Errors of writing to the output.
    pub fn end(mut self) -> io::Result<u64> {
        self.put(&[END])?;
        self.put(&self.count.to_be_bytes())?;
        let checksum = self.checksum.clone().finalize();
        self.out.write_all(&checksum.to_be_bytes())?;
        self.out.flush()?;
        Ok(self.count)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum.update(bytes);
        self.out.write_all(bytes)
    }
}

/// An encoded key and its envelope.
type Entry = (Vec<u8>, Vec<u8>);

/// Reads what a [`StreamWriter`] wrote, record by record.
pub struct StreamReader<R> {
    input: R,
    checksum: crc32fast::Hasher,
    count: u64,
    last_key: Option<Vec<u8>>,
    /// The build that made the stream.
    pub build: BuildField,
    /// The greatest version that the store had assigned which the stream was made of.
    pub sequence: u64,
}

impl<R> fmt::Debug for StreamReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("StreamReader");
        shown.field("count", &self.count).finish_non_exhaustive()
    }
}

impl<R: Read> StreamReader<R> {
    /// Reads the head of a stream.
    ///
    /// # Errors
    ///
    /// [`StreamFault`].
    pub fn begin(input: R) -> Result<Self, StreamFault> {
        let mut stream = Self {
            input,
            checksum: crc32fast::Hasher::new(),
            count: 0,
            last_key: None,
            build: BUILD_FIELD,
            sequence: 0,
        };
        let begins_as_backup = match stream.take::<8>() {
            Ok(bytes) => bytes == MAGIC,
            Err(StreamFault::Damaged(_)) => false,
            Err(fault) => return Err(fault),
        };
        if !begins_as_backup {
            return Err(StreamFault::Damaged(
                "it does not begin with the bytes of a backup".into(),
            ));
        }
        let found = u32::from_be_bytes(stream.take()?);
        stream.build = stream.take()?;
        if found != FORMAT {
            return Err(StreamFault::Other(other_format(found, &stream.build)));
        }
        stream.sequence = u64::from_be_bytes(stream.take()?);
        Ok(stream)
    }

    /// The next key and envelope; `None` after the end was read and verified.
    ///
    /// # Errors
    ///
    /// [`StreamFault`].
    #[allow(clippy::should_implement_trait, reason = "a stream that failed has no next record")]
    pub fn next(&mut self) -> Result<Option<Entry>, StreamFault> {
        match self.take::<1>()? {
            [RECORD] => {}
            [END] => return self.finish().map(|()| None),
            [other] => return Err(self.damaged(format_args!("a part has the unknown type {other}"))),
        }
        let (key_length, length) = (u32::from_be_bytes(self.take()?), u32::from_be_bytes(self.take()?));
        let (key, sealed) = (self.take_long(key_length)?, self.take_long(length)?);
        if self.last_key.as_ref().is_some_and(|last| *last >= key) {
            return Err(self.damaged(format_args!("a key is out of order")));
        }
        self.last_key = Some(key.clone());
        self.count += 1;
        Ok(Some((key, sealed)))
    }

    /// The number of records read so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    fn finish(&mut self) -> Result<(), StreamFault> {
        let count = u64::from_be_bytes(self.take()?);
        let expected = self.checksum.clone().finalize();
        if u32::from_be_bytes(self.take()?) != expected {
            return Err(StreamFault::Damaged("the checksum at its end does not match".into()));
        }
        if count != self.count {
            return Err(StreamFault::Damaged(format!(
                "it should have {count} records and has {}",
                self.count
            )));
        }
        match self.input.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(StreamFault::Damaged("bytes follow its end".into())),
            Err(error) => Err(StreamFault::Io(error)),
        }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], StreamFault> {
        let mut bytes = [0; N];
        self.input
            .read_exact(&mut bytes)
            .map_err(|error| self.truncated(error))?;
        self.checksum.update(&bytes);
        Ok(bytes)
    }

    /// Reads a part whose length field may be damaged: the buffer grows with the bytes read, not with
    /// the claimed length.
    fn take_long(&mut self, length: u32) -> Result<Vec<u8>, StreamFault> {
        let mut bytes = Vec::new();
        let read = self
            .input
            .by_ref()
            .take(length.into())
            .read_to_end(&mut bytes)
            .map_err(StreamFault::Io)?;
        if read < length as usize {
            return Err(self.truncated(io::ErrorKind::UnexpectedEof.into()));
        }
        self.checksum.update(&bytes);
        Ok(bytes)
    }

    fn truncated(&self, error: io::Error) -> StreamFault {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.damaged(format_args!("it ends too early")),
            _ => StreamFault::Io(error),
        }
    }

    fn damaged(&self, what: std::fmt::Arguments<'_>) -> StreamFault {
        StreamFault::Damaged(format!("after {} records: {what}", self.count))
    }
}

/// The SHA-256 of a stream's bytes.
///
/// ```
/// use agentcfg_core::store::Digesting;
/// let nothing = Digesting::new(std::io::empty()).digest();
/// assert_eq!(nothing.to_string().len(), 64);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::hex::encode(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Wraps a reader or a writer and computes the digest of the bytes that pass through.
///
/// ```
/// use std::io::Write;
///
/// use agentcfg_core::store::Digesting;
///
/// let mut sink = Digesting::new(std::io::sink());
/// sink.write_all(b"abc")?;
/// assert!(sink.digest().to_string().starts_with("ba7816bf"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Digesting<T> {
    inner: T,
    hash: Sha256,
}

impl<T> Digesting<T> {
    /// Wraps a reader or a writer.
    ///
    /// ```
    /// use agentcfg_core::store::Digesting;
    /// let mut from = Digesting::new(&b"abc"[..]);
    /// let copied = std::io::copy(&mut from, &mut std::io::sink())?;
    /// assert_eq!(copied, 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new(inner: T) -> Self {
        Self {
            inner,
            hash: Sha256::new(),
        }
    }

    /// The digest of all bytes so far.
    ///
    /// ```
    /// use std::io::Write;
    /// use agentcfg_core::store::Digesting;
    /// let (mut one, mut other) = (Digesting::new(std::io::sink()), Digesting::new(Vec::new()));
    /// one.write_all(b"abc")?;
    /// other.write_all(b"abc")?;
    /// assert_eq!(one.digest(), other.digest());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn digest(&self) -> Digest {
        Digest(self.hash.clone().finalize().into())
    }
}

impl<T: Write> Write for Digesting<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<T: Read> Read for Digesting<T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.hash.update(&bytes[..read]);
        Ok(read)
    }
}
