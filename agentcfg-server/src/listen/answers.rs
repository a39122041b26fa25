//! Responses that do not come from the service: to malformed HTTP, and to calls that panicked.

use std::net::IpAddr;

use bytes::Bytes;
use hyper::Response;
use hyper::header::{self, HeaderMap, HeaderValue};

use super::framing::{Fault, Framing};
use crate::http::Body;
use crate::http::errors::Failure;
use crate::http::request::{RequestIds, sent_id};
use crate::http::response::{FieldValues, complete};
use crate::hyper_internals;

/// The response to a request whose service call panicked.
pub(super) fn panicked(id: HeaderValue) -> Response<Body> {
    let mut response = Failure::internal("a service call panicked").to_response();
    complete(response.headers_mut(), None, id, &mut FieldValues::default());
    response
}

/// The response to a request that breaks a rule of HTTP beyond what hyper checks.
pub(super) fn refused(fault: Fault, headers: &HeaderMap) -> Response<Body> {
    bad_request(fault.message(), headers)
}

/// The response to a request without TLS where TLS is spoken.
pub(super) fn without_tls(headers: &HeaderMap) -> Response<Body> {
    let mut response = bad_request(
        "this address speaks TLS: call it with https:// in place of http://",
        headers,
    );
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
    response
}

fn bad_request(message: &'static str, headers: &HeaderMap) -> Response<Body> {
    let mut response = Failure::bad_request(message).to_response();
    let id = sent_id(headers).cloned();
    let id = id.unwrap_or_else(|| RequestIds::new().next());
    complete(response.headers_mut(), None, id, &mut FieldValues::default());
    response
}

/// The response that replaces a refusal by hyper, which has no body; `None` if `start` is not the start of one.
/// `line_seen` says whether the request line was complete, and `framing` what it breaks, if that is known.
///
/// Call it only while no request was passed to the service: then the status identifies the refusal. `client` is the
/// address that the connection came from, for the log: what such a request says of its client counts for nothing.
pub(super) fn replacement_for(
    start: &[u8],
    line_seen: bool,
    framing: &Framing,
    client: Option<IpAddr>,
) -> Option<Bytes> {
    let too_long = || Failure::uri_too_long("request line must be at most 8192 bytes");
    let failure = match hyper_internals::refusal(start)? {
        400 => Failure::bad_request(framing.fault().map_or("request is not valid HTTP/1.1", Fault::message)),
        431 if line_seen => {
            Failure::headers_too_large("request headers must be at most 100 and at most 16384 bytes in total")
        }
        // 414, or hyper's buffer is full, and the request line alone filled it.
        _ => too_long(),
    };
    let Failure { status, message, .. } = failure;
    let body = format!(r#"{{"error":"{message}"}}"#);
    let id = framing.sent_id().unwrap_or_else(|| RequestIds::new().next());
    let id = id.to_str().unwrap_or_default();
    let client = client.map(|client| tracing::field::display(client.to_canonical()));
    tracing::info!(status = status.as_u16(), request_id = %id, client, "refused a malformed request");
    let reason = status.canonical_reason().unwrap_or_default();
    Some(Bytes::from(format!(
        "HTTP/1.1 {} {reason}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nx-request-id: {id}\r\n\
         x-content-type-options: nosniff\r\nconnection: close\r\n\r\n{body}",
        status.as_u16(),
        body.len(),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hypers_refusals_are_replaced() {
        for other in [
            "",
            "HTTP/1.1 ",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 100 Continue\r\n",
            "HTTP/2 400",
            "garbage",
        ] {
            assert_eq!(
                replacement_for(other.as_bytes(), true, &Framing::default(), None),
                None,
                "{other}"
            );
        }
        let cases = [
            ("400 Bad Request", true, "400"),
            ("431 x", true, "431"),
            ("431 x", false, "414"),
            ("414 x", true, "414"),
        ];
        for (line, seen, status) in cases {
            let answer = replacement_for(
                format!("HTTP/1.1 {line}\r\n").as_bytes(),
                seen,
                &Framing::default(),
                None,
            )
            .unwrap();
            assert!(
                answer.starts_with(format!("HTTP/1.1 {status} ").as_bytes()),
                "{answer:?}"
            );
        }
    }
}
