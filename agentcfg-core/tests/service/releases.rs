//! Releases: what a label releases, how it moved, and putting it back.

use agentcfg_core::model::{
    Action, AgentPatch, AgentSpec, ApplyAgents, Cursor, LabelHistoryFilter, LabelMoves, LabelRestore, LabelTarget,
    Plan, Promotion, ReleasedAgent, Role, Scope, SetName, Tag, WorkspaceId,
};
use agentcfg_core::{Caller, ErrorKind};
use serde_json::json;

use super::support::{ANY, World, failure, kind};

/// A workspace with the agents `a`, `b` and `c`, each at version 2.
pub(super) struct Stage {
    pub(super) world: World,
    pub(super) workspace: WorkspaceId,
    pub(super) ada: Caller,
}

impl Stage {
    pub(super) async fn new() -> Self {
        let world = World::with(|settings| {
            settings.default_plan = Plan::Enterprise;
            settings.max_persona_prompt = 200_000;
        });
        let workspace = world.workspace("ada").await;
        let stage = Self {
            ada: world.user("ada"),
            world,
            workspace,
        };
        for agent_id in ["a", "b", "c"] {
            stage.world.agent(workspace, "ada", agent_id).await;
            stage.world.clock.advance_millis(10);
            stage.edit(agent_id, "second").await;
        }
        stage
    }

    async fn edit(&self, agent_id: &str, role: &str) {
        let (to, patch) = (Some(self.workspace), AgentPatch::default().role(role));
        let edited = self.world.service.update_agent(&self.ada, to, agent_id, patch, ANY);
        edited.await.unwrap();
    }

    pub(super) async fn set(&self, agent_id: &str, label: &str, version: u64) {
        let (to, target) = (Some(self.workspace), LabelTarget::new(version));
        let set = self.world.service.set_label(&self.ada, to, agent_id, label, target);
        set.await.unwrap();
    }

    pub(super) async fn released(&self, label: &str) -> (Vec<ReleasedAgent>, Tag, Cursor) {
        let released = self.world.service.released(&self.ada, self.workspace, label, None);
        let found = released.await.unwrap();
        (found.value.decode().unwrap(), found.tag, found.value.cursor())
    }

    /// The rows `agent version role` of what a label releases.
    async fn rows(&self, label: &str) -> Vec<String> {
        let (rows, ..) = self.released(label).await;
        let row = |row: &ReleasedAgent| {
            format!(
                "{} {} {}",
                row.agent_id,
                row.version,
                row.config.role.as_deref().unwrap_or("-")
            )
        };
        rows.iter().map(row).collect()
    }

    async fn history(&self, label: &str, filter: LabelHistoryFilter<'_>) -> Vec<LabelMoves> {
        let service = &self.world.service;
        let mut history = service
            .label_history(&self.ada, self.workspace, label, filter)
            .await
            .unwrap();
        let mut rows = Vec::new();
        while let Some(page) = history.next().await.unwrap() {
            rows.extend(page);
        }
        rows
    }

    pub(super) async fn revision(&self) -> u64 {
        self.released("latest").await.2.revision()
    }

    /// The rows `agent from to` of a restoration.
    async fn restore(&self, label: &str, revision: u64, dry_run: bool) -> Vec<String> {
        let restore = LabelRestore::new(label.parse().unwrap(), revision);
        let restored = self
            .world
            .service
            .restore_label(&self.ada, self.workspace, restore, dry_run);
        let number = |version: Option<u64>| version.map_or("-".to_owned(), |version| version.to_string());
        let rows = restored.await.unwrap();
        let row = |row: &agentcfg_core::model::RestoredLabel| {
            format!(
                "{} {} {}",
                row.agent_id,
                number(row.previous_version),
                number(row.version)
            )
        };
        rows.iter().map(row).collect()
    }
}

