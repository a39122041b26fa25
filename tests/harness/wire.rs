//! A raw connection, for bytes that no client would send.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use super::Response;

const TIMEOUT: Duration = Duration::from_secs(20);

/// A connection with the bytes that were read but not yet used.
pub struct Wire {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Wire {
    pub fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).expect("the server accepts connections")
    }

    /// As [`Self::connect`], for servers that may be gone.
    ///
    /// # Errors
    ///
    /// When the server does not accept the connection.
    pub fn try_connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            unread: Vec::new(),
        })
    }

    /// Sends raw bytes. A connection that the server has closed shows in `receive`, not here.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = self.stream.write_all(bytes.as_ref());
        self
    }

    /// Sends bytes on another thread while the test reads: a server may respond before it has read everything.
    pub fn send_aside(&mut self, bytes: Vec<u8>) -> &mut Self {
        let mut stream = self.stream.try_clone().unwrap();
        thread::spawn(move || {
            let _ = stream.write_all(&bytes);
        });
        self
    }

    /// Closes the sending half of the connection.
    pub fn finish(&mut self) -> &mut Self {
        let _ = self.stream.shutdown(Shutdown::Write);
        self
    }

    /// Reads the response to a request with this method; `None` when the connection ends without one.
    #[track_caller]
    pub fn receive(&mut self, method: &str) -> Option<Response> {
        match self.try_receive(method) {
            Ok(response) => Some(response),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset && self.unread.is_empty() => None,
            Err(error) if error.kind() == io::ErrorKind::NotConnected => None,
            Err(error) => panic!("no answer to {method}: {error}"),
        }
    }

    /// As [`Self::receive`], for servers that may be killed within a response.
    ///
    /// # Errors
    ///
    /// `NotConnected` when the connection ended without a response, else what broke it.
    #[track_caller]
    pub fn try_receive(&mut self, method: &str) -> io::Result<Response> {
        let head = loop {
            if let Some(end) = find(&self.unread, b"\r\n\r\n") {
                break self.unread.drain(..end + 4).collect::<Vec<_>>();
            }
            if self.more()? == 0 {
                let text = String::from_utf8_lossy(&self.unread);
                return Err(match text.is_empty() {
                    true => io::ErrorKind::NotConnected.into(),
                    false => io::Error::other(format!("incomplete head: {text:?}")),
                });
            }
        };
        let head = String::from_utf8(head).expect("heads are ASCII");
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status line: {head}"));
        let headers: Vec<_> = lines
            .map(|line| line.split_once(':').unwrap_or_else(|| panic!("no header: {line}")))
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        let mut response = Response {
            request: method.to_owned(),
            status,
            headers,
            body: Vec::new(),
        };
        if method != "HEAD" && !matches!(status, 100..=199 | 204 | 304) {
            if response.header("transfer-encoding") == Some("chunked") {
                self.chunks(&mut response)?;
            } else {
                let length = usize::try_from(response.number("content-length")).unwrap();
                response.body = self.take(length, &response)?;
            }
        }
        Ok(response)
    }

    /// Reads a chunked body to its end.
    #[track_caller]
    fn chunks(&mut self, response: &mut Response) -> io::Result<()> {
        loop {
            let end = loop {
                if let Some(end) = find(&self.unread, b"\r\n") {
                    break end;
                }
                let unread = self.unread.len();
                let more = self.take(unread + 1, response)?;
                self.unread.splice(..0, more);
            };
            let line = self.take(end + 2, response)?;
            let size = std::str::from_utf8(&line[..end])
                .ok()
                .and_then(|size| usize::from_str_radix(size, 16).ok());
            let size = size.unwrap_or_else(|| panic!("no size of a chunk: {line:?}"));
            let chunk = self.take(size + 2, response)?;
            response.body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                return Ok(());
            }
        }
    }

    /// Takes this many bytes of a body.
    #[track_caller]
    fn take(&mut self, length: usize, response: &Response) -> io::Result<Vec<u8>> {
        while self.unread.len() < length {
            if self.more()? == 0 {
                return Err(io::Error::other(format!("cut off: {response:?}")));
            }
        }
        Ok(self.unread.drain(..length).collect())
    }

    /// Whether any bytes arrive within this time.
    pub fn has_answer_within(&mut self, time: Duration) -> bool {
        self.stream.set_read_timeout(Some(time)).unwrap();
        let came = self.more().is_ok();
        self.stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        came
    }

    /// Whether the server has closed the connection.
    pub fn is_closed(&mut self) -> bool {
        match self.more() {
            Ok(count) => count == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    fn more(&mut self) -> io::Result<usize> {
        let mut chunk = [0; 16 << 10];
        let count = self.stream.read(&mut chunk)?;
        self.unread.extend_from_slice(&chunk[..count]);
        Ok(count)
    }
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}
