//! Users who come in by a group of their identity provider.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use agentcfg_core::model::{After, NewAgent, NewWorkspace, Role};
use agentcfg_core::service::Watch;
use agentcfg_core::session::{CookieLife, Session, SessionError, SessionVerifier};
use agentcfg_core::store::{Kind, MemoryStore, Store};
use agentcfg_core::{AgentCfg, ErrorKind, Settings};
use serde_json::{Value, json};

use super::support::{Between, Call, kind};

/// Tokens that are JSON objects: their claims.
struct Tokens;

#[async_trait::async_trait]
impl SessionVerifier for Tokens {
    async fn verify(&self, token: &str, _: agentcfg_core::model::Timestamp) -> Result<Session, SessionError> {
        let claims: Value = serde_json::from_str(token).map_err(|_| SessionError::Invalid("it is no object"))?;
        let claims = claims.as_object().unwrap().clone();
        Ok(Session::new(claims["sub"].as_str().unwrap()).claims(claims))
    }

    fn ready(&self) -> Result<(), SessionError> {
        Ok(())
    }

    fn cookie_life(&self) -> CookieLife {
        CookieLife::Token
    }
}

/// A service whose users come with groups.
fn with_groups() -> AgentCfg {
    on(Arc::new(MemoryStore::new()))
}

fn on(store: Arc<dyn Store>) -> AgentCfg {
    let settings = Settings::default()
        .operators(BTreeSet::from(["root".to_owned()]))
        .groups_claim(Some("groups".to_owned()));
    AgentCfg::builder(store)
        .settings(settings)
        .unwrap()
        .sessions(Tokens)
        .build()
}

#[tokio::test]
async fn a_user_who_came_in_by_a_group_alone_can_be_removed() {
    let service = with_groups();
    let [ada, root] = ["ada", "root"].map(|user| service.trusted_user(user).unwrap());
    let new = NewWorkspace::new("Studio");
    let studio = service.create_workspace(&ada, new).await.unwrap().id;
    let staff = "group:staff".parse().unwrap();
    service.set_member(&ada, studio, &staff, Role::Admin).await.unwrap();
    let token = json!({"sub": "dan", "groups": ["staff"]}).to_string();
    let dan = service.authenticate(&token).await.unwrap();
    let create = |id: &str| service.create_agent(&dan, NewAgent::new(studio, id.parse().unwrap(), "A"));
    create("first").await.unwrap();
    service.remove_user(&root, &"dan".parse().unwrap()).await.unwrap();
    assert_eq!(kind(create("second").await), ErrorKind::Forbidden);
    // So can one who has only looked which workspaces there are.
    let token = json!({"sub": "fay", "groups": ["staff"]}).to_string();
    let fay = service.authenticate(&token).await.unwrap();
    assert_eq!(service.list_workspaces(&fay).await.unwrap().len(), 1);
    service.remove_user(&root, &"fay".parse().unwrap()).await.unwrap();
    assert!(service.list_workspaces(&fay).await.unwrap().is_empty());
}

/// No workspace has a log entry of it.
#[tokio::test]
async fn the_watch_of_a_removed_user_wakes_and_ends() {
    let service = with_groups();
    let [ada, root] = ["ada", "root"].map(|user| service.trusted_user(user).unwrap());
    let new = NewWorkspace::new("Studio");
    let studio = service.create_workspace(&ada, new).await.unwrap().id;
    let staff = "group:staff".parse().unwrap();
    service.set_member(&ada, studio, &staff, Role::Admin).await.unwrap();
    let watch = async |user: &str| {
        let token = json!({"sub": user, "groups": ["staff"]}).to_string();
        let caller = service.authenticate(&token).await.unwrap();
        // The record that an operator removes.
        service.list_workspaces(&caller).await.unwrap();
        let mut watch = service.watch(&caller, studio, After::Now).await.unwrap();
        watch.read().await.unwrap();
        watch
    };
    let (mut removed, mut other) = (watch("dan").await, watch("fay").await);
    service.remove_user(&root, &"dan".parse().unwrap()).await.unwrap();
    let is_awake = |watch: &mut Watch| {
        let changed = pin!(watch.changed());
        changed.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    };
    assert!(is_awake(&mut removed) && !is_awake(&mut other));
    assert_eq!(kind(removed.read().await), ErrorKind::Forbidden);
}

