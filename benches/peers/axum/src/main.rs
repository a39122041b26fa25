//! The same authenticated list and durable create, as written with axum and SQLite in the usual way:
//! extractors, a middleware for the key and its rate window, and connection pools whose work runs on blocking threads.
//!
//! `axum-sqlite-peer FILE` prints `workspace=`, `key=` and `listening on http://…`.

#![allow(
    clippy::disallowed_methods,
    reason = "the rules of the product about time and identifiers are not this program's"
)]

mod agent;
mod auth;
mod failure;
mod store;

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::{Extension, Json, Router, middleware, routing};
use serde::Deserialize;
use tokio::net::TcpListener;
use uuid::Uuid;

use agent::{Agent, NewAgent};
use auth::{KeyRecord, Windows};
use failure::Failure;
use store::Store;

struct Shared {
    store: Store,
    windows: Windows,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let file = std::env::args()
        .nth(1)
        .ok_or(Failure::Invalid("usage: axum-sqlite-peer FILE"))?;
    let store = Store::open(&file)?;
    let [workspace, key_id] = [(); 2].map(|()| Uuid::new_v4().to_string());
    let key = format!("svc_live_{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    store.seed(&workspace, &key_id, auth::hash(&key))?;
    let shared = Arc::new(Shared {
        store,
        windows: Windows::default(),
    });
    let app = Router::new()
        .route("/api/agents/configs", routing::get(list).post(create))
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), auth::check))
        .with_state(shared);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!(
        "workspace={workspace}\nkey={key}\nlistening on http://{}",
        listener.local_addr()?
    );
    axum::serve(listener, app).await?;
    Ok(())
}

#[derive(Deserialize)]
struct ListQuery {
    workspace_id: String,
}

async fn list(
    State(shared): State<Arc<Shared>>,
    Extension(key): Extension<Arc<KeyRecord>>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Vec<Agent>>, Failure> {
    key.owns(&query.workspace_id)?;
    Ok(Json(shared.store.list(query.workspace_id).await?))
}

async fn create(
    State(shared): State<Arc<Shared>>,
    Extension(key): Extension<Arc<KeyRecord>>,
    Json(agent): Json<NewAgent>,
) -> Result<(StatusCode, Json<Agent>), Failure> {
    key.owns(&agent.workspace_id)?;
    agent.validate()?;
    let made = shared.store.create(key.id.clone(), Agent::new(agent)).await?;
    Ok((StatusCode::CREATED, Json(made)))
}
