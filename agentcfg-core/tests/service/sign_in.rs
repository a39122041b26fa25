//! Browser sessions and login codes over time.

use std::collections::BTreeSet;
use std::sync::Arc;

use agentcfg_core::clock::{Clock, ManualClock, SystemEntropy};
use agentcfg_core::model::{NewWorkspace, Role, Timestamp};
use agentcfg_core::service::BrowserSession;
use agentcfg_core::session::{
    CookieLife, LocalSessions, Renewed, Session, SessionError, SessionRenewal, SessionVerifier,
};
use agentcfg_core::store::{MemoryStore, Store};
use agentcfg_core::vault::{MasterKey, Vault};
use agentcfg_core::{AgentCfg, ErrorKind, Settings};
use serde_json::json;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

pub(super) fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at("2026-11-20T09:30:00Z".parse().unwrap()))
}

pub(super) fn local(store: Arc<dyn Store>, clock: &Arc<ManualClock>) -> (AgentCfg, Arc<LocalSessions>) {
    let sessions = Arc::new(LocalSessions::new(&[7; 32]).unwrap());
    let service = AgentCfg::builder(store)
        .clock(clock.clone())
        .sessions(Arc::clone(&sessions))
        .build();
    (service, sessions)
}

pub(super) async fn cookie(service: &AgentCfg, token: &str) -> String {
    let caller = service.enter(token).await.unwrap().caller;
    service
        .open_browser_session(&caller, token)
        .await
        .unwrap()
        .cookie
        .to_string()
}

pub(super) async fn is_in(service: &AgentCfg, cookie: &str) -> bool {
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

/// A provider of tokens that are their claims as JSON, valid for ten minutes. Each refresh token works once.
pub(super) struct Renewing {
    clock: Arc<ManualClock>,
    /// The claims of the next token, the refresh token that is good now, and how often one was exchanged.
    state: std::sync::Mutex<(serde_json::Value, u32, u32)>,
    is_down: std::sync::atomic::AtomicBool,
}

impl Renewing {
    pub(super) fn token(&self) -> String {
        let claims = self.state.lock().unwrap().0.clone();
        json!({"claims": claims, "exp": self.clock.now().plus_millis(10 * MINUTE)}).to_string()
    }

    fn set_claims(&self, claims: serde_json::Value) {
        self.state.lock().unwrap().0 = claims;
    }

    fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, std::sync::atomic::Ordering::SeqCst);
    }

    fn exchanges(&self) -> u32 {
        self.state.lock().unwrap().2
    }
}

#[async_trait::async_trait]
impl SessionVerifier for Renewing {
    async fn verify(&self, token: &str, now: Timestamp) -> Result<Session, SessionError> {
        let token: serde_json::Value =
            serde_json::from_str(token).map_err(|_| SessionError::Invalid("it is no JSON"))?;
        let end: Timestamp = token["exp"].as_str().unwrap().parse().unwrap();
        if end <= now {
            return Err(SessionError::Invalid("it has expired"));
        }
        let claims = token["claims"].as_object().unwrap().clone();
        Ok(Session::new(claims["sub"].as_str().unwrap())
            .expires_at(end)
            .claims(claims))
    }

    fn ready(&self) -> Result<(), SessionError> {
        Ok(())
    }

    fn cookie_life(&self) -> CookieLife {
        CookieLife::Token
    }
}

#[async_trait::async_trait]
impl SessionRenewal for Renewing {
    async fn renew(&self, refresh_token: &str) -> Result<Renewed, SessionError> {
        // Others come meanwhile.
        tokio::task::yield_now().await;
        if self.is_down.load(std::sync::atomic::Ordering::SeqCst) {
            return Err(SessionError::Unavailable("it is down".to_owned()));
        }
        let next = {
            let mut state = self.state.lock().unwrap();
            state.2 += 1;
            if refresh_token != format!("refresh-{}", state.1) {
                return Err(SessionError::Invalid("the refresh token was used"));
            }
            state.1 += 1;
            format!("refresh-{}", state.1)
        };
        Ok(Renewed::new(vec!["no token".to_owned(), self.token()]).refresh_token(Some(next)))
    }
}

