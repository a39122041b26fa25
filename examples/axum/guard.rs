//! Routes of your own behind the credentials of agentcfg, next to its API with model calls.
//!
//! Each request of an own route is admitted as the API does it: credential, rate window, permission in the workspace.
//! The layer does the first two, and the route asks for the permission. At the end the last uses of API keys are
//! written.
//!
//! ```text
//! cargo run -p agentcfg-example-axum --example guard
//! ```

use std::error::Error;

use agentcfg_core::model::{
    Environment, JsonBody, NewAgent, NewApiKey, NewWorkspace, Permission, Provider, Scope, StatusReport, WorkspaceId,
};
use agentcfg_core::routing::Catalogue;
use agentcfg_core::secret::ProviderCredential;
use agentcfg_core::store::MemoryStore;
use agentcfg_core::validate::Valid;
use agentcfg_core::{AgentCfg, Caller};
use agentcfg_server::{App, CallTimeouts, Cors, EntryLayer, ModelCalls};
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRef, FromRequest, Path, State};
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Json, Router};
use tokio::net::TcpListener;
use tower_service::Service;

/// Why a route refuses: the message of an error is for the caller; its cause is not in it.
struct Refused(agentcfg_core::Error);

impl<E: Into<agentcfg_core::Error>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self(error) = self;
        let status = StatusCode::from_u16(error.kind().http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, error.message().to_owned()).into_response()
    }
}

/// The workspace of a caller that has a permission there.
async fn allowed(service: &AgentCfg, caller: &Caller, permission: Permission) -> Result<WorkspaceId, Refused> {
    let workspace = service.default_workspace(caller).await?;
    service.authorize(caller, workspace, permission).await?;
    Ok(workspace)
}

/// An extractor of any body of agentcfg, checked by its rules.
struct Checked<T>(Valid<T>);

impl<S, T> FromRequest<S> for Checked<T>
where
    S: Send + Sync,
    T: JsonBody,
    AgentCfg: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request(request: Request<Body>, state: &S) -> Result<Self, Response> {
        let limits = AgentCfg::from_ref(state).limits();
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(IntoResponse::into_response)?;
        let read = T::read_json(&bytes, limits);
        read.map(Self).map_err(|invalid| Refused::from(invalid).into_response())
    }
}

/// `POST /tasks`: a resource of the app, which agentcfg knows only by its permission.
async fn create_task(
    State(service): State<AgentCfg>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Refused> {
    let workspace = allowed(&service, &caller, Permission::TasksCreate).await?;
    let said = format!("a task of {workspace} by {:?}", caller.actor().id);
    Ok((StatusCode::CREATED, said).into_response())
}

/// `POST /progress/{agent_id}`: the app's own way to report the status of an agent. The service checks the permission.
async fn report(
    State(service): State<AgentCfg>,
    Extension(caller): Extension<Caller>,
    Path(agent_id): Path<String>,
    Checked(report): Checked<StatusReport>,
) -> Result<StatusCode, Refused> {
    service.report_status(&caller, None, &agent_id, report).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Stands for the API of a provider.
async fn provider(body: String) -> Json<String> {
    Json(body)
}

/// Sends a request to the app, and returns what it answers.
async fn send(app: &mut Router, path: &str, key: &str, body: &'static str) -> Result<String, Box<dyn Error>> {
    let request = Request::post(path)
        .header(header::AUTHORIZATION, format!("Bearer {key}"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(body))?;
    let response = app.call(request).await?;
    let status = response.status().as_u16();
    let text = String::from_utf8(to_bytes(response.into_body(), 1 << 20).await?.to_vec())?;
    Ok(format!("{status} {text}"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    let fake = Router::new().route("/v1/responses", post(provider));
    let fake = tokio::spawn(axum::serve(listener, fake).into_future());

    let service = AgentCfg::builder(MemoryStore::new())
        .catalogue(Catalogue::default().with_base_url(Provider::OPENAI, &address)?)
        .managed_credential(Provider::OPENAI, ProviderCredential::new("sk-of-your-app")?)
        .build();
    let calls = ModelCalls::new(CallTimeouts::default())?;
    let api = App::new(service.clone(), Cors::default()).with_model_calls(calls);
    let mut app = Router::new()
        .route("/tasks", post(create_task))
        .route("/progress/{agent_id}", post(report))
        .with_state(service.clone())
        // Of the routes above alone: the API admits its requests itself.
        .layer(EntryLayer::new(service.clone()))
        .nest_service("/agentcfg", api);

    let ada = service.trusted_user("ada")?;
    let name = "Studio".to_owned();
    let studio = service.create_workspace(&ada, NewWorkspace::new(name)).await?.id;
    let mut writer = NewAgent::new(studio, "writer".parse()?, "Writer");
    writer.persona_prompt = Some("You write.".into());
    service.create_agent(&ada, writer).await?;
    let key =
        |scope, rate_limit| NewApiKey::new(studio, "pipeline", Environment::Development, scope).rate_limit(rate_limit);
    let write = service.create_api_key(&ada, key(Scope::Write, 4)).await?.key;
    let read = service.create_api_key(&ada, key(Scope::Read, 100)).await?.key;

    println!("{}", send(&mut app, "/tasks", &write, "").await?);
    println!("{}", send(&mut app, "/tasks", &read, "").await?);
    println!("{}", send(&mut app, "/tasks", "svc_test_unknown", "").await?);
    for body in [r#"{"status": "idle"}"#, r#"{"status": "asleep"}"#] {
        println!("{}", send(&mut app, "/progress/writer", &write, body).await?);
    }
    // The API and the own routes share the window of the key.
    let call = "/agentcfg/api/agents/model-calls/openai/v1/responses?agent_id=writer";
    println!(
        "{}",
        send(&mut app, call, &write, r#"{"model": "gpt-5.5", "input": "Hello"}"#).await?
    );
    println!("{}", send(&mut app, "/tasks", &write, "").await?);

    // The end: no more requests, then the last uses of keys, then the service itself.
    fake.abort();
    drop(app);
    service.shutdown().await?;
    let keys = service.list_api_keys(&ada, studio).await?;
    println!(
        "{} keys were used",
        keys.iter().filter(|key| key.last_used_at.is_some()).count()
    );
    Ok(())
}
