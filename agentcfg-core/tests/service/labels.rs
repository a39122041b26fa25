//! Labels: moving, removing and promoting them.

use agentcfg_core::model::{
    Action, AgentPatch, LabelFilter, LabelRestore, LabelTarget, Patch, Plan, Promotion, Role, Scope, VersionPage,
    WorkspaceId,
};
use agentcfg_core::{AgentCfg, Caller, ErrorKind};
use serde_json::json;

use super::support::race::{at_once, everywhere, tally};
use super::support::{ANY, World, failure, kind};

async fn change(service: &AgentCfg, caller: &Caller, workspace: WorkspaceId, agent_id: &str, name: &str) {
    let patch = AgentPatch::default().display_name(Some(name.into()));
    service
        .update_agent(caller, Some(workspace), agent_id, patch, ANY)
        .await
        .unwrap();
}

/// The rows `agent label version` of all labels.
async fn rows(service: &AgentCfg, caller: &Caller, workspace: WorkspaceId) -> Vec<String> {
    let labels = service
        .list_labels(caller, workspace, LabelFilter::default())
        .await
        .unwrap()
        .decode()
        .unwrap();
    let row =
        |label: &agentcfg_core::model::AgentLabel| format!("{} {} {}", label.agent_id, label.label, label.version);
    labels.iter().map(row).collect()
}

#[tokio::test]
async fn a_label_is_made_moved_and_removed() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (service, ada) = (&world.service, world.user("ada"));
    world.agent(workspace, "ada", "writer").await;
    change(service, &ada, workspace, "writer", "Second").await;
    let before = world.log(workspace, "ada").await.len();
    let set = async |label: &str, target: LabelTarget| {
        service.set_label(&ada, Some(workspace), "writer", label, target).await
    };
    let made = set("production", LabelTarget::new(1)).await.unwrap();
    assert_eq!(
        (made.version, made.updated_at, made.actor.id.as_str()),
        (1, world.now(), "ada")
    );
    world.clock.advance_millis(1000);
    assert_eq!(
        set("production", LabelTarget::new(1)).await.unwrap(),
        made,
        "nothing changes"
    );
    let moved = set("production", LabelTarget::new(2)).await.unwrap();
    assert_eq!((moved.version, moved.updated_at), (2, world.now()));
    let versions = service
        .list_versions(&ada, Some(workspace), "writer", VersionPage::default())
        .await
        .unwrap();
    assert_eq!(versions[0].labels, ["production"]);
    assert!(versions[1].labels.is_empty());
    service
        .remove_label(&ada, Some(workspace), "writer", "production")
        .await
        .unwrap();
    let again = service
        .remove_label(&ada, Some(workspace), "writer", "production")
        .await;
    assert_eq!(kind(again), ErrorKind::NotFound);
    let log = world.log(workspace, "ada").await;
    let told: Vec<_> = log[before..]
        .iter()
        .map(|entry| json!([entry.action, entry.target, entry.changes]))
        .collect();
    let target = json!({"type": "agent", "id": "writer"});
    let told_as =
        |action: &str, from, to| json!([action, target, {"agents/writer/labels/production": {"from": from, "to": to}}]);
    assert_eq!(
        told,
        [
            told_as("label.set", json!(null), json!(1)),
            told_as("label.set", json!(1), json!(2)),
            told_as("label.removed", json!(2), json!(null)),
        ]
    );
}

#[tokio::test]
async fn a_label_keeps_its_rules() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (service, ada) = (&world.service, world.user("ada"));
    world.agent(workspace, "ada", "writer").await;
    let set = async |label: &str| {
        service
            .set_label(&ada, Some(workspace), "writer", label, LabelTarget::new(1))
            .await
    };
    for good in ["a", "0x", "v1.2_3-rc", &"z".repeat(36), "7.0"] {
        assert!(set(good).await.is_ok(), "{good}");
    }
    for bad in [
        "",
        "A",
        "a b",
        ".a",
        "-a",
        "_a",
        "7",
        "007",
        &"z".repeat(37),
        "ä",
        "a\0",
        "latest",
    ] {
        assert_eq!(kind(set(bad).await), ErrorKind::Invalid, "{bad:?}");
        let removed = service.remove_label(&ada, Some(workspace), "writer", bad).await;
        assert_eq!(kind(removed), ErrorKind::Invalid, "{bad:?}");
    }
    let (_, message) = failure(set("7").await);
    assert_eq!(
        message,
        "label must not be digits alone, which is the number of a version"
    );
    let (_, message) = failure(set(&"z".repeat(37)).await);
    assert_eq!(message, "label must be at most 36 characters, got 37");
    for unknown in [0, 2, u64::MAX] {
        let target = LabelTarget::new(unknown);
        let refused = service.set_label(&ada, Some(workspace), "writer", "a", target).await;
        assert_eq!(kind(refused), ErrorKind::NotFound, "{unknown}");
    }
    for unknown in ["editor", "No Agent"] {
        let refused = service
            .set_label(&ada, Some(workspace), unknown, "a", LabelTarget::new(1))
            .await;
        assert_eq!(kind(refused), ErrorKind::NotFound, "{unknown}");
    }
}

