//! What operators may do in workspaces that they have no part in.

use std::collections::BTreeSet;
use std::sync::Arc;

use agentcfg_core::model::{Action, ActorType, NewAgent, NewWorkspace, Role, Scope};
use agentcfg_core::session::{CookieLife, Session, SessionError, SessionVerifier};
use agentcfg_core::store::{MemoryStore, Store};
use agentcfg_core::{AgentCfg, ErrorKind, Settings};
use serde_json::{Value, json};

use super::support::{World, failure, kind};

const REFUSED: &str = "only an operator of this deployment may do this";

#[tokio::test]
async fn only_operators_may() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (key, by_key) = world.key_caller(workspace, "ada", Scope::Admin).await;
    let user = "ada".parse().unwrap();
    for caller in [world.user("ada"), world.user("eve"), by_key] {
        let service = &world.service;
        for refused in [
            kind(service.list_all_workspaces(&caller).await),
            kind(service.find_api_key(&caller, &key.record.id).await),
            kind(service.find_api_key(&caller, "unknown").await),
            kind(service.revoke_any_api_key(&caller, &key.record.id).await),
            kind(service.remove_user(&caller, &user).await),
        ] {
            assert_eq!(refused, ErrorKind::Forbidden);
        }
    }
    let (_, message) = failure(world.service.list_all_workspaces(&world.user("ada")).await);
    assert_eq!(message, REFUSED);
    assert!(world.service.authenticate(&key.key).await.is_ok());
}

#[tokio::test]
async fn all_workspaces_are_listed_without_those_that_were_deleted() {
    let world = World::new();
    let root = world.user("root");
    assert!(world.service.list_all_workspaces(&root).await.unwrap().is_empty());
    let mut made = Vec::new();
    // More than a piece of the list.
    for number in 0..300 {
        world.clock.advance_millis(1);
        let new = NewWorkspace::new(format!("Studio {number}"));
        let owner = world.user(&format!("owner-{}", number % 3));
        made.push(world.service.create_workspace(&owner, new).await.unwrap());
    }
    assert_eq!(world.service.list_all_workspaces(&root).await.unwrap(), made);
    let gone = made.remove(7);
    let owner = world.user("owner-1");
    world
        .service
        .delete_workspace(&owner, gone.id, &gone.name)
        .await
        .unwrap();
    assert_eq!(world.service.list_all_workspaces(&root).await.unwrap(), made);
}

#[tokio::test]
async fn a_key_is_found_and_revoked_with_an_entry_of_the_operator() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let key = world.key(workspace, "ada", Scope::Write).await;
    let (service, root) = (&world.service, world.user("root"));
    service.authenticate(&key.key).await.unwrap();
    let listed = service.list_api_keys(&world.user("ada"), workspace).await.unwrap();
    assert_eq!(service.find_api_key(&root, &key.record.id).await.unwrap(), listed[0]);
    assert!(listed[0].last_used_at.is_some());
    for unknown in ["4fQ8mZr2LkV7xN0bTy6W", "no key", ""] {
        assert_eq!(kind(service.find_api_key(&root, unknown).await), ErrorKind::NotFound);
        assert_eq!(
            kind(service.revoke_any_api_key(&root, unknown).await),
            ErrorKind::NotFound
        );
    }
    // A whole key in place of its identifier is not repeated.
    let ada = world.user("ada");
    for (_, message) in [
        failure(service.find_api_key(&root, &*key.key).await),
        failure(service.revoke_any_api_key(&root, &*key.key).await),
        failure(service.revoke_api_key(&ada, &*key.key).await),
    ] {
        assert!(message.contains("the 20 letters and digits"), "{message}");
        assert!(!message.contains(&key.key[..12]), "{message}");
    }
    service.revoke_any_api_key(&root, &key.record.id).await.unwrap();
    assert_eq!(kind(service.authenticate(&key.key).await), ErrorKind::Unauthorized);
    assert_eq!(
        kind(service.revoke_any_api_key(&root, &key.record.id).await),
        ErrorKind::NotFound
    );
    assert!(
        service
            .find_api_key(&root, &key.record.id)
            .await
            .unwrap()
            .revoked_at
            .is_some()
    );
    let log = world.log(workspace, "ada").await;
    let last = log.last().unwrap();
    assert_eq!(
        (last.actor.kind, &*last.actor.id, last.action, &*last.target.id),
        (
            ActorType::Operator,
            "root",
            Action::ApiKeyRevoked,
            key.record.id.as_str()
        )
    );
}

