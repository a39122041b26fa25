//! An app whose users are already signed in: the service accepts the app's own session tokens.
//!
//! The app implements [`SessionVerifier`] over its session storage, here a map. The same value works behind the REST
//! API, which passes it every bearer token that is not an API key.
//!
//! Run: `cargo run -p agentcfg-examples --example custom_verifier`

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_core::model::{NewWorkspace, Timestamp};
use agentcfg_core::session::{Session, SessionError, SessionVerifier};
use agentcfg_core::store::MemoryStore;
use agentcfg_core::{AgentCfg, ErrorKind};

/// The app's own sessions.
#[derive(Default)]
struct AppSessions {
    open: RwLock<HashMap<String, SignedIn>>,
}

struct SignedIn {
    user_id: String,
    until: Timestamp,
}

impl AppSessions {
    fn sign_in(&self, token: &str, user_id: &str, until: Timestamp) {
        let user_id = user_id.to_owned();
        self.open
            .write()
            .unwrap()
            .insert(token.to_owned(), SignedIn { user_id, until });
    }

    fn sign_out(&self, token: &str) {
        self.open.write().unwrap().remove(token);
    }
}

#[async_trait::async_trait]
impl SessionVerifier for AppSessions {
    /// Called on every request with a session token, so that a sign-out takes effect at once. `now` is the
    /// time of the service's clock.
    async fn verify(&self, token: &str, now: Timestamp) -> Result<Session, SessionError> {
        // If the session storage is unavailable, the token is neither valid nor invalid: callers then get 503 and try
        // again, instead of signing in again.
        let open = self
            .open
            .read()
            .map_err(|_| SessionError::Unavailable("the session table is broken".to_owned()))?;
        let signed_in = open
            .get(token)
            .ok_or(SessionError::Invalid("no session has this token"))?;
        if signed_in.until <= now {
            return Err(SessionError::Invalid("it has expired"));
        }
        // Only the identity. The memberships that the service stores decide what the user may do.
        Ok(Session::new(signed_in.user_id.clone()).expires_at(signed_in.until))
    }

    /// A map is always ready. A verifier that has to connect first returns the reason why it is not, and
    /// `/readyz` reports it.
    fn ready(&self) -> Result<(), SessionError> {
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sessions = Arc::new(AppSessions::default());
    // The app keeps its handle; the service gets another one to the same sessions.
    let service = AgentCfg::builder(MemoryStore::new())
        .sessions(Arc::clone(&sessions))
        .build();
    service.ready().await?;

    let in_an_hour = SystemClock.now().plus_millis(3_600_000);
    sessions.sign_in("token-of-ada", "ada", in_an_hour);
    let ada = service.authenticate("token-of-ada").await?;
    let studio = service.create_workspace(&ada, NewWorkspace::new("Studio")).await?;
    println!("{} made the workspace {}", ada.user_id()?, studio.name);
    assert_eq!(service.list_workspaces(&ada).await?.len(), 1);

    // Another user is signed in too, and has no access to the workspace.
    sessions.sign_in("token-of-eve", "eve", in_an_hour);
    let eve = service.authenticate("token-of-eve").await?;
    assert!(service.list_workspaces(&eve).await?.is_empty());

    // To the caller, a signed-out, an expired and an invented token all look the same.
    sessions.sign_out("token-of-ada");
    sessions.sign_in("old-token", "ada", SystemClock.now().plus_millis(-1));
    for token in ["token-of-ada", "old-token", "made-up"] {
        let refused = service.authenticate(token).await.err().ok_or("let in")?;
        assert_eq!(refused.kind(), ErrorKind::Unauthorized);
        println!("{token}: {refused}");
    }

    // A verifier that is chosen at run time works as well.
    let chosen: Box<dyn SessionVerifier> = Box::new(AppSessions::default());
    let other = AgentCfg::builder(MemoryStore::new()).sessions(chosen).build();
    assert!(other.authenticate("token-of-eve").await.is_err());
    Ok(())
}
