//! Updating, deleting and restoring agents, and the workspace that a request acts in.

use agentcfg_core::ErrorKind;
use agentcfg_core::model::{AgentPatch, NewAgent, Patch, Role, Scope, WorkspaceId};
use uuid::Uuid;

use super::support::{ANY, World, failure, kind};

fn patch() -> AgentPatch {
    AgentPatch::default()
}

#[tokio::test]
async fn only_named_fields_change_and_updated_at_increases() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    let new = NewAgent::new(workspace, "writer".parse().unwrap(), "Writer")
        .role("author")
        .model("m")
        .capabilities(vec!["x".into()]);
    let before = world.service.create_agent(&ada, new).await.unwrap().value;
    let change = patch()
        .workspace_id(workspace)
        .agent_id("writer")
        .display_name("Author")
        .role(Patch::Null)
        .capabilities(vec![]);
    let update = |patch| world.service.update_agent(&ada, Some(workspace), "writer", patch, ANY);
    let after = update(change).await.unwrap().value;
    let mut expected = before.clone();
    expected.display_name = "Author".into();
    expected.role = None;
    expected.capabilities = vec![];
    expected.updated_at = before.updated_at.plus_millis(1);
    assert_eq!(after, expected);
    // Strictly increasing: also for an empty patch, a clock that stops and one that is set back.
    let mut last = after.updated_at;
    for step in [0, 0, -60_000, 3_600_000] {
        world.clock.advance_millis(step);
        let after = update(patch()).await.unwrap().value;
        assert!(after.updated_at > last);
        assert_eq!((after.created_at, &after.model), (before.created_at, &before.model));
        last = after.updated_at;
    }
    assert_eq!(last, world.now());
}

#[tokio::test]
async fn the_identity_is_immutable_and_checked_after_existence() {
    let world = World::new();
    let (workspace, other) = (world.workspace("ada").await, world.workspace("ada").await);
    let ada = world.user("ada");
    world.agent(workspace, "ada", "writer").await;
    let foreign = patch().workspace_id(other).agent_id("Editor");
    let update = |agent_id: &'static str| {
        world
            .service
            .update_agent(&ada, Some(workspace), agent_id, foreign.clone(), ANY)
    };
    assert_eq!(
        failure(update("writer").await),
        (
            ErrorKind::Invalid,
            "workspace_id cannot be changed after creation; agent_id cannot be changed after creation".into()
        )
    );
    for missing in ["nobody", "Never Valid", "a\0", "../x"] {
        assert_eq!(kind(update(missing).await), ErrorKind::NotFound, "{missing:?}");
    }
    // A body that breaks a rule is reported first.
    let invalid = patch().display_name(String::new());
    let result = world
        .service
        .update_agent(&ada, Some(workspace), "nobody", invalid, ANY)
        .await;
    assert_eq!(kind(result), ErrorKind::Invalid);
}

#[tokio::test]
async fn a_deleted_agent_is_not_found_until_it_is_restored() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    let created = world.agent(workspace, "ada", "writer").await;
    let service = &world.service;
    let restored = service.restore_agent(&ada, Some(workspace), "writer", ANY).await;
    assert_eq!(
        failure(restored),
        (ErrorKind::Conflict, r#"the agent "writer" is already active"#.into())
    );
    service
        .delete_agent(&ada, Some(workspace), "writer", ANY)
        .await
        .unwrap();
    assert!(world.listed(workspace, "ada").await.is_empty());
    assert!(service.agent_status(&ada, workspace).await.unwrap().is_empty());
    let deleted = service.delete_agent(&ada, Some(workspace), "writer", ANY).await;
    assert_eq!(
        failure(deleted),
        (ErrorKind::NotFound, r#"agent "writer" not found"#.into())
    );
    let updated = service
        .update_agent(&ada, Some(workspace), "writer", patch(), ANY)
        .await;
    assert_eq!(kind(updated), ErrorKind::NotFound);
    let restored = service
        .restore_agent(&ada, Some(workspace), "writer", ANY)
        .await
        .unwrap()
        .value;
    // Deleting and restoring both advanced `updated_at`.
    assert_eq!(restored.updated_at, created.updated_at.plus_millis(2));
    assert_eq!(
        (restored.id, restored.created_at, restored.is_active),
        (created.id, created.created_at, true)
    );
    let unknown = service.restore_agent(&ada, Some(workspace), "nobody", ANY).await;
    assert_eq!(kind(unknown), ErrorKind::NotFound);
}

#[tokio::test]
async fn the_workspace_is_optional_with_exactly_one_membership() {
    let world = World::new();
    let ada = world.user("ada");
    let delete = || world.service.delete_agent(&ada, None, "writer", ANY);
    assert_eq!(
        failure(delete().await),
        (
            ErrorKind::Invalid,
            "workspace_id is required: you are a member of no workspace".into()
        )
    );
    let workspace = world.workspace("ada").await;
    world.agent(workspace, "ada", "writer").await;
    delete().await.unwrap();
    let other = world.workspace("bob").await;
    world.member(other, "bob", "ada", Role::Viewer).await;
    assert_eq!(
        failure(delete().await),
        (
            ErrorKind::Invalid,
            "workspace_id is required: you are a member of several workspaces".into()
        )
    );
    // A key implies its own workspace: it may name that one, and no other.
    let (_, key) = world.key_caller(workspace, "ada", Scope::Admin).await;
    world.service.restore_agent(&key, None, "writer", ANY).await.unwrap();
    world
        .service
        .update_agent(&key, Some(workspace), "writer", patch(), ANY)
        .await
        .unwrap();
    let nowhere = WorkspaceId::new(Uuid::from_u128(5));
    for foreign in [other, nowhere] {
        let result = world
            .service
            .update_agent(&key, Some(foreign), "writer", patch(), ANY)
            .await;
        assert_eq!(
            failure(result),
            (ErrorKind::Forbidden, "the API key belongs to another workspace".into())
        );
    }
    // A user cannot distinguish a foreign workspace from one that does not exist.
    let eve = world.user("eve");
    for foreign in [other, nowhere] {
        let result = world.service.list_agents(&eve, foreign, &Default::default()).await;
        assert_eq!(
            failure(result),
            (ErrorKind::Forbidden, "you are not a member of this workspace".into())
        );
    }
}
