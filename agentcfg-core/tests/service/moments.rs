//! Answers and decisions of one moment: another client changes the workspace between two reads, or before the commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agentcfg_core::model::{
    AgentFilter, AgentPatch, AgentSpec, ApplyAction, ApplyAgents, AsOf, AuditFilter, LabelTarget, Precondition,
    Promotion, Rollback, RotateApiKey, Scope, VersionSelector, WorkspaceId,
};
use agentcfg_core::store::Kind;
use agentcfg_core::{AgentCfg, Caller, ErrorKind, Settings};

use super::support::{ANY, Between, Call, World, kind, limits};

/// More agents than fit in one piece of a read.
const MANY: usize = 300;

/// A workspace, a service whose store runs changes before its calls, and another service that makes those.
struct Scene {
    world: World,
    workspace: WorkspaceId,
    ada: Caller,
    between: Arc<Between>,
    service: AgentCfg,
    other: Other,
}

/// The other client of the workspace.
#[derive(Clone)]
struct Other {
    service: AgentCfg,
    ada: Caller,
    workspace: WorkspaceId,
}

impl Scene {
    async fn of(agents: usize) -> Self {
        let world = World::with(|settings: &mut Settings| settings.plan_limits = limits(None));
        let workspace = world.workspace("ada").await;
        let between = Between::new(&world.store);
        let scene = Self {
            service: world.behind(Arc::clone(&between) as _),
            ada: world.user("ada"),
            other: Other {
                service: world.service.clone(),
                ada: world.user("ada"),
                workspace,
            },
            workspace,
            between,
            world,
        };
        scene.other.apply(agents, "first").await;
        scene
    }

    async fn promote(&self, from: &str, to: &str) -> Vec<(String, u64)> {
        self.promote_those(from, to, None).await.unwrap()
    }

    async fn promote_those(
        &self,
        from: &str,
        to: &str,
        those: Option<&[&str]>,
    ) -> Result<Vec<(String, u64)>, agentcfg_core::Error> {
        let promotion = Promotion {
            agent_ids: those.map(|ids| ids.iter().map(|id| id.parse().unwrap()).collect()),
            ..Promotion::new(from.parse().unwrap(), to.parse().unwrap())
        };
        let promoted = self
            .service
            .promote_labels(&self.ada, self.workspace, promotion, false)
            .await?;
        let row = |row: &agentcfg_core::model::PromotedLabel| (row.agent_id.to_string(), row.version);
        Ok(promoted.iter().map(row).collect())
    }

    /// The version that each label of this name points at.
    async fn labels(&self, label: &str) -> Vec<(String, u64)> {
        let filter = agentcfg_core::model::LabelFilter {
            label: Some(label),
            ..Default::default()
        };
        let found = self
            .world
            .service
            .list_labels(&self.ada, self.workspace, filter)
            .await
            .unwrap();
        let row = |row: &agentcfg_core::model::AgentLabel| (row.agent_id.to_string(), row.version);
        found.iter().map(row).collect()
    }
}

fn id(number: usize) -> String {
    format!("agent-{number:04}")
}

impl Other {
    /// Gives all agents this role in one commit.
    async fn apply(&self, agents: usize, role: &str) {
        let spec = |number| AgentSpec {
            role: Some(role.into()),
            ..AgentSpec::new(id(number).parse().unwrap(), "Agent")
        };
        let body = ApplyAgents::of((0..agents).map(spec).collect());
        self.service
            .apply_agents(&self.ada, self.workspace, body, false)
            .await
            .unwrap();
    }

    async fn edit(&self, agent: &str, role: &str) {
        let patch = AgentPatch {
            role: agentcfg_core::model::Patch::Set(role.into()),
            ..AgentPatch::default()
        };
        let to = Some(self.workspace);
        self.service
            .update_agent(&self.ada, to, agent, patch, ANY)
            .await
            .unwrap();
    }

