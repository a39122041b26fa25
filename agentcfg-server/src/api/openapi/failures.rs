//! The failures that endpoints share, and the rules for which endpoint has which.

use serde_json::Value;

use super::call_refusals;
use super::json_tree::{JsonTree, object, reference};
use crate::api::call::Content;
use crate::api::endpoint::Definition;
use crate::api::endpoints;
use crate::api::route::Needs;
use crate::http::request::{MAX_LONG_BODY, MAX_OPEN_BODY};

/// A failure that endpoints share.
pub(super) struct FailureDoc {
    pub(super) component: &'static str,
    description: &'static str,
    /// Whether the request was counted, so that the answer shows the rate window.
    is_counted: bool,
    /// Header fields besides those that every answer has.
    headers: &'static [&'static str],
    examples: &'static [(&'static str, &'static str)],
}

pub(super) const FAILURES: &[FailureDoc] = &[
    FailureDoc {
        component: "BadRequest",
        description: "A parameter or the body breaks a rule. All faults of a body are reported together.",
        is_counted: true,
        headers: &["Fault-Fields"],
        examples: &[
            ("query", "the query parameter workspace_id is required"),
            (
                "body",
                "display_name must be at most 100 characters, got 142; color must be # and 3, 4, 6 or 8 hexadecimal digits",
            ),
        ],
    },
    FailureDoc {
        component: "Unauthorized",
        description: "There is no credential, or it is not valid: unknown, malformed, expired or revoked. Such requests count \
         against no limit.",
        is_counted: false,
        headers: &["WWW-Authenticate"],
        examples: &[
            (
                "missing",
                "missing credentials: send the header Authorization: Bearer <credential>",
            ),
            ("wrong", "invalid credentials"),
        ],
    },
    FailureDoc {
        component: "Forbidden",
        description: "The credential is valid but does not allow this: a permission is missing, the endpoint needs a session token, or \
         the caller has no access to the workspace. A workspace that does not exist is refused in the same way.",
        is_counted: true,
        headers: &[],
        examples: &[
            (
                "scope",
                "an API key of scope read lacks the permission agents:configure",
            ),
            ("workspace", "you are not a member of this workspace"),
        ],
    },
    FailureDoc {
        component: "NotFound",
        description: "The resource that the query names does not exist.",
        is_counted: true,
        headers: &[],
        examples: &[("agent", "agent \"release-writer\" not found")],
    },
    FailureDoc {
        component: "MethodNotAllowed",
        description: "The path exists, but not with this method. Answered before any credential is read.",
        is_counted: false,
        headers: &["Allow"],
        examples: &[("method", "POST is not allowed here, use GET, HEAD, PUT")],
    },
    FailureDoc {
        component: "UnknownPath",
        description: "No endpoint has this path. Paths match exactly, and a trailing slash makes another path. Answered before any \
         credential is read.",
        is_counted: false,
        headers: &[],
        examples: &[(
            "path",
            "there is nothing at this path, see /openapi.json for what there is",
        )],
    },
    FailureDoc {
        component: "RequestTimeout",
        description: "The body did not arrive in time.",
        is_counted: true,
        headers: &[],
        examples: &[("timeout", "the body did not arrive in time")],
    },
    FailureDoc {
        component: "Conflict",
        description: "The request conflicts with the current state.",
        is_counted: true,
        headers: &[],
        examples: &[(
            "taken",
            "an agent with agent_id \"release-writer\" already exists in this workspace",
        )],
    },
    FailureDoc {
        component: "Gone",
        description: "The position in the change feed is of another epoch of the store, or from the future: read the list again and go \
         on from its `Change-Cursor`. Or what is asked for was removed, because it is older than the history that is kept.",
        is_counted: true,
        headers: &[],
        examples: &[(
            "epoch",
            "the position is a cursor from before the store was restored or moved: read the list again and go on from its \
             Change-Cursor",
        )],
    },
    FailureDoc {
        component: "PreconditionFailed",
        description: "The record does not have a version that `If-Match` names, or the label does not point at `expected_version`. \
         Nothing changed. `If-Match` is answered with the `ETag` of the record now, if the caller may read it.",
        is_counted: true,
        headers: &["ETag-Sometimes"],
        examples: &[(
            "stale",
            "If-Match does not name the current ETag, which is \"k3j9x0ab-a43\": read the agent again",
        )],
    },
    FailureDoc {
        component: "PayloadTooLarge",
        description: "The body is longer than 1 MiB.",
        is_counted: true,
        headers: &[],
        examples: &[("size", "the body must be at most 1048576 bytes")],
    },
    FailureDoc {
        component: "CallTooLarge",
        description: "The body is longer than 10 MiB, or the change is too large for the store to make at once, as it can be on etcd. \
         Nothing was changed.",
        is_counted: true,
        headers: &[],
        examples: &[
            ("too_large", "the body must be at most 10485760 bytes"),
            ("change", "the change is too large to store at once: make it in parts"),
        ],
    },
    FailureDoc {
        component: "CodeTooLarge",
        description: "The body is longer than 4 KiB.",
        is_counted: false,
        headers: &[],
        examples: &[("too_large", "the body must be at most 4096 bytes")],
    },
    FailureDoc {
        component: "UriTooLong",
        description: "The request line is longer than 8 KiB. Answered before any credential is read.",
        is_counted: false,
        headers: &[],
        examples: &[("line", "the request line must be at most 8192 bytes, got 9120")],
    },
    FailureDoc {
        component: "UnsupportedMediaType",
        description: "The body is not declared as JSON, or the request has a `Content-Encoding`.",
        is_counted: true,
        headers: &[],
        examples: &[
            ("type", "the body must have the header Content-Type: application/json"),
            ("encoding", "Content-Encoding is not supported: send the body as it is"),
        ],
    },
    FailureDoc {
        component: "UnsupportedEncoding",
        description: "The request has a `Content-Encoding`, which is refused even where no body is read.",
        is_counted: true,
        headers: &[],
        examples: &[("encoding", "Content-Encoding is not supported: send the body as it is")],
    },
    FailureDoc {
        component: "BudgetExceeded",
        description: "A budget does not pay for the model call, or refuses calls whose cost is not known and the model has no price.",
        is_counted: true,
        headers: &["X-Should-Retry"],
        examples: &[
            (
                "spent",
                "the budget of the agent \"writer\" does not pay for this call: its limit is 250 USD a month, it begins again at \
                 2026-12-01T00:00:00.000Z",
            ),
            (
                "price",
                "the model \"own\" has no price in the catalogue, and the budget of the workspace refuses calls whose cost is \
                 not known: its limit is 250 USD a month, it begins again at 2026-12-01T00:00:00.000Z",
            ),
        ],
    },
    FailureDoc {
        component: "PlanLimitReached",
        description: "The workspace has as many active agents as its plan allows, or as many webhooks or budgets, or an agent as many labels, as there can be; or the caller owns as many workspaces as the deployment allows.",
        is_counted: true,
        headers: &[],
        examples: &[
            (
                "plan",
                "the plan free of this workspace allows 3 active agents, and all of them exist; an operator of this service can \
                 change the plan",
            ),
            ("webhooks", "a workspace has at most 20 webhooks, delete one first"),
            (
                "labels",
                "the agent \"writer\" has 20 labels, and more are not possible",
            ),
        ],
    },
    FailureDoc {
        component: "TooManyRequests",
        description: "The credential has used up its requests for this minute.",
        is_counted: true,
        headers: &["Retry-After"],
        examples: &[(
            "limit",
            "rate limit of 100 requests per minute exceeded, try again in 23 s",
        )],
    },
    FailureDoc {
        component: "HeadersTooLarge",
        description: "The header fields take more than 16 KiB. Answered before any credential is read.",
        is_counted: false,
        headers: &[],
        examples: &[("headers", "the header fields must be at most 16384 bytes, got 17002")],
    },
    FailureDoc {
        component: "InternalError",
        description: "A fault of the server. The log has its cause under the `X-Request-Id`. The rate-limit headers are there when \
         the credential was accepted before the fault.",
        is_counted: true,
        headers: &[],
        examples: &[("internal", "internal error")],
    },
    FailureDoc {
        component: "BadGateway",
        description: "The provider cannot be reached, or broke the connection before it answered.",
        is_counted: true,
        headers: &[],
        examples: &[("unreachable", "openai cannot be reached")],
    },
    FailureDoc {
        component: "GatewayTimeout",
        description: "The provider did not begin its answer in time.",
        is_counted: true,
        headers: &[],
        examples: &[("timeout", "openai did not answer within 600 s")],
    },
    FailureDoc {
        component: "ServiceUnavailable",
        description: "Storage or the identity provider does not answer. With `Retry-After` the change that was asked for was not made, \
         and the request can be repeated. When saving was interrupted the message says so, and the \
         change may have been made. The rate-limit headers are there when the credential was accepted before the \
         fault.",
        is_counted: true,
        headers: &["Retry-After-Sometimes"],
        examples: &[
            ("storage", "storage is unavailable, try again"),
            (
                "outcome",
                "storage failed while saving and the change may have been made: read before trying again",
            ),
        ],
    },
    FailureDoc {
        component: "CallUnavailable",
        description: "There is no credential for the provider, or storage or the identity provider does not answer. Without a \
         credential the same call fails until the workspace or the deployment has one: `X-Should-Retry` is `false`, and there is no \
         `Retry-After`.",
        is_counted: true,
        headers: &["Retry-After-Sometimes", "X-Should-Retry"],
        examples: &[
            ("storage", "storage is unavailable, try again"),
            (
                "credential",
                "no credential: the workspace has saved no key for openai, and this server has no managed access to openai",
            ),
        ],
    },
    FailureDoc {
        component: "NotReady",
        description: "Storage does not answer.",
        is_counted: false,
        headers: &["Retry-After"],
        examples: &[("storage", "storage is unavailable, try again")],
    },
    FailureDoc {
        component: "InternalErrorOpen",
        description: "A fault of the server. The log has its cause under the `X-Request-Id`.",
        is_counted: false,
        headers: &[],
        examples: &[("internal", "internal error")],
    },
];

