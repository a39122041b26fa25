//! A framed stream of bytes: its end is explicit, so that a broken transfer is detected.
//!
//! `d <length: u32> <bytes>` carries data, `e <total: u64>` ends the transfer, `x <length: u32> <message>` aborts it.
//! Numbers are big-endian.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::ControlError;

const DATA: u8 = b'd';
const END: u8 = b'e';
const FAILED: u8 = b'x';

/// Bytes of data in one frame.
const FRAME: usize = 64 * 1024;

/// Sends what `produce` writes, then the end, or the reason why there is none.
pub(super) fn send(
    out: &mut dyn Write,
    stopped: &AtomicBool,
    produce: &dyn Fn(&mut dyn Write) -> io::Result<()>,
) -> io::Result<u64> {
    let mut frames = Frames { out, stopped, total: 0 };
    let mut buffered = io::BufWriter::with_capacity(FRAME, &mut frames);
    let produced = produce(&mut buffered).and_then(|()| buffered.flush());
    // The rest of the buffer belongs to a transfer that failed.
    let _ = buffered.into_parts();
    let total = frames.total;
    match produced {
        Ok(()) => {
            out.write_all(&[END])?;
            out.write_all(&total.to_be_bytes())?;
            out.flush()?;
            Ok(total)
        }
        Err(error) => {
            refuse(out, &error.to_string())?;
            Err(error)
        }
    }
}

/// Sends a failure.
pub(super) fn refuse(out: &mut dyn Write, message: &str) -> io::Result<()> {
    let message = &message.as_bytes()[..message.len().min(FRAME)];
    head(out, FAILED, message.len())?;
    out.write_all(message)?;
    out.flush()
}

/// Writes the received data to `out` and returns its length.
pub(super) fn receive(stream: &mut dyn Read, out: &mut dyn Write) -> Result<u64, ControlError> {
    let mut total = 0;
    let mut data = vec![0; FRAME];
    loop {
        match u8::from_be_bytes(number(stream)?) {
            DATA => {
                let part = part(stream, &mut data)?;
                out.write_all(part).map_err(ControlError::Output)?;
                total += part.len() as u64;
            }
            END if u64::from_be_bytes(number(stream)?) == total => return Ok(total),
            END => return Err(ControlError::Broken),
            FAILED => {
                let message = String::from_utf8_lossy(part(stream, &mut data)?).into_owned();
                return Err(ControlError::Server(message));
            }
            _ => return Err(ControlError::Protocol),
        }
    }
}

struct Frames<'a> {
    out: &'a mut dyn Write,
    stopped: &'a AtomicBool,
    total: u64,
}

impl Write for Frames<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(io::Error::other("the server is shutting down"));
        }
        let bytes = &bytes[..bytes.len().min(FRAME)];
        if !bytes.is_empty() {
            head(self.out, DATA, bytes.len())?;
            self.out.write_all(bytes)?;
            self.total += bytes.len() as u64;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn head(out: &mut dyn Write, kind: u8, length: usize) -> io::Result<()> {
    let length = u32::try_from(length).map_err(io::Error::other)?;
    out.write_all(&[kind])?;
    out.write_all(&length.to_be_bytes())
}

fn part<'a>(stream: &mut dyn Read, space: &'a mut [u8]) -> Result<&'a [u8], ControlError> {
    let length = u32::from_be_bytes(number(stream)?) as usize;
    let part = space.get_mut(..length).ok_or(ControlError::Protocol)?;
    stream.read_exact(part).map_err(|_| ControlError::Broken)?;
    Ok(part)
}

fn number<const N: usize>(stream: &mut dyn Read) -> Result<[u8; N], ControlError> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).map_err(|_| ControlError::Broken)?;
    Ok(bytes)
}
