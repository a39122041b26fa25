//! Apply: the outcome is that of the body, in one commit or in none.

use std::collections::BTreeMap;
use std::sync::Arc;

use agentcfg_core::model::{
    Action, Agent, AgentFilter, AgentPatch, AgentSpec, AgentState, AppliedAgents, ApplyAction, ApplyAgents, Cursor,
    Plan, Role, TargetType, WorkspaceId,
};
use agentcfg_core::store::{Kind, Partition, Scan};
use agentcfg_core::{Error, ErrorKind};

use super::support::{ANY, Fault, Faulty, World, failure, kind, limits};

fn spec(agent_id: &str) -> AgentSpec {
    AgentSpec::new(agent_id.parse().unwrap(), "Agent")
}

pub fn with_role(agent_id: &str, role: &str) -> AgentSpec {
    spec(agent_id).role(Some(role.into()))
}

fn of<const N: usize>(agents: [&str; N]) -> ApplyAgents {
    ApplyAgents::of(agents.into_iter().map(spec).collect())
}

fn in_set<const N: usize>(set: &str, agents: [&str; N]) -> ApplyAgents {
    of(agents).set(Some(set.parse().unwrap()))
}

fn pruning<const N: usize>(set: &str, agents: [&str; N]) -> ApplyAgents {
    in_set(set, agents).prune(true)
}

pub async fn apply(world: &World, workspace: WorkspaceId, body: ApplyAgents) -> Result<AppliedAgents, Error> {
    let ada = world.user("ada");
    let planned = world.service.apply_agents(&ada, workspace, body.clone(), true).await;
    let log = world.log(workspace, "ada").await.len();
    let applied = world.service.apply_agents(&ada, workspace, body, false).await;
    match (&planned, &applied) {
        (Ok(planned), Ok(applied)) => assert_eq!(planned.results, applied.results, "a dry run answers the same"),
        (Err(planned), Err(applied)) => {
            assert_eq!((planned.kind(), planned.message()), (applied.kind(), applied.message()));
            assert_eq!(world.log(workspace, "ada").await.len(), log);
        }
        _ => panic!("{planned:?} and {applied:?}"),
    }
    applied
}

fn actions(applied: &AppliedAgents) -> Vec<(&str, ApplyAction)> {
    let actions = applied.results.iter().map(|agent| (&*agent.agent_id, agent.action));
    actions.collect()
}

/// All agents by identifier, with whether they are active.
pub async fn agents(world: &World, workspace: WorkspaceId) -> BTreeMap<String, Agent> {
    let filter = AgentFilter::default().state(AgentState::All);
    let ada = world.user("ada");
    let list = world.service.list_agents(&ada, workspace, &filter).await.unwrap();
    let agents = list.value.agents().unwrap().iter();
    agents
        .map(|agent| (agent.agent_id.to_string(), agent.clone()))
        .collect()
}

/// The records of all sets: their agents, and the set of each agent.
pub async fn sets(world: &World, workspace: WorkspaceId) -> (BTreeMap<String, Vec<String>>, BTreeMap<String, String>) {
    let read = async |kind| {
        let scan = Scan::all(Partition::Workspace(workspace), kind);
        world.store.scan(&scan).await.unwrap().entries
    };
    let value = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let sets = read(Kind::Set).await.into_iter().map(|(key, record)| {
        let agents = value(&record.value)["agents"]
            .as_array()
            .unwrap()
            .iter()
            .map(text)
            .collect();
        (key.item().to_owned(), agents)
    });
    let members = read(Kind::SetMember).await.into_iter();
    let members = members.map(|(key, record)| (key.item().to_owned(), text(&value(&record.value)["set"])));
    (sets.collect(), members.collect())
}

