//! Entity tags and conditional requests.

use agentcfg_core::ErrorKind;
use agentcfg_core::model::AgentFilter;
use agentcfg_core::model::{AgentPatch, Permission, Plan, Precondition, Role, Scope, StatusReport, Tag};

use super::support::{ANY, World, kind, new_key, unknown_tag};

async fn list_tag(world: &World, workspace: agentcfg_core::model::WorkspaceId, agent_id: Option<&str>) -> Tag {
    let filter = AgentFilter::default().agent_id(agent_id.map(|id| id.parse().unwrap()));
    let list = world.service.list_agents(&world.user("ada"), workspace, &filter).await;
    list.unwrap().tag
}

#[tokio::test]
async fn every_write_gives_a_record_a_new_unique_tag() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    let service = &world.service;
    let new = agentcfg_core::model::NewAgent::new(workspace, "writer".parse().unwrap(), "Writer");
    let mut tags = vec![service.create_agent(&ada, new).await.unwrap().tag];
    assert_eq!(list_tag(&world, workspace, Some("writer")).await, tags[0]);
    for _ in 0..3 {
        let updated = service
            .update_agent(&ada, Some(workspace), "writer", AgentPatch::default(), ANY)
            .await;
        tags.push(updated.unwrap().tag);
        service
            .delete_agent(&ada, Some(workspace), "writer", ANY)
            .await
            .unwrap();
        assert_eq!(
            list_tag(&world, workspace, Some("writer")).await,
            list_tag(&world, workspace, None).await
        );
        tags.push(
            service
                .restore_agent(&ada, Some(workspace), "writer", ANY)
                .await
                .unwrap()
                .tag,
        );
        assert_eq!(list_tag(&world, workspace, Some("writer")).await, tags[tags.len() - 1]);
    }
    let distinct: std::collections::HashSet<_> = tags.iter().collect();
    assert_eq!(distinct.len(), tags.len());
}

#[tokio::test]
async fn the_tag_of_a_list_changes_exactly_when_its_workspace_does() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let other = world.workspace("ada").await;
    let ada = world.user("ada");
    let service = &world.service;
    world.agent(workspace, "ada", "writer").await;
    world.agent(workspace, "ada", "editor").await;
    let (list, editor) = (
        list_tag(&world, workspace, None).await,
        list_tag(&world, workspace, Some("editor")).await,
    );
    // Status reports, reads, changes in other workspaces and changes without effect leave the tag as it is.
    service
        .report_status(&ada, Some(workspace), "writer", StatusReport::idle())
        .await
        .unwrap();
    world.agent(other, "ada", "writer").await;
    service
        .set_member(&ada, workspace, &"ada".parse().unwrap(), Role::Owner)
        .await
        .unwrap();
    let denied = service.delete_agent(&ada, Some(workspace), "nobody", ANY).await;
    assert_eq!(kind(denied), ErrorKind::NotFound);
    world.clock.advance_millis(1_000_000);
    assert_eq!(list_tag(&world, workspace, None).await, list);
    assert_eq!(
        world
            .another_instance()
            .list_agents(&ada, workspace, &Default::default())
            .await
            .unwrap()
            .tag,
        list
    );
    // A change to one record changes the tag of the list and not that of another record.
    service
        .update_agent(&ada, Some(workspace), "writer", AgentPatch::default(), ANY)
        .await
        .unwrap();
    assert_ne!(list_tag(&world, workspace, None).await, list);
    assert_eq!(list_tag(&world, workspace, Some("editor")).await, editor);
    let list = list_tag(&world, workspace, None).await;
    world.set_plan(workspace, Plan::Team).await;
    assert_ne!(list_tag(&world, workspace, None).await, list);
}

