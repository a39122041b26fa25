//! Decisions, with a change before their commit, and among writers that never rest.

use super::*;

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
async fn a_label_that_is_set_to_the_latest_version_names_what_its_commit_finds() {
    let scene = Scene::of(1).await;
    let agent = id(0);
    // A version that is named by its number stays it.
    for (target, role, expected) in [
        (LabelTarget::of_label("latest".parse().unwrap()), "second", 2),
        (LabelTarget::new(1), "third", 1),
    ] {
        let by = scene.other.clone();
        scene.between.before(Call::Commit(Kind::AgentLabels), 0, async move {
            by.edit(&id(0), role).await
        });
        let to = Some(scene.workspace);
        let set = scene.service.set_label(&scene.ada, to, &*agent, "live", target);
        assert_eq!(set.await.unwrap().version, expected);
        assert_eq!(scene.between.left(), 0);
    }
}

#[tokio::test]
async fn a_label_that_has_moved_since_the_base_is_not_restored() {
    let scene = Scene::of(2).await;
    let other = scene.other.clone();
    let list = async || {
        let all = AgentFilter::default();
        let list = scene.service.list_agents(&scene.ada, scene.workspace, &all);
        list.await.unwrap().value
    };
    let before = list().await.revision();
    other.label(&id(0), "live", 1).await;
    let base = list().await.cursor();
    // Another one moves the label after the head of the log was read and before its entries are.
    scene.between.before(Call::Scan(Kind::LogEntry), 0, async move {
        other.label(&id(1), "live", 1).await
    });
    let restore = LabelRestore::new("live".parse().unwrap(), before).base(base);
    let restored = scene.service.restore_label(&scene.ada, scene.workspace, restore, false);
    assert_eq!(kind(restored.await), ErrorKind::Precondition);
    assert_eq!(scene.between.left(), 0);
    assert_eq!(scene.labels("live").await, [(id(0), 1), (id(1), 1)]);
}

#[tokio::test]
async fn an_apply_is_decided_on_the_whole_set_that_its_commit_finds() {
    let scene = Scene::of(3).await;
    let other = scene.other.clone();
    let body = |numbers: &[usize], role: &str| {
        let spec = |number: &usize| AgentSpec::new(id(*number).parse().unwrap(), "Agent").role(role);
        ApplyAgents::of(numbers.iter().map(spec).collect()).set("docs".parse::<SetName>().unwrap())
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
    let refused = apply(body(&[0], "second").base(base));
    assert_eq!(kind(refused.await), ErrorKind::Precondition);
    // One that is not active is restored before it leaves the set.
    other.deactivate(&id(1)).await;
    let by = other.clone();
    scene.between.before(Call::Commit(Kind::Agent), 0, async move {
        let to = Some(by.workspace);
        by.service.restore_agent(&by.ada, to, &*id(1), ANY).await.unwrap();
    });
    let pruned = apply(body(&[0], "second").prune(true));
    let pruned = pruned.await.unwrap().results;
    assert_eq!(scene.between.left(), 0);
    let last = pruned.last().unwrap();
    assert_eq!((&*last.agent_id, last.action), (&*id(1), ApplyAction::Deactivate));
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
        let settings = Settings::default().plan_limits(limits(None));
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
        let promotions = AuditFilter::default().action(Some("label.promoted".into()));
        let promotions = other.service.search_audit_log(&other.ada, workspace, &promotions);
        assert_eq!(promotions.await.unwrap().len(), 5);
    }
}

/// What makes decisions on many records right must cost the others nothing.
#[tokio::test]
async fn a_plain_edit_checks_and_writes_its_own_records_alone() {
    let scene = Scene::of(1).await;
    let (to, id, ada) = (Some(scene.workspace), id(0), &scene.ada);
    let patch = AgentPatch::default().role("second");
    scene.service.update_agent(ada, to, &*id, patch, ANY).await.unwrap();
    let (own, version) = (
        vec![Kind::Member, Kind::Agent],
        vec![Kind::AgentVersion, Kind::Agent, Kind::LogHead],
    );
    assert_eq!(scene.between.last_kinds(), (own.clone(), version.clone()));
    let back = Rollback::to_version(1);
    scene.service.roll_back_agent(ada, to, &*id, back, ANY).await.unwrap();
    assert_eq!(scene.between.last_kinds(), (own, version));
    let written = vec![Kind::AgentLabels, Kind::LogHead];
    // An older version might be removed meanwhile, the current one never is.
    let (old, current) = (
        vec![Kind::Member, Kind::AgentVersion, Kind::AgentLabels],
        vec![Kind::Member, Kind::AgentLabels],
    );
    for (version, checked) in [(1, old), (3, current)] {
        let target = LabelTarget::new(version);
        scene.service.set_label(ada, to, &*id, "live", target).await.unwrap();
        assert_eq!(scene.between.last_kinds(), (checked, written.clone()));
    }
}
