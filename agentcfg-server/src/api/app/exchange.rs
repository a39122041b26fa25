//! One request from its head to its response, top to bottom.

use std::convert::Infallible;
use std::error::Error as _;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use agentcfg_core::model::{ProviderApi, RateStatus};
use agentcfg_core::service::EntryError;
use agentcfg_core::{Caller, ErrorKind, token};
use bytes::Bytes;
use hyper::body::Body as HttpBody;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use memchr::memmem;

use super::{App, AppShared, Connected};
use crate::api::call::parameters::DryRun;
use crate::api::call::{Call, Content, Parameter, Received, Rest};
use crate::api::credential::Credential;
use crate::api::endpoint::{Definition, Runner};
use crate::api::endpoints;
use crate::api::model_calls::{self, Target};
use crate::api::observer::{Answered, Stopwatch};
use crate::api::receive::{read_body, read_optional_json};
use crate::api::request_trace::RequestTrace;
use crate::api::route::Needs;
use crate::api::routes::{self, Resource};
use crate::api::strict_query;
use crate::http::byte_budget::holder;
use crate::http::compression::asks_for_gzip;
use crate::http::errors::Failure;
use crate::http::query::Query;
use crate::http::received_body::discard;
use crate::http::request::{HeadFields, REQUEST_ID};
use crate::http::response::{FieldValues, Reply, complete};
use crate::http::{Body, Cors, Disconnect};

/// Where the SDKs of Anthropic look for the identifier of a request.
const ANTHROPIC_REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

impl App {
    /// Answers one request.
    ///
    /// ```
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # use agentcfg_server::{App, Cors};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let app = App::new(AgentCfg::builder(MemoryStore::new()).build(), Cors::default());
    /// let request = hyper::Request::get("/api/agents/configs").body(String::new())?;
    /// assert_eq!(app.respond(request).await.status(), 401, "it has no credential");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn respond<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: HttpBody<Data = Bytes> + Unpin,
        B::Error: std::error::Error + 'static,
    {
        let Ok(response) = self.exchange(request).await;
        response
    }

    /// Answers one request, as a `'static` and infallible future, which `tower` services need.
    ///
    /// ```
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # use agentcfg_server::{App, Cors};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let app = App::new(AgentCfg::builder(MemoryStore::new()).build(), Cors::default());
    /// let exchange = app.exchange(hyper::Request::get("/healthz").body(String::new())?);
    /// drop(app);
    /// let Ok(response) = exchange.await;
    /// assert_eq!(response.status(), 200);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn exchange<B>(&self, request: Request<B>) -> impl Future<Output = Result<Response<Body>, Infallible>> + use<B>
    where
        B: HttpBody<Data = Bytes> + Unpin,
        B::Error: std::error::Error + 'static,
    {
        let connected = Arc::clone(&self.connected);
        // A future is moved several times before it runs. The smaller it is the better, so that the parts stay where
        // they are captured.
        let (head, mut body) = request.into_parts();
        async move {
            let shared = &*connected.shared;
            let observer = shared.observer.as_deref();
            let stopwatch = observer.map(|_| Stopwatch::start());
            let trace = observer.and_then(|observer| RequestTrace::begin(observer, &head.headers));
            let path = head.uri.path();
            let catalogue = &*shared.catalogue;
            let resource = routes::find(path, catalogue);
            let fields = HeadFields::of(&head.headers);
            let request_id = fields.request_id.cloned().unwrap_or_else(|| shared.request_ids.next());
            let mut exchange = Exchange {
                resource,
                head: &head,
                fields,
                body: &mut body,
                rate: None,
                without_authorization: false,
                caller: None,
                refused_key: None,
                client: None,
                holder: None,
                request_id: request_id.clone(),
                trace,
            };
            let mut values = FieldValues::default();
            let answered = match answer(&connected, &mut exchange).await {
                Ok(reply) => {
                    let to = (&head, &exchange.fields);
                    let counted = (&shared.answer_budget, exchange.holder.take());
                    reply.into_response(to, &shared.compression, counted, &mut values).await
                }
                Err(failure) => Err(failure),
            };
            let refused = answered.is_err();
            let mut response = match answered {
                Ok(mut response) => {
                    complete(response.headers_mut(), exchange.rate.as_ref(), request_id, &mut values);
                    response
                }
                Err(failure) => {
                    // An answer 401 has no rate headers, also when the credential ended while its request waited.
                    exchange.rate.take_if(|_| failure.is_unauthorized());
                    // While storage does not answer, no key is refused.
                    exchange.refused_key.take_if(|_| !failure.is_unauthorized());
                    shared.outages.log(&failure, &head.method, path, text(&request_id));
                    let mut refusal = Box::pin(refuse(&failure, &head, &mut *exchange.body)).await;
                    if let Some(api) = Target::api_of(path, catalogue) {
                        in_form_of(api, &failure, &request_id, &mut refusal);
                    }
                    let wants_gzip = exchange.fields.has_accept_encoding && asks_for_gzip(&head.headers);
                    refusal = Box::pin(Reply::refused(refusal, &shared.compression, wants_gzip)).await;
                    complete(refusal.headers_mut(), exchange.rate.as_ref(), request_id, &mut values);
                    refusal
                }
            };
            tracing::debug!(method = %head.method, path, status = response.status().as_u16(), request_id = id_of(&response), "answered");
            exchange.set_fields(shared.cors.as_ref(), response.headers_mut());
            if head.method == Method::HEAD {
                response = without_body(response);
            }
            if let (Some(observer), Some(stopwatch)) = (observer, stopwatch) {
                if observer.wants_caller() {
                    exchange.client = connected.client_of(&head);
                }
                let unrouted = || shared.label(path);
                observer.answered(&exchange.answered(unrouted, &response, refused, stopwatch.elapsed()));
            }
            Ok(response)
        }
    }
}