/// Header fields of every answer to a request that was counted.
const RATE: [&str; 3] = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];

/// References to the header fields of an answer.
pub(super) fn headers(is_counted: bool, others: &[&str]) -> Value {
    let rate = if is_counted { &RATE[..] } else { &[] };
    let names = ["X-Request-Id"].iter().chain(rate).chain(others);
    names.fold(object(), |node, component| {
        // `Retry-After` and `ETag` have two descriptions: where they are always sent, and where they are sent
        // sometimes.
        let name = component.strip_suffix("-Sometimes").unwrap_or(component);
        node.with(name, reference("headers", component))
    })
}

impl FailureDoc {
    pub(super) fn component(&self) -> Value {
        let body = |message: &str| object().with("error", message);
        self.response(reference("schemas", "Error"), body)
    }

    /// The failure of a model call, in the form of the provider.
    pub(super) fn of_model_call(&self, status: u16) -> Value {
        self.response(call_refusals::schema(status), |message| {
            call_refusals::example(status, message)
        })
    }

    fn response(&self, schema: Value, body: impl Fn(&str) -> Value) -> Value {
        let examples = self.examples.iter();
        let examples = examples.fold(object(), |node, (name, message)| {
            node.with(name, object().with("value", body(message)))
        });
        let json = object().with("schema", schema).with("examples", examples);
        object()
            .with("description", self.description)
            .with("headers", headers(self.is_counted, self.headers))
            .with("content", object().with("application/json", json))
    }
}

