//! Versions: what makes one, how they are read and compared, and going back.

use agentcfg_core::model::{
    Action, AgentPatch, AuditFilter, NewAgent, Parameters, Precondition, Rollback, Scope, VersionPage, VersionSelector,
    WorkspaceId,
};
use agentcfg_core::{AgentCfg, Caller, ErrorKind};

use super::support::race::{at_once, everywhere};
use super::support::{ANY, World, failure, kind, unknown_tag};

fn named(name: &str) -> AgentPatch {
    AgentPatch::default().display_name(Some(name.into()))
}

async fn numbers(service: &AgentCfg, caller: &Caller, workspace: WorkspaceId, agent_id: &str) -> Vec<u64> {
    let versions = service
        .list_versions(caller, Some(workspace), agent_id, VersionPage::default())
        .await;
    versions.unwrap().iter().map(|version| version.version).collect()
}

#[tokio::test]
async fn each_change_of_the_content_is_a_version_and_nothing_else() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (service, ada) = (&world.service, world.user("ada"));
    let (workspace_of, writer) = (Some(workspace), "writer");
    let new = NewAgent::new(workspace, writer.parse().unwrap(), "Writer").parameters(Parameters::from([
        ("x".to_owned(), 70.into()),
        ("y".to_owned(), 1.into()),
    ]));
    assert_eq!(service.create_agent(&ada, new).await.unwrap().version, 1);
    let change = async |patch: AgentPatch| {
        let agent = service
            .update_agent(&ada, workspace_of, writer, patch, ANY)
            .await
            .unwrap();
        agent.version
    };
    assert_eq!(change(named("Author")).await, 2);
    assert_eq!(change(named("Author")).await, 2, "the same content");
    assert_eq!(change(AgentPatch::default()).await, 2);
    let reordered: Parameters = serde_json::from_str(r#"{"y": 1, "x": 70}"#).unwrap();
    let patch = |parameters| AgentPatch::default().parameters(parameters);
    assert_eq!(change(patch(reordered)).await, 2, "other order, same content");
    service.delete_agent(&ada, workspace_of, writer, ANY).await.unwrap();
    let restored = service.restore_agent(&ada, workspace_of, writer, ANY).await.unwrap();
    assert_eq!(restored.version, 2);
    let fraction: Parameters = serde_json::from_str(r#"{"y": 1, "x": 70.0}"#).unwrap();
    assert_eq!(
        change(patch(fraction)).await,
        3,
        "a number that reads back as another one"
    );
    assert_eq!(numbers(service, &ada, workspace, writer).await, [3, 2, 1]);
    assert_eq!(service.get_agent(&ada, workspace, writer).await.unwrap().version, 3);
}

/// A record that changed without a version would be another one in its past.
#[tokio::test]
async fn a_number_of_the_same_value_leaves_the_record_as_it_is() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (service, ada) = (&world.service, world.user("ada"));
    let sliders = |number: f64| Parameters::from([("x".to_owned(), serde_json::Number::from_f64(number).unwrap())]);
    let new = NewAgent::new(workspace, "writer".parse().unwrap(), "Writer").parameters(sliders(-0.0));
    service.create_agent(&ada, new).await.unwrap();
    let patch = AgentPatch::default().parameters(sliders(0.0));
    let patched = service
        .update_agent(&ada, Some(workspace), "writer", patch, ANY)
        .await
        .unwrap();
    assert_eq!(patched.version, 1);
    let current = service
        .get_version(&ada, Some(workspace), "writer", VersionSelector::Current)
        .await
        .unwrap();
    let text = |parameters: &Parameters| serde_json::to_string(parameters).unwrap();
    assert_eq!(text(&patched.value.parameters), text(&current.config.parameters));
}

#[tokio::test]
async fn versions_are_listed_newest_first_in_pages() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (service, ada) = (&world.service, world.user("ada"));
    // Identifiers whose keys are next to each other.
    for agent_id in ["a", "a-b", "ab"] {
        world.agent(workspace, "ada", agent_id).await;
    }
    for number in 2..=150 {
        service
            .update_agent(&ada, Some(workspace), "a", named(&number.to_string()), ANY)
            .await
            .unwrap();
    }
    let page = async |before, limit| {
        let page = VersionPage::default().before(before).limit(limit);
        let versions = service.list_versions(&ada, Some(workspace), "a", page).await.unwrap();
        assert!(versions.iter().all(|version| version.agent_id == "a"));
        versions.iter().map(|version| version.version).collect::<Vec<_>>()
    };
    let down = |from: u64, to: u64| (to..=from).rev().collect::<Vec<_>>();
    assert_eq!(page(None, None).await, down(150, 51));
    assert_eq!(page(None, Some(1000)).await, down(150, 1));
    assert_eq!(page(Some(51), None).await, down(50, 1));
    assert_eq!(page(Some(3), Some(1)).await, [2]);
    assert_eq!(page(Some(1), None).await, down(0, 1));
    assert_eq!(page(Some(u64::MAX), Some(2)).await, [150, 149]);
    assert_eq!(numbers(service, &ada, workspace, "a-b").await, [1]);
    let all = service
        .current_versions(&ada, Some(workspace))
        .await
        .unwrap()
        .decode()
        .unwrap();
    let all: Vec<_> = all
        .iter()
        .map(|version| (version.agent_id.as_str(), version.version))
        .collect();
    assert_eq!(all, [("a", 150), ("a-b", 1), ("ab", 1)]);
}

