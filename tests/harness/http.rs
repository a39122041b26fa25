//! Raw HTTP requests, each on its own connection, for what the typed client cannot express.

use std::net::SocketAddr;

use serde_json::Value;

use super::{Response, Server, Wire};

/// A request under construction.
#[derive(Clone)]
pub struct Request {
    address: SocketAddr,
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Server {
    /// Starts a request for a path and a query, which are sent verbatim.
    pub fn request(&self, method: &str, target: impl Into<String>) -> Request {
        Request {
            address: self.address(),
            method: method.to_owned(),
            target: target.into(),
            headers: Vec::new(),
            body: None,
        }
    }

    pub fn get(&self, target: impl Into<String>) -> Request {
        self.request("GET", target)
    }

    pub fn post(&self, target: impl Into<String>) -> Request {
        self.request("POST", target)
    }

    pub fn patch(&self, target: impl Into<String>) -> Request {
        self.request("PATCH", target)
    }

    pub fn put(&self, target: impl Into<String>) -> Request {
        self.request("PUT", target)
    }

    pub fn delete(&self, target: impl Into<String>) -> Request {
        self.request("DELETE", target)
    }

    /// Sends raw bytes and reads the response; `None` when the connection ends without one.
    #[track_caller]
    pub fn raw(&self, bytes: impl Into<Vec<u8>>) -> Option<Response> {
        Wire::connect(self.address()).send_aside(bytes.into()).receive("bytes")
    }
}

impl Request {
    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Authenticates with an API key or a session token.
    #[must_use]
    pub fn bearer(self, credential: impl AsRef<str>) -> Self {
        let value = format!("Bearer {}", credential.as_ref());
        self.header("Authorization", value)
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Sends a JSON value.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.text(body.to_string())
    }

    /// Sends this body with the content type of JSON, valid or not.
    #[must_use]
    pub fn text(self, body: impl Into<Vec<u8>>) -> Self {
        self.header("Content-Type", "application/json").bytes(body)
    }

    /// Sends bytes without a content type.
    #[must_use]
    pub fn bytes(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// The bytes of the request on the wire.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\nHost: {}\r\n", self.method, self.target, self.address);
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        let length = self.body.as_ref().map(Vec::len);
        if let Some(length) = length.or_else(|| ["POST", "PUT", "PATCH"].contains(&&*self.method).then_some(0)) {
            text += &format!("Content-Length: {length}\r\n");
        }
        text += "\r\n";
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        bytes
    }

    /// Sends the request on a new connection.
    #[track_caller]
    pub fn send(&self) -> Response {
        let mut wire = Wire::connect(self.address);
        self.send_on(&mut wire)
    }

    /// Sends the request on an open connection.
    #[track_caller]
    pub fn send_on(&self, wire: &mut Wire) -> Response {
        wire.send_aside(self.to_bytes());
        self.receive_on(wire)
    }

    /// Reads the response to this request, which was sent before.
    #[track_caller]
    pub fn receive_on(&self, wire: &mut Wire) -> Response {
        let mut response = wire
            .receive(&self.method)
            .unwrap_or_else(|| panic!("no answer to {} {}", self.method, self.target));
        response.request = format!("{} {}", self.method, self.target);
        response.keeps_the_rules(&self.method)
    }
}
