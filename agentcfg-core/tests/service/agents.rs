//! Creating and listing agents, and the limits of plans.

use agentcfg_core::ErrorKind;
use agentcfg_core::model::{AgentFilter, AgentState};
use agentcfg_core::model::{AgentType, NewAgent, Parameters, Plan};

use super::support::{ANY, World, failure, kind};

#[tokio::test]
async fn a_created_agent_reads_back_as_sent_with_its_defaults() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    let bare = NewAgent::new(workspace, "writer".parse().unwrap(), " Writer ");
    let agent = world.service.create_agent(&ada, bare).await.unwrap().value;
    assert_eq!(agent.id.get_version_num(), 7);
    assert_eq!((agent.workspace_id, &*agent.agent_id), (workspace, "writer"));
    assert_eq!((&*agent.display_name, agent.agent_type), (" Writer ", AgentType::Ai));
    assert_eq!((&agent.role, &agent.description, &agent.model), (&None, &None, &None));
    assert_eq!((&agent.color, &agent.persona_prompt), (&None, &None));
    assert!(agent.capabilities.is_empty() && agent.parameters.is_empty() && agent.is_active);
    assert_eq!((agent.created_at, agent.updated_at), (world.now(), world.now()));
    let body = serde_json::to_string(&agent).unwrap();
    assert!(
        body.contains(r#""capabilities":[],"parameters":{},"is_active":true"#),
        "{body}"
    );
    assert!(body.contains(r#""created_at":"2026-11-20T09:30:00.000Z""#), "{body}");

    let full = NewAgent::new(workspace, "editor".parse().unwrap(), "Editor")
        .role(String::new())
        .agent_type(AgentType::Human)
        .color("#7C3AED")
        .capabilities(vec!["b".into(), "a".into(), "b".into()])
        .parameters(serde_json::from_str::<Parameters>(r#"{"warmth":70,"wit":0.7}"#).unwrap());
    let agent = world.service.create_agent(&ada, full.clone()).await.unwrap().value;
    let list = world
        .service
        .list_agents(&ada, workspace, &Default::default())
        .await
        .unwrap();
    assert_eq!(list.value.agents().unwrap()[1], agent);
    assert_eq!(
        (agent.role, agent.color, agent.capabilities),
        (full.role, full.color, full.capabilities)
    );
    assert_eq!(
        serde_json::to_string(&agent.parameters).unwrap(),
        r#"{"warmth":70,"wit":0.7}"#
    );
}

#[tokio::test]
async fn the_list_is_ordered_by_creation_and_paginated() {
    let world = World::with(|settings| settings.plan_limits.free = None);
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    // Two in the same millisecond, one later, and one while the clock is set back.
    for (agent_id, millis) in [("c", 0), ("a", 0), ("b", 5), ("d", -1000)] {
        world.clock.advance_millis(millis);
        world.agent(workspace, "ada", agent_id).await;
    }
    assert_eq!(world.listed(workspace, "ada").await, ["d", "c", "a", "b"]);
    for (offset, limit, expected) in [
        (0, None, r#"["d","c","a","b"]"#),
        (0, Some(2), r#"["d","c"]"#),
        (1, Some(2), r#"["c","a"]"#),
        (3, Some(1000), r#"["b"]"#),
        (4, None, "[]"),
        (u64::MAX, Some(u32::MAX), "[]"),
    ] {
        let filter = AgentFilter::default().offset(offset).limit(limit);
        let list = world.service.list_agents(&ada, workspace, &filter).await.unwrap().value;
        let ids: Vec<_> = list.agents().unwrap().iter().map(|agent| &*agent.agent_id).collect();
        assert_eq!(serde_json::to_string(&ids).unwrap(), expected);
        // The shared text and the decoded records agree.
        assert_eq!(list.json(), serde_json::to_vec(list.agents().unwrap()).unwrap());
        assert_eq!(list.json_parts().concat(), list.json());
        assert_eq!((list.json_len(), list.len()), (list.json().len(), ids.len()));
    }
    for (agent_id, count) in [("a", 1), ("nobody", 0)] {
        let filter = AgentFilter::default().agent_id(Some(agent_id.parse().unwrap()));
        let list = world.service.list_agents(&ada, workspace, &filter).await.unwrap().value;
        assert_eq!(list.agents().unwrap().len(), count, "{agent_id:?}");
    }
}

#[tokio::test]
async fn an_identifier_is_unique_in_a_workspace() {
    let world = World::new();
    let (first, second) = (world.workspace("ada").await, world.workspace("ada").await);
    let ada = world.user("ada");
    world.agent(first, "ada", "writer").await;
    world.agent(second, "ada", "writer").await;
    let again = NewAgent::new(first, "writer".parse().unwrap(), "Another");
    assert_eq!(
        failure(world.service.create_agent(&ada, again.clone()).await),
        (
            ErrorKind::Conflict,
            r#"an agent with agent_id "writer" already exists in this workspace"#.into()
        )
    );
    world
        .service
        .delete_agent(&ada, Some(first), "writer", ANY)
        .await
        .unwrap();
    let (kind, message) = failure(world.service.create_agent(&ada, again).await);
    assert_eq!(kind, ErrorKind::Conflict);
    assert!(message.ends_with("it is deactivated and can be restored"), "{message}");
    assert_eq!(world.listed(second, "ada").await, ["writer"]);
}

#[tokio::test]
async fn a_plan_limits_the_number_of_active_agents() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    for agent_id in ["a", "b", "c"] {
        world.agent(workspace, "ada", agent_id).await;
    }
    let fourth = NewAgent::new(workspace, "d".parse().unwrap(), "D");
    assert_eq!(
        failure(world.service.create_agent(&ada, fourth.clone()).await),
        (
            ErrorKind::PlanLimit,
            "the plan free of this workspace allows 3 active agents, and all of them exist; an operator of this service can \
             change the plan"
                .into()
        )
    );
    // A taken identifier is reported before the plan limit.
    let taken = NewAgent::new(workspace, "a".parse().unwrap(), "A");
    assert_eq!(kind(world.service.create_agent(&ada, taken).await), ErrorKind::Conflict);
    // A deleted agent frees a slot of the plan, and cannot be restored once another agent has taken the slot.
    world
        .service
        .delete_agent(&ada, Some(workspace), "a", ANY)
        .await
        .unwrap();
    world.service.create_agent(&ada, fourth).await.unwrap();
    let restored = world.service.restore_agent(&ada, Some(workspace), "a", ANY).await;
    assert_eq!(kind(restored), ErrorKind::PlanLimit);
    // A larger plan takes effect at once, and a smaller one deletes no agent.
    world.set_plan(workspace, Plan::Pro).await;
    world
        .service
        .restore_agent(&ada, Some(workspace), "a", ANY)
        .await
        .unwrap();
    world.set_plan(workspace, Plan::Free).await;
    assert_eq!(world.listed(workspace, "ada").await.len(), 4);
    world
        .service
        .delete_agent(&ada, Some(workspace), "b", ANY)
        .await
        .unwrap();
    let restored = world.service.restore_agent(&ada, Some(workspace), "b", ANY).await;
    assert_eq!(kind(restored), ErrorKind::PlanLimit);
}

#[tokio::test]
async fn a_list_shows_active_agents_deleted_ones_or_both() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    for agent_id in ["a", "b", "c"] {
        world.agent(workspace, "ada", agent_id).await;
    }
    world.service.delete_agent(&ada, None, "b", ANY).await.unwrap();
    let list = async |state, agent_id: Option<&str>| {
        let filter = AgentFilter::default()
            .state(state)
            .agent_id(agent_id.map(|id| id.parse().unwrap()));
        let list = world.service.list_agents(&ada, workspace, &filter).await.unwrap();
        let agents = list.value.agents().unwrap();
        let ids: Vec<String> = agents.iter().map(|agent| agent.agent_id.to_string()).collect();
        (ids.join(" "), list.tag)
    };
    let (active, tag) = list(AgentState::Active, None).await;
    assert_eq!(active, "a c");
    assert_eq!(list(AgentState::Inactive, None).await, ("b".to_owned(), tag));
    assert_eq!(list(AgentState::All, None).await, ("a b c".to_owned(), tag));
    assert_eq!(list(AgentState::Active, Some("b")).await, (String::new(), tag));
    let (one, own) = list(AgentState::Inactive, Some("b")).await;
    assert_eq!(one, "b");
    assert_ne!(own, tag);
    assert_eq!(list(AgentState::All, Some("b")).await, (one, own));
    assert_eq!(list(AgentState::Inactive, Some("a")).await, (String::new(), tag));
    let page = AgentFilter::default().state(AgentState::All).offset(1).limit(1);
    let page = world.service.list_agents(&ada, workspace, &page).await.unwrap().value;
    assert_eq!(page.agents().unwrap()[0].agent_id, "b");
}

#[tokio::test]
async fn one_agent_is_read_with_its_tag() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    let new = NewAgent::new(workspace, "writer".parse().unwrap(), "Writer");
    let created = world.service.create_agent(&ada, new).await.unwrap();
    let found = world.service.get_agent(&ada, workspace, "writer").await;
    assert_eq!(found.unwrap(), created);
    // Rights come first: a stranger does not learn that an identifier is impossible.
    let get =
        async |user: &str, agent_id: &str| kind(world.service.get_agent(&world.user(user), workspace, agent_id).await);
    assert_eq!(get("eve", "Never Valid").await, ErrorKind::Forbidden);
    assert_eq!(get("ada", "Never Valid").await, ErrorKind::NotFound);
    assert_eq!(get("ada", "nobody").await, ErrorKind::NotFound);
    world.service.delete_agent(&ada, None, "writer", ANY).await.unwrap();
    assert_eq!(get("ada", "writer").await, ErrorKind::NotFound);
}
