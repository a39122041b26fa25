//! JSON-RPC messages: reading a message and its revision, and writing the answer.

use agentcfg_core::validate::{quoted, read_json};
use agentcfg_core::{Error, ErrorKind};
use base64ct::{Base64, Encoding};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::server_info::{LEGACY, MODERN, server_info, supported_versions};
use super::written_definition;
use crate::http::Body;
use crate::http::errors::Failure;

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const INTERNAL_ERROR: i32 = -32603;
const HEADER_MISMATCH: i32 = -32020;
const UNSUPPORTED_VERSION: i32 = -32022;
/// The error code in the revisions with a handshake.
const RESOURCE_NOT_FOUND: i32 = -32002;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// Header fields that repeat a part of the message.
#[derive(Debug)]
pub struct Mirrored<'a> {
    /// `MCP-Protocol-Version`.
    pub version: Option<&'a str>,
    /// `Mcp-Method`.
    pub method: Option<&'a str>,
    /// `Mcp-Name`.
    pub name: Option<&'a str>,
}

/// Which kind of revision a message is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// Stateless: each request has its metadata.
    Modern,
    /// With a handshake.
    Legacy,
}

/// A message of a client.
pub(super) enum Message {
    /// A message with an answer.
    Request(Request),
    /// A message without an answer.
    Notification,
}

/// A request.
pub(super) struct Request {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
    /// The argument `definition` as it was written: the order of its members is kept.
    pub(super) definition: Option<Box<RawValue>>,
    pub(super) era: Era,
}

/// An error, with the id of its request as far as it is known.
pub(super) struct Refused {
    pub(super) id: Option<Value>,
    pub(super) error: RpcError,
}

/// A JSON-RPC error.
#[derive(Debug)]
pub(super) struct RpcError {
    code: i32,
    message: String,
    data: Option<Box<Value>>,
    status: StatusCode,
}

/// A result, and how long a client may keep it.
pub(super) struct Served {
    members: Map<String, Value>,
    /// How many milliseconds a client may keep the result, where the protocol has a field for it.
    ttl_millis: Option<u64>,
}

impl Served {
    /// A result for this request alone.
    pub(super) fn plain(members: Map<String, Value>) -> Self {
        Self {
            members,
            ttl_millis: None,
        }
    }

    /// A result that a client may keep for so many milliseconds.
    pub(super) fn cached(members: Map<String, Value>, millis: u64) -> Self {
        Self {
            members,
            ttl_millis: Some(millis),
        }
    }

    /// A result that a client must not keep.
    pub(super) fn uncached(members: Map<String, Value>) -> Self {
        Self::cached(members, 0)
    }
}

impl RpcError {
    fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            status: StatusCode::OK,
        }
    }

    /// An error in the message itself, answered with 400.
    fn malformed(code: i32, message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            ..Self::new(code, message)
        }
    }

    /// Parameters that break a rule.
    pub(super) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// An unknown method. The stateless revision answers 404, so that a client can tell this server from an older one.
    pub(super) fn unknown_method(method: &str, era: Era) -> Self {
        Self {
            status: match era {
                Era::Modern => StatusCode::NOT_FOUND,
                Era::Legacy => StatusCode::OK,
            },
            ..Self::new(METHOD_NOT_FOUND, format!("method {} not found", quoted(method)))
        }
    }

    /// An unknown resource.
    pub(super) fn unknown_resource(uri: &str, era: Era) -> Self {
        let shown: String = uri.chars().take(200).collect();
        let code = match era {
            Era::Modern => INVALID_PARAMS,
            Era::Legacy => RESOURCE_NOT_FOUND,
        };
        Self {
            data: Some(Box::new(json!({ "uri": shown }))),
            ..Self::new(code, format!("resource {shown:?} not found"))
        }
    }

    fn unsupported(requested: &str) -> Self {
        Self {
            data: Some(Box::new(
                json!({"supported": supported_versions(), "requested": requested}),
            )),
            ..Self::malformed(UNSUPPORTED_VERSION, "Unsupported protocol version")
        }
    }
}

impl From<Error> for RpcError {
    fn from(error: Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Invalid
            | ErrorKind::Forbidden
            | ErrorKind::NotFound
            | ErrorKind::Unauthorized
            | ErrorKind::TooLarge => INVALID_PARAMS,
            _ => INTERNAL_ERROR,
        };
        if code == INTERNAL_ERROR {
            tracing::error!(?error, "a request of the Model Context Protocol failed");
        }
        Self::new(code, error.message())
    }
}