pub(super) fn renewing(claims: serde_json::Value) -> (AgentCfg, Arc<Renewing>, Arc<ManualClock>, Arc<MemoryStore>) {
    let (clock, store) = (clock(), Arc::new(MemoryStore::new()));
    let provider = Arc::new(Renewing {
        clock: clock.clone(),
        state: (claims, 0, 0).into(),
        is_down: false.into(),
    });
    let settings = Settings::default()
        .groups_claim(Some("groups".to_owned()))
        .operators(BTreeSet::from(["root".to_owned()]));
    let service = AgentCfg::builder(store.clone())
        .settings(settings)
        .unwrap()
        .clock(clock.clone())
        .sessions(Arc::clone(&provider))
        .renewal(Arc::clone(&provider))
        .vault(Vault::new(vec![MasterKey::generate(&SystemEntropy).unwrap()]).unwrap())
        .build();
    (service, provider, clock, store)
}

async fn renewable(service: &AgentCfg, provider: &Renewing) -> BrowserSession {
    let token = provider.token();
    let caller = service.enter(&token).await.unwrap().caller;
    service
        .open_renewable_browser_session(&caller, &token, "refresh-0")
        .await
        .unwrap()
}

#[tokio::test]
async fn a_session_is_renewed_for_a_day() {
    let (service, provider, clock, _) = renewing(json!({"sub": "ada"}));
    let session = renewable(&service, &provider).await;
    assert_eq!(session.seconds, 24 * 3600);
    let caller = service.authenticate_browser_session(&session.cookie).await.unwrap();
    assert_eq!(caller.expires_at(), Some(session.expires_at));
    clock.advance_millis(10 * MINUTE - 1);
    assert!(is_in(&service, &session.cookie).await);
    assert_eq!(provider.exchanges(), 0);
    clock.advance_millis(1);
    assert!(is_in(&service, &session.cookie).await);
    assert!(is_in(&service, &session.cookie).await);
    assert_eq!(provider.exchanges(), 1);
    // Also after hours without a request.
    clock.advance_millis(23 * HOUR);
    assert!(is_in(&service, &session.cookie).await);
    assert_eq!(provider.exchanges(), 2);
    clock.advance_millis(50 * MINUTE);
    assert!(!is_in(&service, &session.cookie).await);
    assert_eq!(provider.exchanges(), 2);
}

#[tokio::test]
async fn many_requests_share_one_renewal_on_all_servers() {
    let (service, provider, clock, store) = renewing(json!({"sub": "ada"}));
    let session = renewable(&service, &provider).await;
    let elsewhere = AgentCfg::builder(store)
        .settings((*service.settings()).clone())
        .unwrap()
        .clock(clock.clone())
        .sessions(Arc::clone(&provider))
        .renewal(Arc::clone(&provider))
        .vault((*service.vault().unwrap()).clone())
        .build();
    clock.advance_millis(10 * MINUTE);
    let mut requests = tokio::task::JoinSet::new();
    for number in 0..20 {
        let service = if number % 2 == 0 { &service } else { &elsewhere };
        let (service, cookie) = (service.clone(), session.cookie.clone());
        requests.spawn(async move { is_in(&service, &cookie).await });
    }
    assert!(requests.join_all().await.into_iter().all(|is_in| is_in));
    assert_eq!(provider.exchanges(), 1);
}

#[tokio::test]
async fn a_renewal_that_is_due_while_the_provider_is_down_is_unavailable() {
    let (service, provider, clock, _) = renewing(json!({"sub": "ada"}));
    let session = renewable(&service, &provider).await;
    provider.set_down(true);
    assert!(is_in(&service, &session.cookie).await, "it is not due");
    clock.advance_millis(10 * MINUTE);
    for _ in 0..2 {
        let refused = service.authenticate_browser_session(&session.cookie).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unavailable);
    }
    provider.set_down(false);
    assert!(is_in(&service, &session.cookie).await);
}

#[tokio::test]
async fn a_refused_renewal_ends_the_session() {
    for change in [
        // Another user, and no longer one who may come in, and a token that was used elsewhere.
        |provider: &Renewing| provider.set_claims(json!({"sub": "eve"})),
        |provider: &Renewing| provider.state.lock().unwrap().1 = 7,
    ] {
        let (service, provider, clock, _) = renewing(json!({"sub": "ada"}));
        let session = renewable(&service, &provider).await;
        clock.advance_millis(10 * MINUTE);
        change(&provider);
        for _ in 0..2 {
            let refused = service.authenticate_browser_session(&session.cookie).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Unauthorized);
        }
        assert_eq!(provider.exchanges(), 1, "the session is gone");
    }
}

