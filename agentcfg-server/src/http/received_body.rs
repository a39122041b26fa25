//! Reads the body of a request, or discards it.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use hyper::header::{self, HeaderMap};
use memmap2::MmapMut;

use crate::http::BodyTimeout;
use crate::http::byte_budget::{SMALL_BODY, Share};
use crate::http::errors::Failure;

/// Refuses a body whose content type is not JSON.
///
/// # Errors
///
/// 415 for another content type.
pub fn check_json(headers: &HeaderMap) -> Result<(), Failure> {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if headers.get_all(header::CONTENT_TYPE).iter().count() > 1 || !is_json(content_type) {
        let message = "the body must have the header Content-Type: application/json";
        return Err(Failure::unsupported_media_type(message));
    }
    Ok(())
}

fn is_json(content_type: &str) -> bool {
    let media_type = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let subtype = media_type.strip_prefix("application/").unwrap_or_default();
    subtype == "json" || (subtype.len() > "+json".len() && subtype.ends_with("+json"))
}

/// Reads a body of at most so many bytes, which it takes from the budget first.
///
/// # Errors
///
/// 413 for one that is too long, 408 for one that does not come, 400 for one that breaks off, 429 and 503 beyond the
/// budget.
pub(crate) async fn whole_body<B>(body: &mut B, most: usize, share: &mut Share<'_>) -> Result<Bytes, Failure>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error + 'static,
{
    let too_long = || Failure::payload_too_large(format!("the body must be at most {most} bytes"));
    let declared = body.size_hint().exact();
    let declared = match usize::try_from(declared.unwrap_or(body.size_hint().lower())) {
        Ok(length) if length <= most => length,
        _ => return Err(too_long()),
    };
    share.fit(declared)?;
    // A body of unknown length may become as long as allowed. Pages that were never written take no memory.
    let capacity = if body.size_hint().exact().is_some() {
        declared
    } else {
        most
    };
    let mut received = Received::Nothing;
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| broken(&error))?.into_data() else {
            continue;
        };
        length += data.len();
        if length > most {
            return Err(too_long());
        }
        share.fit(length)?;
        received.add(data, capacity)?;
    }
    received.finish()
}

/// Reads and drops the rest of a short body that no endpoint reads, so that the connection can be reused; `false`
/// when there is too much of it.
pub async fn discard<B: Body<Data = Bytes> + Unpin>(body: &mut B) -> bool {
    const SHORT: u64 = 64 << 10;
    if body.is_end_stream() {
        return true;
    }
    // A body of unknown length is not worth waiting for.
    if body.size_hint().exact().is_none_or(|length| length > SHORT) {
        return false;
    }
    loop {
        match body.frame().await {
            Some(Ok(_)) => {}
            Some(Err(_)) => return false,
            None => return true,
        }
    }
}

/// The bytes of a body that have arrived.
enum Received {
    Nothing,
    /// Most bodies come in one piece and need no copy.
    Whole(Bytes),
    /// A small body in a few pieces.
    Small(BytesMut),
    /// A longer body is in pages of its own, which return to the system with the body. The allocator would keep memory
    /// of this size for the process.
    Pages {
        pages: MmapMut,
        length: usize,
    },
}

impl Received {
    fn add(&mut self, data: Bytes, capacity: usize) -> Result<(), Failure> {
        *self = match std::mem::replace(self, Self::Nothing) {
            Self::Nothing if data.len() <= SMALL_BODY || data.len() == capacity => Self::Whole(data),
            Self::Nothing => Self::in_pages(&[&data], capacity)?,
            Self::Whole(first) if first.len() + data.len() > SMALL_BODY => Self::in_pages(&[&first, &data], capacity)?,
            Self::Whole(first) => {
                let mut both = BytesMut::with_capacity(first.len() + data.len());
                both.extend_from_slice(&first);
                both.extend_from_slice(&data);
                Self::Small(both)
            }
            Self::Small(before) if before.len() + data.len() > SMALL_BODY => {
                Self::in_pages(&[&before, &data], capacity)?
            }
            Self::Small(mut before) => {
                before.extend_from_slice(&data);
                Self::Small(before)
            }
            Self::Pages { mut pages, length } => {
                let end = length + data.len();
                pages
                    .get_mut(length..end)
                    .ok_or_else(|| Failure::internal("a body is longer than its pages"))?
                    .copy_from_slice(&data);
                Self::Pages { pages, length: end }
            }
        };
        Ok(())
    }

