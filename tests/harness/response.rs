//! A response, checked against the invariants of all responses.

use std::fmt;
use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::Value;

/// A received response.
#[derive(Clone)]
pub struct Response {
    /// The request, for messages.
    pub request: String,
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    /// Asserts a status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// Asserts an error whose message contains each of `said`.
    #[track_caller]
    pub fn refused(self, status: u16, said: &[&str]) -> Self {
        let response = self.expect(status);
        let message = response.error();
        for said in said {
            assert!(message.contains(said), "should say {said:?}: {response:?}");
        }
        response
    }

    /// The value of a header, which may occur at most once.
    #[track_caller]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self
            .headers
            .iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} came twice: {self:?}");
        value
    }

    /// The value of a required header.
    #[track_caller]
    pub fn need(&self, name: &str) -> &str {
        self.header(name)
            .unwrap_or_else(|| panic!("{name} is missing: {self:?}"))
    }

    /// The value of a numeric header.
    #[track_caller]
    pub fn number(&self, name: &str) -> i64 {
        let text = self.need(name);
        text.parse().unwrap_or_else(|_| panic!("{name} is no number: {self:?}"))
    }

    /// The decompressed body.
    #[track_caller]
    pub fn plain_body(&self) -> Vec<u8> {
        let Some(coding) = self.header("content-encoding") else {
            return self.body.clone();
        };
        assert_eq!(coding, "gzip", "{self:?}");
        let mut plain = Vec::new();
        let read = GzDecoder::new(&*self.body).read_to_end(&mut plain);
        read.unwrap_or_else(|error| panic!("no gzip ({error}): {self:?}"));
        plain
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.plain_body()).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }

    /// The message of an error, whose body must contain nothing else; or that of a model call, in the form of the
    /// provider.
    #[track_caller]
    pub fn error(&self) -> String {
        let body = self.json();
        let of_provider = message_of_provider(&body);
        let message = of_provider.or(body["error"].as_str());
        let message = message.filter(|message| !message.trim().is_empty());
        let alone = of_provider.is_some() || body.as_object().is_some_and(|fields| fields.len() == 1);
        match message {
            Some(message) if alone => message.to_owned(),
            _ => panic!("an error is one message: {self:?}"),
        }
    }

    /// Whether it says that a change may or may not have been made. Such an answer has no `Retry-After`.
    #[track_caller]
    pub fn is_unknown(&self) -> bool {
        self.status == 503 && self.error().contains("may have been made")
    }

    /// The body as JSON, line by line.
    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        let body = self.plain_body();
        let text = std::str::from_utf8(&body).expect("the body is UTF-8");
        assert!(text.ends_with('\n'), "{self:?}");
        let read = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        text.lines().map(read).collect()
    }

    /// The entity tag.
    #[track_caller]
    pub fn etag(&self) -> String {
        self.need("etag").to_owned()
    }

    /// Asserts the invariants of every response.
    #[track_caller]
    pub(super) fn keeps_the_rules(self, method: &str) -> Self {
        let id = self.need("x-request-id");
        assert!(
            (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()),
            "{self:?}"
        );
        assert_ne!(self.status, 500, "{self:?}");
        if method != "OPTIONS" && self.request.contains("/api/agents/model-calls/") && self.status < 300 {
            let policy = self.header("content-security-policy");
            assert_eq!(policy, Some("sandbox"), "a provider's answer: {self:?}");
        } else if self.header("content-security-policy").is_some() {
            assert!(!self.request.contains("/api/"), "a page: {self:?}");
        } else if method == "HEAD" || matches!(self.status, 202 | 204 | 304) {
            assert!(self.body.is_empty(), "{self:?}");
        } else if self.status == 200 && self.need("content-type") == "application/x-ndjson" {
            self.lines();
        } else {
            assert_eq!(self.need("content-type"), "application/json", "{self:?}");
            let is_rpc = self.json().get("jsonrpc").is_some();
            if self.status >= 300 && !is_rpc {
                self.error();
            }
        }
        assert_eq!(
            self.header("www-authenticate"),
            (self.status == 401).then_some("Bearer"),
            "{self:?}"
        );
        assert_eq!(self.header("allow").is_some(), self.status == 405, "{self:?}");
        if matches!(self.status, 429 | 503) && !self.is_unknown() {
            assert!(self.number("retry-after") >= 1, "{self:?}");
        }
        self
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}", self.request, self.status)?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {value}")?;
        }
        let body = String::from_utf8_lossy(&self.body);
        write!(f, "\n{}", body.chars().take(2000).collect::<String>())
    }
}

/// The message of a refusal in the form of OpenAI or of Anthropic, with all of its members and no others.
pub fn message_of_provider(body: &Value) -> Option<&str> {
    let members = |value: &Value| -> Vec<String> {
        let members = value.as_object().map(|members| members.keys().cloned().collect());
        members.unwrap_or_default()
    };
    let error = &body["error"];
    let is_openai = members(body) == ["error"] && members(error) == ["message", "type", "param", "code"];
    let is_anthropic = members(body) == ["type", "error", "request_id"]
        && members(error) == ["type", "message"]
        && body["type"] == "error";
    (is_openai || is_anthropic).then(|| error["message"].as_str())?
}
