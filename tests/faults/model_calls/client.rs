//! A caller that keeps what it got of an answer that breaks.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The time for one piece of an answer. The server gives up a provider much sooner.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What came of an answer.
#[derive(Debug, Default)]
pub struct Got {
    /// The status; `None` where the connection broke before a head.
    pub status: Option<u16>,
    head: String,
    pub body: String,
    /// Whether the answer was whole by its framing.
    pub is_whole: bool,
}

impl Got {
    /// The value of a header field, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.find_map(|(known, value)| known.eq_ignore_ascii_case(name).then_some(value))
    }
}

/// A caller with one connection, which is opened again when the server has closed it.
pub struct Caller {
    address: SocketAddr,
    stream: Option<TcpStream>,
    unread: Vec<u8>,
}

impl Caller {
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            stream: None,
            unread: Vec::new(),
        }
    }

    /// Sends a request, and reads its answer as far as it comes.
    pub fn call(&mut self, request: &[u8]) -> Got {
        let mut got = Got::default();
        // What came before an error is kept, and the rest of the text is the answer.
        match self.exchange(request, &mut got) {
            Ok(()) => got.is_whole = true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => panic!("no end of an answer: {got:?}"),
            Err(_) => self.stream = None,
        }
        got
    }

    fn exchange(&mut self, request: &[u8], got: &mut Got) -> io::Result<()> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.address)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            (self.stream, self.unread) = (Some(stream), Vec::new());
        }
        self.stream.as_mut().expect("a connection").write_all(request)?;
        got.head = self.line_ending_with(b"\r\n\r\n")?;
        let status = got.head.get(9..12).and_then(|status| status.parse().ok());
        got.status = Some(status.unwrap_or_else(|| panic!("no status line: {got:?}")));
        if let Some(length) = got.header("content-length") {
            let length = length.parse().unwrap();
            return self.take(length, &mut got.body);
        }
        assert_eq!(got.header("transfer-encoding"), Some("chunked"), "{got:?}");
        loop {
            let size = self.line_ending_with(b"\r\n")?;
            let size = usize::from_str_radix(size.trim_end(), 16).expect("the size of a chunk");
            self.take(size, &mut got.body)?;
            self.take(2, &mut String::new())?;
            if size == 0 {
                return Ok(());
            }
        }
    }

    fn line_ending_with(&mut self, end: &[u8]) -> io::Result<String> {
        loop {
            if let Some(at) = self.unread.windows(end.len()).position(|window| window == end) {
                return Ok(text(self.unread.drain(..at + end.len())));
            }
            self.more()?;
        }
    }

    /// Adds this many bytes to a text, or those that came before the connection broke.
    fn take(&mut self, length: usize, into: &mut String) -> io::Result<()> {
        let mut left = length;
        loop {
            let here = left.min(self.unread.len());
            into.push_str(&text(self.unread.drain(..here)));
            left -= here;
            if left == 0 {
                return Ok(());
            }
            self.more()?;
        }
    }

    fn more(&mut self) -> io::Result<()> {
        let mut chunk = [0; 16 << 10];
        let count = self.stream.as_mut().expect("a connection").read(&mut chunk)?;
        self.unread.extend_from_slice(&chunk[..count]);
        match count {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn text(bytes: impl Iterator<Item = u8>) -> String {
    String::from_utf8(bytes.collect()).expect("the tests send ASCII")
}