#[tokio::test]
async fn a_label_releases_the_versions_of_active_agents() {
    let stage = Stage::new().await;
    assert!(stage.rows("production").await.is_empty());
    stage.set("b", "production", 1).await;
    stage.set("a", "production", 2).await;
    assert_eq!(
        stage.rows("production").await,
        ["a 2 second", "b 1 -"],
        "in the order of the list"
    );
    assert_eq!(stage.rows("latest").await, ["a 2 second", "b 2 second", "c 2 second"]);
    let service = &stage.world.service;
    service
        .delete_agent(&stage.ada, Some(stage.workspace), "a", ANY)
        .await
        .unwrap();
    assert_eq!(stage.rows("production").await, ["b 1 -"]);
    assert_eq!(stage.rows("latest").await, ["b 2 second", "c 2 second"]);
    service
        .restore_agent(&stage.ada, Some(stage.workspace), "a", ANY)
        .await
        .unwrap();
    assert_eq!(stage.rows("production").await, ["a 2 second", "b 1 -"]);
    for (agent_id, expected) in [("a", 1), ("c", 0), ("unknown", 0), ("No Agent\0", 0)] {
        let one = service
            .released(&stage.ada, stage.workspace, "production", Some(agent_id))
            .await;
        assert_eq!(one.unwrap().value.len(), expected, "{agent_id}");
    }
    for bad in ["", "A", "7"] {
        let refused = service.released(&stage.ada, stage.workspace, bad, None).await;
        assert_eq!(kind(refused), ErrorKind::Invalid, "{bad:?}");
    }
}

#[tokio::test]
async fn what_is_released_has_the_time_of_the_move_or_of_the_version() {
    let stage = Stage::new().await;
    let made = stage.world.now();
    stage.world.clock.advance_millis(1000);
    stage.set("c", "production", 2).await;
    assert_eq!(stage.released("production").await.0[0].updated_at, stage.world.now());
    let service = &stage.world.service;
    service
        .delete_agent(&stage.ada, Some(stage.workspace), "c", ANY)
        .await
        .unwrap();
    service
        .restore_agent(&stage.ada, Some(stage.workspace), "c", ANY)
        .await
        .unwrap();
    let (latest, ..) = stage.released("latest").await;
    assert_eq!(latest[2].updated_at, made, "the version was made before the deletion");
}

#[tokio::test]
async fn the_tag_changes_only_with_what_is_shown() {
    let stage = Stage::new().await;
    stage.set("a", "production", 1).await;
    let (_, tag, before) = stage.released("production").await;
    // An edit, the label of another name, and an agent without the label change nothing.
    stage.edit("a", "third").await;
    stage.set("a", "staging", 3).await;
    stage.world.agent(stage.workspace, "ada", "d").await;
    let (_, same, after) = stage.released("production").await;
    assert_eq!(same, tag);
    assert!(after.revision() > before.revision(), "the position is that of the read");
    let tagged = async |agent_id| {
        let one = stage
            .world
            .service
            .released(&stage.ada, stage.workspace, "production", agent_id);
        one.await.unwrap().tag
    };
    assert_eq!(tagged(Some("a")).await, tag, "the same rows");
    stage.world.clock.advance_millis(5);
    stage.set("a", "production", 2).await;
    let (_, moved, _) = stage.released("production").await;
    assert_ne!(moved, tag);
    stage.world.clock.advance_millis(5);
    stage.set("a", "production", 1).await;
    let (_, back, _) = stage.released("production").await;
    assert!(back != moved && back != tag, "the label was moved later");
    assert_eq!(back.to_string().parse(), Ok(back));
}

