//! Apply, on random bodies: what one brings about, twice, and against another one.

use std::collections::{BTreeMap, BTreeSet};

use agentcfg_core::ErrorKind;
use agentcfg_core::model::{Agent, ApplyAction, ApplyAgents, WorkspaceId};
use agentcfg_core::store::{Key, Kind};
use proptest::prelude::*;

use super::apply::{agents, apply, sets, with_role};
use super::support::{World, limits};

/// A body of up to eight agents with few contents, so that agents are often as wanted already.
fn bodies() -> impl Strategy<Value = ApplyAgents> {
    let agent = (0..8u8, 0..3u8, any::<bool>()).prop_map(|(id, role, has_tag)| {
        with_role(&format!("agent-{id}"), &format!("role-{role}")).capabilities(if has_tag {
            vec!["tag".into()]
        } else {
            vec![]
        })
    });
    let agents = proptest::collection::vec(agent, 1..8).prop_map(|agents| {
        let mut named = BTreeSet::new();
        agents
            .into_iter()
            .filter(|agent| named.insert(agent.agent_id.clone()))
            .collect::<Vec<_>>()
    });
    (agents, proptest::option::of(0..2u8), any::<bool>()).prop_map(|(agents, set, prune)| {
        ApplyAgents::of(agents)
            .prune(prune && set.is_some())
            .set(set.map(|set| format!("set-{set}").parse().unwrap()))
    })
}

/// The agents are as the body names them; those of the set that it does not name are pruned, and no others.
async fn check(world: &World, workspace: WorkspaceId, body: &ApplyAgents, before: &BTreeMap<String, Agent>) {
    let after = agents(world, workspace).await;
    for spec in &body.agents {
        let agent = &after[&*spec.agent_id];
        assert!(agent.is_active && agent.role == spec.role && agent.capabilities == spec.capabilities);
    }
    let (of_sets, of_agents) = sets(world, workspace).await;
    for (set, agents) in &of_sets {
        assert!(agents.is_sorted());
        assert!(agents.iter().all(|agent| of_agents[agent] == *set));
    }
    assert_eq!(of_sets.values().map(Vec::len).sum::<usize>(), of_agents.len());
    if let (Some(set), true) = (&body.set, body.prune) {
        let named: BTreeSet<_> = body.agents.iter().map(|spec| spec.agent_id.to_string()).collect();
        assert_eq!(of_sets[&**set].iter().cloned().collect::<BTreeSet<_>>(), named);
    }
    let named = |agent: &&Agent| body.agents.iter().any(|spec| spec.agent_id == agent.agent_id);
    for agent in before.values().filter(|agent| !named(agent)) {
        let pruned = agent.is_active && !after[&*agent.agent_id].is_active;
        assert!(after[&*agent.agent_id] == *agent || body.prune && pruned);
    }
    let active = after.values().filter(|agent| agent.is_active).count();
    let counter = Key::in_workspace(workspace, Kind::Counter, "active_agents");
    let counted = world.store.get(&[counter]).await.unwrap().remove(0);
    let counted = counted.map_or(0, |record| std::str::from_utf8(&record.value).unwrap().parse().unwrap());
    assert_eq!(counted, active);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn an_apply_brings_about_its_body_and_a_second_one_nothing(all in proptest::collection::vec(bodies(), 1..8)) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
            let world = World::with(|settings| settings.plan_limits = limits(None));
            let workspace = world.workspace("ada").await;
            for body in all {
                let before = agents(&world, workspace).await;
                let state = (before.clone(), sets(&world, workspace).await, world.log(workspace, "ada").await);
                match apply(&world, workspace, body.clone()).await {
                    Ok(_) => {
                        check(&world, workspace, &body, &before).await;
                        let log = world.log(workspace, "ada").await.len();
                        let again = apply(&world, workspace, body).await.unwrap();
                        assert!(again.results.iter().all(|agent| agent.action == ApplyAction::Keep));
                        assert_eq!(world.log(workspace, "ada").await.len(), log);
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Conflict);
                        let after = (agents(&world, workspace).await, sets(&world, workspace).await, world.log(workspace, "ada").await);
                        assert_eq!(after, state, "nothing was changed");
                    }
                }
            }
        });
    }

    /// Whatever the order of two concurrent applies of one set is, the outcome is that of one after the other.
    #[test]
    fn concurrent_applies_of_a_set_have_an_order(one in bodies(), two in bodies(), seed: u64) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
            let world = World::with(|settings| settings.plan_limits = limits(None));
            let workspace = world.workspace("ada").await;
            let set = Some("docs".parse().unwrap());
            let (one, two) = (
                one.set(set.clone()).prune(true),
                two.set(set).prune(true),
            );
            let race = |body: ApplyAgents, seed| {
                let service = world.yielding(seed);
                let ada = world.user("ada");
                async move { service.apply_agents(&ada, workspace, body, false).await.unwrap() }
            };
            let (first, second) = tokio::join!(race(one.clone(), seed), race(two.clone(), !seed));
            let last = if first.cursor.revision() > second.cursor.revision() { &one } else { &two };
            let active: BTreeSet<_> = world.listed(workspace, "ada").await.into_iter().collect();
            let named: BTreeSet<_> = last.agents.iter().map(|spec| spec.agent_id.to_string()).collect();
            if first.cursor != second.cursor {
                assert_eq!(active, named, "the later one has pruned what the earlier one applied");
            }
            check(&world, workspace, last, &BTreeMap::new()).await;
        });
    }
}
