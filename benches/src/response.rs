//! The parts of an HTTP response that a load generator needs: its length and its status.

use std::io;

const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// The error for bytes that are not the expected response.
pub fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not the response that was expected")
}

/// The length of the whole response, once the buffer holds its head. The response must have a
/// `content-length`.
pub fn whole_length(buffer: &[u8]) -> io::Result<Option<usize>> {
    let Some(end) = buffer
        .windows(END_OF_HEAD.len())
        .position(|window| window == END_OF_HEAD)
    else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&buffer[..end]).map_err(|_| broken())?;
    let length: Option<usize> = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().ok())
            .flatten()
    });
    Ok(Some(end + END_OF_HEAD.len() + length.ok_or_else(broken)?))
}

/// The status of a response whose head is in the buffer.
pub fn status(buffer: &[u8]) -> io::Result<u16> {
    buffer
        .get(9..12)
        .and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
        .ok_or_else(broken)
}
