//! The past: lists and versions as they were answered at a revision or at a time.

use agentcfg_core::model::{AgentFilter, AgentPatch, AgentState, AsOf, VersionSelector};
use agentcfg_core::{AgentCfg, ErrorKind, Settings};

use super::past_model::compare;
use super::support::{ANY, World, at, kind, limits};

fn settings() -> Settings {
    Settings::default().plan_limits(limits(Some(5)))
}

/// How many operations a run has: few by default, and as many as `AGENTCFG_TEST_OPERATIONS` names in a long run.
fn operations(default: usize) -> usize {
    let long = std::env::var("AGENTCFG_TEST_OPERATIONS").ok();
    long.and_then(|number| number.parse().ok()).unwrap_or(default)
}

#[tokio::test]
async fn each_list_in_memory_is_answered_again() {
    for seed in 1..=3 {
        let world = World::with(|chosen| *chosen = settings());
        compare(&world.service, &world.clock, seed, operations(400), 50, None).await;
    }
}

#[tokio::test]
async fn each_list_on_disk_is_answered_again() {
    let world = World::on_disk(settings());
    compare(
        &world.service,
        &world.clock,
        7,
        operations(200),
        50,
        Some(operations(200) as u64 / 4),
    )
    .await;
}

async fn texts(
    service: &AgentCfg,
    world: &World,
    workspace: agentcfg_core::model::WorkspaceId,
    as_of: AsOf,
) -> Vec<String> {
    let filter = AgentFilter::default().as_of(as_of);
    let list = service
        .list_agents(&world.user("ada"), workspace, &filter)
        .await
        .unwrap()
        .value;
    list.agents()
        .unwrap()
        .iter()
        .map(|agent| agent.display_name.clone())
        .collect()
}

#[tokio::test]
async fn a_moment_is_included_and_its_bounds_are_checked() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    world.clock.advance_millis(1000);
    let made = world.agent(workspace, "ada", "writer").await.created_at;
    world.clock.advance_millis(1000);
    let patch = AgentPatch::default().display_name("Second");
    let changed = world
        .service
        .update_agent(&ada, Some(workspace), "writer", patch, ANY)
        .await
        .unwrap();
    let list = |as_of| texts(&world.service, &world, workspace, as_of);
    let none: [&str; 0] = [];
    assert_eq!(list(AsOf::At(made.plus_millis(-1))).await, none);
    assert_eq!(list(AsOf::At(made)).await, ["Agent"]);
    assert_eq!(
        list(AsOf::At(changed.value.updated_at.plus_millis(-1))).await,
        ["Agent"]
    );
    assert_eq!(list(AsOf::At(changed.value.updated_at)).await, ["Second"]);
    assert_eq!(
        list(AsOf::At(at("2099-01-01T00:00:00Z"))).await,
        ["Second"],
        "the future is the present"
    );
    assert_eq!(list(AsOf::Revision(1)).await, none);
    assert_eq!(list(AsOf::Revision(2)).await, ["Agent"]);
    assert_eq!(list(AsOf::Revision(3)).await, ["Second"]);
    for as_of in [
        AsOf::Revision(0),
        AsOf::Revision(4),
        AsOf::Revision(u64::MAX),
        AsOf::At(at("2026-11-20T09:29:59.999Z")),
        AsOf::At(at("0001-01-01T00:00:00Z")),
    ] {
        let filter = AgentFilter::default().as_of(as_of);
        let refused = world.service.list_agents(&ada, workspace, &filter).await;
        assert_eq!(kind(refused), ErrorKind::Invalid, "{as_of:?}");
    }
    let version = async |selector| {
        let found = world
            .service
            .get_version(&ada, Some(workspace), "writer", selector)
            .await;
        found.map(|found| found.version).map_err(|error| error.kind())
    };
    assert_eq!(version(VersionSelector::At(made)).await, Ok(1));
    assert_eq!(version(VersionSelector::At(at("2099-01-01T00:00:00Z"))).await, Ok(2));
    assert_eq!(
        version(VersionSelector::At(made.plus_millis(-1))).await,
        Err(ErrorKind::NotFound)
    );
    assert_eq!(
        version(VersionSelector::At(at("0001-01-01T00:00:00Z"))).await,
        Err(ErrorKind::NotFound)
    );
    assert_eq!(version(VersionSelector::Revision(1)).await, Err(ErrorKind::NotFound));
    assert_eq!(version(VersionSelector::Revision(4)).await, Err(ErrorKind::Invalid));
}

#[tokio::test]
async fn a_past_list_is_filtered_and_tagged_like_a_present_one() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    for agent_id in ["a", "b", "c"] {
        world.agent(workspace, "ada", agent_id).await;
    }
    let present = world
        .service
        .list_agents(&ada, workspace, &AgentFilter::default())
        .await
        .unwrap();
    world
        .service
        .delete_agent(&ada, Some(workspace), "b", ANY)
        .await
        .unwrap();
    let patch = AgentPatch::default().role("x");
    world
        .service
        .update_agent(&ada, Some(workspace), "a", patch, ANY)
        .await
        .unwrap();
    let list = async |filter: AgentFilter| world.service.list_agents(&ada, workspace, &filter).await.unwrap();
    let at_four = AgentFilter::default().as_of(AsOf::Revision(4));
    let past = list(at_four.clone()).await;
    assert_eq!((past.value.json(), past.tag), (present.value.json(), present.tag));
    let page = at_four.clone().offset(1).limit(1);
    assert_eq!(list(page).await.value.agents().unwrap()[0].agent_id, "b");
    let one = at_four.clone().agent_id(Some("a".parse().unwrap()));
    let one = list(one).await;
    assert_eq!((one.value.len(), one.value.version()), (1, Some(1)));
    for (revision, state, ids) in [
        (4, AgentState::Inactive, &[][..]),
        (5, AgentState::Inactive, &["b"]),
        (5, AgentState::All, &["a", "b", "c"]),
        (5, AgentState::Active, &["a", "c"]),
    ] {
        let filter = AgentFilter::default().as_of(AsOf::Revision(revision)).state(state);
        let found = list(filter).await;
        let found: Vec<_> = found
            .value
            .agents()
            .unwrap()
            .iter()
            .map(|agent| agent.agent_id.to_string())
            .collect();
        assert_eq!(found, ids, "{revision} {state}");
    }
}

#[tokio::test]
async fn the_future_is_the_present_also_after_a_clock_was_set_back() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    world.clock.advance_millis(7_200_000);
    let made = world.agent(workspace, "ada", "writer").await;
    world.clock.step_millis(-3_600_000);
    let soon = world.now().plus_millis(60_000);
    assert!(soon < made.created_at);
    assert_eq!(
        texts(&world.service, &world, workspace, AsOf::At(soon)).await,
        ["Agent"]
    );
    let version = world
        .service
        .get_version(&ada, Some(workspace), "writer", VersionSelector::At(soon))
        .await
        .unwrap();
    assert_eq!(version.version, 1);
    let past = AsOf::At(world.now().plus_millis(-1));
    let none: [&str; 0] = [];
    assert_eq!(texts(&world.service, &world, workspace, past).await, none);
}
