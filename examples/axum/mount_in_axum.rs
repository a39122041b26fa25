//! The REST API under a prefix of your own axum app, next to your own routes.
//!
//! ```text
//! cargo run -p agentcfg-example-axum --example mount_in_axum
//! ```
//!
//! axum strips the prefix before the API sees a path, so clients put it into their base URL.

use std::error::Error;

use agentcfg_client::model::{NewAgent, NewWorkspace};
use agentcfg_client::{AgentFilter, Client};
use agentcfg_core::AgentCfg;
use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_core::session::LocalSessions;
use agentcfg_core::store::MemoryStore;
use agentcfg_server::{App, Cors, Dashboard};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, header};
use axum::response::Redirect;
use axum::routing::get;
use tokio::net::TcpListener;
use tower_service::Service;

/// At least 32 random bytes from your app's secret storage, never from its source.
const SECRET: &[u8] = b"an example is no place for a secret";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let service = AgentCfg::builder(MemoryStore::new())
        .sessions(LocalSessions::new(SECRET)?)
        .build();
    let api = App::new(service, Cors::default()).with_dashboard(Dashboard::default());
    // The page of the dashboard names its files relative to its own path, and the API does not see the prefix. So the
    // prefix without a slash leads to the page.
    let mut app = Router::new()
        .route("/", get(async || "the host's own page"))
        .route("/agentcfg", get(async || Redirect::permanent("/agentcfg/")))
        .nest_service("/agentcfg/", api);
    let moved = app.call(Request::get("/agentcfg").body(Body::empty())?).await?;
    println!("/agentcfg leads to {:?}", moved.headers()[header::LOCATION]);
    for path in ["/agentcfg/", "/agentcfg/app.js"] {
        let answer = app.call(Request::get(path).body(Body::empty())?).await?;
        println!("{path} answers {}", answer.status().as_u16());
    }

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let server = tokio::spawn(axum::serve(listener, app).into_future());

    // Your app would go on here. The example sends itself one request and ends.
    let token = LocalSessions::new(SECRET)?.issue("ada", 60, SystemClock.now())?;
    let client = Client::builder(format!("{url}/agentcfg"))
        .session_token(token)
        .build()?;
    let name = "Studio".to_owned();
    let studio = client.create_workspace(&NewWorkspace::new(name)).await?;
    client
        .create_agent(&NewAgent::new(studio.id, "writer".parse()?, "Writer"))
        .await?;
    for agent in client.list_agents(studio.id, &AgentFilter::default()).await?.value {
        println!("{url}/agentcfg has the agent {}", agent.agent_id);
    }
    server.abort();
    Ok(())
}