    async fn label(&self, agent: &str, label: &str, version: u64) {
        let (to, target) = (Some(self.workspace), LabelTarget::new(version));
        self.service
            .set_label(&self.ada, to, agent, label, target)
            .await
            .unwrap();
    }

    async fn deactivate(&self, agent: &str) {
        let to = Some(self.workspace);
        self.service.delete_agent(&self.ada, to, agent, ANY).await.unwrap();
    }
}

#[tokio::test]
async fn a_promotion_of_the_current_versions_is_never_half_a_release() {
    let scene = Scene::of(MANY).await;
    let other = scene.other.clone();
    scene.between.before(
        Call::Scan(Kind::Agent),
        1,
        async move { other.apply(MANY, "second").await },
    );
    let promoted = scene.promote("latest", "live").await;
    assert_eq!(scene.between.left(), 0, "the change came between two pieces");
    assert_eq!(promoted.len(), MANY);
    assert!(promoted.iter().all(|(_, version)| *version == 2), "{promoted:?}");
    assert_eq!(scene.labels("live").await, promoted);
}

#[tokio::test]
async fn a_planned_promotion_is_of_one_moment_too() {
    let scene = Scene::of(MANY).await;
    let other = scene.other.clone();
    for number in 0..MANY {
        other.label(&id(number), "next", 1).await;
    }
    other.label(&id(0), "live", 1).await;
    scene.between.before(Call::Scan(Kind::AgentLabels), 1, async move {
        other.apply(MANY, "second").await;
        for number in [0, MANY - 1] {
            other.label(&id(number), "next", 2).await;
            other.label(&id(number), "live", 2).await;
        }
        let to = Some(other.workspace);
        other
            .service
            .remove_label(&other.ada, to, &*id(MANY - 2), "next")
            .await
            .unwrap();
    });
    let promotion = Promotion::new("next".parse().unwrap(), "live".parse().unwrap());
    let planned = scene
        .service
        .promote_labels(&scene.ada, scene.workspace, promotion, true)
        .await
        .unwrap();
    assert_eq!(scene.between.left(), 0);
    assert_eq!(planned.len(), MANY);
    assert!(planned.iter().all(|row| row.version == 1), "{planned:?}");
    let before = |number: usize| planned[number].previous_version;
    assert_eq!((before(0), before(MANY - 1)), (Some(1), None));
}

#[tokio::test]
async fn the_current_versions_are_of_one_moment() {
    for (call, skip) in [
        (Call::Scan(Kind::AgentLabels), 0),
        (Call::Scan(Kind::AgentLabels), 1),
        (Call::Scan(Kind::Agent), 0),
        (Call::Scan(Kind::Agent), 1),
        (Call::Get(Kind::AgentVersion), 0),
        (Call::Get(Kind::AgentVersion), 1),
    ] {
        let scene = Scene::of(MANY).await;
        let other = scene.other.clone();
        for number in 0..MANY {
            other.label(&id(number), "live", 1).await;
        }
        scene.between.before(call, skip, async move {
            other.apply(MANY, "second").await;
            let promotion = Promotion::new("latest".parse().unwrap(), "live".parse().unwrap());
            let promoted = other
                .service
                .promote_labels(&other.ada, other.workspace, promotion, false);
            assert_eq!(promoted.await.unwrap().len(), MANY);
            other.deactivate(&id(0)).await;
            other.deactivate(&id(MANY - 1)).await;
            other.apply(1, "third").await;
        });
        let found = scene
            .service
            .current_versions(&scene.ada, Some(scene.workspace))
            .await
            .unwrap();
        assert_eq!(scene.between.left(), 0, "{call:?} {skip}");
        assert_eq!(found.len(), MANY, "{call:?} {skip}");
        for row in &found {
            assert_eq!((row.version, row.labels.len()), (1, 1), "{call:?} {skip}: {row:?}");
        }
    }
}

