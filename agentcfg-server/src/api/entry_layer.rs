//! Routes of an app behind the credentials of agentcfg, as a layer of `tower`.

use std::pin::Pin;
use std::task::{Context, Poll};

use agentcfg_core::AgentCfg;
use agentcfg_core::model::RateStatus;
use agentcfg_core::service::{Entry, EntryError};
use hyper::header::HeaderMap;
use hyper::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use crate::http::errors::Failure;
use crate::http::request::HeadFields;
use crate::http::response::{FieldValues, figures};

/// Admits each request of the routes below it, as the API does: by its credential and its rate window.
///
/// | request | answer |
/// |---|---|
/// | with a good credential | that of the route, which finds the [`Caller`](agentcfg_core::Caller) in the extensions of the request |
/// | without one | 401 with `WWW-Authenticate` |
/// | over the limit | 429 with `Retry-After` |
/// | while the credential cannot be verified | 503 with `Retry-After` |
///
/// Refusals have the body of the API's, `{"error": "…"}`. Each answer but 401 has the fields `X-RateLimit-Limit`,
/// `X-RateLimit-Remaining` and `X-RateLimit-Reset`, and the window is the one that the API counts in. Which workspace a
/// route is about only the route knows, so it asks for the permission itself: [`AgentCfg::authorize`].
///
/// The credential is a bearer in `Authorization`: an API key or a session token. Cookies are ignored, so a page of
/// another site cannot call in the name of a user. A preflight of CORS has no credential, so a layer that answers it
/// goes around this one.
///
/// It needs the feature `tower`, and neither the API nor a model provider.
///
/// ```
/// use agentcfg_core::{AgentCfg, Caller, store::MemoryStore};
/// use agentcfg_server::EntryLayer;
/// use axum::{Extension, Router, body::Body, routing::get};
/// use tower_service::Service;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let service = AgentCfg::builder(MemoryStore::new()).build();
/// let mut app = Router::new()
///     .route("/tasks", get(async |Extension(caller): Extension<Caller>| caller.actor().id.to_string()))
///     .layer(EntryLayer::new(service));
/// let response = app.call(hyper::Request::get("/tasks").body(Body::empty())?).await?;
/// assert_eq!(response.status(), 401, "it has no credential");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct EntryLayer {
    service: AgentCfg,
}

impl EntryLayer {
    /// A layer that verifies credentials with this service.
    ///
    /// ```
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// use agentcfg_server::EntryLayer;
    /// let layer = EntryLayer::new(AgentCfg::builder(MemoryStore::new()).build());
    /// ```
    pub fn new(service: AgentCfg) -> Self {
        Self { service }
    }
}

impl<S> Layer<S> for EntryLayer {
    type Service = EntryService<S>;

    fn layer(&self, inner: S) -> EntryService<S> {
        EntryService {
            service: self.service.clone(),
            inner,
        }
    }
}

/// The service that [`EntryLayer`] makes of another one.
///
/// The body of its answers is that of the other one. It is made from a text where a request is refused.
///
/// ```
/// use agentcfg_core::{AgentCfg, store::MemoryStore};
/// use agentcfg_server::{App, Cors, EntryLayer, EntryService};
/// use tower_layer::Layer;
/// let service = AgentCfg::builder(MemoryStore::new()).build();
/// let guarded: EntryService<App> = EntryLayer::new(service.clone()).layer(App::new(service, Cors::default()));
/// ```
#[derive(Debug, Clone)]
pub struct EntryService<S> {
    service: AgentCfg,
    inner: S,
}

impl<S, B, R> Service<Request<B>> for EntryService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
    R: From<String>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        // The clone may not be ready, so the one that was asked is the one that is called.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let service = self.service.clone();
        Box::pin(async move {
            let Entry { caller, rate, .. } = match enter(&service, request.headers()).await {
                Ok(entry) => entry,
                Err(refused) => return Ok(refused.into_response()),
            };
            request.extensions_mut().insert(caller);
            let mut response = inner.call(request).await?;
            figures(response.headers_mut(), &rate, &mut FieldValues::default());
            Ok(response)
        })
    }
}

/// A request that is not admitted.
struct Refused {
    failure: Failure,
    /// The figures of the window, if the request was counted.
    rate: Option<RateStatus>,
}

impl Refused {
    fn into_response<R: From<String>>(self) -> Response<R> {
        let Self { failure, rate } = self;
        if failure.status.is_server_error() {
            let cause = failure.cause.as_deref().unwrap_or_default();
            tracing::error!(status = failure.status.as_u16(), cause, "{}", failure.message);
        }
        let mut response = failure.response_with(failure.body().into());
        if let Some(rate) = rate {
            figures(response.headers_mut(), &rate, &mut FieldValues::default());
        }
        response
    }
}