/// The statuses of the failures of an endpoint, in order.
///
/// The failures that follow from what the endpoint needs and reads are found here; the others are in its description.
pub(super) fn statuses(endpoint: &Definition) -> Vec<u16> {
    let needs = endpoint.route.needs;
    let mut statuses = vec![414, 431, 500];
    if needs != Needs::Nothing {
        statuses.extend([400, 401, 415, 429, 503]);
    }
    if !matches!(needs, Needs::Nothing | Needs::Credential) {
        statuses.push(403);
    }
    if !matches!(endpoint.content, Content::Nothing) {
        statuses.extend([408, 413]);
    }
    for parameter in endpoint.parameters {
        statuses.extend(parameter.answers);
    }
    statuses.extend(endpoint.doc.failures);
    statuses.sort_unstable();
    statuses.dedup();
    statuses
}

/// Whether model calls have this failure and no other endpoint: they describe theirs in place.
pub(super) fn is_of_model_calls_alone(name: &str) -> bool {
    let has = |endpoint: &&Definition| {
        let mut names = statuses(endpoint).into_iter().map(|status| component(endpoint, status));
        names.any(|component| component == name)
    };
    let mut users = endpoints::all().filter(has).peekable();
    users.peek().is_some() && users.all(|endpoint| matches!(endpoint.content, Content::ModelCall))
}

/// The failure of a model call.
pub(super) fn of_model_call(endpoint: &Definition, status: u16) -> Value {
    let name = component(endpoint, status);
    let described = FAILURES.iter().find(|failure| failure.component == name);
    described.map_or_else(|| reference("responses", name), |failure| failure.of_model_call(status))
}

/// The component that describes a failure of an endpoint.
pub(super) fn component(endpoint: &Definition, status: u16) -> &'static str {
    let is_open = endpoint.route.needs == Needs::Nothing;
    match status {
        400 => "BadRequest",
        401 => "Unauthorized",
        402 => "BudgetExceeded",
        403 => "Forbidden",
        404 => "NotFound",
        408 => "RequestTimeout",
        409 => "Conflict",
        410 => "Gone",
        412 => "PreconditionFailed",
        413 => match endpoint.max_body {
            MAX_OPEN_BODY => "CodeTooLarge",
            MAX_LONG_BODY => "CallTooLarge",
            _ => "PayloadTooLarge",
        },
        414 => "UriTooLong",
        415 if matches!(endpoint.content, Content::Nothing) => "UnsupportedEncoding",
        415 => "UnsupportedMediaType",
        422 => "PlanLimitReached",
        429 => "TooManyRequests",
        431 => "HeadersTooLarge",
        500 if is_open => "InternalErrorOpen",
        500 => "InternalError",
        502 => "BadGateway",
        503 if is_open => "NotReady",
        503 if matches!(endpoint.content, Content::ModelCall) => "CallUnavailable",
        503 => "ServiceUnavailable",
        504 => "GatewayTimeout",
        other => panic!("{} answers {other}, which no component describes", endpoint.doc.id),
    }
}