#[tokio::test]
async fn a_list_of_a_past_time_has_no_later_commit_that_is_dated_before_it() {
    let scene = Scene::of(MANY).await;
    scene.world.clock.advance_millis(10_000);
    let at = scene.world.now();
    scene.world.clock.advance_millis(1000);
    let (other, clock) = (scene.other.clone(), Arc::clone(&scene.world.clock));
    // The clock of another server is behind.
    scene.between.before(Call::Scan(Kind::Agent), 1, async move {
        clock.step_millis(-5000);
        other.apply(MANY, "second").await;
        clock.step_millis(5000);
    });
    let filter = AgentFilter {
        as_of: Some(AsOf::At(at)),
        ..AgentFilter::default()
    };
    let list = scene
        .service
        .list_agents(&scene.ada, scene.workspace, &filter)
        .await
        .unwrap();
    assert_eq!(scene.between.left(), 0);
    let agents = list.value.decode().unwrap();
    assert_eq!(agents.len(), MANY);
    assert!(agents.iter().all(|agent| agent.role.as_deref() == Some("first")));
}

#[tokio::test]
async fn a_promotion_is_decided_on_what_its_commit_finds() {
    let scene = Scene::of(3).await;
    let other = scene.other.clone();
    other.label(&id(0), "next", 1).await;
    other.label(&id(1), "next", 1).await;
    // One bearer is deactivated, and another agent becomes one.
    let by = other.clone();
    scene.between.before(Call::Commit(Kind::AgentLabels), 0, async move {
        by.deactivate(&id(0)).await;
        by.label(&id(2), "next", 1).await;
    });
    assert_eq!(scene.promote("next", "live").await, [(id(1), 1), (id(2), 1)]);
    // A current version changes.
    other.edit(&id(2), "new").await;
    let by = other.clone();
    scene.between.before(Call::Commit(Kind::AgentLabels), 0, async move {
        by.edit(&id(1), "new").await
    });
    assert_eq!(scene.promote("latest", "live").await, [(id(1), 2), (id(2), 2)]);
    assert_eq!(scene.between.left(), 0);
    assert_eq!(scene.labels("live").await, [(id(1), 2), (id(2), 2)]);
}

#[tokio::test]
async fn a_promotion_of_named_agents_is_decided_on_what_its_commit_finds() {
    let scene = Scene::of(3).await;
    let other = scene.other.clone();
    other.apply(3, "second").await;
    let (first, second) = (id(0), id(1));
    let those = [&*first, &*second];
    for number in 0..2 {
        other.label(&id(number), "next", 1).await;
    }
    // This one is there already, so nothing of it is written.
    other.label(&first, "live", 1).await;
    let by = other.clone();
    scene.between.before(Call::Commit(Kind::AgentLabels), 0, async move {
        by.label(&id(0), "next", 2).await
    });
    let promoted = scene.promote_those("next", "live", Some(&those)).await.unwrap();
    assert_eq!(promoted, [(id(0), 2), (id(1), 1)]);
    // The current version changes.
    let by = other.clone();
    scene.between.before(Call::Commit(Kind::AgentLabels), 0, async move {
        by.edit(&id(1), "third").await
    });
    let promoted = scene.promote_those("latest", "live", Some(&those)).await.unwrap();
    assert_eq!(promoted, [(id(0), 2), (id(1), 3)]);
    // One is deactivated.
    other.label(&second, "next", 3).await;
    let by = other.clone();
    other.label(&first, "next", 1).await;
    scene.between.before(Call::Commit(Kind::AgentLabels), 0, async move {
        by.deactivate(&id(1)).await
    });
    let refused = scene.promote_those("next", "live", Some(&those)).await;
    assert_eq!(kind(refused), ErrorKind::NotFound);
    assert_eq!(scene.between.left(), 0);
    assert_eq!(scene.labels("live").await, [(id(0), 2), (id(1), 3)]);
}

