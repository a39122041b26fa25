//! A request as the endpoint methods describe it, and as it is sent.

use agentcfg_core::model::{AgentId, Expected, IdRef, Message, Precondition, Tag, WorkspaceId};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH, USER_AGENT,
};
use hyper::{HeaderMap, Method, Request, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use crate::Error;
use crate::retry::Effect;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("agentcfg-client/", env!("CARGO_PKG_VERSION")));
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// A request before it is bound to a server and a credential.
pub(crate) struct Call {
    method: Method,
    target: String,
    headers: HeaderMap,
    body: Bytes,
    effect: Effect,
    is_dry_run: bool,
    fault: Option<Error>,
}

impl Call {
    /// A request that only reads.
    pub(crate) fn get(path: &'static str) -> Self {
        Self::new(Method::GET, path, Effect::Idempotent)
    }

    pub(crate) fn post(path: &'static str) -> Self {
        Self::new(Method::POST, path, Effect::NotIdempotent)
    }

    pub(crate) fn put(path: &'static str) -> Self {
        Self::new(Method::PUT, path, Effect::NotIdempotent)
    }

    pub(crate) fn patch(path: &'static str) -> Self {
        Self::new(Method::PATCH, path, Effect::NotIdempotent)
    }

    pub(crate) fn delete(path: &'static str) -> Self {
        Self::new(Method::DELETE, path, Effect::NotIdempotent)
    }

    fn new(method: Method, path: &'static str, effect: Effect) -> Self {
        Self {
            method,
            target: path.to_owned(),
            headers: HeaderMap::from_iter([(ACCEPT, JSON), (USER_AGENT, AGENT)]),
            body: Bytes::new(),
            effect,
            is_dry_run: false,
            fault: None,
        }
    }

    /// Marks the request as idempotent, so that it may be retried after an unknown outcome.
    pub(crate) fn idempotent(mut self) -> Self {
        self.effect = Effect::Idempotent;
        self
    }

    /// With `true`, asks what the change would do. The request then changes nothing and may be retried.
    pub(crate) fn dry_run(mut self, dry_run: bool) -> Self {
        self.is_dry_run = dry_run;
        match dry_run {
            true => self.query("dry_run", true).idempotent(),
            false => self,
        }
    }

    /// Asks for server-sent events in place of JSON.
    pub(crate) fn events(mut self) -> Self {
        self.headers.insert(ACCEPT, EVENTS);
        self
    }

    /// Adds a query parameter.
    pub(crate) fn query(mut self, name: &'static str, value: impl ToString) -> Self {
        self.target.push(if self.target.contains('?') { '&' } else { '?' });
        self.target.push_str(name);
        self.target.push('=');
        self.target.extend(utf8_percent_encode(&value.to_string(), RESERVED));
        self
    }

    /// Adds a query parameter if there is a value.
    pub(crate) fn query_if(self, name: &'static str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Names an agent; `workspace` may be `None` when the credential belongs to exactly one workspace.
    pub(crate) fn agent(self, workspace: Option<WorkspaceId>, agent_id: IdRef<'_, AgentId>) -> Self {
        self.query_if("workspace_id", workspace)
            .query("agent_id", agent_id.as_str())
    }

    /// Says why a change is made.
    pub(crate) fn message(self, message: Option<&Message>) -> Self {
        self.query_if("message", message)
    }

    /// Selects a page of a list.
    pub(crate) fn page(self, offset: u64, limit: Option<u32>) -> Self {
        self.query_if("offset", (offset > 0).then_some(offset))
            .query_if("limit", limit)
    }

    pub(crate) fn json(mut self, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(bytes) => self.body = bytes.into(),
            Err(error) => self.fault = Some(Error::input(format!("the body cannot be written as JSON: {error}"))),
        }
        self.headers.insert(CONTENT_TYPE, JSON);
        self
    }

    pub(crate) fn if_match(self, condition: &Precondition) -> Self {
        match condition {
            Precondition::None => self,
            Precondition::Exists => self.header(IF_MATCH, "*"),
            // No record matches an empty list of tags, and none matches the empty tag.
            Precondition::OneOf(tags) if tags.is_empty() => self.header(IF_MATCH, "\"\""),
            Precondition::OneOf(tags) => {
                let tags: Vec<String> = tags.iter().map(entity_tag).collect();
                self.header(IF_MATCH, &tags.join(", "))
            }
        }
    }

    pub(crate) fn if_none_match(self, tag: Tag) -> Self {
        self.header(IF_NONE_MATCH, &entity_tag(&tag.into()))
    }

