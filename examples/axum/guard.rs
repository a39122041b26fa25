//! Routes of your own behind the credentials of agentcfg, next to its API with model calls.
//!
//! Each request of an own route is admitted as the API does it: credential, rate window, permission in the workspace. At the
//! end the last uses of API keys are written.
//!
//! ```text
//! cargo run -p agentcfg-example-axum --example guard
//! ```

use std::error::Error;
use std::time::Duration;

use agentcfg_core::model::{
    Environment, NewAgent, NewApiKey, NewWorkspace, Permission, Provider, RateStatus, Scope, WorkspaceId,
};
use agentcfg_core::routing::Catalogue;
use agentcfg_core::secret::ProviderCredential;
use agentcfg_core::service::EntryError;
use agentcfg_core::store::MemoryStore;
use agentcfg_core::{AgentCfg, Caller};
use agentcfg_server::{App, CallTimeouts, Cors, ModelCalls};
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use tokio::net::TcpListener;
use tower_service::Service;

/// A request that may go on.
struct Admitted {
    caller: Caller,
    workspace: WorkspaceId,
    rate: RateStatus,
}

/// Admits a request whose caller has a permission. The window counts a request also where the permission is missing.
async fn admit(service: &AgentCfg, headers: &HeaderMap, permission: Permission) -> Result<Admitted, Response> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|field| {
        let (scheme, credential) = field.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(credential)
    });
    // An empty text is refused as every other credential that is not valid.
    let entry = match service.enter(bearer.unwrap_or_default()).await {
        Ok(entry) => entry,
        Err(EntryError::Credential(error)) => return Err(refusal(&error)),
        Err(EntryError::RateLimited { limited, .. }) => {
            let wait = [(header::RETRY_AFTER, limited.retry_after_seconds().to_string())];
            let response = (StatusCode::TOO_MANY_REQUESTS, wait, limited.to_string());
            return Err((figures(&limited.status), response).into_response());
        }
        Err(_) => return Err(StatusCode::INTERNAL_SERVER_ERROR.into_response()),
    };
    let (caller, rate) = (entry.caller, entry.rate);
    let allowed = async {
        let workspace = service.default_workspace(&caller).await?;
        service.authorize(&caller, workspace, permission).await?;
        Ok(workspace)
    };
    match allowed.await {
        Ok(workspace) => Ok(Admitted {
            caller,
            workspace,
            rate,
        }),
        Err(error) => Err((figures(&rate), refusal(&error)).into_response()),
    }
}

/// The response to a refused request. The message of an error is for the caller; its cause is not in it.
fn refusal(error: &agentcfg_core::Error) -> Response {
    let status = StatusCode::from_u16(error.kind().http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, error.message().to_owned()).into_response()
}

fn figures(rate: &RateStatus) -> [(&'static str, String); 3] {
    rate.headers().map(|(name, value)| (name, value.to_string()))
}

/// `POST /tasks`: a resource of the app, which agentcfg knows only by its permission.
async fn create_task(State(service): State<AgentCfg>, headers: HeaderMap) -> Response {
    match admit(&service, &headers, Permission::TasksCreate).await {
        Ok(Admitted {
            caller,
            workspace,
            rate,
        }) => {
            let said = format!("a task of {workspace} by {:?}", caller.actor().id);
            (StatusCode::CREATED, figures(&rate), said).into_response()
        }
        Err(refused) => refused,
    }
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
    let calls = ModelCalls::new(CallTimeouts {
        first_byte: Duration::from_secs(120),
        idle: Duration::from_secs(60),
    })?;
    let api = App::new(service.clone(), Cors::default()).with_model_calls(calls);
    let mut app = Router::new()
        .route("/tasks", post(create_task))
        .with_state(service.clone())
        .nest_service("/agentcfg", api);

    let ada = service.trusted_user("ada")?;
    let name = "Studio".to_owned();
    let studio = service.create_workspace(&ada, NewWorkspace::new(name)).await?.id;
    let mut writer = NewAgent::new(studio, "writer".parse()?, "Writer");
    writer.persona_prompt = Some("You write.".into());
    service.create_agent(&ada, writer).await?;
    let key =
        |scope, rate_limit| NewApiKey::new(studio, "pipeline", Environment::Development, scope).rate_limit(rate_limit);
    let write = service.create_api_key(&ada, key(Scope::Write, 2)).await?.key;
    let read = service.create_api_key(&ada, key(Scope::Read, 100)).await?.key;

    println!("{}", send(&mut app, "/tasks", &write, "").await?);
    println!("{}", send(&mut app, "/tasks", &read, "").await?);
    println!("{}", send(&mut app, "/tasks", "svc_test_unknown", "").await?);
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