#[tokio::test]
async fn moves_of_a_label_are_listed_newest_first() {
    let stage = Stage::new().await;
    let service = &stage.world.service;
    stage.set("a", "production", 1).await;
    stage.set("a", "staging", 2).await;
    stage.set("b", "staging", 2).await;
    let release = Promotion::new("staging".parse().unwrap(), "production".parse().unwrap());
    let with_message = stage.ada.with_message(Some("Release".parse().unwrap()));
    let promoted = service.promote_labels(&with_message, stage.workspace, release, false);
    promoted.await.unwrap();
    service
        .remove_label(&stage.ada, Some(stage.workspace), "b", "production")
        .await
        .unwrap();
    let rows = stage.history("production", LabelHistoryFilter::default()).await;
    let told: Vec<_> = rows.iter().map(|row| json!([row.message, row.moves])).collect();
    let moved = |agent_id: &str, from, to| json!({"agent_id": agent_id, "from": from, "to": to});
    assert_eq!(
        told,
        [
            json!([null, [moved("b", json!(2), json!(null))]]),
            json!([
                "Release",
                [moved("a", json!(1), json!(2)), moved("b", json!(null), json!(2))]
            ]),
            json!([null, [moved("a", json!(null), json!(1))]]),
        ]
    );
    assert!(rows.is_sorted_by(|a, b| a.revision > b.revision));
    assert_eq!(rows[0].actor.id, "ada");
    let of_a = stage
        .history("production", LabelHistoryFilter::default().agent_id("a"))
        .await;
    assert_eq!(of_a.iter().map(|row| row.moves.len()).collect::<Vec<_>>(), [1, 1]);
    assert!(of_a.iter().all(|row| row.moves[0].agent_id == "a"), "{of_a:?}");
    let one = stage
        .history("production", LabelHistoryFilter::default().limit(1))
        .await;
    assert_eq!(one, rows[..1]);
    let older = LabelHistoryFilter::default().before(rows[0].revision);
    assert_eq!(stage.history("production", older).await, rows[1..]);
    assert!(stage.history("unknown", LabelHistoryFilter::default()).await.is_empty());
    for bad in ["latest", "A", ""] {
        let refused = service.label_history(&stage.ada, stage.workspace, bad, LabelHistoryFilter::default());
        assert_eq!(kind(refused.await), ErrorKind::Invalid, "{bad:?}");
    }
}

#[tokio::test]
async fn a_reader_who_is_removed_gets_no_further_part_of_the_history() {
    let stage = Stage::new().await;
    let service = &stage.world.service;
    stage.set("a", "production", 1).await;
    let mel = stage.world.member(stage.workspace, "ada", "mel", Role::Viewer).await;
    let newest = LabelHistoryFilter::default().limit(1);
    let history = service.label_history(&mel, stage.workspace, "production", newest);
    let mut history = history.await.unwrap();
    assert_eq!(history.next().await.unwrap().map(|rows| rows.len()), Some(1));
    service
        .remove_member(&stage.ada, stage.workspace, mel.user_id().unwrap())
        .await
        .unwrap();
    assert_eq!(kind(history.next().await), ErrorKind::Forbidden);
}

#[tokio::test]
async fn a_label_goes_back_to_where_it_was() {
    let stage = Stage::new().await;
    let service = &stage.world.service;
    stage.set("a", "production", 1).await;
    stage.set("b", "production", 1).await;
    let before = stage.revision().await;
    stage.set("a", "production", 2).await;
    stage.set("c", "production", 2).await;
    service
        .remove_label(&stage.ada, Some(stage.workspace), "b", "production")
        .await
        .unwrap();
    service
        .delete_agent(&stage.ada, Some(stage.workspace), "c", ANY)
        .await
        .unwrap();
    let entries = stage.world.log(stage.workspace, "ada").await.len();
    let expected = ["a 2 1", "b - 1", "c 2 -"];
    assert_eq!(stage.restore("production", before, true).await, expected);
    assert_eq!(
        stage.world.log(stage.workspace, "ada").await.len(),
        entries,
        "a dry run"
    );
    assert_eq!(stage.restore("production", before, false).await, expected);
    assert_eq!(stage.rows("production").await, ["a 1 -", "b 1 -"]);
    let log = stage.world.log(stage.workspace, "ada").await;
    let entry = log.last().unwrap();
    assert_eq!(
        (entry.action, &*entry.target.id),
        (Action::LabelRestored, &*stage.workspace.to_string())
    );
    assert_eq!(
        serde_json::to_value(&entry.changes).unwrap(),
        json!({
            "agents/a/labels/production": {"from": 2, "to": 1},
            "agents/b/labels/production": {"from": null, "to": 1},
            "agents/c/labels/production": {"from": 2, "to": null},
        })
    );
    assert!(stage.restore("production", before, false).await.is_empty());
    assert!(stage.restore("unknown", before, false).await.is_empty());
    assert_eq!(
        stage.world.log(stage.workspace, "ada").await.len(),
        log.len(),
        "nothing is recorded"
    );
    // A restoration can be taken back like any other move.
    assert_eq!(
        stage.restore("production", entries as u64, false).await,
        ["a 1 2", "b 1 -", "c - 2"]
    );
    for revision in [0, 10_000] {
        let restore = LabelRestore::new("production".parse().unwrap(), revision);
        let refused = service.restore_label(&stage.ada, stage.workspace, restore, false).await;
        assert_eq!(kind(refused), ErrorKind::Invalid, "{revision}");
    }
    let latest = LabelRestore::new("latest".parse().unwrap(), 1);
    let refused = service.restore_label(&stage.ada, stage.workspace, latest, false).await;
    assert_eq!(kind(refused), ErrorKind::Invalid);
}