impl Message {
    /// Reads a message and checks it by the rules of its revision.
    pub(super) fn read(body: &Bytes, mirrored: &Mirrored<'_>) -> Result<Self, Refused> {
        let unread = |error| Refused { id: None, error };
        let value = read_json(body).map_err(|invalid| unread(RpcError::malformed(PARSE_ERROR, invalid.to_string())))?;
        let refuse = |message: &str| unread(RpcError::malformed(INVALID_REQUEST, message));
        let Value::Object(mut message) = value else {
            return Err(refuse("a message must be one JSON object"));
        };
        if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(refuse("jsonrpc must be \"2.0\""));
        }
        let Some(Value::String(method)) = message.remove("method") else {
            return Err(refuse("method is required and must be a string"));
        };
        let id = match message.remove("id") {
            None => return Ok(Self::Notification),
            Some(id) if id.is_string() || id.is_i64() || id.is_u64() => id,
            Some(_) => return Err(refuse("id must be a string or an integer")),
        };
        let params = match message.remove("params") {
            None => Ok(Map::new()),
            Some(Value::Object(params)) => Ok(params),
            Some(_) => Err(RpcError::malformed(INVALID_PARAMS, "params must be an object")),
        };
        let request = params.and_then(|params| {
            let era = era(&method, &params, mirrored)?;
            Ok((params, era))
        });
        match request {
            Ok((params, era)) => Ok(Self::Request(Request {
                id,
                definition: written_definition::of(body, &params),
                method,
                params,
                era,
            })),
            Err(error) => Err(Refused { id: Some(id), error }),
        }
    }
}

/// Checks which kind of revision a request is of, by the rules of that kind.
fn era(method: &str, params: &Map<String, Value>, mirrored: &Mirrored<'_>) -> Result<Era, RpcError> {
    let meta = params.get("_meta").and_then(Value::as_object);
    let named = meta.and_then(|meta| meta.get(VERSION));
    let is_legacy = |version: &str| LEGACY.contains(&version);
    let is_modern = match (named, mirrored.version) {
        (Some(named), _) => !named.as_str().is_some_and(is_legacy),
        (None, header) => header == Some(MODERN) || method == "server/discover",
    };
    if !is_modern {
        return match mirrored.version {
            // A handshake names the revision in its parameters.
            Some(version) if method != "initialize" && !is_legacy(version) => Err(RpcError::unsupported(version)),
            _ => Ok(Era::Legacy),
        };
    }
    let mismatch = |message: String| {
        Err(RpcError::malformed(
            HEADER_MISMATCH,
            format!("Header mismatch: {message}"),
        ))
    };
    let Some(header) = mirrored.version else {
        return mismatch("MCP-Protocol-Version is required, once".to_owned());
    };
    let malformed = |message: String| RpcError::malformed(INVALID_PARAMS, message);
    let version = named
        .and_then(Value::as_str)
        .ok_or_else(|| malformed(format!("_meta must have {VERSION}, a string")))?;
    if header != version {
        return mismatch(format!("MCP-Protocol-Version is {header:?}, the body has {version:?}"));
    }
    if version != MODERN {
        return Err(RpcError::unsupported(version));
    }
    if !meta
        .and_then(|meta| meta.get(CAPABILITIES))
        .is_some_and(Value::is_object)
    {
        return Err(malformed(format!("_meta must have {CAPABILITIES}, an object")));
    }
    if mirrored.method != Some(method) {
        return mismatch(format!("Mcp-Method must be {method:?}"));
    }
    let name = match method {
        "tools/call" | "prompts/get" => params.get("name"),
        "resources/read" => params.get("uri"),
        _ => return Ok(Era::Modern),
    };
    let header = mirrored.name.and_then(decoded);
    match name.and_then(Value::as_str) {
        // The method itself will refuse the parameters.
        None => Ok(Era::Modern),
        Some(name) if header.as_deref() == Some(name) => Ok(Era::Modern),
        Some(name) => mismatch(format!("Mcp-Name must be {name:?}")),
    }
}

/// Decodes a field that may have the form `=?base64?…?=`.
fn decoded(field: &str) -> Option<String> {
    let Some(encoded) = field.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Some(field.to_owned());
    };
    String::from_utf8(Base64::decode_vec(encoded).ok()?).ok()
}