#[tokio::test]
async fn a_removed_user_is_in_no_workspace_until_an_owner_says_so() {
    let world = World::new();
    let (first, second) = (world.workspace("ada").await, world.workspace("bob").await);
    world.member(first, "ada", "eve", Role::Owner).await;
    let eve = world.member(second, "bob", "eve", Role::Viewer).await;
    let (service, root) = (&world.service, world.user("root"));
    let key = world.key(first, "eve", Scope::Read).await;
    let user = "eve".parse().unwrap();

    service.remove_user(&root, &user).await.unwrap();
    assert!(service.list_workspaces(&eve).await.unwrap().is_empty());
    for workspace in [first, second] {
        assert_eq!(
            kind(service.list_agents(&eve, workspace, &Default::default()).await),
            ErrorKind::Forbidden
        );
    }
    assert!(
        service.authenticate(&key.key).await.is_ok(),
        "it is a key of the workspace"
    );
    let (refused, message) = failure(service.create_workspace(&eve, NewWorkspace::new("Mine")).await);
    assert_eq!(refused, ErrorKind::Forbidden);
    assert!(message.contains("removed"), "{message}");
    for (workspace, owner) in [(first, "ada"), (second, "bob")] {
        let log = world.log(workspace, owner).await;
        let last = log.last().unwrap();
        assert_eq!(
            (last.actor.kind, &*last.actor.id, last.action, &*last.target.id),
            (ActorType::Operator, "root", Action::MemberRemoved, "eve")
        );
    }
    // The counter of owners is right: the other owner is the last one now.
    assert_eq!(
        kind(
            service
                .remove_member(&world.user("ada"), first, &"ada".parse().unwrap())
                .await
        ),
        ErrorKind::Conflict
    );

    // Again it changes nothing.
    let before = world.log(second, "bob").await.len();
    service.remove_user(&root, &user).await.unwrap();
    assert_eq!(world.log(second, "bob").await.len(), before);

    let admin = world.member(second, "bob", "amy", Role::Admin).await;
    let (refused, message) = failure(service.set_member(&admin, second, &user, Role::Member).await);
    assert_eq!(refused, ErrorKind::Forbidden);
    assert!(message.contains("only an owner lets the user in again"), "{message}");
    world.member(second, "bob", "eve", Role::Member).await;
    assert!(service.list_agents(&eve, second, &Default::default()).await.is_ok());
    assert_eq!(
        kind(service.list_agents(&eve, first, &Default::default()).await),
        ErrorKind::Forbidden
    );
}

#[tokio::test]
async fn a_last_owner_and_a_stranger_cannot_be_removed() {
    let world = World::new();
    let (alone, other) = (world.workspace("ada").await, world.workspace("bob").await);
    world.member(other, "bob", "ada", Role::Viewer).await;
    let (service, root) = (&world.service, world.user("root"));
    let (refused, message) = failure(service.remove_user(&root, &"ada".parse().unwrap()).await);
    assert_eq!(refused, ErrorKind::Conflict);
    assert!(
        message.contains(&alone.to_string()) && !message.contains(&other.to_string()),
        "{message}"
    );
    // Nothing is changed.
    let ada = world.user("ada");
    assert_eq!(service.list_workspaces(&ada).await.unwrap().len(), 2);
    service.create_workspace(&ada, NewWorkspace::new("More")).await.unwrap();
    let (refused, message) = failure(service.remove_user(&root, &"ada".parse().unwrap()).await);
    assert_eq!(refused, ErrorKind::Conflict);
    assert!(message.contains("More"), "{message}");

    assert_eq!(
        failure(service.remove_user(&root, &"stranger".parse().unwrap()).await),
        (ErrorKind::NotFound, "user \"stranger\" not found".to_owned())
    );
    let (refused, message) = failure(service.remove_user(&root, &"group:staff".parse().unwrap()).await);
    assert_eq!(refused, ErrorKind::Invalid);
    assert!(message.starts_with("user_id "), "{message}");
}

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

fn with_groups() -> AgentCfg {
    let settings = Settings::default()
        .operators(BTreeSet::from(["root".to_owned()]))
        .groups_claim(Some("groups".to_owned()));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
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