async fn enter(service: &AgentCfg, headers: &HeaderMap) -> Result<Entry, Refused> {
    let uncounted = |failure| Refused { failure, rate: None };
    let credential = HeadFields::of(headers).bearer().map_err(uncounted)?;
    service.enter(credential).await.map_err(|error| Refused {
        rate: match &error {
            EntryError::RateLimited { limited, .. } => Some(limited.status),
            _ => None,
        },
        failure: error.into(),
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{Ready, ready};

    use agentcfg_core::Caller;
    use agentcfg_core::model::{Environment, NewApiKey, NewWorkspace, Scope};
    use agentcfg_core::store::MemoryStore;
    use hyper::StatusCode;
    use serde_json::{Value, json};

    use super::*;

    /// A route of an app: it answers with the caller. It is ready once, so that a call of one that was not asked fails.
    #[derive(Default)]
    struct Route {
        is_ready: bool,
    }

    impl Clone for Route {
        fn clone(&self) -> Self {
            Self::default()
        }
    }

    impl Service<Request<String>> for Route {
        type Response = Response<String>;
        type Error = Infallible;
        type Future = Ready<Result<Response<String>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            self.is_ready = true;
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<String>) -> Self::Future {
            assert!(std::mem::take(&mut self.is_ready), "called without being asked");
            let caller = request.extensions().get::<Caller>().unwrap();
            let mut response = Response::new(format!("{caller:?} sent {}", request.body()));
            *response.status_mut() = StatusCode::CREATED;
            ready(Ok(response))
        }
    }

    /// Sends a request with these fields.
    async fn send(app: &mut EntryService<Route>, fields: &[(&str, &str)]) -> Response<String> {
        let request = fields.iter().fold(Request::post("/tasks"), |request, (name, value)| {
            request.header(*name, *value)
        });
        std::future::poll_fn(|cx| Service::<Request<String>>::poll_ready(app, cx))
            .await
            .unwrap();
        app.call(request.body("a task".to_owned()).unwrap()).await.unwrap()
    }

    fn figure(response: &Response<String>, name: &str) -> Option<i64> {
        response.headers().get(name)?.to_str().ok()?.parse().ok()
    }

    fn body(response: &Response<String>) -> Value {
        assert_eq!(response.headers()["content-type"], "application/json");
        serde_json::from_str(response.body()).unwrap()
    }

    async fn guarded(rate_limit: u32) -> (EntryService<Route>, AgentCfg, String) {
        let service = AgentCfg::builder(MemoryStore::new()).build();
        let ada = service.trusted_user("ada").unwrap();
        let studio = service
            .create_workspace(&ada, NewWorkspace::new("Studio"))
            .await
            .unwrap();
        let new = NewApiKey::new(studio.id, "ci", Environment::Production, Scope::Read).rate_limit(rate_limit);
        let key = service.create_api_key(&ada, new).await.unwrap().key;
        (
            EntryLayer::new(service.clone()).layer(Route::default()),
            service,
            format!("Bearer {key}"),
        )
    }

    #[tokio::test]
    async fn a_route_gets_the_caller_and_its_answer_the_figures() {
        let (mut app, service, bearer) = guarded(3).await;
        for remaining in [2, 1] {
            let response = send(&mut app, &[("authorization", &bearer)]).await;
            assert_eq!(response.status(), 201);
            assert!(response.body().starts_with("Caller(API key"), "{}", response.body());
            assert!(response.body().ends_with(" sent a task"), "{}", response.body());
            assert_eq!(figure(&response, "x-ratelimit-limit"), Some(3));
            assert_eq!(figure(&response, "x-ratelimit-remaining"), Some(remaining));
            assert!(figure(&response, "x-ratelimit-reset") > Some(1_700_000_000));
            assert_eq!(response.headers().get("retry-after"), None);
        }
        // The window is that of the API.
        let key = bearer.strip_prefix("Bearer ").unwrap();
        assert_eq!(service.enter(key).await.unwrap().rate.remaining, 0);
    }

    #[tokio::test]
    async fn over_the_limit_is_429_with_the_time_to_wait() {
        let (mut app, _, bearer) = guarded(1).await;
        send(&mut app, &[("authorization", &bearer)]).await;
        let response = send(&mut app, &[("authorization", &bearer)]).await;
        assert_eq!(response.status(), 429);
        let seconds = figure(&response, "retry-after").unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
        assert_eq!(figure(&response, "x-ratelimit-remaining"), Some(0));
        let said = format!("rate limit of 1 requests per minute exceeded, try again in {seconds} s");
        assert_eq!(body(&response), json!({ "error": said }));
    }

    #[tokio::test]
    async fn without_a_good_credential_it_is_401_and_the_route_is_not_called() {
        let (mut app, _, bearer) = guarded(10).await;
        let missing = "missing credentials: send the header Authorization: Bearer <credential>";
        let invalid = "invalid credentials: send the header Authorization: Bearer <credential>";
        let twice = "invalid credentials: the Authorization header must be sent once";
        let cases: [(&[(&str, &str)], &str); 6] = [
            (&[], missing),
            (&[("cookie", &bearer)], missing),
            (&[("authorization", "Basic YTpi")], invalid),
            (&[("authorization", "Bearer ")], invalid),
            (&[("authorization", &bearer), ("authorization", &bearer)], twice),
            (&[("authorization", "Bearer svc_live_unknown")], "invalid credentials"),
        ];
        for (fields, message) in cases {
            let response = send(&mut app, fields).await;
            assert_eq!(response.status(), 401, "{fields:?}");
            assert_eq!(response.headers()["www-authenticate"], "Bearer");
            assert_eq!(body(&response), json!({ "error": message }), "{fields:?}");
            assert_eq!(figure(&response, "x-ratelimit-limit"), None, "it was not counted");
        }
    }
}