/// The answer to a notification.
pub(super) fn accepted() -> Response<Body> {
    let mut response = Response::new(Body::default());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// The answer to a request.
pub(super) fn response(
    id: Option<&Value>,
    era: Era,
    answer: Result<Served, RpcError>,
) -> Result<Response<Body>, Failure> {
    let mut message = Map::new();
    message.insert("jsonrpc".to_owned(), json!("2.0"));
    if let Some(id) = id {
        message.insert("id".to_owned(), id.clone());
    }
    let status = match answer {
        Ok(Served {
            mut members,
            ttl_millis,
        }) => {
            if era == Era::Modern {
                members.insert("resultType".to_owned(), json!("complete"));
                members.insert("_meta".to_owned(), json!({ SERVER_INFO: server_info() }));
                if let Some(millis) = ttl_millis {
                    members.insert("ttlMs".to_owned(), json!(millis));
                    // The lists depend on the credential.
                    members.insert("cacheScope".to_owned(), json!("private"));
                }
            }
            message.insert("result".to_owned(), Value::Object(members));
            StatusCode::OK
        }
        Err(error) => {
            let mut shown = json!({"code": error.code, "message": error.message});
            if let Some(data) = error.data {
                shown["data"] = *data;
            }
            message.insert("error".to_owned(), shown);
            error.status
        }
    };
    let body = serde_json::to_vec(&message).map_err(Failure::internal)?;
    let mut response = Response::new(Body::Whole(Full::new(body.into())));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Mirrored<'_> = Mirrored {
        version: None,
        method: None,
        name: None,
    };

    fn modern(method: &str, params: Value) -> Bytes {
        let mut params = params;
        params["_meta"] = json!({VERSION: MODERN, CAPABILITIES: {}});
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
            .to_string()
            .into()
    }

    fn code(body: &Bytes, mirrored: &Mirrored<'_>) -> i32 {
        match Message::read(body, mirrored) {
            Ok(Message::Request(request)) => i32::from(request.era == Era::Modern),
            Ok(Message::Notification) => 2,
            Err(refused) => {
                assert_eq!(refused.error.status, StatusCode::BAD_REQUEST);
                refused.error.code
            }
        }
    }

    #[test]
    fn messages_that_are_none_are_refused() {
        for (body, expected) in [
            ("", PARSE_ERROR),
            ("{", PARSE_ERROR),
            (r#"{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}"#, PARSE_ERROR),
            ("[]", INVALID_REQUEST),
            (r#"[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]"#, INVALID_REQUEST),
            ("{}", INVALID_REQUEST),
            (r#"{"jsonrpc": "1.0", "id": 1, "method": "ping"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc": "2.0", "id": 1, "result": {}}"#, INVALID_REQUEST),
            (r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}"#, INVALID_REQUEST),
            (
                r#"{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}"#,
                INVALID_PARAMS,
            ),
            (r#"{"jsonrpc": "2.0", "id": "x", "method": "ping"}"#, 0),
            (r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#, 2),
        ] {
            assert_eq!(code(&body.into(), &NONE), expected, "{body}");
        }
    }

    #[test]
    fn header_fields_must_repeat_the_message() {
        let call = modern("tools/call", json!({"name": "list_agents"}));
        let good = Mirrored {
            version: Some(MODERN),
            method: Some("tools/call"),
            name: Some("list_agents"),
        };
        assert_eq!(code(&call, &good), 1);
        let encoded = Mirrored {
            name: Some("=?base64?bGlzdF9hZ2VudHM=?="),
            ..good
        };
        assert_eq!(code(&call, &encoded), 1);
        for bad in [
            Mirrored { version: None, ..good },
            Mirrored {
                version: Some("2025-11-25"),
                ..good
            },
            Mirrored { method: None, ..good },
            Mirrored {
                method: Some("tools/list"),
                ..good
            },
            Mirrored { name: None, ..good },
            Mirrored {
                name: Some("get_agent"),
                ..good
            },
            Mirrored {
                name: Some("=?base64?%?="),
                ..good
            },
        ] {
            assert_eq!(code(&call, &bad), HEADER_MISMATCH, "{bad:?}");
        }
    }

    #[test]
    fn revisions_are_told_apart() {
        let message = |method: &str, params: Value| -> Bytes {
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
                .to_string()
                .into()
        };
        let header = |version| Mirrored {
            version: Some(version),
            method: Some("tools/list"),
            name: None,
        };
        for (body, mirrored, expected) in [
            (message("tools/list", json!({})), header("2025-11-25"), 0),
            (message("tools/list", json!({})), header("2025-06-18"), 0),
            (message("initialize", json!({})), header("1999-01-01"), 0),
            (
                message("tools/list", json!({})),
                header("1999-01-01"),
                UNSUPPORTED_VERSION,
            ),
            (message("tools/list", json!({})), header(MODERN), INVALID_PARAMS),
            (
                message("tools/list", json!({"_meta": {VERSION: MODERN}})),
                header(MODERN),
                INVALID_PARAMS,
            ),
            (
                message("tools/list", json!({"_meta": {VERSION: 7}})),
                header(MODERN),
                INVALID_PARAMS,
            ),
            (
                message("tools/list", json!({"_meta": {VERSION: "2099-01-01"}})),
                header("2099-01-01"),
                UNSUPPORTED_VERSION,
            ),
            (message("server/discover", json!({})), NONE, HEADER_MISMATCH),
            (modern("tools/list", json!({})), header(MODERN), 1),
        ] {
            assert_eq!(code(&body, &mirrored), expected, "{body:?} {mirrored:?}");
        }
    }
}
