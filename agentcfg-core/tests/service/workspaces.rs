//! Workspaces and their plans.

use agentcfg_core::ErrorKind;
use agentcfg_core::model::{ActorType, NewWorkspace, Plan, Role, Scope, WorkspaceId, WorkspacePatch};
use uuid::Uuid;

use super::support::{World, failure, kind};

fn rename(name: &str) -> WorkspacePatch {
    WorkspacePatch::default().name(Some(name.into()))
}

fn plan(plan: Plan) -> WorkspacePatch {
    WorkspacePatch::default().plan(plan)
}

#[tokio::test]
async fn the_founder_is_the_owner_and_the_plan_is_the_default() {
    let world = World::with(|settings| settings.default_plan = Plan::Team);
    let ada = world.user("ada");
    let new = NewWorkspace::new(" Studio ");
    let workspace = world.service.create_workspace(&ada, new).await.unwrap();
    assert_eq!((&*workspace.name, workspace.plan), (" Studio ", Plan::Team));
    assert_eq!(workspace.created_at, workspace.updated_at);
    let members = world.service.list_members(&ada, workspace.id).await.unwrap();
    assert_eq!(
        (&*members[0].user_id, members[0].role, members.len()),
        ("ada", Role::Owner, 1)
    );
    let views = world.service.list_workspaces(&ada).await.unwrap();
    assert_eq!((&views[0].workspace, views[0].role), (&workspace, Some(Role::Owner)));
    for name in ["", "\u{2003}", &"n".repeat(101)] {
        let new = NewWorkspace::new(name);
        assert_eq!(
            kind(world.service.create_workspace(&ada, new).await),
            ErrorKind::Invalid
        );
    }
}

#[tokio::test]
async fn a_user_owns_a_limited_number_of_workspaces() {
    let world = World::with(|settings| settings.max_workspaces_per_user = Some(2));
    let (ada, root) = (world.user("ada"), world.user("root"));
    let create = async |caller| {
        world
            .service
            .create_workspace(caller, NewWorkspace::new("Studio"))
            .await
    };
    // A membership alone does not count.
    let other = world.workspace("bob").await;
    world.member(other, "bob", "ada", Role::Admin).await;
    let first = create(&ada).await.unwrap();
    create(&ada).await.unwrap();
    assert_eq!(
        failure(create(&ada).await),
        (
            ErrorKind::PlanLimit,
            "a user owns at most 2 workspaces, delete one first".to_owned()
        )
    );
    assert_eq!(world.service.list_workspaces(&ada).await.unwrap().len(), 3);
    world.service.delete_workspace(&ada, first.id, "Studio").await.unwrap();
    create(&ada).await.unwrap();
    // An operator has no limit.
    for _ in 0..4 {
        create(&root).await.unwrap();
    }
}

#[tokio::test]
async fn a_user_sees_memberships_and_a_key_its_own_workspace() {
    let world = World::new();
    let first = world.workspace("ada").await;
    world.clock.advance_millis(1);
    let second = world.workspace("bob").await;
    world.member(second, "bob", "ada", Role::Viewer).await;
    let views = world.service.list_workspaces(&world.user("ada")).await.unwrap();
    let seen: Vec<_> = views.iter().map(|view| (view.workspace.id, view.role)).collect();
    assert_eq!(seen, [(first, Some(Role::Owner)), (second, Some(Role::Viewer))]);
    assert!(
        world
            .service
            .list_workspaces(&world.user("eve"))
            .await
            .unwrap()
            .is_empty()
    );
    let (_, key) = world.key_caller(second, "bob", Scope::Read).await;
    let views = world.service.list_workspaces(&key).await.unwrap();
    assert_eq!((views.len(), views[0].workspace.id), (1, second));
    assert!(!serde_json::to_string(&views).unwrap().contains("role"));
    world
        .service
        .remove_member(&world.user("ada"), second, &"ada".parse().unwrap())
        .await
        .unwrap();
    assert_eq!(
        world.service.list_workspaces(&world.user("ada")).await.unwrap().len(),
        1
    );
}

#[tokio::test]
async fn only_an_owner_renames() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let update = async |user: &str, patch| {
        world
            .service
            .update_workspace(&world.user(user), workspace, patch)
            .await
    };
    for (user, role) in [("adi", Role::Admin), ("mel", Role::Member), ("vic", Role::Viewer)] {
        world.member(workspace, "ada", user, role).await;
        assert_eq!(kind(update(user, rename("x")).await), ErrorKind::Forbidden);
        assert_eq!(
            kind(update(user, WorkspacePatch::default()).await),
            ErrorKind::Forbidden
        );
    }
    let before = world.service.list_workspaces(&world.user("ada")).await.unwrap()[0]
        .workspace
        .clone();
    let after = update("ada", rename("Atelier")).await.unwrap();
    assert_eq!(
        (&*after.name, after.plan, after.created_at),
        ("Atelier", before.plan, before.created_at)
    );
    assert!(after.updated_at > before.updated_at);
    assert_eq!(kind(update("ada", rename(" ")).await), ErrorKind::Invalid);
    let (_, key) = world.key_caller(workspace, "ada", Scope::Admin).await;
    let by_key = world.service.update_workspace(&key, workspace, rename("x")).await;
    assert_eq!(kind(by_key), ErrorKind::Forbidden);
}

#[tokio::test]
async fn only_an_operator_changes_the_plan() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let nowhere = WorkspaceId::new(Uuid::from_u128(5));
    let update = async |user: &str, workspace, patch| {
        world
            .service
            .update_workspace(&world.user(user), workspace, patch)
            .await
    };
    let both = plan(Plan::Pro).name("x");
    // The role `owner` does not make an operator.
    assert_eq!(
        failure(update("ada", workspace, plan(Plan::Pro)).await),
        (
            ErrorKind::Forbidden,
            "only an operator of this deployment may change the plan".into()
        )
    );
    assert_eq!(kind(update("ada", workspace, both.clone()).await), ErrorKind::Forbidden);
    assert_eq!(
        kind(update("eve", workspace, plan(Plan::Pro)).await),
        ErrorKind::Forbidden
    );
    assert_eq!(
        kind(update("eve", nowhere, plan(Plan::Pro)).await),
        ErrorKind::Forbidden
    );
    // An operator needs no membership to change the plan, and has no other rights without one.
    assert_eq!(
        update("root", workspace, plan(Plan::Pro)).await.unwrap().plan,
        Plan::Pro
    );
    assert_eq!(
        kind(update("root", nowhere, plan(Plan::Pro)).await),
        ErrorKind::NotFound
    );
    for more in [both.clone(), rename("x"), WorkspacePatch::default()] {
        assert_eq!(
            kind(update("root", workspace, more.clone()).await),
            ErrorKind::Forbidden
        );
        assert_eq!(kind(update("root", nowhere, more).await), ErrorKind::Forbidden);
    }
    // For a member, the rights of the role are added.
    world.member(workspace, "ada", "root", Role::Admin).await;
    assert_eq!(
        kind(update("root", workspace, both.clone()).await),
        ErrorKind::Forbidden
    );
    world.member(workspace, "ada", "root", Role::Owner).await;
    let after = update("root", workspace, both).await.unwrap();
    assert_eq!((&*after.name, after.plan), ("x", Plan::Pro));
    update("root", workspace, rename("y")).await.unwrap();
    let log = world.log(workspace, "ada").await;
    let actors: Vec<_> = log[log.len() - 2..].iter().map(|entry| entry.actor.kind).collect();
    assert_eq!(actors, [ActorType::Operator, ActorType::User]);
}
