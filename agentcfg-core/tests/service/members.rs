//! Members: who may grant and withdraw which role.

use agentcfg_core::model::{Role, Scope, UserId, WorkspaceId};
use agentcfg_core::{Error, ErrorKind};

use super::support::{World, failure, kind};

async fn team() -> (World, WorkspaceId) {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    for (user, role) in [("adi", Role::Admin), ("mel", Role::Member), ("vic", Role::Viewer)] {
        world.clock.advance_millis(1);
        world.member(workspace, "ada", user, role).await;
    }
    (world, workspace)
}

#[tokio::test]
async fn members_are_listed_in_the_order_of_joining() {
    let (world, workspace) = team().await;
    let ids = async || {
        let members = world.service.list_members(&world.user("mel"), workspace).await.unwrap();
        members.into_iter().map(|member| member.user_id).collect::<Vec<_>>()
    };
    assert_eq!(ids().await, ["ada", "adi", "mel", "vic"]);
    // A change of role does not change the position.
    let before = world.service.list_members(&world.user("ada"), workspace).await.unwrap();
    world.clock.advance_millis(1);
    let after = world
        .service
        .set_member(&world.user("adi"), workspace, &"mel".parse().unwrap(), Role::Viewer)
        .await
        .unwrap();
    assert_eq!((after.role, after.created_at), (Role::Viewer, before[2].created_at));
    world
        .service
        .set_member(&world.user("adi"), workspace, &"mel".parse().unwrap(), Role::Member)
        .await
        .unwrap();
    assert_eq!(ids().await, ["ada", "adi", "mel", "vic"]);
    assert_eq!(
        kind(world.service.list_members(&world.user("vic"), workspace).await),
        ErrorKind::Forbidden
    );
    let (_, key) = world.key_caller(workspace, "ada", Scope::Admin).await;
    assert_eq!(world.service.list_members(&key, workspace).await.unwrap().len(), 4);
}

#[tokio::test]
async fn admins_manage_members_and_only_owners_manage_owners() {
    let (world, workspace) = team().await;
    let set = async |by: &str, user: &str, role| {
        world
            .service
            .set_member(&world.user(by), workspace, &user.parse().unwrap(), role)
            .await
    };
    let remove = async |by: &str, user: &str| {
        world
            .service
            .remove_member(&world.user(by), workspace, &user.parse().unwrap())
            .await
    };
    for by in ["mel", "vic", "eve"] {
        assert_eq!(kind(set(by, "new", Role::Viewer).await), ErrorKind::Forbidden);
        assert_eq!(kind(set(by, by, Role::Owner).await), ErrorKind::Forbidden);
        assert_eq!(kind(remove(by, "adi").await), ErrorKind::Forbidden);
        // Without the permission, the error does not reveal who is a member.
        assert_eq!(kind(remove(by, "nobody").await), ErrorKind::Forbidden);
    }
    set("adi", "new", Role::Admin).await.unwrap();
    set("adi", "new", Role::Member).await.unwrap();
    remove("adi", "new").await.unwrap();
    assert_eq!(kind(remove("adi", "new").await), ErrorKind::NotFound);
    for result in [
        set("adi", "adi", Role::Owner).await,
        set("adi", "ada", Role::Admin).await,
    ] {
        assert_eq!(
            failure(result),
            (ErrorKind::Forbidden, "only an owner makes or unmakes owners".into())
        );
    }
    assert_eq!(kind(remove("adi", "ada").await), ErrorKind::Forbidden);
    set("ada", "adi", Role::Owner).await.unwrap();
    set("adi", "ada", Role::Viewer).await.unwrap();
}