#[tokio::test]
async fn a_group_does_not_let_a_removed_user_in() {
    let service = with_groups();
    let [ada, root] = ["ada", "root"].map(|user| service.trusted_user(user).unwrap());
    let studio = service
        .create_workspace(&ada, NewWorkspace::new("Studio"))
        .await
        .unwrap()
        .id;
    let staff = "group:staff".parse().unwrap();
    service.set_member(&ada, studio, &staff, Role::Admin).await.unwrap();
    let token = json!({"sub": "eve", "groups": ["staff"]}).to_string();
    let eve = service.authenticate(&token).await.unwrap();
    // To come in by a group makes the user known, and so does a sign-in.
    let user = "eve".parse().unwrap();
    assert_eq!(kind(service.remove_user(&root, &user).await), ErrorKind::NotFound);
    assert!(service.list_agents(&eve, studio, &Default::default()).await.is_ok());
    let session = service.open_browser_session(&eve, &token).await.unwrap();
    let change = service
        .changes(&eve, studio, agentcfg_core::model::After::Start, 10)
        .await;
    assert!(!change.unwrap().events.is_empty());

    service.remove_user(&root, &user).await.unwrap();
    assert!(service.enter_browser_session(&session.cookie).await.is_err());
    let eve = service.authenticate(&token).await.unwrap();
    for refused in [
        kind(service.list_agents(&eve, studio, &Default::default()).await),
        kind(
            service
                .changes(&eve, studio, agentcfg_core::model::After::Start, 10)
                .await,
        ),
        kind(service.set_member(&eve, studio, &user, Role::Admin).await),
    ] {
        assert_eq!(refused, ErrorKind::Forbidden);
    }
    assert!(service.list_workspaces(&eve).await.unwrap().is_empty());
    assert!(service.default_workspace(&eve).await.is_err());
    // A new session is possible, and of no use.
    let session = service.open_browser_session(&eve, &token).await.unwrap();
    let caller = service.enter_browser_session(&session.cookie).await.unwrap().caller;
    assert!(service.list_workspaces(&caller).await.unwrap().is_empty());

    service.set_member(&ada, studio, &user, Role::Viewer).await.unwrap();
    let views = service.list_workspaces(&eve).await.unwrap();
    assert_eq!(
        views[0].role,
        Some(Role::Viewer),
        "the role that the owner gave, not that of the group"
    );
}

#[tokio::test]
async fn a_change_of_a_user_by_a_group_is_refused_when_the_right_ends_before_its_commit() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let between = Between::new(&store);
    let (service, other) = (on(Arc::clone(&between) as _), on(store));
    let [ada, root] = ["ada", "root"].map(|user| other.trusted_user(user).unwrap());
    let studio = other
        .create_workspace(&ada, NewWorkspace::new("Studio"))
        .await
        .unwrap()
        .id;
    let staff = "group:staff".parse().unwrap();
    other.set_member(&ada, studio, &staff, Role::Admin).await.unwrap();
    let caller = async |user: &str| {
        let token = json!({"sub": user, "groups": ["staff"]}).to_string();
        service.authenticate(&token).await.unwrap()
    };
    let create = async |user: &str, id: &str| {
        let new = NewAgent::new(studio, id.parse().unwrap(), "A");
        service.create_agent(&caller(user).await, new).await
    };
    for user in ["dan", "eve", "fay"] {
        create(user, user).await.unwrap();
    }
    // An owner gives the user a membership, which may do less than the one of the group.
    let (by, owner) = (other.clone(), ada.clone());
    between.before(Call::Commit(Kind::Agent), 0, async move {
        let dan = "dan".parse().unwrap();
        by.set_member(&owner, studio, &dan, Role::Viewer).await.unwrap();
    });
    assert_eq!(kind(create("dan", "by-dan").await), ErrorKind::Forbidden);
    // An operator removes the user.
    let by = other.clone();
    between.before(Call::Commit(Kind::Agent), 0, async move {
        by.remove_user(&root, &"eve".parse().unwrap()).await.unwrap();
    });
    assert_eq!(kind(create("eve", "by-eve").await), ErrorKind::Forbidden);
    // The group may read alone.
    let by = other.clone();
    between.before(Call::Commit(Kind::Agent), 0, async move {
        let staff = "group:staff".parse().unwrap();
        by.set_member(&ada, studio, &staff, Role::Viewer).await.unwrap();
    });
    assert_eq!(kind(create("fay", "by-fay").await), ErrorKind::Forbidden);
    assert_eq!(between.left(), 0);
}