#[tokio::test]
async fn changes_of_others_do_not_disturb_a_promotion_of_named_agents() {
    let scene = Scene::of(2).await;
    let other = scene.other.clone();
    for _ in 0..50 {
        let by = other.clone();
        let work = async move { by.edit(&id(1), "new").await };
        scene.between.before(Call::Commit(Kind::AgentLabels), 0, work);
    }
    let promoted = scene.promote_those("latest", "live", Some(&[&id(0)])).await.unwrap();
    assert_eq!(promoted, [(id(0), 1)]);
    assert_eq!(scene.between.left(), 49, "the first attempt succeeds");
}

#[tokio::test]
async fn a_rollback_by_label_takes_the_version_that_its_commit_finds() {
    let scene = Scene::of(1).await;
    let other = scene.other.clone();
    for role in ["second", "third"] {
        other.edit(&id(0), role).await;
    }
    other.label(&id(0), "good", 1).await;
    let by = other.clone();
    scene.between.before(Call::Commit(Kind::Agent), 0, async move {
        by.label(&id(0), "good", 2).await
    });
    let to = Rollback::to_label("good".parse().unwrap());
    let rolled_back = scene
        .service
        .roll_back_agent(&scene.ada, Some(scene.workspace), &*id(0), to, &Precondition::None)
        .await
        .unwrap();
    assert_eq!(scene.between.left(), 0);
    assert_eq!(rolled_back.value.role.as_deref(), Some("second"));
    let version = scene
        .service
        .get_version(&scene.ada, Some(scene.workspace), &*id(0), VersionSelector::Current)
        .await
        .unwrap();
    assert_eq!((version.version, version.restored_from), (4, Some(2)));
}

#[tokio::test]
async fn an_apply_is_decided_on_the_whole_set_that_its_commit_finds() {
    let scene = Scene::of(3).await;
    let other = scene.other.clone();
    let body = |numbers: &[usize], role: &str| {
        let specs = numbers.iter().map(|number| AgentSpec {
            role: Some(role.into()),
            ..AgentSpec::new(id(*number).parse().unwrap(), "Agent")
        });
        ApplyAgents {
            set: Some("docs".parse().unwrap()),
            ..ApplyAgents::of(specs.collect())
        }
    };
    let apply = async |body: ApplyAgents| {
        scene
            .service
            .apply_agents(&scene.ada, scene.workspace, body, false)
            .await
    };
    let base = apply(body(&[0, 1], "first")).await.unwrap().cursor;
    // An agent of the set that is not named changes since the base.
    let by = other.clone();
    scene.between.before(
        Call::Commit(Kind::Agent),
        0,
        async move { by.edit(&id(1), "by hand").await },
    );
    let refused = apply(ApplyAgents {
        base: Some(base),
        ..body(&[0], "second")
    });
    assert_eq!(kind(refused.await), ErrorKind::Precondition);
    // One that is not active is restored before it leaves the set.
    other.deactivate(&id(1)).await;
    let by = other.clone();
    scene.between.before(Call::Commit(Kind::Agent), 0, async move {
        let to = Some(by.workspace);
        by.service.restore_agent(&by.ada, to, &*id(1), ANY).await.unwrap();
    });
    let pruned = apply(ApplyAgents {
        prune: true,
        ..body(&[0], "second")
    });
    let pruned = pruned.await.unwrap().results;
    assert_eq!(scene.between.left(), 0);
    let last = pruned.last().unwrap();
    assert_eq!((&*last.agent_id, last.action), (&*id(1), ApplyAction::Deactivate));
}

#[tokio::test]
async fn a_planned_apply_is_of_one_moment() {
    let scene = Scene::of(2).await;
    let other = scene.other.clone();
    let body = ApplyAgents {
        set: Some("docs".parse().unwrap()),
        prune: true,
        ..ApplyAgents::of(vec![AgentSpec::new(id(0).parse().unwrap(), "Agent")])
    };
    let join = ApplyAgents {
        prune: false,
        ..ApplyAgents::of(
            (0..2)
                .map(|number| AgentSpec::new(id(number).parse().unwrap(), "A"))
                .collect(),
        )
    };
    let join = ApplyAgents {
        set: body.set.clone(),
        ..join
    };
    let before = other
        .service
        .apply_agents(&other.ada, other.workspace, join, false)
        .await
        .unwrap();
    for skip in 0..2 {
        let by = other.clone();
        let role = format!("{skip}");
        scene
            .between
            .before(Call::Get(Kind::Set), skip, async move { by.edit(&id(1), &role).await });
        let planned = scene
            .service
            .apply_agents(&scene.ada, scene.workspace, body.clone(), true)
            .await
            .unwrap();
        assert_eq!(scene.between.left(), 0);
        // The cursor names a state that has the change, as the answer has.
        assert_eq!(planned.cursor.revision(), before.cursor.revision() + skip as u64 + 1);
    }
}

