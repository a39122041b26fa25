//! Answers, with a change between two reads.

use super::*;

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
            .unwrap()
            .decode()
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
    let filter = AgentFilter::default().as_of(AsOf::At(at));
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
async fn a_planned_apply_is_of_one_moment() {
    let scene = Scene::of(2).await;
    let other = scene.other.clone();
    let docs: SetName = "docs".parse().unwrap();
    let spec = |number, name| AgentSpec::new(id(number).parse().unwrap(), name);
    let body = ApplyAgents::of(vec![spec(0, "Agent")]).set(docs.clone()).prune(true);
    let join = ApplyAgents::of(vec![spec(0, "A"), spec(1, "A")]).set(docs);
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
