//! An app that has its users signed in already, and lets this service believe its own session tokens.
//!
//! The app implements [`SessionVerifier`] over whatever it keeps sessions in, here a map. The same value works behind the
//! REST API, which asks it for every bearer that is no API key.
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
    /// Called on every request with a session token, so a sign-out counts at once. `now` comes from the service's clock.
    async fn verify(&self, token: &str, now: Timestamp) -> Result<Session, SessionError> {
        // Where sessions are kept may be out of reach. Then nobody knows, which is neither yes nor no: callers get 503 and
        // try again instead of signing in anew.
        let open = self
            .open
            .read()
            .map_err(|_| SessionError::Unavailable("the session table is broken".to_owned()))?;
        let signed_in = open
            .get(token)
            .ok_or(SessionError::Invalid("nobody is signed in with it"))?;
        if signed_in.until <= now {
            return Err(SessionError::Invalid("it has expired"));
        }
        // Only who it is. What the user may do is decided by the memberships that the service keeps.
        Ok(Session {
            user_id: signed_in.user_id.clone(),
        })
    }

    /// A map is always ready. One that has to connect first says here what is missing, and `/readyz` tells.
    fn ready(&self) -> Result<(), SessionError> {
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sessions = Arc::new(AppSessions::default());
    // The app keeps its handle; the service gets another to the same sessions.
    let service = AgentCfg::builder(MemoryStore::new())
        .sessions(Arc::clone(&sessions))
        .build();
    service.ready().await?;

    let in_an_hour = SystemClock.now().plus_millis(3_600_000);
    sessions.sign_in("token-of-ada", "ada", in_an_hour);
    let ada = service.authenticate("token-of-ada").await?;
    let studio = service
        .create_workspace(&ada, NewWorkspace { name: "Studio".into() })
        .await?;
    println!("{} made the workspace {}", ada.user_id()?, studio.name);
    assert_eq!(service.list_workspaces(&ada).await?.len(), 1);

    // Somebody else is signed in too, and sees nothing of it.
    sessions.sign_in("token-of-eve", "eve", in_an_hour);
    let eve = service.authenticate("token-of-eve").await?;
    assert!(service.list_workspaces(&eve).await?.is_empty());

    // Signed out, expired, made up: all the same to the caller.
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
