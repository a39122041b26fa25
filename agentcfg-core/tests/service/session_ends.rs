//! What ends the sessions of browsers: a restore, and other rules of admission.

use std::sync::Arc;
use std::time::Duration;

use agentcfg_core::clock::Clock;
use agentcfg_core::model::{After, NewWorkspace, Timestamp};
use agentcfg_core::session::{CookieLife, LocalSessions, Session, SessionError, SessionVerifier};
use agentcfg_core::store::{Check, Key, MemoryStore, Store};
use agentcfg_core::{AgentCfg, ErrorKind, Settings};
use serde_json::json;

use super::sign_in::{clock, cookie, is_in, local, renewing};

#[tokio::test]
async fn sessions_do_not_outlive_a_restore() {
    let (clock, store) = (clock(), Arc::new(MemoryStore::new()));
    let (service, sessions) = local(store.clone(), &clock);
    let token = sessions.issue("ada", 3600, clock.now()).unwrap();
    let cookie = cookie(&service, &token).await;
    let code = service.make_login_code(&"ada".parse().unwrap()).await.unwrap();
    // A restored store has no epoch record, and gets another epoch.
    let epoch = store.get(&[Key::epoch()]).await.unwrap().remove(0).unwrap();
    let batch = agentcfg_core::store::Batch {
        checks: vec![Check::Version(Key::epoch(), epoch.version)],
        writes: vec![agentcfg_core::store::Write::Delete(Key::epoch())],
    };
    store.commit(batch).await.unwrap();
    let (restored, _) = local(store, &clock);
    assert!(!is_in(&restored, &cookie).await);
    assert!(restored.redeem_login_code(&code.code).await.is_err());
}

/// A key that was read by others is replaced, and no session of it stays.
#[tokio::test]
async fn sessions_do_not_outlive_the_secret_of_their_tokens() {
    let (clock, store) = (clock(), Arc::new(MemoryStore::new()));
    let (service, sessions) = local(store.clone(), &clock);
    let token = sessions.issue("ada", 3600, clock.now()).unwrap();
    let cookie = cookie(&service, &token).await;
    let (again, _) = local(store.clone(), &clock);
    assert!(is_in(&again, &cookie).await, "another process with the same secret");
    let other = AgentCfg::builder(store)
        .clock(clock.clone())
        .sessions(LocalSessions::new(&[9; 32]).unwrap())
        .build();
    assert!(!is_in(&other, &cookie).await);
}

/// A verifier that takes a token for as long as the leeway after its end.
struct Lenient;

#[async_trait::async_trait]
impl SessionVerifier for Lenient {
    async fn verify(&self, token: &str, _: Timestamp) -> Result<Session, SessionError> {
        Ok(Session::new("ada").expires_at(token.parse().unwrap()))
    }

    fn ready(&self) -> Result<(), SessionError> {
        Ok(())
    }

    fn cookie_life(&self) -> CookieLife {
        CookieLife::Token
    }
}

#[tokio::test]
async fn a_token_in_its_leeway_reads_the_feed_and_opens_no_session() {
    let clock = clock();
    let service = AgentCfg::builder(MemoryStore::new())
        .clock(clock.clone())
        .sessions(Lenient)
        .build();
    let ada = service.trusted_user("ada").unwrap();
    let studio = service
        .create_workspace(&ada, NewWorkspace::new("Studio"))
        .await
        .unwrap()
        .id;
    let token = clock.now().plus_millis(-3000).to_string();
    let caller = service.authenticate(&token).await.unwrap();
    assert!(service.changes(&caller, studio, After::Start, 10).await.is_ok());
    let watch = service.watch(&caller, studio, After::Now).await.unwrap();
    assert_eq!(watch.expires_in(), Some(Duration::from_secs(7)));
    let refused = service.open_browser_session(&caller, &token).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unauthorized);
    clock.advance_millis(7000);
    let page = service.changes(&caller, studio, After::Start, 10).await;
    assert_eq!(page.unwrap_err().kind(), ErrorKind::Unauthorized);
}

/// A session was opened with a token that is accepted no longer: of another provider, or without a claim that is
/// required since.
#[tokio::test]
async fn sessions_do_not_outlive_the_rules_of_admission() {
    let (service, provider, clock, store) = renewing(json!({"sub": "ada", "groups": ["staff"]}));
    let token = provider.token();
    let cookie = cookie(&service, &token).await;
    let code = service.make_login_code(&"ada".parse().unwrap()).await.unwrap();
    let refused = service.redeem_login_code(&code.code).await.unwrap_err();
    assert_eq!(
        refused.kind(),
        ErrorKind::Unauthorized,
        "codes are for local tokens alone"
    );
    let with = |settings: Settings| {
        let builder = AgentCfg::builder(store.clone())
            .clock(clock.clone())
            .sessions(Arc::clone(&provider));
        builder.settings(settings).unwrap().build()
    };
    let grouped = || Settings::default().groups_claim(Some("groups".to_owned()));
    let required = |claim: &str| grouped().required_claims(vec![claim.parse().unwrap()]);
    assert!(is_in(&with(grouped()), &cookie).await);
    for changed in [
        Settings::default(),
        Settings::default().groups_claim(Some("teams".to_owned())),
        required("groups=admins"),
    ] {
        assert!(!is_in(&with(changed), &cookie).await);
    }
    let (local, _) = local(store.clone(), &clock);
    assert!(!is_in(&local, &cookie).await);
}
