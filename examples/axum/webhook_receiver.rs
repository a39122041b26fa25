//! A receiver of webhooks: it verifies each message with a library of Standard Webhooks, and answers at once.
//!
//! ```sh
//! LISTEN=127.0.0.1:9000 WEBHOOK_SECRET=whsec_… cargo run -p agentcfg-example-axum --example webhook_receiver
//! ```

use std::collections::HashSet;
use std::env;
use std::error::Error;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use standardwebhooks::Webhook;

struct Receiver {
    verifier: Webhook,
    /// The messages that were taken. A real receiver keeps the identifiers of the last days in its database.
    taken: Mutex<HashSet<String>>,
}

async fn receive(State(receiver): State<Arc<Receiver>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    // The signature is over the bytes as they came, so the body is verified before it is parsed.
    if receiver.verifier.verify(&body, &headers).is_err() {
        return StatusCode::UNAUTHORIZED;
    }
    let id = headers["webhook-id"].to_str().unwrap_or_default().to_owned();
    let is_new = receiver.taken.lock().is_ok_and(|mut taken| taken.insert(id));
    // A message comes at least once, so the same one may come again.
    if is_new {
        println!("{}", String::from_utf8_lossy(&body));
    }
    StatusCode::NO_CONTENT
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let receiver = Receiver {
        verifier: Webhook::new(&env::var("WEBHOOK_SECRET")?)?,
        taken: Mutex::default(),
    };
    let app = Router::new()
        .route("/hook", post(receive))
        .with_state(Arc::new(receiver));
    let listener = tokio::net::TcpListener::bind(env::var("LISTEN")?).await?;
    println!("listening");
    axum::serve(listener, app).await?;
    Ok(())
}
