//! What operators may do in workspaces that they have no part in.

use agentcfg_core::ErrorKind;
use agentcfg_core::model::{Action, ActorType, NewWorkspace, Role, Scope};

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
