//! Browser sessions and login codes over time.

use std::sync::Arc;

use agentcfg_core::clock::{Clock, ManualClock, SystemEntropy};
use agentcfg_core::model::Timestamp;
use agentcfg_core::session::{CookieLife, LocalSessions, Session, SessionError, SessionVerifier};
use agentcfg_core::store::{Check, Key, MemoryStore, Store};
use agentcfg_core::vault::{MasterKey, Vault};
use agentcfg_core::{AgentCfg, ErrorKind};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at("2026-11-20T09:30:00Z".parse().unwrap()))
}

fn local(store: Arc<dyn Store>, clock: &Arc<ManualClock>) -> (AgentCfg, Arc<LocalSessions>) {
    let sessions = Arc::new(LocalSessions::new(&[7; 32]).unwrap());
    let service = AgentCfg::builder(store)
        .clock(clock.clone())
        .sessions(Arc::clone(&sessions))
        .build();
    (service, sessions)
}

async fn cookie(service: &AgentCfg, token: &str) -> String {
    let caller = service.enter(token).await.unwrap().caller;
    service
        .open_browser_session(&caller, token)
        .await
        .unwrap()
        .cookie
        .to_string()
}

async fn is_in(service: &AgentCfg, cookie: &str) -> bool {
    service.enter_browser_session(cookie).await.is_ok()
}

#[tokio::test]
async fn a_session_ends_after_eight_hours_without_a_request() {
    let clock = clock();
    let (service, sessions) = local(Arc::new(MemoryStore::new()), &clock);
    let token = sessions.issue("ada", 60, clock.now()).unwrap();
    let cookie = cookie(&service, &token).await;
    for _ in 0..2 {
        clock.advance_millis(8 * HOUR - MINUTE);
        assert!(
            is_in(&service, &cookie).await,
            "each request begins the eight hours again"
        );
    }
    clock.advance_millis(8 * HOUR);
    assert!(!is_in(&service, &cookie).await);
}

#[tokio::test]
async fn a_session_ends_after_a_day_however_often_it_is_used() {
    let clock = clock();
    let (service, sessions) = local(Arc::new(MemoryStore::new()), &clock);
    let token = sessions.issue("ada", 60, clock.now()).unwrap();
    let cookie = cookie(&service, &token).await;
    for _ in 0..23 {
        clock.advance_millis(HOUR);
        assert!(is_in(&service, &cookie).await);
    }
    clock.advance_millis(HOUR - 1);
    assert!(is_in(&service, &cookie).await);
    clock.advance_millis(1);
    assert!(!is_in(&service, &cookie).await);
}

#[tokio::test]
async fn a_login_code_is_good_for_five_minutes() {
    let clock = clock();
    let (service, _) = local(Arc::new(MemoryStore::new()), &clock);
    let ada = "ada".parse().unwrap();
    let (early, late) = (
        service.make_login_code(&ada).await.unwrap(),
        service.make_login_code(&ada).await.unwrap(),
    );
    clock.advance_millis(5 * MINUTE - 1);
    assert_eq!(service.redeem_login_code(&early.code).await.unwrap().user_id, "ada");
    clock.advance_millis(1);
    let refused = service.redeem_login_code(&late.code).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unauthorized);
}

#[tokio::test]
async fn what_has_ended_is_swept() {
    let clock = clock();
    let (service, sessions) = local(Arc::new(MemoryStore::new()), &clock);
    let ada = "ada".parse().unwrap();
    for _ in 0..300 {
        service.make_login_code(&ada).await.unwrap();
    }
    let token = sessions.issue("ada", 60, clock.now()).unwrap();
    let kept = cookie(&service, &token).await;
    assert_eq!(service.sweep_browser_sessions().await.unwrap(), 0);
    clock.advance_millis(5 * MINUTE);
    assert_eq!(service.sweep_browser_sessions().await.unwrap(), 300);
    assert!(is_in(&service, &kept).await);
    clock.advance_millis(9 * HOUR);
    assert_eq!(service.sweep_browser_sessions().await.unwrap(), 1);
}

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

/// A provider that is asked about each token: the token is the user, until it is signed out.
struct Asked(std::sync::atomic::AtomicBool);

#[async_trait::async_trait]
impl SessionVerifier for Asked {
    async fn verify(&self, token: &str, _: Timestamp) -> Result<Session, SessionError> {
        if self.0.load(std::sync::atomic::Ordering::SeqCst) {
            return Err(SessionError::Invalid("it was revoked"));
        }
        Ok(Session::new(token.to_owned()))
    }

    fn ready(&self) -> Result<(), SessionError> {
        Ok(())
    }

    fn cookie_life(&self) -> CookieLife {
        CookieLife::Verified
    }
}

#[tokio::test]
async fn a_verified_token_is_kept_sealed_and_asked_about() {
    let provider = Arc::new(Asked(false.into()));
    let service = AgentCfg::builder(MemoryStore::new())
        .sessions(Arc::clone(&provider))
        .build();
    let caller = service.enter("ada").await.unwrap().caller;
    let refused = service.open_browser_session(&caller, "ada").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotConfigured, "there is no master key");
    service.set_vault(Vault::new(vec![MasterKey::generate(&SystemEntropy).unwrap()]).unwrap());
    let cookie = cookie(&service, "ada").await;
    assert!(is_in(&service, &cookie).await);
    provider.0.store(true, std::sync::atomic::Ordering::SeqCst);
    assert!(!is_in(&service, &cookie).await);
    provider.0.store(false, std::sync::atomic::Ordering::SeqCst);
    // A rotation that dropped the old master key signs users out.
    service.set_vault(Vault::new(vec![MasterKey::generate(&SystemEntropy).unwrap()]).unwrap());
    assert!(!is_in(&service, &cookie).await);
}