#[tokio::test]
async fn a_version_keeps_its_actor_message_and_content() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (key, caller) = world.key_caller(workspace, "ada", Scope::Write).await;
    world.agent(workspace, "ada", "writer").await;
    world.clock.advance_millis(5000);
    let service = &world.service;
    let caller = caller.with_message(Some("Ein Grund".parse().unwrap()));
    let changed = service
        .update_agent(&caller, None, "writer", named("Second"), ANY)
        .await
        .unwrap();
    let quiet = world.user("ada").with_message(Some("".parse().unwrap()));
    service
        .update_agent(&quiet, Some(workspace), "writer", named("Third"), ANY)
        .await
        .unwrap();
    let ada = world.user("ada");
    let get = async |selector: VersionSelector<'static>| {
        service
            .get_version(&ada, Some(workspace), "writer", selector)
            .await
            .unwrap()
    };
    let second = get(VersionSelector::Version(2)).await;
    assert_eq!(second.config, changed.value.config());
    assert_eq!((second.version, second.created_at), (2, changed.value.updated_at));
    assert_eq!(second.actor.unwrap().id, key.record.id.as_str());
    assert_eq!(second.message.unwrap(), "Ein Grund");
    assert_eq!(second.restored_from, None);
    assert_eq!(
        get(VersionSelector::Current).await.message.unwrap(),
        "",
        "an empty message is kept"
    );
    assert_eq!(get(VersionSelector::Label("latest")).await.version, 3);
    let first = get(VersionSelector::Version(1)).await;
    assert_eq!((first.config.display_name.as_str(), first.message), ("Agent", None));
    let log = world.log(workspace, "ada").await;
    let told: Vec<_> = log
        .iter()
        .rev()
        .take(3)
        .rev()
        .map(|entry| entry.message.as_deref())
        .collect();
    assert_eq!(told, [None, Some("Ein Grund"), Some("")]);
    assert_eq!(
        log.iter().map(|entry| entry.revision).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5]
    );
}

#[tokio::test]
async fn what_is_not_there_is_never_replaced_by_another_version() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (service, ada) = (&world.service, world.user("ada"));
    world.agent(workspace, "ada", "writer").await;
    let get =
        async |agent_id: &str, selector| failure(service.get_version(&ada, Some(workspace), agent_id, selector).await);
    for selector in [0, 2, u64::MAX].map(VersionSelector::Version) {
        assert_eq!(get("writer", selector).await.0, ErrorKind::NotFound, "{selector:?}");
    }
    let (error, message) = get("writer", VersionSelector::Label("production")).await;
    assert_eq!(error, ErrorKind::NotFound);
    assert_eq!(message, "the agent \"writer\" has no label \"production\"");
    for label in ["", "A b", "x\0"] {
        assert_eq!(
            get("writer", VersionSelector::Label(label)).await.0,
            ErrorKind::NotFound,
            "{label:?}"
        );
    }
    for unknown in ["editor", "No Agent", ""] {
        assert_eq!(get(unknown, VersionSelector::Current).await.0, ErrorKind::NotFound);
        let list = service
            .list_versions(&ada, Some(workspace), unknown, VersionPage::default())
            .await;
        assert_eq!(kind(list), ErrorKind::NotFound);
    }
    service
        .delete_agent(&ada, Some(workspace), "writer", ANY)
        .await
        .unwrap();
    assert_eq!(
        numbers(service, &ada, workspace, "writer").await,
        [1],
        "deactivated agents have versions"
    );
    assert!(service.get_version(&ada, Some(workspace), "writer", 1).await.is_ok());
    assert!(
        service
            .diff_versions(&ada, Some(workspace), "writer", 1, 1)
            .await
            .is_ok()
    );
    assert_eq!(
        service
            .current_versions(&ada, Some(workspace))
            .await
            .unwrap()
            .decode()
            .unwrap(),
        []
    );
}

