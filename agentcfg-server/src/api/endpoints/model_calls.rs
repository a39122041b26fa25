//! Model calls.

use std::marker::PhantomData;

use agentcfg_core::model::{Permission, VersionSelector};
use agentcfg_core::service::ModelRequest;
use agentcfg_core::validate::Fault;
use agentcfg_core::{Error, ErrorKind};
use bytes::Bytes;
use hyper::Method;

use super::tags::MODELS;
use crate::api::answer::{Relayed, Written};
use crate::api::call::parameters::{
    CalledAgent, CalledPath, CalledProvider, SelectedLabel, Variables, VersionNumber, WorkspaceIdOptional, selector,
};
use crate::api::call::{Call, Parameter, Passed};
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Guarded, Input, KnownPath, Values};
use crate::api::model_calls::{Draft, Format, Metering, PathAgent, Sent, Target, named};
use crate::api::route::{Needs, Prefix, Route};
use crate::http::errors::Failure;
use crate::http::response::{Reply, agent_version};

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[
    Definition::guarded::<CallModel<Post>>(),
    Definition::guarded::<CallModel<Get>>(),
    Definition::guarded::<CallModel<Put>>(),
    Definition::guarded::<CallModel<Patch>>(),
    Definition::guarded::<CallModel<Delete>>(),
];

/// The paths that the OpenAPI document describes as operations of their own.
const KNOWN: &[KnownPath] = &[
    KnownPath {
        rest: "openai/v1/chat/completions",
        id: "callChatCompletions",
        summary: "Call OpenAI's chat completions as an agent",
        description: "The model call of OpenAI's `chat/completions`. Where the body has no `model`, it gets the agent's; where it \
                      has neither a system nor a developer message, the agent's persona becomes the first system message.",
        body: r#"{"messages": [{"role": "user", "content": "Draft the notes for 2.4."}]}"#,
    },
    KnownPath {
        rest: "openai/v1/responses",
        id: "callResponses",
        summary: "Call OpenAI's responses as an agent",
        description: "The model call of OpenAI's `responses`. Where the body has no `model` or no `instructions`, it gets the \
                      agent's model or persona.",
        body: r#"{"input": "Draft the notes for 2.4."}"#,
    },
    KnownPath {
        rest: "openai/v1/embeddings",
        id: "callEmbeddings",
        summary: "Call OpenAI's embeddings as an agent",
        description: "The model call of OpenAI's `embeddings`. The body is forwarded unchanged, so it names the model.",
        body: r#"{"model": "text-embedding-3-small", "input": "The notes for 2.4."}"#,
    },
    KnownPath {
        rest: "anthropic/v1/messages",
        id: "callMessages",
        summary: "Call Anthropic's messages as an agent",
        description: "The model call of Anthropic's `messages`. Where the body has no `model` or no `system`, it gets the agent's \
                      model or persona.",
        body: r#"{"max_tokens": 200, "messages": [{"role": "user", "content": "Draft the notes for 2.4."}]}"#,
    },
    KnownPath {
        rest: "anthropic/v1/messages/count_tokens",
        id: "callCountTokens",
        summary: "Count tokens at Anthropic as an agent",
        description: "The model call of Anthropic's `messages/count_tokens`. The body gets what that of `messages` gets, so that the \
                      tokens are those of the call.",
        body: r#"{"model": "claude-haiku-5-5", "messages": [{"role": "user", "content": "Draft the notes for 2.4."}]}"#,
    },
];

/// Any method at `/api/agents/model-calls/{provider}/{path}`.
pub struct CallModel<M>(PhantomData<M>);

/// A method of model calls: they are passed on as they are.
pub trait CalledMethod: Send + 'static {
    /// The route of the method.
    const ROUTE: Route;

    /// What the OpenAPI document says of it.
    const DOC: Doc;

    /// The method.
    fn method() -> Method;
}

const PATH: &str = "/api/agents/model-calls/{provider}/{path}";
const NEEDS: Needs = Needs::Permission(Permission::ModelsInvoke);
const ANSWER: &str = "The answer of the provider; redirects and refusals keep the provider's status. The header fields of this service are added.";

/// Declares the methods but `POST`, of which nothing is filled in and for which managed credentials do not pay.
macro_rules! other_methods {
    ($($method:ident $variant:ident $route:ident $id:literal $summary:literal;)+) => {$(
        #[doc = concat!("`", stringify!($variant), "` of a path at a provider.")]
        pub struct $method;

        impl CalledMethod for $method {
            const ROUTE: Route = Route::$route(PATH, NEEDS);

            const DOC: Doc = Doc::new(
                $id,
                MODELS,
                $summary,
                "Passed on as it is, as an agent, like `POST` of the same path: the credential is replaced, nothing is filled in, and \
                 the answer is streamed back. It needs the workspace's own provider key: managed access pays for `POST` alone.",
            )
            .answer(ANSWER, &[])
            .failures(&[410, 502, 504]);

            fn method() -> Method {
                Method::$variant
            }
        }
    )+};
}