#[tokio::test]
async fn a_base_refuses_what_was_decided_on_an_older_state() {
    let stage = Stage::new().await;
    let service = &stage.world.service;
    stage.set("a", "staging", 1).await;
    stage.set("a", "production", 1).await;
    let before = stage.revision().await;
    let promote = async |from: &str, to: &str, base| {
        let promotion = Promotion::new(from.parse().unwrap(), to.parse().unwrap()).base(Some(base));
        service
            .promote_labels(&stage.ada, stage.workspace, promotion, true)
            .await
    };
    let restore = async |base| {
        let restore = LabelRestore::new("production".parse().unwrap(), before).base(Some(base));
        service.restore_label(&stage.ada, stage.workspace, restore, true).await
    };
    let base = stage.released("latest").await.2;
    // Neither another label nor an edit moves these.
    stage.set("b", "other", 1).await;
    stage.edit("b", "third").await;
    assert!(promote("staging", "production", base).await.is_ok());
    assert!(restore(base).await.is_ok());
    let (error, message) = failure(promote("latest", "staging", base).await);
    assert_eq!(error, ErrorKind::Precondition, "an edit moves latest");
    let moved = format!("\"latest\" has moved since base, at revision {}", base.revision() + 2);
    assert!(message.ends_with(&moved), "{message}");
    // A move of any agent counts.
    let base = stage.released("latest").await.2;
    stage.set("c", "staging", 1).await;
    assert_eq!(
        kind(promote("staging", "production", base).await),
        ErrorKind::Precondition
    );
    assert_eq!(kind(promote("other", "staging", base).await), ErrorKind::Precondition);
    // What does not exist is said before what has moved.
    let unknown = Promotion::new("other".parse().unwrap(), "staging".parse().unwrap())
        .agent_ids(Some(vec!["none".parse().unwrap()]))
        .base(Some(base));
    let refused = service.promote_labels(&stage.ada, stage.workspace, unknown, true).await;
    assert_eq!(kind(refused), ErrorKind::NotFound);
    assert!(promote("other", "production", base).await.is_ok());
    assert!(restore(base).await.is_ok());
    stage.set("b", "production", 1).await;
    assert_eq!(kind(restore(base).await), ErrorKind::Precondition);
    // A deletion is no move; a base of another epoch or workspace, or of the future, is none.
    let base = stage.released("latest").await.2;
    service
        .delete_agent(&stage.ada, Some(stage.workspace), "c", ANY)
        .await
        .unwrap();
    assert!(promote("latest", "staging", base).await.is_ok());
    let future = Cursor::new(base.epoch(), base.workspace(), base.revision() + 1000);
    let restored = Cursor::new("k3j9x0ab".parse().unwrap(), base.workspace(), base.revision());
    for wrong in [future, restored] {
        assert_eq!(
            kind(promote("staging", "production", wrong).await),
            ErrorKind::Precondition
        );
        assert_eq!(kind(restore(wrong).await), ErrorKind::Precondition);
    }
    let other = Cursor::new(base.epoch(), stage.world.workspace("grace").await, 1);
    assert_eq!(kind(promote("staging", "production", other).await), ErrorKind::Invalid);
    assert_eq!(kind(restore(other).await), ErrorKind::Invalid);
}