#[tokio::test]
async fn the_last_owner_cannot_be_removed_or_demoted() {
    let (world, workspace) = team().await;
    let ada = world.user("ada");
    let service = &world.service;
    let last = (
        ErrorKind::Conflict,
        "this is the workspace's last owner: make another member an owner first".to_owned(),
    );
    for role in [Role::Admin, Role::Member, Role::Viewer] {
        assert_eq!(
            failure(service.set_member(&ada, workspace, &"ada".parse().unwrap(), role).await),
            last
        );
    }
    assert_eq!(
        failure(service.remove_member(&ada, workspace, &"ada".parse().unwrap()).await),
        last
    );
    // With a second owner the first may leave, and then the second is the last one.
    service
        .set_member(&ada, workspace, &"adi".parse().unwrap(), Role::Owner)
        .await
        .unwrap();
    service
        .remove_member(&ada, workspace, &"ada".parse().unwrap())
        .await
        .unwrap();
    let adi = world.user("adi");
    assert_eq!(
        failure(service.remove_member(&adi, workspace, &"adi".parse().unwrap()).await),
        last
    );
    // The count of owners stays right when owners are added and removed repeatedly.
    for _ in 0..3 {
        service
            .set_member(&adi, workspace, &"ada".parse().unwrap(), Role::Owner)
            .await
            .unwrap();
        service
            .set_member(&adi, workspace, &"ada".parse().unwrap(), Role::Owner)
            .await
            .unwrap();
        service
            .remove_member(&adi, workspace, &"ada".parse().unwrap())
            .await
            .unwrap();
    }
    assert_eq!(
        failure(
            service
                .set_member(&adi, workspace, &"adi".parse().unwrap(), Role::Admin)
                .await
        ),
        last
    );
}

#[tokio::test]
async fn a_member_may_leave_and_loses_access_at_once() {
    let (world, workspace) = team().await;
    for user in ["adi", "mel", "vic"] {
        let caller = world.user(user);
        world
            .service
            .remove_member(&caller, workspace, &user.parse().unwrap())
            .await
            .unwrap();
        let again = world
            .service
            .remove_member(&caller, workspace, &user.parse().unwrap())
            .await;
        assert_eq!(kind(again), ErrorKind::Forbidden);
        let list = world.service.list_agents(&caller, workspace, &Default::default()).await;
        assert_eq!(kind(list), ErrorKind::Forbidden);
        assert!(world.service.list_workspaces(&caller).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn the_same_role_again_changes_and_records_nothing() {
    let (world, workspace) = team().await;
    let before = world.log(workspace, "ada").await;
    world.clock.advance_millis(1000);
    let member = world
        .service
        .set_member(&world.user("adi"), workspace, &"vic".parse().unwrap(), Role::Viewer)
        .await
        .unwrap();
    assert!(member.created_at < super::support::at(super::support::START).plus_millis(1000));
    assert_eq!(world.log(workspace, "ada").await, before);
}

#[tokio::test]
async fn user_identifiers_are_validated_and_keys_are_no_users() {
    let (world, workspace) = team().await;
    let ada = world.user("ada");
    for bad in ["", "a\0b", "a\nb", "\u{85}", &"x".repeat(201)] {
        let refused = bad.parse::<UserId>().map_err(Error::from);
        assert_eq!(kind(refused), ErrorKind::Invalid, "{bad:?}");
        assert_eq!(kind(world.service.trusted_user(bad)), ErrorKind::Invalid, "{bad:?}");
    }
    for good in ["auth0|5f 1", "ä", &"😀".repeat(200)] {
        world
            .service
            .set_member(&ada, workspace, &good.parse().unwrap(), Role::Viewer)
            .await
            .unwrap();
        assert_eq!(world.service.list_workspaces(&world.user(good)).await.unwrap().len(), 1);
    }
    let (created, key) = world.key_caller(workspace, "ada", Scope::Admin).await;
    let set = world
        .service
        .set_member(&key, workspace, &"new".parse().unwrap(), Role::Viewer)
        .await;
    assert_eq!(kind(set), ErrorKind::Forbidden);
    // Not even for a user whose identifier equals that of the key.
    world.member(workspace, "ada", &created.record.id, Role::Viewer).await;
    let removed = world
        .service
        .remove_member(&key, workspace, &created.record.id.parse().unwrap())
        .await;
    assert_eq!(kind(removed), ErrorKind::Forbidden);
}