#[tokio::test]
async fn an_agent_has_at_most_twenty_labels() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (service, ada) = (&world.service, world.user("ada"));
    world.agent(workspace, "ada", "writer").await;
    let set = async |label: &str| {
        service
            .set_label(&ada, Some(workspace), "writer", label, LabelTarget::new(1))
            .await
    };
    for number in 1..=20 {
        set(&format!("l{number}")).await.unwrap();
    }
    assert_eq!(kind(set("one-more").await), ErrorKind::PlanLimit);
    let promotion = Promotion::new("l1".parse().unwrap(), "one-more".parse().unwrap());
    assert_eq!(
        kind(service.promote_labels(&ada, workspace, promotion, false).await),
        ErrorKind::PlanLimit
    );
    assert!(set("l20").await.is_ok());
    service
        .remove_label(&ada, Some(workspace), "writer", "l7")
        .await
        .unwrap();
    assert!(set("one-more").await.is_ok());
    assert_eq!(rows(service, &ada, workspace).await.len(), 20);
}

#[tokio::test]
async fn the_expected_version_is_compared_first() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (service, ada) = (&world.service, world.user("ada"));
    world.agent(workspace, "ada", "writer").await;
    change(service, &ada, workspace, "writer", "Second").await;
    let set = async |version, expected_version| {
        let target = LabelTarget::new(version).expected_version(expected_version);
        let label = service
            .set_label(&ada, Some(workspace), "writer", "production", target)
            .await;
        label.map(|label| label.version).map_err(|error| error.kind())
    };
    let stale = Err(ErrorKind::Precondition);
    assert_eq!(set(1, Patch::Set(1)).await, stale, "there is none");
    assert_eq!(set(1, Patch::Null).await, Ok(1));
    assert_eq!(set(2, Patch::Null).await, stale, "there is one");
    assert_eq!(set(2, Patch::Set(2)).await, stale);
    assert_eq!(set(1, Patch::Set(2)).await, stale, "also where nothing would change");
    assert_eq!(set(2, Patch::Set(1)).await, Ok(2));
    assert_eq!(set(2, Patch::Set(2)).await, Ok(2));
    assert_eq!(
        set(9, Patch::Set(1)).await,
        Err(ErrorKind::NotFound),
        "existence comes before"
    );
}

#[tokio::test]
async fn labels_are_listed_by_agent_and_label_also_of_deactivated_agents() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (service, ada) = (&world.service, world.user("ada"));
    for agent_id in ["ab", "a-b", "a"] {
        world.agent(workspace, "ada", agent_id).await;
        for label in ["staging", "production"] {
            service
                .set_label(&ada, Some(workspace), agent_id, label, LabelTarget::new(1))
                .await
                .unwrap();
        }
    }
    service.delete_agent(&ada, Some(workspace), "a-b", ANY).await.unwrap();
    let all = [
        "a production 1",
        "a staging 1",
        "a-b production 1",
        "a-b staging 1",
        "ab production 1",
        "ab staging 1",
    ];
    assert_eq!(rows(service, &ada, workspace).await, all);
    assert!(
        service
            .set_label(&ada, Some(workspace), "a-b", "beta", LabelTarget::new(1))
            .await
            .is_ok()
    );
    service
        .remove_label(&ada, Some(workspace), "a-b", "beta")
        .await
        .unwrap();
    for (agent_id, label, count) in [
        (Some("a"), None, 2),
        (None, Some("staging"), 3),
        (Some("a-b"), Some("staging"), 1),
        (Some("a"), Some("latest"), 0),
        (None, Some("latest"), 0),
        (Some("unknown"), None, 0),
        (Some("No Agent\0"), None, 0),
        (None, Some("No Label"), 0),
    ] {
        let filter = LabelFilter::default().agent_id(agent_id).label(label);
        let found = service
            .list_labels(&ada, workspace, filter)
            .await
            .unwrap()
            .decode()
            .unwrap();
        assert_eq!(found.len(), count, "{filter:?}");
    }
}