#[tokio::test]
async fn a_promotion_can_be_limited_to_a_set() {
    let stage = Stage::new().await;
    let service = &stage.world.service;
    for agent_id in ["a", "c"] {
        stage.set(agent_id, "staging", 2).await;
    }
    let spec = |agent_id: &str| AgentSpec::new(agent_id.parse().unwrap(), "Agent");
    let body = ApplyAgents::of(vec![spec("a"), spec("b")]).set("docs".parse::<SetName>().unwrap());
    service
        .apply_agents(&stage.ada, stage.workspace, body, false)
        .await
        .unwrap();
    let promote = async |set: &str| {
        let release = Promotion::new("staging".parse().unwrap(), "production".parse().unwrap());
        let release = release.set(Some(set.parse().unwrap()));
        let promoted = service
            .promote_labels(&stage.ada, stage.workspace, release, false)
            .await
            .unwrap();
        promoted.iter().map(|row| row.agent_id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(
        promote("docs").await,
        ["a"],
        "b lacks the label, and c is not of the set"
    );
    assert!(promote("unknown").await.is_empty());
    let both = Promotion::new("staging".parse().unwrap(), "production".parse().unwrap())
        .set("docs".parse::<SetName>().unwrap())
        .agent_ids(vec!["a".parse().unwrap()]);
    let refused = service.promote_labels(&stage.ada, stage.workspace, both, false).await;
    let (error, message) = failure(refused);
    assert_eq!(
        (error, &*message),
        (ErrorKind::Invalid, "agent_ids and set must not both be given")
    );
}

#[tokio::test]
async fn a_dry_run_needs_no_more_than_to_read() {
    let stage = Stage::new().await;
    let (service, workspace) = (&stage.world.service, stage.workspace);
    let (_, reader) = stage.world.key_caller(workspace, "ada", Scope::Read).await;
    let release = Promotion::new("latest".parse().unwrap(), "production".parse().unwrap());
    let back = LabelRestore::new("production".parse().unwrap(), 1);
    let body = ApplyAgents::of(vec![AgentSpec::new("d".parse().unwrap(), "Agent")]);
    assert_eq!(
        service
            .promote_labels(&reader, workspace, release.clone(), true)
            .await
            .unwrap()
            .len(),
        3
    );
    assert!(
        service
            .restore_label(&reader, workspace, back.clone(), true)
            .await
            .is_ok()
    );
    assert!(
        service
            .apply_agents(&reader, workspace, body.clone(), true)
            .await
            .is_ok()
    );
    for refused in [
        kind(service.promote_labels(&reader, workspace, release, false).await),
        kind(service.restore_label(&reader, workspace, back, false).await),
        kind(service.apply_agents(&reader, workspace, body, false).await),
    ] {
        assert_eq!(refused, ErrorKind::Forbidden);
    }
}

#[tokio::test]
async fn two_labels_are_compared_field_by_field_and_line_by_line() {
    let stage = Stage::new().await;
    let (service, to) = (&stage.world.service, Some(stage.workspace));
    let persona = async |agent_id: &str, text: &str| {
        let patch = AgentPatch::default().persona_prompt(text);
        let edited = service.update_agent(&stage.ada, to, agent_id, patch, ANY);
        edited.await.unwrap();
    };
    persona("a", "One.\nTwo.\nThree.\n").await;
    for (agent_id, version) in [("a", 3), ("b", 1), ("c", 2)] {
        stage.set(agent_id, "live", version).await;
    }
    persona("a", "One.\n2.\n2b.\nThree.\n").await;
    let compared = service
        .compare_labels(&stage.ada, stage.workspace, "live", "latest")
        .await;
    let row = |row: &agentcfg_core::model::LabelDiff| {
        let numbers = [row.from, row.to, row.versions, row.lines_added, row.lines_removed];
        (row.agent_id.to_string(), numbers, row.fields.join(" "))
    };
    assert_eq!(
        compared.unwrap().iter().map(row).collect::<Vec<_>>(),
        [
            ("a".to_owned(), [3, 4, 1, 2, 1], "persona_prompt".to_owned()),
            ("b".to_owned(), [1, 2, 1, 0, 0], "role".to_owned()),
            ("c".to_owned(), [2, 2, 0, 0, 0], String::new()),
        ]
    );
}