impl<B> tower_service::Service<Request<B>> for App
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::error::Error + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(self.exchange(request))
    }
}

/// A request, and what is known of it besides the answer.
struct Exchange<'a, B> {
    resource: Option<&'static Resource>,
    head: &'a Parts,
    fields: HeadFields<'a>,
    body: &'a mut B,
    rate: Option<RateStatus>,
    /// Whether the credential is in another field than `Authorization`, for which shared caches store no answer.
    without_authorization: bool,
    /// The id of the caller, for an observer that wants it.
    caller: Option<Box<str>>,
    /// The id in an API key that was refused, for the same one.
    refused_key: Option<Box<str>>,
    /// The address of the client, for the same one.
    client: Option<IpAddr>,
    /// The name of the caller in the budget of answers, if the answer is counted.
    holder: Option<String>,
    /// The identifier of the request.
    request_id: HeaderValue,
    /// Where the request is in a trace, for an observer that wants it.
    trace: Option<Box<RequestTrace>>,
}

impl<B> Exchange<'_, B> {
    /// Sets the header fields that depend on the credential and on the origin.
    fn set_fields(&self, cors: Option<&Cors>, headers: &mut HeaderMap) {
        let control = headers.get(header::CACHE_CONTROL).map(HeaderValue::as_bytes);
        // A provider may say that its answer is for everyone.
        let is_public = control.is_none_or(|control| memmem::find(control, b"public").is_some());
        if self.without_authorization && is_public {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        }
        if let Some(cors) = cors {
            cors.expose(&self.head.headers, headers);
        }
    }

    /// What an observer gets of it. `unrouted` is the label of a path that no endpoint has.
    fn answered<'r>(
        &'r self,
        unrouted: impl FnOnce() -> &'static str,
        response: &'r Response<Body>,
        refused: bool,
        took: Duration,
    ) -> Answered<'r> {
        Answered {
            method: &self.head.method,
            route: self.resource.map_or_else(unrouted, |resource| resource.template),
            status: response.status().as_u16(),
            refused,
            took,
            request_id: id_of(response),
            caller: self.caller.as_deref(),
            refused_key: self.refused_key.as_deref(),
            client: self.client,
            bytes: response.body().size_hint().exact(),
            span: self.trace.as_deref().map(RequestTrace::span),
        }
    }
}