#[tokio::test]
async fn a_promotion_moves_the_labels_of_all_bearers_in_one_commit() {
    let world = World::with(|settings| settings.default_plan = Plan::Enterprise);
    let workspace = world.workspace("ada").await;
    let (service, ada) = (&world.service, world.user("ada"));
    for agent_id in ["a", "b", "c", "d"] {
        world.agent(workspace, "ada", agent_id).await;
        change(service, &ada, workspace, agent_id, "Second").await;
    }
    for agent_id in ["a", "b", "d"] {
        service
            .set_label(&ada, Some(workspace), agent_id, "staging", LabelTarget::new(2))
            .await
            .unwrap();
    }
    service
        .set_label(&ada, Some(workspace), "b", "production", LabelTarget::new(2))
        .await
        .unwrap();
    service.delete_agent(&ada, Some(workspace), "d", ANY).await.unwrap();
    let before = world.log(workspace, "ada").await.len();
    let promotion = |from: &str, to: &str, ids: Option<&[&str]>| {
        Promotion::new(from.parse().unwrap(), to.parse().unwrap())
            .agent_ids(ids.map(|ids| ids.iter().map(|id| id.parse().unwrap()).collect()))
    };
    let promote = async |promotion| service.promote_labels(&ada, workspace, promotion, false).await;
    let all = promotion("staging", "production", None);
    let planned = service.promote_labels(&ada, workspace, all, true).await.unwrap();
    assert_eq!(world.log(workspace, "ada").await.len(), before);
    // Had the dry run moved a label, the previous versions would differ.
    let moved = promote(promotion("staging", "production", None)).await.unwrap();
    assert_eq!(planned, moved);
    let seen = serde_json::to_value(&moved).unwrap();
    let row =
        |id: &str, previous| json!({"agent_id": id, "label": "production", "version": 2, "previous_version": previous});
    assert_eq!(seen, json!([row("a", json!(null)), row("b", json!(2))]));
    let log = world.log(workspace, "ada").await;
    assert_eq!(log.len(), before + 1);
    let entry = log.last().unwrap();
    assert_eq!(entry.action, Action::LabelPromoted);
    assert_eq!(entry.target.id, workspace.to_string());
    let changes = serde_json::to_value(&entry.changes).unwrap();
    assert_eq!(changes, json!({"agents/a/labels/production": {"from": null, "to": 2}}));

    // Again: the same answer but for the previous versions, and no entry.
    assert_eq!(
        promote(promotion("staging", "production", None)).await.unwrap().len(),
        2
    );
    assert_eq!(promote(promotion("nothing", "production", None)).await.unwrap(), []);
    assert_eq!(world.log(workspace, "ada").await.len(), before + 1);

    // One that lacks the label, is deactivated or unknown: nothing changes for the others.
    for lacking in ["c", "d", "unknown"] {
        let refused = promote(promotion("staging", "live", Some(&["a", lacking]))).await;
        assert_eq!(kind(refused), ErrorKind::NotFound, "{lacking}");
    }
    assert!(
        !rows(service, &ada, workspace)
            .await
            .iter()
            .any(|row| row.contains("live"))
    );
    let named = promote(promotion("latest", "live", Some(&["c", "a", "c"])))
        .await
        .unwrap();
    assert_eq!(
        named.iter().map(|label| label.agent_id.as_str()).collect::<Vec<_>>(),
        ["a", "c"]
    );
    assert_eq!(
        promote(promotion("latest", "live", None)).await.unwrap().len(),
        3,
        "each active agent"
    );
    for invalid in [
        promotion("a", "a", None),
        promotion("a", "latest", None),
        promotion("a", "b", Some(&[])),
    ] {
        assert_eq!(kind(promote(invalid).await), ErrorKind::Invalid);
    }
}

#[tokio::test]
async fn at_most_a_thousand_labels_move_at_once() {
    let world = World::with(|settings| settings.default_plan = Plan::Enterprise);
    let workspace = world.workspace("ada").await;
    let (service, ada) = (&world.service, world.user("ada"));
    for number in 0..1000 {
        world.agent(workspace, "ada", &format!("a{number}")).await;
    }
    let before = world.log(workspace, "ada").await.len() as u64;
    let promotion = Promotion::new("latest".parse().unwrap(), "live".parse().unwrap());
    assert_eq!(
        service
            .promote_labels(&ada, workspace, promotion.clone(), false)
            .await
            .unwrap()
            .len(),
        1000
    );
    let back = async || {
        let restore = LabelRestore::new("live".parse().unwrap(), before);
        service.restore_label(&ada, workspace, restore, true).await
    };
    assert_eq!(back().await.unwrap().len(), 1000);
    world.agent(workspace, "ada", "one-more").await;
    let label = service.set_label(&ada, Some(workspace), "one-more", "live", LabelTarget::new(1));
    label.await.unwrap();
    assert_eq!(kind(back().await), ErrorKind::PlanLimit);
    let refused = service.promote_labels(&ada, workspace, promotion.clone(), false).await;
    assert_eq!(kind(refused), ErrorKind::PlanLimit);
    let ids: Vec<_> = (0..1001).map(|number| format!("a{number}").parse().unwrap()).collect();
    let too_many = promotion.agent_ids(ids);
    assert_eq!(
        kind(service.promote_labels(&ada, workspace, too_many, false).await),
        ErrorKind::Invalid
    );
}