#[tokio::test]
async fn agents_are_created_changed_restored_and_left_as_they_are() {
    use ApplyAction::{Create, Keep, Restore, Update};
    let world = World::new();
    let (ada, workspace) = (world.user("ada"), world.workspace("ada").await);
    world.set_plan(workspace, Plan::Team).await;
    for agent_id in ["a", "b", "c"] {
        world.agent(workspace, "ada", agent_id).await;
    }
    let patch = AgentPatch::default().role("old").model("gpt-5.5");
    for agent_id in ["b", "c"] {
        let changed = world
            .service
            .update_agent(&ada, Some(workspace), agent_id, patch.clone(), ANY);
        changed.await.unwrap();
    }
    world
        .service
        .delete_agent(&ada, Some(workspace), "c", ANY)
        .await
        .unwrap();
    let before = agents(&world, workspace).await;
    let log = world.log(workspace, "ada").await.len();

    let body = ApplyAgents::of(vec![
        spec("new"),
        with_role("b", "new"),
        spec("a"),
        with_role("c", "old"),
    ]);
    let applied = apply(&world, workspace, body.clone()).await.unwrap();
    assert_eq!(
        actions(&applied),
        [("new", Create), ("b", Update), ("a", Keep), ("c", Restore)]
    );
    let after = agents(&world, workspace).await;
    assert_eq!(after["a"], before["a"]);
    assert_eq!(
        (&after["b"].role, &after["b"].model),
        (&Some("new".into()), &None),
        "what is left out is absent"
    );
    assert!(after["c"].is_active && after["c"].model.is_none() && after["c"].id == before["c"].id);
    assert!(after["c"].updated_at > before["c"].updated_at);

    let entries = world.log(workspace, "ada").await;
    assert_eq!(entries.len(), log + 1);
    let entry = entries.last().unwrap();
    assert_eq!(
        (entry.action, entry.target.kind),
        (Action::AgentsApplied, TargetType::Workspace)
    );
    assert_eq!(entry.target.id, workspace.to_string());
    assert_eq!(applied.cursor.revision(), entries.len() as u64);
    let mut changes = BTreeMap::new();
    for agent in &applied.results {
        for (field, change) in &agent.changes {
            changes.insert(format!("agents/{}/{field}", agent.agent_id), change.clone());
        }
    }
    assert_eq!(entry.changes, changes);
    assert_eq!(changes["agents/c/is_active"].to, true);
    assert_eq!(changes["agents/b/model"].from, "gpt-5.5");

    let again = apply(&world, workspace, body).await.unwrap();
    assert!(
        again
            .results
            .iter()
            .all(|agent| agent.action == Keep && agent.changes.is_empty())
    );
    assert_eq!(again.cursor, applied.cursor);
    assert_eq!(world.log(workspace, "ada").await.len(), log + 1, "nothing was recorded");
}

#[tokio::test]
async fn a_set_prunes_its_own_agents_alone() {
    use ApplyAction::{Create, Deactivate, Keep, Restore};
    let world = World::new();
    let (ada, workspace) = (world.user("ada"), world.workspace("ada").await);
    world.set_plan(workspace, Plan::Team).await;
    world.agent(workspace, "ada", "by-hand").await;
    apply(&world, workspace, in_set("docs", ["a", "b", "c"])).await.unwrap();
    apply(&world, workspace, in_set("other", ["x"])).await.unwrap();
    let conflict = failure(apply(&world, workspace, in_set("docs", ["a", "x"])).await);
    let message = "the agent x belongs to the set other; an agent belongs to one set at most";
    assert_eq!(conflict, (ErrorKind::Conflict, message.to_owned()));

    // Deactivated by hand, an agent stays in its set.
    world
        .service
        .delete_agent(&ada, Some(workspace), "c", ANY)
        .await
        .unwrap();
    let applied = apply(&world, workspace, pruning("docs", ["a", "c", "d"]))
        .await
        .unwrap();
    assert_eq!(
        actions(&applied),
        [("a", Keep), ("c", Restore), ("d", Create), ("b", Deactivate)]
    );
    let (of_sets, of_agents) = sets(&world, workspace).await;
    assert_eq!(of_sets["docs"], ["a", "c", "d"]);
    assert!(!of_agents.contains_key("b"), "its membership has ended");
    let after = agents(&world, workspace).await;
    assert!(after["by-hand"].is_active && after["x"].is_active && !after["b"].is_active);

    // Without a set, agents of a set are changed and stay in it.
    let body = ApplyAgents::of(vec![with_role("a", "changed")]);
    apply(&world, workspace, body).await.unwrap();
    apply(&world, workspace, in_set("other", ["b", "x"])).await.unwrap();
    let (of_sets, of_agents) = sets(&world, workspace).await;
    assert_eq!((&*of_agents["a"], &*of_agents["b"]), ("docs", "other"));
    let emptied = apply(&world, workspace, pruning("docs", [])).await.unwrap();
    assert_eq!(
        actions(&emptied),
        [("a", Deactivate), ("c", Deactivate), ("d", Deactivate)]
    );
    assert_eq!(of_sets.len(), 2);
    assert_eq!(
        sets(&world, workspace).await.0.into_keys().collect::<Vec<_>>(),
        ["other"]
    );

    // Only the membership changes: that is recorded, with no field.
    let log = world.log(workspace, "ada").await.len();
    let joined = apply(&world, workspace, in_set("mine", ["by-hand"])).await.unwrap();
    assert_eq!(actions(&joined), [("by-hand", Keep)]);
    let entries = world.log(workspace, "ada").await;
    assert_eq!(entries.len(), log + 1);
    assert!(entries[log].changes.is_empty());
}