#[tokio::test]
async fn conditions_are_compared_strongly_with_the_current_record() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    let service = &world.service;
    world.agent(workspace, "ada", "writer").await;
    let tag = list_tag(&world, workspace, Some("writer")).await;
    let list = list_tag(&world, workspace, None).await;
    let one_of = |tags: &[String]| Precondition::OneOf(tags.iter().map(|tag| tag.as_str().into()).collect());
    let elsewhere = Tag::record(unknown_tag().epoch(), tag.number());
    let update = async |condition: Precondition| {
        service
            .update_agent(&ada, Some(workspace), "writer", AgentPatch::default(), &condition)
            .await
    };
    for stale in [
        one_of(&[]),
        one_of(&[format!("W/{tag}")]),
        one_of(&[format!("\"{tag}\""), tag.to_string().to_uppercase()]),
        one_of(&["\"*\"".into(), "*".into()]),
        Precondition::matches(elsewhere),
        Precondition::matches(list),
        Precondition::matches(unknown_tag()),
    ] {
        assert_eq!(kind(update(stale.clone()).await), ErrorKind::Precondition, "{stale:?}");
    }
    let next = update(one_of(&["x".into(), tag.to_string()])).await.unwrap().tag;
    let refused = update(Precondition::matches(tag)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Precondition);
    assert_eq!(refused.current_tag(), Some(next));
    assert!(refused.message().contains(&next.to_string()), "{refused}");
    update(Precondition::Exists).await.unwrap();
}

#[tokio::test]
async fn the_current_tag_is_for_callers_that_may_read_the_agent() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let service = &world.service;
    world.agent(workspace, "ada", "writer").await;
    let tag = list_tag(&world, workspace, Some("writer")).await;
    let stale = Precondition::matches(unknown_tag());
    let (read, configure) = (Permission::AgentsRead, Permission::AgentsConfigure);
    for (permissions, expected) in [(vec![configure], None), (vec![read, configure], Some(tag))] {
        let new = new_key(workspace, Scope::Write).permissions(permissions);
        let key = service.create_api_key(&world.user("ada"), new).await.unwrap().key;
        let caller = service.authenticate(&key).await.unwrap();
        let patch = AgentPatch::default();
        let refusals = [
            service
                .update_agent(&caller, None, "writer", patch, &stale)
                .await
                .unwrap_err(),
            service.delete_agent(&caller, None, "writer", &stale).await.unwrap_err(),
            service
                .restore_agent(&caller, None, "writer", &stale)
                .await
                .unwrap_err(),
        ];
        for refused in refusals {
            assert_eq!(refused.kind(), ErrorKind::Precondition);
            assert_eq!(refused.current_tag(), expected);
            assert_eq!(
                refused.message().contains(&tag.to_string()),
                expected.is_some(),
                "{refused}"
            );
        }
    }
}

#[tokio::test]
async fn checks_run_in_the_order_existence_precondition_conflict_plan() {
    let world = World::with(|settings| settings.plan_limits.free = Some(1));
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    let service = &world.service;
    let stale = Precondition::matches(unknown_tag());
    let restore = async |agent_id: &str, condition: &Precondition| {
        service.restore_agent(&ada, Some(workspace), agent_id, condition).await
    };
    world.agent(workspace, "ada", "first").await;
    service.delete_agent(&ada, Some(workspace), "first", ANY).await.unwrap();
    world.agent(workspace, "ada", "second").await;
    for condition in [&stale, &Precondition::Exists, ANY] {
        assert_eq!(kind(restore("nobody", condition).await), ErrorKind::NotFound);
        for gone in ["nobody", "first"] {
            let deleted = service.delete_agent(&ada, Some(workspace), gone, condition).await;
            assert_eq!(kind(deleted), ErrorKind::NotFound);
            let patch = AgentPatch::default();
            let updated = service
                .update_agent(&ada, Some(workspace), gone, patch, condition)
                .await;
            assert_eq!(kind(updated), ErrorKind::NotFound);
        }
    }
    assert_eq!(kind(restore("second", &stale).await), ErrorKind::Precondition);
    assert_eq!(kind(restore("second", ANY).await), ErrorKind::Conflict);
    assert_eq!(
        kind(restore("second", &Precondition::Exists).await),
        ErrorKind::Conflict
    );
    assert_eq!(kind(restore("first", &stale).await), ErrorKind::Precondition);
    assert_eq!(
        kind(restore("first", &Precondition::Exists).await),
        ErrorKind::PlanLimit
    );
    let deleted = service.delete_agent(&ada, Some(workspace), "second", &stale).await;
    assert_eq!(kind(deleted), ErrorKind::Precondition);
    assert_eq!(world.listed(workspace, "ada").await, ["second"]);
}