#[tokio::test]
async fn releasing_needs_its_own_permission() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let service = &world.service;
    world.agent(workspace, "ada", "writer").await;
    let mut callers = Vec::new();
    for (scope, may) in [(Scope::Read, false), (Scope::Write, false), (Scope::Admin, true)] {
        callers.push((world.key_caller(workspace, "ada", scope).await.1, may));
    }
    for (role, may) in [
        (Role::Viewer, false),
        (Role::Member, false),
        (Role::Admin, true),
        (Role::Owner, true),
    ] {
        let caller = world.member(workspace, "ada", &format!("{role}"), role).await;
        callers.push((caller, may));
    }
    for (caller, may) in callers {
        let set = service
            .set_label(&caller, Some(workspace), "writer", "production", LabelTarget::new(1))
            .await;
        let promotion = Promotion::new("latest".parse().unwrap(), "live".parse().unwrap());
        let promoted = service.promote_labels(&caller, workspace, promotion, false).await;
        assert_eq!((set.is_ok(), promoted.is_ok()), (may, may), "{caller:?}");
        let removed = service.remove_label(&caller, Some(workspace), "writer", "live").await;
        assert_eq!(removed.is_ok(), may, "{caller:?}");
        assert!(
            service
                .list_labels(&caller, workspace, LabelFilter::default())
                .await
                .is_ok()
        );
    }
}

#[test]
fn one_of_many_concurrent_moves_finds_what_it_expects() {
    everywhere(None, |world| async move {
        let workspace = world.workspace("ada").await;
        world.agent(workspace, "ada", "writer").await;
        let ada = world.user("ada");
        for name in ["2", "3"] {
            change(&world.service, &ada, workspace, "writer", name).await;
        }
        let attempt = |version, expected_version: Patch<u64>| {
            let world = std::sync::Arc::clone(&world);
            move |_: usize| {
                let (service, ada) = (world.service.clone(), world.user("ada"));
                let target = LabelTarget::new(version).expected_version(expected_version.clone());
                async move {
                    service
                        .set_label(&ada, Some(workspace), "writer", "production", target)
                        .await
                }
            }
        };
        let made = at_once(8, attempt(1, Patch::Null)).await;
        assert_eq!(tally(&made, ErrorKind::Precondition), (1, 7));
        let moved = at_once(8, attempt(2, Patch::Set(1))).await;
        assert_eq!(tally(&moved, ErrorKind::Precondition), (1, 7));
        assert_eq!(rows(&world.service, &ada, workspace).await, ["writer production 2"]);
    });
}

#[test]
fn concurrent_promotions_are_whole() {
    everywhere(None, |world| async move {
        let workspace = world.workspace("ada").await;
        let ada = world.user("ada");
        let ids = ["a", "b", "c", "d"];
        for agent_id in ids {
            world.agent(workspace, "ada", agent_id).await;
            change(&world.service, &ada, workspace, agent_id, "Second").await;
            for (label, version) in [("blue", 1), ("green", 2)] {
                let target = LabelTarget::new(version);
                world
                    .service
                    .set_label(&ada, Some(workspace), agent_id, label, target)
                    .await
                    .unwrap();
            }
        }
        let results = at_once(8, |number| {
            let (service, ada) = (world.service.clone(), world.user("ada"));
            let from = ["blue", "green"][number % 2].parse().unwrap();
            let promotion = Promotion::new(from, "live".parse().unwrap());
            async move { service.promote_labels(&ada, workspace, promotion, false).await }
        })
        .await;
        for result in results {
            let promoted = result.unwrap();
            assert_eq!(promoted.len(), ids.len());
            assert!(
                promoted
                    .iter()
                    .all(|label| label.previous_version == promoted[0].previous_version)
            );
        }
        let filter = LabelFilter::default().label("live");
        let live = world
            .service
            .list_labels(&ada, workspace, filter)
            .await
            .unwrap()
            .decode()
            .unwrap();
        assert!(live.iter().all(|label| label.version == live[0].version), "{live:?}");
    });
}