/// Route → credential → rate window → scope → query → membership and role, if the endpoint is guarded → body → endpoint
/// → answer.
async fn answer<B>(connected: &Connected, exchange: &mut Exchange<'_, B>) -> Result<Reply, Failure>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: std::error::Error + 'static,
{
    let Exchange {
        resource,
        head,
        fields,
        body,
        rate,
        without_authorization,
        caller: observed_caller,
        refused_key,
        client,
        holder: counted_for,
        request_id,
        trace,
    } = exchange;
    let shared = &*connected.shared;
    let (service, headers) = (&shared.service, &head.headers);

    fields.check_head(&head.method, &head.uri)?;
    let endpoint = match resource.and_then(|resource| resource.endpoint(&head.method)) {
        Some(endpoint) => endpoint,
        None => {
            let page = Box::pin(shared.page(*resource, head)).await;
            let answered = page.unwrap_or_else(|| shared.unrouted(*resource, head));
            return answered.map(Reply::whole);
        }
    };

    let run = match endpoint.run {
        Runner::Open(run) => return run(service, &shared.leaving).await,
        Runner::Called(run) => run,
    };
    let credential = Credential::of(
        endpoint.route.needs,
        matches!(endpoint.content, Content::ModelCall),
        fields,
        headers,
        &shared.browser,
        shared.cors.as_ref(),
    )?;
    *without_authorization = fields.authorization.is_none();
    let entry = match credential {
        Credential::Code => return Box::pin(redeem(shared, endpoint, head, fields, *body)).await,
        Credential::Bearer(credential) => service.enter(credential).await,
        Credential::Cookie(cookie) => Box::pin(service.enter_browser_session(cookie)).await,
    };
    if let Err(EntryError::Credential(error)) = &entry
        && let Some(why) = error.source().filter(|_| error.kind() == ErrorKind::Unauthorized)
    {
        let client = client.map(tracing::field::display);
        tracing::info!(%why, request_id = text(request_id), client, "a session token was refused");
    }
    // The figures belong to every answer to a good credential, also to the refusal of one that used up its limit.
    let (known, figures) = match &entry {
        Ok(entry) => (Some(&entry.caller), Some(entry.rate)),
        Err(EntryError::RateLimited { limited, caller }) => (Some(&**caller), Some(limited.status)),
        Err(_) => (None, None),
    };
    *rate = figures;
    if let Some(observer) = &shared.observer
        && observer.wants_caller()
    {
        *observed_caller = known.map(|caller| caller.actor().id.into());
        if let (None, Credential::Bearer(presented)) = (known, credential) {
            *refused_key = token::presented_id(presented).map(Into::into);
        }
    }
    let mut caller = entry?.caller;
    if !head.method.is_safe() && !matches!(endpoint.content, Content::ModelCall) {
        caller = caller.with_request_id(text(request_id));
    }
    credential.check_origin(&head.method, headers, &shared.browser)?;
    let is_dry_run = || is_dry_run(endpoint, head);
    check_needs(endpoint.route.needs, &caller, is_dry_run)?;

    let call = Call {
        service,
        caller: &caller,
        model_calls: shared.model_calls.as_ref(),
        webhooks: shared.webhooks.as_deref(),
        disconnect: head.extensions.get::<Disconnect>().unwrap_or(&connected.client),
        streams: &shared.streams,
        answers: &shared.answer_budget,
        observer: shared.observer.as_ref(),
        request_id: text(request_id),
        trace: trace.as_deref(),
        rest: Rest::new(credential, &shared.browser, head),
    };
    let mut received = Received {
        uri: &head.uri,
        query: read_query(endpoint, head)?,
        headers,
        body: Bytes::new(),
        limits: service.limits(),
    };
    if let Some(guard) = endpoint.guard {
        guard(&call, &received)?.await?;
    }
    fields.check_encoding()?;
    // The share is held until the endpoint has run.
    let name = || holder(&caller);
    let has_no_body = matches!(endpoint.content, Content::Nothing);
    // With a bearer, no body with a code is read.
    let _share = if has_no_body || matches!(endpoint.route.needs, Needs::SessionOrCode) {
        None
    } else {
        let mut share = shared.body_budget.share(&name);
        received.body = Box::pin(read_body(endpoint, (head, &*shared.catalogue), *body, &mut share)).await?;
        Some(share)
    };
    let running = run(&call, &received)?;
    let reply = match head.method.is_safe() {
        true => call.while_connected(running).await,
        false => running.await,
    }?;
    *counted_for = reply.is_counted().then(name);
    Ok(reply)
}

fn read_query<'a>(endpoint: &Definition, head: &'a Parts) -> Result<Query<'a>, Failure> {
    let query = Query::parse(head.uri.query(), |name| endpoint.passes(name))?;
    strict_query::check(endpoint, &query)?;
    Ok(query)
}