#[tokio::test]
async fn a_difference_names_versions_by_their_numbers() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (service, ada) = (&world.service, world.user("ada"));
    world.agent(workspace, "ada", "writer").await;
    let patch = AgentPatch::default()
        .persona_prompt("One.\nTwo.\n")
        .parameters(Some([("x".to_owned(), 1.into())].into()));
    service
        .update_agent(&ada, Some(workspace), "writer", patch, ANY)
        .await
        .unwrap();
    service
        .update_agent(&ada, Some(workspace), "writer", named("Author"), ANY)
        .await
        .unwrap();
    let diff = async |from: VersionSelector<'static>, to: VersionSelector<'static>| {
        service
            .diff_versions(&ada, Some(workspace), "writer", from, to)
            .await
            .unwrap()
    };
    let all = diff(1.into(), "latest".into()).await;
    assert_eq!((all.from, all.to), (1, 3));
    assert_eq!(
        all.changes.keys().collect::<Vec<_>>(),
        ["display_name", "parameters", "persona_prompt"]
    );
    assert_eq!(all.changes["parameters"].from, serde_json::json!({}));
    assert_eq!(
        all.prompt_diff.unwrap(),
        "--- version 1\n+++ version 3\n@@ -0,0 +1,2 @@\n+One.\n+Two.\n"
    );
    let named = diff(2.into(), 3.into()).await;
    assert_eq!((named.changes.len(), named.prompt_diff), (1, None));
    let back = diff(3.into(), 1.into()).await;
    assert_eq!((back.from, back.to), (3, 1));
    let same = diff(2.into(), 2.into()).await;
    assert!(same.changes.is_empty() && same.prompt_diff.is_none());
}

#[tokio::test]
async fn a_rollback_is_a_new_version_that_names_its_source() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (service, ada) = (&world.service, world.user("ada"));
    world.agent(workspace, "ada", "writer").await;
    service
        .update_agent(&ada, Some(workspace), "writer", named("Second"), ANY)
        .await
        .unwrap();
    let back = async |to: Rollback, condition: &Precondition| {
        service
            .roll_back_agent(&ada, Some(workspace), "writer", to, condition)
            .await
    };
    let third = back(Rollback::to_version(1), ANY).await.unwrap();
    assert_eq!((third.version, third.value.display_name.as_str()), (3, "Agent"));
    let found = service.get_version(&ada, Some(workspace), "writer", 3).await.unwrap();
    assert_eq!(found.restored_from, Some(1));
    let log = world.log(workspace, "ada").await;
    let entry = log.last().unwrap();
    assert_eq!(
        (entry.action, entry.target.id.as_str()),
        (Action::AgentRolledBack, "writer")
    );
    assert_eq!(entry.changes["display_name"].to, "Agent");

    // The same content already: nothing is recorded, and a condition is still checked.
    let same = back(Rollback::to_version(1), ANY).await.unwrap();
    assert_eq!(same, third);
    assert_eq!(world.log(workspace, "ada").await.len(), log.len());
    let stale = Precondition::matches(unknown_tag());
    assert_eq!(
        kind(back(Rollback::to_version(1), &stale).await),
        ErrorKind::Precondition
    );
    let exact = Precondition::matches(third.tag);
    let fourth = back(Rollback::to_version(2), &exact).await.unwrap();
    assert_eq!((fourth.version, fourth.value.display_name.as_str()), (4, "Second"));

    for unknown in [
        Rollback::to_version(0),
        Rollback::to_version(9),
        Rollback::to_label("beta".parse().unwrap()),
    ] {
        assert_eq!(kind(back(unknown, ANY).await), ErrorKind::NotFound);
    }
    let both = Rollback::to_version(1).label(Some("beta".parse().unwrap()));
    let (error, message) = failure(back(both, ANY).await);
    assert_eq!(
        (error, message.as_str()),
        (ErrorKind::Invalid, "version and label must not both be given")
    );
    service
        .delete_agent(&ada, Some(workspace), "writer", ANY)
        .await
        .unwrap();
    assert_eq!(kind(back(Rollback::to_version(1), ANY).await), ErrorKind::NotFound);
}

#[test]
fn concurrent_changes_leave_no_gap_between_versions() {
    everywhere(None, |world| async move {
        let workspace = world.workspace("ada").await;
        world.agent(workspace, "ada", "writer").await;
        let results = at_once(32, |number| {
            let (service, ada) = (world.service.clone(), world.user("ada"));
            async move {
                let patch = named(&format!("{number}"));
                service.update_agent(&ada, Some(workspace), "writer", patch, ANY).await
            }
        })
        .await;
        let mut made: Vec<u64> = results.iter().map(|result| result.as_ref().unwrap().version).collect();
        made.sort_unstable();
        assert_eq!(made, (2..=33).collect::<Vec<_>>());
        let ada = world.user("ada");
        let versions = world
            .service
            .list_versions(&ada, Some(workspace), "writer", VersionPage::default())
            .await
            .unwrap();
        assert_eq!(versions.len(), 33);
        // Versions are in the order of the log: each has the content that its entry tells of.
        let filter = AuditFilter::default().target_id("writer");
        let log = world.service.search_audit_log(&ada, workspace, &filter).await.unwrap();
        for (version, entry) in versions.iter().zip(&log) {
            let found = world
                .service
                .get_version(&ada, Some(workspace), "writer", version.version)
                .await
                .unwrap();
            assert_eq!(entry.changes["display_name"].to, found.config.display_name.as_str());
            let then = world
                .service
                .get_version(
                    &ada,
                    Some(workspace),
                    "writer",
                    VersionSelector::Revision(entry.revision),
                )
                .await
                .unwrap();
            assert_eq!(then.version, version.version);
        }
    });
}
