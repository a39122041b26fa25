//! The PROXY protocol, versions 1 and 2: a proxy that passes connections on says first who its client is.
//!
//! Only trusted proxies speak it. A header from another peer is a malformed request.

use std::io;
use std::net::IpAddr;

use futures_util::future::{BoxFuture, Either};
use ppp::{HeaderResult, v1, v2};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use super::demand::{Demand, closing};
use super::limits::Limits;

/// The longest header of version 1, with its line end.
const LONGEST_TEXT: usize = 107;
/// The longest part of a header of version 2 after its first 16 bytes. Addresses take 216 at most, and the rest is not
/// read.
const LONGEST_REST: usize = 4096;
/// The part of a header of version 2 that has the length of the rest.
const HEAD: usize = 16;
/// The least that every header has.
const FIRST: usize = v2::PROTOCOL_PREFIX.len();

/// Runs a connection with the address of its client, which the header of a trusted proxy names.
pub(super) fn run<F>(
    stream: TcpStream,
    limits: &Limits,
    demand: &watch::Receiver<Demand>,
    connection: impl FnOnce(TcpStream, Option<IpAddr>) -> F + Send + 'static,
) -> Either<F, BoxFuture<'static, ()>>
where
    F: Future<Output = ()> + Send + 'static,
{
    let peer = stream.peer_addr().ok().map(|address| address.ip());
    let speaks = |peer: IpAddr| limits.proxy_protocol.has(peer.to_canonical());
    if !peer.is_some_and(speaks) {
        return Either::Left(connection(stream, peer));
    }
    let (time, demand, mut stream) = (limits.header_timeout, demand.clone(), stream);
    Either::Right(Box::pin(async move {
        let client = tokio::select! {
            biased;
            client = timeout(time, client(&mut stream)) => client,
            // No request has arrived yet.
            () = closing(demand) => return,
        };
        match client.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(client) => connection(stream, client.or(peer)).await,
            Err(error) => {
                tracing::warn!(%error, peer = peer.map(tracing::field::display), "a trusted proxy sent no header of the PROXY protocol, see the setting proxy_protocol");
            }
        }
    }))
}

/// Reads the header and nothing behind it. `None` where the proxy speaks for itself, as in its health checks.
async fn client(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<IpAddr>> {
    let invalid = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    let mut header = vec![0; FIRST];
    stream.read_exact(&mut header).await?;
    if header == v2::PROTOCOL_PREFIX {
        header.resize(HEAD, 0);
        stream.read_exact(&mut header[FIRST..]).await?;
        let rest = usize::from(u16::from_be_bytes([header[FIRST + 2], header[FIRST + 3]]));
        if rest > LONGEST_REST {
            return invalid("the header is too long");
        }
        header.resize(HEAD + rest, 0);
        stream.read_exact(&mut header[HEAD..]).await?;
    } else if header.starts_with(v1::PROTOCOL_PREFIX.as_bytes()) {
        while !header.ends_with(v1::PROTOCOL_SUFFIX.as_bytes()) {
            if header.len() == LONGEST_TEXT {
                return invalid("the header is too long");
            }
            header.push(stream.read_u8().await?);
        }
    } else {
        return invalid("the connection begins with something else");
    }
    match HeaderResult::parse(&header) {
        HeaderResult::V1(Ok(header)) => Ok(match header.addresses {
            v1::Addresses::Tcp4(addresses) => Some(addresses.source_address.into()),
            v1::Addresses::Tcp6(addresses) => Some(addresses.source_address.into()),
            v1::Addresses::Unknown => None,
        }),
        HeaderResult::V2(Ok(header)) => Ok(match (header.command, header.addresses) {
            (v2::Command::Proxy, v2::Addresses::IPv4(addresses)) => Some(addresses.source_address.into()),
            (v2::Command::Proxy, v2::Addresses::IPv6(addresses)) => Some(addresses.source_address.into()),
            _ => None,
        }),
        HeaderResult::V1(Err(error)) => invalid(&error.to_string()),
        HeaderResult::V2(Err(error)) => invalid(&error.to_string()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A header of version 2 with this command, family and rest.
    fn binary(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [v2::PROTOCOL_PREFIX, &[command, family], &length, rest].concat()
    }

    #[tokio::test]
    async fn a_header_names_the_client_and_nothing_behind_it_is_read() {
        let v4 = [192, 0, 2, 7, 10, 0, 0, 1, 0x30, 0x39, 0, 80];
        let with_more = [&v4[..], &[0x04, 0, 2, 1, 2]].concat();
        let v6 = [&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[9], &[0; 16], &[1, 1, 1, 1]].concat();
        for (header, client_address) in [
            (binary(0x21, 0x11, &v4), Some("192.0.2.7")),
            (binary(0x21, 0x11, &with_more), Some("192.0.2.7")),
            (binary(0x21, 0x21, &v6), Some("2001:db8::9")),
            (binary(0x20, 0x00, &[]), None),
            (binary(0x20, 0x11, &v4), None),
            (
                b"PROXY TCP4 192.0.2.7 10.0.0.1 12345 80\r\n".to_vec(),
                Some("192.0.2.7"),
            ),
            (b"PROXY TCP6 2001:db8::9 ::1 1 1\r\n".to_vec(), Some("2001:db8::9")),
            (b"PROXY UNKNOWN\r\n".to_vec(), None),
        ] {
            let sent = [&header[..], b"GET / HTTP/1.1\r\n"].concat();
            let mut rest = &sent[..];
            let found = client(&mut rest).await.unwrap();
            assert_eq!(found.map(|found| found.to_string()).as_deref(), client_address);
            assert_eq!(rest, b"GET / HTTP/1.1\r\n");
        }
    }

    #[tokio::test]
    async fn what_is_no_header_is_refused() {
        for sent in [
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.7\r\n and more".to_vec(),
            [b"PROXY TCP4 ".to_vec(), vec![b'1'; 200]].concat(),
            binary(0x31, 0x11, &[0; 12]),
            binary(0x21, 0x11, &[0; 3]),
            binary(0x21, 0x11, &[0; LONGEST_REST + 1]),
            binary(0x21, 0x11, &[0; 12])[..20].to_vec(),
            b"PRO".to_vec(),
        ] {
            assert!(client(&mut &sent[..]).await.is_err(), "{sent:?}");
        }
    }
}