/// Whether a request asks for a dry run. A query that cannot be read asks for none.
fn is_dry_run(endpoint: &Definition, head: &Parts) -> bool {
    let query = Query::parse(head.uri.query(), |name| endpoint.passes(name));
    query.is_ok_and(|query| query.get(DryRun::DOC.name) == Some("true"))
}

/// Refuses a caller that cannot have what an endpoint needs.
///
/// # Errors
///
/// 403 for an API key where a session is needed, or without the permission.
fn check_needs(needs: Needs, caller: &Caller, is_dry_run: impl FnOnce() -> bool) -> Result<(), Failure> {
    match needs {
        Needs::Nothing | Needs::Credential | Needs::Bearer => {}
        Needs::Session | Needs::SessionOrCode | Needs::SessionUnless(..) => {
            caller.user_id()?;
        }
        Needs::Permission(permission) => caller.check_scope(permission)?,
        Needs::PermissionUnlessDryRun(permission) => caller.check_scope(permission.unless_dry_run(is_dry_run()))?,
        Needs::SessionWith(permission) => {
            caller.user_id()?;
            caller.check_scope(permission)?;
        }
    }
    Ok(())
}

/// Signs a browser in with a login code.
async fn redeem<B>(
    shared: &AppShared,
    endpoint: &Definition,
    head: &Parts,
    fields: &HeadFields<'_>,
    body: &mut B,
) -> Result<Reply, Failure>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: std::error::Error + 'static,
{
    shared.browser.check_not_foreign(&head.headers)?;
    fields.check_encoding()?;
    let name = || "a login code".to_owned();
    let mut share = shared.body_budget.share(&name);
    let body = Box::pin(read_optional_json(endpoint, head, body, &mut share)).await?;
    Box::pin(endpoints::redeem(
        &shared.service,
        &shared.browser,
        &head.headers,
        &body,
    ))
    .await
}

/// The response to a request that failed.
async fn refuse<B>(failure: &Failure, head: &Parts, body: &mut B) -> Response<Body>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let mut response = failure.to_response();
    // A client that sends `Expect: 100-continue` has not sent its body yet.
    if head.headers.contains_key(header::EXPECT) || !discard(body).await {
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Gives the refusal of a model call the form of the provider's API.
fn in_form_of(api: ProviderApi, failure: &Failure, request_id: &HeaderValue, refusal: &mut Response<Body>) {
    let body = model_calls::in_form_of(api, failure.status.as_u16(), &failure.message, text(request_id));
    *refusal.body_mut() = Body::from(body.to_string());
    if api == ProviderApi::Anthropic {
        refusal.headers_mut().insert(ANTHROPIC_REQUEST_ID, request_id.clone());
    }
}

/// An identifier of a request as text: it is visible ASCII.
fn text(request_id: &HeaderValue) -> &str {
    request_id.to_str().unwrap_or_default()
}

/// The identifier of the request that a response answers.
fn id_of(response: &Response<Body>) -> &str {
    response.headers().get(REQUEST_ID).map_or("", text)
}

/// The response to `HEAD`: the fields of `GET` and no body.
fn without_body(response: Response<Body>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact()
        && head.status != StatusCode::NOT_MODIFIED
    {
        head.headers.insert(header::CONTENT_LENGTH, length.into());
    }
    Response::from_parts(head, Body::default())
}
