//! A whole store as one stream of bytes, whatever engine it is in: the form of backups, and of what
//! moves from one engine to another. It is described with the [embedded store](super::redb#the-form-of-a-backup).
//!
//! Equal stores give equal streams, so a [`Digest`] of the stream tells whether two stores are equal.

use std::fmt;
use std::io::{self, Read, Write};

use sha2::{Digest as _, Sha256};

/// What each backup begins with.
const MAGIC: [u8; 8] = *b"AGENTCFG";

/// The format that is written, and the newest that is read.
pub(super) const FORMAT: u32 = 1;

const RECORD: u8 = 1;
const END: u8 = 0;

/// What is wrong with a stream.
#[derive(Debug)]
pub(super) enum StreamFault {
    /// It could not be read.
    Io(io::Error),
    /// It is of a later format.
    TooNew(u32),
    /// It is not what was written.
    Damaged(String),
}

/// Writes a backup part by part.
pub(super) struct StreamWriter<W> {
    out: W,
    checksum: crc32fast::Hasher,
    count: u64,
}

impl<W: Write> StreamWriter<W> {
    /// Begins a stream.
    pub(super) fn begin(out: W, sequence: u64) -> io::Result<Self> {
        let mut stream = Self {
            out,
            checksum: crc32fast::Hasher::new(),
            count: 0,
        };
        stream.put(&MAGIC)?;
        stream.put(&FORMAT.to_be_bytes())?;
        stream.put(&sequence.to_be_bytes())?;
        Ok(stream)
    }

    /// Adds a record.
    pub(super) fn record(&mut self, key: &[u8], sealed: &[u8]) -> io::Result<()> {
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

    /// Ends the stream; the number of its records.
    pub(super) fn end(mut self) -> io::Result<u64> {
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

/// An encoded key and the envelope under it.
pub(super) type Entry = (Vec<u8>, Vec<u8>);

/// Reads a backup part by part.
pub(super) struct StreamReader<R> {
    input: R,
    checksum: crc32fast::Hasher,
    count: u64,
    last_key: Option<Vec<u8>>,
    /// The version sequence of the store that was backed up.
    pub(super) sequence: u64,
}

impl<R: Read> StreamReader<R> {
    /// Reads the head of a stream.
    pub(super) fn begin(input: R) -> Result<Self, StreamFault> {
        let mut stream = Self {
            input,
            checksum: crc32fast::Hasher::new(),
            count: 0,
            last_key: None,
            sequence: 0,
        };
        if stream.take::<8>()? != MAGIC {
            return Err(StreamFault::Damaged("it does not begin like a backup".into()));
        }
        match u32::from_be_bytes(stream.take()?) {
            FORMAT => {}
            0 => return Err(StreamFault::Damaged("format 0 does not exist".into())),
            newer => return Err(StreamFault::TooNew(newer)),
        }
        stream.sequence = u64::from_be_bytes(stream.take()?);
        Ok(stream)
    }

    /// The next key and envelope; `None` once the end was read and found right.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, StreamFault> {
        match self.take::<1>()? {
            [RECORD] => {}
            [END] => return self.finish().map(|()| None),
            [other] => return Err(self.damaged(format_args!("part {other} does not exist"))),
        }
        let (key_length, length) = (u32::from_be_bytes(self.take()?), u32::from_be_bytes(self.take()?));
        let (key, sealed) = (self.take_long(key_length)?, self.take_long(length)?);
        if self.last_key.as_ref().is_some_and(|last| *last >= key) {
            return Err(self.damaged(format_args!("its key is out of order")));
        }
        self.last_key = Some(key.clone());
        self.count += 1;
        Ok(Some((key, sealed)))
    }

    /// How many records were read.
    #[cfg(feature = "redb")]
    pub(super) fn count(&self) -> u64 {
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
            Ok(_) => Err(StreamFault::Damaged("something follows its end".into())),
            Err(error) => Err(StreamFault::Io(error)),
        }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], StreamFault> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).map_err(|error| self.cut(error))?;
        self.checksum.update(&bytes);
        Ok(bytes)
    }

    /// Reads a part of a length that may be damaged: memory grows with what is there.
    fn take_long(&mut self, length: u32) -> Result<Vec<u8>, StreamFault> {
        let mut bytes = Vec::new();
        let read = self
            .input
            .by_ref()
            .take(length.into())
            .read_to_end(&mut bytes)
            .map_err(StreamFault::Io)?;
        if read < length as usize {
            return Err(self.cut(io::ErrorKind::UnexpectedEof.into()));
        }
        self.checksum.update(&bytes);
        Ok(bytes)
    }

    fn cut(&self, error: io::Error) -> StreamFault {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.damaged(format_args!("it ends too early")),
            _ => StreamFault::Io(error),
        }
    }

    fn damaged(&self, what: std::fmt::Arguments<'_>) -> StreamFault {
        StreamFault::Damaged(format!("after {} records {what}", self.count))
    }
}

/// What tells one stream from another: the SHA-256 of its bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&base16ct::HexDisplay(&self.0), f)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Passes bytes on, in either direction, and computes their digest.
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
    /// Around a reader or a writer.
    pub fn new(inner: T) -> Self {
        Self {
            inner,
            hash: Sha256::new(),
        }
    }

    /// The digest of all bytes that have passed.
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