#[tokio::test]
async fn a_renewed_session_has_the_groups_of_its_new_token() {
    let (service, provider, clock, _) = renewing(json!({"sub": "eve", "groups": ["staff"]}));
    let ada = service.trusted_user("ada").unwrap();
    let studio = service
        .create_workspace(&ada, NewWorkspace::new("Studio"))
        .await
        .unwrap()
        .id;
    let staff = "group:staff".parse().unwrap();
    service.set_member(&ada, studio, &staff, Role::Admin).await.unwrap();
    let session = renewable(&service, &provider).await;
    let count = async || {
        let caller = service.authenticate_browser_session(&session.cookie).await.unwrap();
        service.list_workspaces(&caller).await.unwrap().len()
    };
    assert_eq!(count().await, 1);
    provider.set_claims(json!({"sub": "eve"}));
    assert_eq!(count().await, 1, "the token is valid for a while");
    clock.advance_millis(10 * MINUTE);
    assert_eq!(count().await, 0);
}

#[tokio::test]
async fn without_a_master_key_a_refresh_token_is_not_kept() {
    let (_, provider, clock, _) = renewing(json!({"sub": "ada"}));
    let service = AgentCfg::builder(MemoryStore::new())
        .clock(clock.clone())
        .sessions(Arc::clone(&provider))
        .renewal(Arc::clone(&provider))
        .build();
    let session = renewable(&service, &provider).await;
    assert_eq!(session.seconds, 600);
    clock.advance_millis(10 * MINUTE);
    assert!(!is_in(&service, &session.cookie).await);
    assert_eq!(provider.exchanges(), 0);
}

#[tokio::test]
async fn a_removed_user_is_signed_out_for_good() {
    let (service, provider, clock, _) = renewing(json!({"sub": "ada"}));
    let session = renewable(&service, &provider).await;
    let root = service.trusted_user("root").unwrap();
    service.remove_user(&root, &"ada".parse().unwrap()).await.unwrap();
    clock.advance_millis(10 * MINUTE);
    assert!(!is_in(&service, &session.cookie).await);
    assert_eq!(provider.exchanges(), 0);
}

#[tokio::test]
async fn members_have_the_names_of_their_last_sign_ins() {
    let (service, provider, clock, store) =
        renewing(json!({"sub": "eve", "name": "Eve Adams", "email": "eve@example.com"}));
    let ada = service.trusted_user("ada").unwrap();
    let studio = service
        .create_workspace(&ada, NewWorkspace::new("Studio"))
        .await
        .unwrap()
        .id;
    let user = "eve".parse().unwrap();
    let shown = async || {
        let members = service.list_members(&ada, studio).await.unwrap();
        let names = members
            .into_iter()
            .map(|member| (member.user_id.to_string(), member.name, member.email));
        names.collect::<Vec<_>>()
    };
    let of = |name: Option<&str>, email: Option<&str>| {
        let text = |text: Option<&str>| text.map(str::to_owned);
        [
            ("ada".to_owned(), None, None),
            ("eve".to_owned(), text(name), text(email)),
        ]
    };
    service.set_member(&ada, studio, &user, Role::Viewer).await.unwrap();
    // A token alone is no sign-in.
    service.enter(&provider.token()).await.unwrap();
    assert_eq!(shown().await, of(None, None));
    renewable(&service, &provider).await;
    assert_eq!(shown().await, of(Some("Eve Adams"), Some("eve@example.com")));
    let set = service.set_member(&ada, studio, &user, Role::Member).await.unwrap();
    assert_eq!(set.name.as_deref(), Some("Eve Adams"));
    let mut export = service.export_workspace(&ada, studio).await.unwrap();
    let mut lines = Vec::new();
    while let Some(piece) = export.next().await.unwrap() {
        lines.extend(piece);
    }
    assert!(
        String::from_utf8(lines)
            .unwrap()
            .contains(r#""email":"eve@example.com""#)
    );
    let log = service.audit_log(&ada, studio, 0, 100).await.unwrap();
    assert!(
        !serde_json::to_string(&log).unwrap().contains("Adams"),
        "a name is in no audit log"
    );
    // A claim that is missing at the next sign-in is removed.
    provider.set_claims(json!({"sub": "eve", "name": "Eve"}));
    renewable(&service, &provider).await;
    assert_eq!(shown().await, of(Some("Eve"), None));
    // The local provider knows no name.
    let (local, _) = local(store, &clock);
    let code = local.make_login_code(&user).await.unwrap();
    local.redeem_login_code(&code.code).await.unwrap();
    assert_eq!(shown().await, of(None, None));
}
