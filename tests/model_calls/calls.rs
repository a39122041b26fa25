//! Raw model calls, with responses that are read piece by piece.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use agentcfg_server::{Outbound, OutboundBody, OutboundOptions};
use agentcfg_tests::harness::message_of_provider;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Request, Response};
use serde_json::Value;

/// The timeout of every expected event.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// A call under construction.
pub struct Call(Request<Full<Bytes>>);

impl Call {
    pub fn to(address: SocketAddr, target: &str) -> Self {
        let request = Request::post(format!("http://{address}{target}"))
            .body(Full::default())
            .unwrap();
        Self(request)
    }

    pub fn bearer(self, credential: &str) -> Self {
        self.header("authorization", &format!("Bearer {credential}"))
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).unwrap();
        self.0.headers_mut().append(HeaderName::from_static(name), value);
        self
    }

    /// Sends this body with the content type of JSON, valid or not.
    pub fn text(self, body: impl Into<Bytes>) -> Self {
        self.header("content-type", "application/json").bytes(body)
    }

    pub fn json(self, body: &Value) -> Self {
        self.text(body.to_string())
    }

    pub fn bytes(mut self, body: impl Into<Bytes>) -> Self {
        *self.0.body_mut() = Full::new(body.into());
        self
    }

    /// Adds a query parameter.
    pub fn and(mut self, parameter: &str) -> Self {
        *self.0.uri_mut() = format!("{}&{parameter}", self.0.uri()).parse().unwrap();
        self
    }

    /// Names another agent than the default.
    pub fn of(mut self, agent: &str) -> Self {
        let uri = self.0.uri().to_string();
        let (start, _) = uri.split_once("agent_id=").unwrap();
        *self.0.uri_mut() = format!("{start}agent_id={agent}").parse().unwrap();
        self
    }

    /// Sends the call on its own connection, which ends with the response.
    pub async fn send(self) -> Answer {
        let outbound = Outbound::new(&OutboundOptions::default()).unwrap();
        let answering = tokio::time::timeout(TIMEOUT, outbound.send(self.0));
        let response = answering.await.expect("an answer in time").expect("an answer");
        Answer(response)
    }

    /// Sends the call, and asserts an error of this service whose message contains each of `said`.
    pub async fn refused(self, status: u16, said: &[&str]) -> Whole {
        let answer = self.send().await.whole().await;
        assert_eq!(answer.status, status, "{answer:?}");
        let body = answer.json();
        let message = message_of_provider(&body).unwrap_or_else(|| panic!("{answer:?}"));
        assert!(said.iter().all(|said| message.contains(said)), "{answer:?}");
        answer
    }
}

/// A response whose body may still be arriving.
pub struct Answer(Response<OutboundBody>);

impl Answer {
    pub fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.0.headers().get(name).and_then(|value| value.to_str().ok())
    }

    /// The next piece: an error when the connection broke, `None` at a regular end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, hyper::Error> {
        let coming = tokio::time::timeout(TIMEOUT, self.0.body_mut().frame());
        match coming.await.expect("a piece in time") {
            Some(frame) => frame.map(|frame| frame.into_data().ok()),
            None => Ok(None),
        }
    }

    /// Reads until exactly these bytes have arrived.
    pub async fn expect(&mut self, wanted: impl AsRef<[u8]>) {
        let wanted = wanted.as_ref();
        let mut came = Vec::new();
        while came.len() < wanted.len() {
            let piece = self.next().await.expect("an unbroken stream");
            came.extend_from_slice(&piece.unwrap_or_else(|| panic!("ended after {}", came.escape_ascii())));
        }
        assert_eq!(came.escape_ascii().to_string(), wanted.escape_ascii().to_string());
    }

    /// Reads to the end, which must be a regular one.
    pub async fn whole(self) -> Whole {
        let (head, body) = self.0.into_parts();
        let coming = tokio::time::timeout(TIMEOUT, body.collect());
        let body = coming.await.expect("an end in time").expect("a clean end").to_bytes();
        Whole {
            status: head.status.as_u16(),
            headers: head
                .headers
                .iter()
                .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
                .collect(),
            body,
        }
    }
}

/// A complete response.
pub struct Whole {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

impl Whole {
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} twice: {self:?}");
        value
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl fmt::Debug for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(2000)]);
        write!(f, "{} {:?}\n{body}", self.status, self.headers)
    }
}