#[tokio::test]
async fn a_base_refuses_what_has_changed_since() {
    let world = World::new();
    let (ada, workspace) = (world.user("ada"), world.workspace("ada").await);
    world.set_plan(workspace, Plan::Team).await;
    let first = apply(&world, workspace, in_set("docs", ["a", "b"])).await.unwrap();
    world.agent(workspace, "ada", "other").await;
    let based = |body: ApplyAgents, base: Cursor| body.base(base);
    let change = |agent_id: &'static str| {
        let (service, ada) = (&world.service, &ada);
        async move {
            let empty = AgentPatch::default();
            service
                .update_agent(ada, Some(workspace), agent_id, empty, ANY)
                .await
                .unwrap();
        }
    };
    // An agent of neither the set nor the body.
    change("other").await;
    let second = apply(&world, workspace, based(in_set("docs", ["a"]), first.cursor))
        .await
        .unwrap();
    // An empty change counts too, of an agent of the set that the body does not name.
    change("b").await;
    for body in [in_set("docs", ["a"]), of(["b"]), pruning("docs", ["a", "b"])] {
        let refused = failure(apply(&world, workspace, based(body, second.cursor)).await);
        let message = "since base 1 of these agents have changed: b";
        assert_eq!(refused, (ErrorKind::Precondition, message.to_owned()));
    }
    apply(&world, workspace, based(of(["a"]), second.cursor)).await.unwrap();
    // Another apply counts.
    apply(&world, workspace, ApplyAgents::of(vec![with_role("a", "x")]))
        .await
        .unwrap();
    assert_eq!(
        kind(apply(&world, workspace, based(of(["a"]), second.cursor)).await),
        ErrorKind::Precondition
    );

    let now = apply(&world, workspace, of(["other"])).await.unwrap().cursor;
    let later = Cursor::new(now.epoch(), workspace, now.revision() + 1);
    let restored = Cursor::new("00000000".parse().unwrap(), workspace, 1);
    for cursor in [later, restored] {
        assert_eq!(
            kind(apply(&world, workspace, based(of(["a"]), cursor)).await),
            ErrorKind::Precondition
        );
    }
    let elsewhere = Cursor::new(now.epoch(), world.workspace("eve").await, 1);
    let refused = failure(apply(&world, workspace, based(of(["a"]), elsewhere)).await);
    assert_eq!(
        refused,
        (ErrorKind::Invalid, "base is a cursor of another workspace".to_owned())
    );
}

#[tokio::test]
async fn the_plan_limits_the_outcome() {
    let world = World::with(|settings| settings.plan_limits = limits(Some(3)));
    let workspace = world.workspace("ada").await;
    apply(&world, workspace, in_set("docs", ["a", "b", "c"])).await.unwrap();
    let (over, message) = failure(apply(&world, workspace, of(["d", "e"])).await);
    assert_eq!(over, ErrorKind::PlanLimit);
    assert!(
        message.contains("allows 3 active agents, and there would be 5"),
        "{message}"
    );
    assert_eq!(
        kind(apply(&world, workspace, of(["a", "d"])).await),
        ErrorKind::PlanLimit
    );
    // As many go as come.
    apply(&world, workspace, pruning("docs", ["a", "d", "e"]))
        .await
        .unwrap();
    let active = world.listed(workspace, "ada").await;
    assert_eq!(active.len(), 3);
    assert_eq!(agents(&world, workspace).await.len(), 5);
    // Above the limit, a change that does not make them more is fine.
    let stricter = World::on(Arc::clone(&world.store), {
        let mut settings = world.settings.clone();
        settings.plan_limits = limits(Some(1));
        settings
    });
    let body = ApplyAgents::of(vec![with_role("a", "x"), with_role("d", "x")]);
    apply(&stricter, workspace, body).await.unwrap();
    apply(&stricter, workspace, pruning("docs", ["a", "d"])).await.unwrap();
    assert_eq!(
        kind(apply(&stricter, workspace, of(["a", "b"])).await),
        ErrorKind::PlanLimit
    );
}