other_methods! {
    Get GET get "readFromProvider" "Read from a model provider as an agent";
    Put PUT put "replaceAtProvider" "Replace something at a model provider as an agent";
    Patch PATCH patch "changeAtProvider" "Change something at a model provider as an agent";
    Delete DELETE delete "deleteAtProvider" "Delete something at a model provider as an agent";
}

/// `POST` of a path at a provider: a model call proper.
pub struct Post;

impl CalledMethod for Post {
    const ROUTE: Route = Route::post(PATH, NEEDS);

    const DOC: Doc = Doc::new(
        "callModel",
        MODELS,
        "Call a model provider as an agent",
        "Proxies the request to the provider and streams its answer back. The caller's credential is replaced by \
         the workspace's provider key, or by managed access where the workspace uses none of its own. `model` and the \
         persona of the agent are filled in where the request has none: in `chat/completions` as the first system \
         message, unless there is a system or developer message; in `responses` as `instructions`; in `messages` as \
         `system`. At these paths the body also gets each member of the agent's `definition.model_settings` that it lacks. Nothing \
         else of the body changes; at other paths the body is forwarded unchanged. With `version` or `label` \
         all of it is that of that version of the agent. Where the definition declares `variables`, `{{name}}` in the persona is \
         replaced by the value in the header field `Agent-Variables`, else by the default.\n\n\
         A client that knows only a base URL and a key names the agent in the path: `{provider}/@{agent_id}/{path}` in place of \
         `agent_id`, or with a label or a version number `{provider}/@{agent_id}:{label}/{path}`. Without `Authorization`, the \
         credential may be in `x-api-key` or `api-key`.\n\n\
         The usual paths are operations of their own; this one describes all others too. \
         The path is appended to the provider's address, and so are the other query parameters. Segments of the path \
         have the characters of RFC 3986, encoded or not, but for slashes, `?`, `#`, `;`, `%` and control characters within a segment; a path with one of these, with \
         a segment of dots alone, or with `:` or `@` in its first segment is answered with 404. Of the header fields `Accept`, \
         `Accept-Encoding`, `Content-Type`, `User-Agent`, `Anthropic-Version`, `Anthropic-Beta`, `OpenAI-Beta`, \
         `Idempotency-Key` and `X-Client-Request-Id` are forwarded, no others; a server that sends spans to OpenTelemetry adds \
         `Traceparent`, which continues the caller's trace. Where an answer reports its usage, `Accept-Encoding` is \
         narrowed to gzip, and a stream of chat completions gets `stream_options.include_usage`; the chunk that it adds is taken \
         out for a client that did not ask for it.\n\n\
         The provider's status, body, content type and `Retry-After` are returned unchanged; its \
         `X-Request-Id` and `X-RateLimit-*` are returned as `X-Provider-Request-Id` and `X-Provider-RateLimit-*`; `Agent-Model` is the \
         model that it was asked for, `Agent-Attempts` how many models were asked. An answer \
         that the provider breaks off ends in a broken connection. When the caller closes the connection, the call is cancelled.\n\n\
         Where the agent's model is filled in and the catalogue has it from another provider with the same API, the call goes there. When \
         the provider cannot be reached, is silent, or answers 408, 429 or 5xx, the models of the agent's `definition.fallback_models` \
         are tried, with their own providers and credentials; at most three models are asked, and none once a byte was passed on.\n\n\
         Managed access pays for `POST` of the paths in the setting `managed_paths` and for available models of the catalogue; anything \
         else is 403 without a key of the workspace.\n\n\
         Where budgets cover the call, the body gets the cap on output tokens that was reserved if it has none, and a lower one where \
         the rest pays for less; 402 means that a budget does not pay for the call.\n\n\
         A model that is coming soon, or a named one of another provider, is 400. No credential for the provider is 503 with \
         `X-Should-Retry: false` and without `Retry-After`. A workspace key that is saved and does not open is 500, never a call with another \
         credential. Refusals of this service have the form of the provider's own, so that its SDKs show their message.",
    )
    .bodies(&[Example("chat", r#"{"messages": [{"role": "user", "content": "Draft the notes for 2.4."}], "stream": true}"#)])
    .answer(ANSWER, &[])
    .failures(&[402, 410, 502, 504])
    .paths(KNOWN);

    fn method() -> Method {
        Method::POST
    }
}

impl<M: CalledMethod> Endpoint for CallModel<M> {
    const ROUTE: Route = M::ROUTE.below(Prefix {
        text: Target::PATHS,
        accepts: Target::is_known,
        example: "/api/agents/model-calls/openai/v1/chat/completions",
    });

    const DOC: Doc = M::DOC;

    type Input = (
        CalledProvider,
        CalledPath,
        CalledAgent,
        WorkspaceIdOptional,
        VersionNumber,
        SelectedLabel,
        Variables,
    );
    type Body = Passed;
    type Answer = Written<Relayed>;

    async fn run(call: &Call<'_>, inputs: Values<'_, Self>, passed: Passed) -> Result<Self::Answer, Failure> {
        call_model(call, M::method(), inputs, passed).await
    }
}

/// The call of any method, which is compiled once for all.
async fn call_model(
    call: &Call<'_>,
    method: Method,
    (provider, path, agent, workspace, version, label, variables): Values<'_, CallModel<Post>>,
    passed: Passed,
) -> Result<Written<Relayed>, Failure> {
    let agent = called_agent(call, agent)?;
    let version = selected(&agent, version, label)?;
    let target = Target {
        provider,
        agent: None,
        path,
    };
    let draft = draft(target.format(&method, &call.service.catalogue()), passed.body()).await?;
    let request = ModelRequest::new(provider, &target.path)
        .is_post(method == Method::POST)
        .model(draft.requested_model())
        .lists_models(draft.lists_models())
        .takes_list_of_models(draft.takes_list_of_models())
        .takes_agent_model(draft.takes_model())
        .version(version)
        .takes_persona(draft.takes_persona())
        .variables(variables.as_ref());
    let resolved = call
        .service
        .resolve_model_call(call.caller, workspace, &*agent.agent_id, &request)
        .await;
    let decided = resolved.map_err(|error| refused(error, draft.requested_model()))?;
    let Some(calls) = call.model_calls else {
        let message = "model calls are not set up on this server";
        return Err(Failure::unavailable(message).should_retry(false));
    };
    let query = passed.query(call, <CallModel<Post> as Endpoint>::Input::DOCS)?;
    let sent = Sent {
        method,
        provider: target.provider,
        path: &target.path,
        query: query.as_deref(),
        headers: passed.headers(call),
        draft,
        metering: Metering {
            service: call.service,
            request_id: call.request_id,
            observer: call.observer,
            trace: call.trace,
        },
    };
    let answered = calls.send(&decided, &sent, call.disconnect).await;
    let answered = answered.map_err(|failure| failure.with_fields([agent_version(decided.version)]))?;
    Ok(Reply::relayed(answered).of_version(Some(decided.version)).into())
}

impl<M: CalledMethod> Guarded for CallModel<M> {
    async fn guard(
        call: &Call<'_>,
        (_, _, agent, workspace, version, label, _): Values<'_, Self>,
    ) -> Result<(), Failure> {
        selected(&called_agent(call, agent)?, version, label)?;
        Ok(call.service.check_model_caller(call.caller, workspace).await?)
    }
}

/// The agent that the call is made as: the one that the request names, else the only one of the API key.
fn called_agent<'a>(call: &Call<'a>, named: Option<PathAgent<'a>>) -> Result<PathAgent<'a>, Failure> {
    match (named, call.caller.only_agent()) {
        (Some(agent), _) => Ok(agent),
        (None, Some(only)) => Ok(PathAgent::new(only)),
        (None, None) => Err(Failure::required(CalledAgent::DOC.name)),
    }
}

/// The version that the call is made with.
///
/// # Errors
///
/// 400 where several are named, in the path or in the query.
fn selected<'a>(
    agent: &'a PathAgent<'_>,
    version: Option<u64>,
    label: Option<&'a str>,
) -> Result<VersionSelector<'a>, Failure> {
    let Some(in_path) = agent.selector.as_deref() else {
        return selector(version, label, None);
    };
    if version.is_some() || label.is_some() {
        let message = "the version must be named once: in the path, or as a query parameter";
        return Err(Failure::bad_request(message));
    }
    Ok(VersionSelector::from_text(in_path))
}

/// The refusal of a call that was not sent. A missing credential is a failure that a retry does not help.
fn refused(error: Error, model: Option<&str>) -> Failure {
    let is_final = error.kind() == ErrorKind::NotConfigured;
    let fields = named(model.or(error.agents_model()), 0);
    let is_variable = |fault: &Fault| fault.place().starts_with("variables.");
    let has_variables = error.faults().iter().any(is_variable);
    let mut failure = Failure::from(error).with_fields(fields);
    if has_variables {
        failure.message.push_str(" (the header Agent-Variables has the values)");
    }
    match is_final {
        true => failure.should_retry(false),
        false => failure,
    }
}

/// Reads the body; a long one on a thread for blocking work, so that other requests do not wait.
async fn draft(format: Option<Format>, body: Bytes) -> Result<Draft, Failure> {
    const LONG: usize = 256 << 10;
    let is_long = body.len() > LONG;
    let read = move || match format {
        Some(format) => Draft::read(format, &body),
        None => Draft::opaque(&body),
    };
    if !is_long {
        return read();
    }
    tokio::task::spawn_blocking(read)
        .await
        .unwrap_or_else(|error| Err(Failure::internal(error)))
}