#[tokio::test]
async fn a_list_of_keys_has_both_keys_of_a_rotation_or_none() {
    let scene = Scene::of(1).await;
    let mut made = 0;
    for call in [Call::Scan(Kind::WorkspaceApiKey), Call::Get(Kind::ApiKey)] {
        for skip in 0..2 {
            let by = scene.other.clone();
            let id = scene.world.key(scene.workspace, "ada", Scope::Read).await.record.id;
            scene.between.before(call, skip, async move {
                let rotate = RotateApiKey::default();
                by.service.rotate_api_key(&by.ada, &id, rotate).await.unwrap();
            });
            let listed = scene.service.list_api_keys(&scene.ada, scene.workspace).await.unwrap();
            // A rotation gives the old key an end, and its successor none.
            made += 1;
            let replaced = listed.iter().filter(|key| key.expires_at.is_some()).count();
            assert_eq!(listed.len(), made + replaced, "{call:?} {skip}");
        }
    }
    assert!(scene.between.left() < 4);
}

#[tokio::test]
async fn writers_that_are_always_faster_let_a_promotion_go_first_in_the_end() {
    let scene = Scene::of(2).await;
    for number in 0..50 {
        let by = scene.other.clone();
        let work = async move { by.edit(&id(1), &number.to_string()).await };
        scene.between.before(Call::Commit(Kind::AgentLabels), 0, work);
    }
    let promoted = scene.promote("latest", "live").await;
    let lost = 50 - scene.between.left();
    assert!((1..20).contains(&lost), "{lost} attempts were lost");
    assert_eq!(promoted, [(id(0), 1), (id(1), 1 + lost as u64)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn promotions_and_applies_succeed_among_writers_that_never_rest() {
    for on_disk in [false, true] {
        let settings = Settings {
            plan_limits: limits(None),
            ..Settings::default()
        };
        let world = match on_disk {
            false => World::with(|chosen| *chosen = settings),
            true => World::on_disk(settings),
        };
        let workspace = world.workspace("ada").await;
        let other = Other {
            service: world.service.clone(),
            ada: world.user("ada"),
            workspace,
        };
        other.apply(20, "first").await;
        let stop = Arc::new(AtomicBool::new(false));
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..4 {
            let (other, stop) = (other.clone(), Arc::clone(&stop));
            writers.spawn(async move {
                let mut edits = 0;
                while !stop.load(Ordering::SeqCst) {
                    edits += 1;
                    other.edit(&id(writer), &edits.to_string()).await;
                    tokio::task::yield_now().await;
                }
                edits
            });
        }
        for round in 0..5 {
            let promotion = Promotion::new("latest".parse().unwrap(), "live".parse().unwrap());
            let promoted = other
                .service
                .promote_labels(&other.ada, workspace, promotion, false)
                .await
                .unwrap();
            assert_eq!(promoted.len(), 20);
            other.apply(20, &format!("applied {round}")).await;
        }
        stop.store(true, Ordering::SeqCst);
        while let Some(edits) = writers.join_next().await {
            assert!(edits.unwrap() > 0);
        }
        let promotions = AuditFilter {
            action: Some("label.promoted".into()),
            ..AuditFilter::default()
        };
        let promotions = other.service.search_audit_log(&other.ada, workspace, &promotions);
        assert_eq!(promotions.await.unwrap().len(), 5);
    }
}
