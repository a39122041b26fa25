//! A connection of the pool.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

type Transport = MaybeHttpsStream<TokioIo<TcpStream>>;

/// A connection, and whether a proxy at its end forwards each request by the URL in it.
pub(crate) struct Stream {
    transport: Transport,
    is_forwarded: bool,
}

impl Stream {
    /// A connection to the server, which may go through a tunnel.
    pub(crate) fn new(transport: Transport) -> Self {
        Self {
            transport,
            is_forwarded: false,
        }
    }

    /// A connection to a proxy that forwards requests.
    pub(crate) fn to_forwarder(transport: Transport) -> Self {
        Self {
            transport,
            is_forwarded: true,
        }
    }

    fn transport(self: Pin<&mut Self>) -> Pin<&mut Transport> {
        Pin::new(&mut self.get_mut().transport)
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        self.transport.connected().proxy(self.is_forwarded)
    }
}

impl Read for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        self.transport().poll_read(cx, buffer)
    }
}

impl Write for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.transport().poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.transport().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.transport().poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.transport.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.transport().poll_write_vectored(cx, parts)
    }
}