#[tokio::test]
async fn callers_without_the_right_are_refused_before_anything_else() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let viewer = world.member(workspace, "ada", "vic", Role::Viewer).await;
    let foreign = spec("a").workspace_id(world.workspace("eve").await);
    let body = ApplyAgents::of(vec![spec("b"), foreign]);
    for caller in [&viewer, &world.user("eve")] {
        let refused = world.service.apply_agents(caller, workspace, body.clone(), false).await;
        assert_eq!(kind(refused), ErrorKind::Forbidden);
    }
    let refused = failure(apply(&world, workspace, body).await);
    let message = "agents[1].workspace_id must be the workspace of the request, or be left out";
    assert_eq!(refused, (ErrorKind::Invalid, message.to_owned()));
    let own = spec("a").workspace_id(workspace);
    apply(&world, workspace, ApplyAgents::of(vec![own])).await.unwrap();
}

/// Another writer commits between the read and the commit: the apply decides again on the new state.
#[tokio::test]
async fn a_lost_race_is_decided_again() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    world.set_plan(workspace, Plan::Team).await;
    apply(&world, workspace, in_set("docs", ["a", "b"])).await.unwrap();
    let faulty = Faulty::new(&world.store);
    let service = world.behind(Arc::clone(&faulty) as _);
    let (other, ada) = (world.another_instance(), world.user("ada"));
    let meanwhile = async move {
        // Another apply of the set adds an agent, which this one then prunes.
        other
            .apply_agents(&ada, workspace, in_set("docs", ["c"]), false)
            .await
            .unwrap();
        let role = AgentPatch::default().role("raced");
        other.update_agent(&ada, Some(workspace), "a", role, ANY).await.unwrap();
    };
    faulty.script([Fault::After(Box::pin(meanwhile))]);
    let applied = service
        .apply_agents(&world.user("ada"), workspace, pruning("docs", ["a"]), false)
        .await;
    let applied = applied.unwrap();
    let expected = [
        ("a", ApplyAction::Update),
        ("b", ApplyAction::Deactivate),
        ("c", ApplyAction::Deactivate),
    ];
    assert_eq!(actions(&applied), expected);
    assert_eq!(faulty.commits(), 2);
}

#[tokio::test]
async fn an_agent_that_has_joined_the_set_since_the_base_is_not_pruned() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    world.set_plan(workspace, Plan::Team).await;
    apply(&world, workspace, of(["x"])).await.unwrap();
    let base = apply(&world, workspace, in_set("docs", ["a"])).await.unwrap().cursor;
    // Another one adds it as it is, which changes no agent.
    let joined = apply(&world, workspace, in_set("docs", ["x"])).await.unwrap();
    assert_eq!(actions(&joined), [("x", ApplyAction::Keep)]);
    let refused = failure(apply(&world, workspace, pruning("docs", ["a"]).base(base)).await);
    let message = "since base 1 of these agents have changed: x";
    assert_eq!(refused, (ErrorKind::Precondition, message.to_owned()));
    let pruned = apply(&world, workspace, pruning("docs", ["a"]).base(joined.cursor)).await;
    assert_eq!(actions(&pruned.unwrap()).last(), Some(&("x", ApplyAction::Deactivate)));
}

#[tokio::test]
async fn a_failed_commit_changes_nothing() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    world.set_plan(workspace, Plan::Team).await;
    apply(&world, workspace, in_set("docs", ["a", "b"])).await.unwrap();
    let before = (
        agents(&world, workspace).await,
        sets(&world, workspace).await,
        world.log(workspace, "ada").await,
    );
    let faulty = Faulty::new(&world.store);
    let service = world.behind(Arc::clone(&faulty) as _);
    faulty.script([Fault::Unavailable]);
    let failed = service
        .apply_agents(&world.user("ada"), workspace, pruning("docs", ["c"]), false)
        .await;
    assert_eq!(kind(failed), ErrorKind::Unavailable);
    let after = (
        agents(&world, workspace).await,
        sets(&world, workspace).await,
        world.log(workspace, "ada").await,
    );
    assert_eq!(after, before);
}