    fn header(mut self, name: HeaderName, value: &str) -> Self {
        match HeaderValue::from_str(value) {
            Ok(value) => {
                self.headers.insert(name, value);
            }
            Err(_) => {
                self.fault = Some(Error::input(format!(
                    "{name} holds a character that no header may have"
                )))
            }
        }
        self
    }

    /// Binds the request to a server and a credential.
    ///
    /// # Errors
    ///
    /// When an argument is not valid in a URL or a header.
    pub(crate) fn prepare(self, base: &str, credential: Option<&HeaderValue>) -> Result<Prepared, Error> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let uri = Uri::try_from(format!("{base}{}", self.target))
            .map_err(|error| Error::input(format!("the arguments make no valid URL: {error}")))?;
        let mut headers = self.headers;
        if let Some(credential) = credential {
            headers.insert(AUTHORIZATION, credential.clone());
        }
        Ok(Prepared {
            uri,
            headers,
            body: self.body,
            effect: self.effect,
            changes: self.method != Method::GET && !self.is_dry_run,
            method: self.method,
        })
    }
}

/// A request that can be sent more than once.
pub(crate) struct Prepared {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
    effect: Effect,
    changes: bool,
}

impl Prepared {
    pub(crate) fn effect(&self) -> Effect {
        self.effect
    }

    #[cfg(feature = "tracing")]
    pub(crate) fn method(&self) -> &str {
        self.method.as_str()
    }

    /// The path of the URL, without the query.
    #[cfg(feature = "tracing")]
    pub(crate) fn path(&self) -> &str {
        self.uri.path()
    }

    /// Whether the request asks for a change.
    pub(crate) fn changes(&self) -> bool {
        self.changes
    }

    pub(crate) fn to_http(&self) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}

/// Everything but what RFC 3986 calls unreserved is percent-encoded, so that all servers decode a value in the same
/// way.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A version as it stands in a header.
fn entity_tag(expected: &Expected) -> String {
    match expected {
        Expected::Tag(tag) => format!("\"{tag}\""),
        Expected::Unknown(text) => text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(call: Call) -> String {
        let prepared = call.prepare("https://host/agentcfg", None).unwrap();
        prepared.uri.to_string()
    }

    #[test]
    fn query_values_are_percent_encoded() {
        let call = Call::get("/x").query("user_id", "a b+c&d=é/🦀?#%~").query("n", 3);
        assert_eq!(
            target(call),
            "https://host/agentcfg/x?user_id=a%20b%2Bc%26d%3D%C3%A9%2F%F0%9F%A6%80%3F%23%25~&n=3"
        );
        assert_eq!(
            target(Call::get("/x").query_if("n", None::<u32>)),
            "https://host/agentcfg/x"
        );
    }

    #[test]
    fn conditions_become_headers() {
        let header = |condition: &Precondition| {
            let call = Call::delete("/x").if_match(condition);
            call.headers
                .get(IF_MATCH)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(header(&Precondition::None), None);
        assert_eq!(header(&Precondition::Exists).as_deref(), Some("*"));
        assert_eq!(header(&Precondition::OneOf(vec![])).as_deref(), Some("\"\""));
        let two = Precondition::OneOf(vec!["k3j9x0ab-a1".into(), "W/\"a2\"".into()]);
        assert_eq!(header(&two).as_deref(), Some("\"k3j9x0ab-a1\", W/\"a2\""));
        assert_eq!(
            header(&Precondition::matches(Tag::UNKNOWN)).as_deref(),
            Some("\"00000000-u0\"")
        );
        for as_it_came in [
            "\"k3j9x0ab-a1\"",
            "\"k3j9x0ab-a1-gzip\"",
            "W/\"k3j9x0ab-a1\"",
            "\"\"",
            "\"",
            "a1",
        ] {
            assert_eq!(header(&Precondition::matches(as_it_came)).as_deref(), Some(as_it_came));
        }
    }

    #[test]
    fn an_argument_that_cannot_be_sent_is_refused_before_sending() {
        let refused = |call: Call| call.prepare("https://host", None).err().unwrap().to_string();
        let split = Precondition::matches("\"a\r\nx: y\"");
        assert_eq!(
            refused(Call::delete("/x").if_match(&split)),
            "if-match holds a character that no header may have"
        );
        let long = "x".repeat(70_000);
        assert!(refused(Call::get("/x").query("user_id", long)).starts_with("the arguments make no valid URL"));
    }
}
