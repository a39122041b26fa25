//! HTTP requests of the tests.

use std::time::Duration;

use agentcfg_server::{Outbound, OutboundOptions};
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response};
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(20);

/// Sends a request and reads the whole response.
pub async fn send(request: hyper::http::request::Builder, body: impl Into<Bytes>) -> Response<Bytes> {
    let request: Request<Full<Bytes>> = request.body(Full::from(body.into())).unwrap();
    let outbound = Outbound::new(&OutboundOptions::default()).unwrap();
    outbound.send_idempotent(request, 1 << 20, TIMEOUT).await.unwrap()
}

pub async fn get(url: &str) -> Response<Bytes> {
    send(Request::get(url), "").await
}

/// Posts a form, authenticated as a client of the identity provider.
pub async fn form(url: &str, client: &str, fields: &[(&str, &str)]) -> Response<Bytes> {
    let body: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("{name}={}", escape(value)))
        .collect();
    let request = Request::post(url)
        .header("authorization", format!("Basic {client}"))
        .header("content-type", "application/x-www-form-urlencoded");
    send(request, body.join("&")).await
}

pub fn json(response: &Response<Bytes>) -> Value {
    serde_json::from_slice(response.body()).unwrap_or_else(|_| panic!("no JSON: {response:?}"))
}

pub fn escape(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