    fn in_pages(pieces: &[&[u8]], capacity: usize) -> Result<Self, Failure> {
        let mut pages = MmapMut::map_anon(capacity).map_err(no_memory)?;
        let mut length = 0;
        for piece in pieces {
            let end = length + piece.len();
            pages
                .get_mut(length..end)
                .ok_or_else(|| Failure::internal("a body is longer than its pages"))?
                .copy_from_slice(piece);
            length = end;
        }
        Ok(Self::Pages { pages, length })
    }

    fn finish(self) -> Result<Bytes, Failure> {
        Ok(match self {
            Self::Nothing => Bytes::new(),
            Self::Whole(bytes) => bytes,
            Self::Small(bytes) => bytes.freeze(),
            Self::Pages { pages, length } => {
                let pages = pages.make_read_only().map_err(no_memory)?;
                Bytes::from_owner(pages).slice(..length)
            }
        })
    }
}

fn no_memory(cause: std::io::Error) -> Failure {
    Failure {
        retry_after: Some(1),
        ..Failure::unavailable("the server has no memory for this body").because(cause)
    }
}

fn broken(error: &(dyn std::error::Error + 'static)) -> Failure {
    if BodyTimeout::is_in(error) {
        return Failure::request_timeout("the body did not arrive in time");
    }
    Failure::bad_request("the body broke off before its end")
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::{Frame, SizeHint};

    use super::*;
    use crate::http::ByteBudget;

    struct Pieces {
        left: Vec<Bytes>,
        declared: Option<u64>,
    }

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.left.pop().map(|piece| Ok(Frame::data(piece))))
        }

        fn size_hint(&self) -> SizeHint {
            self.declared.map_or_else(SizeHint::default, SizeHint::with_exact)
        }
    }

    async fn receive(sizes: &[usize], is_declared: bool, budget: &ByteBudget) -> Result<Bytes, u16> {
        let content: Vec<u8> = (0..sizes.iter().sum()).map(|at: usize| (at % 251) as u8).collect();
        let mut left = Vec::new();
        let mut rest = Bytes::from(content.clone());
        for size in sizes {
            left.insert(0, rest.split_to(*size));
        }
        let declared = is_declared.then_some(content.len() as u64);
        let mut body = Pieces { left, declared };
        let name = || "ada".to_owned();
        let received = whole_body(&mut body, 200_000, &mut budget.share(&name)).await;
        if let Ok(received) = &received {
            assert!(*received == content, "{sizes:?}");
        }
        received.map_err(|failure| failure.status.as_u16())
    }

    #[test]
    fn json_content_types() {
        for good in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/merge-patch+json",
        ] {
            assert!(is_json(good), "{good}");
        }
        for bad in [
            "",
            "text/plain",
            "text/json",
            "application/+json",
            "application/jsonx",
            "json",
        ] {
            assert!(!is_json(bad), "{bad}");
        }
    }

    #[tokio::test]
    async fn bodies_are_received_whole_however_they_are_cut() {
        let budget = ByteBudget::of_bodies(ByteBudget::SERVER_MB << 20, ByteBudget::CALLER_MB << 20);
        for sizes in [
            &[][..],
            &[5],
            &[5, 6, 7],
            &[100_000],
            &[10_000, 10_000],
            &[10, 10, 50_000, 1],
            &[70_000, 70_000, 60_000],
        ] {
            for is_declared in [true, false] {
                receive(sizes, is_declared, &budget).await.unwrap();
            }
        }
        assert_eq!(receive(&[200_001], true, &budget).await, Err(413));
        assert_eq!(receive(&[100_000, 100_001], false, &budget).await, Err(413));
    }

    #[tokio::test]
    async fn a_body_beyond_the_budget_is_refused() {
        for is_declared in [true, false] {
            let sizes = [20_000, 20_000, 20_000];
            let small = ByteBudget::of_bodies(50_000, 100_000);
            assert_eq!(receive(&sizes, is_declared, &small).await, Err(503));
            let small = ByteBudget::of_bodies(100_000, 50_000);
            assert_eq!(receive(&sizes, is_declared, &small).await, Err(429));
            assert!(receive(&sizes[..2], is_declared, &small).await.is_ok());
        }
    }
}
