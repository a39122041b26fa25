//! What a label releases, in the events that move it.

use std::sync::Arc;

use agentcfg_core::model::{
    After, AgentId, AgentPatch, Label, LabelRestore, NewApiKey, Promotion, ReleasedAgent, Scope,
};
use agentcfg_core::service::Watch;
use agentcfg_core::store::{Batch, Kind, Partition, Scan, Write};
use agentcfg_core::{Caller, ErrorKind};

use super::releases::Stage;
use super::support::{ANY, kind, new_key};

impl Stage {
    async fn patch(&self, agent_id: &str, patch: AgentPatch) {
        self.world.clock.advance_millis(10);
        let edited = self
            .world
            .service
            .update_agent(&self.ada, Some(self.workspace), agent_id, patch, ANY);
        edited.await.unwrap();
    }

    async fn promote(&self, from: &str, to: &str) {
        self.world.clock.advance_millis(10);
        let promotion = Promotion::new(from.parse().unwrap(), to.parse().unwrap());
        let promoted = self
            .world
            .service
            .promote_labels(&self.ada, self.workspace, promotion, false);
        promoted.await.unwrap();
    }

    /// A reader of what comes, with what a label releases.
    async fn follow(&self, caller: &Caller, label: &str) -> Watch {
        let watch = self
            .world
            .service
            .watch(caller, self.workspace, After::Now)
            .await
            .unwrap();
        watch.with_released(label.parse().unwrap()).unwrap()
    }

    async fn limited(&self, limit: impl FnOnce(NewApiKey) -> NewApiKey) -> Caller {
        let new = limit(new_key(self.workspace, Scope::Read));
        let key = self.world.service.create_api_key(&self.ada, new).await.unwrap().key;
        self.world.service.authenticate(&key).await.unwrap()
    }
}

/// The identifiers and versions of the rows of an event.
fn versions(rows: Option<Vec<ReleasedAgent>>) -> Option<Vec<String>> {
    let row = |row: &ReleasedAgent| format!("{} {}", row.agent_id, row.version);
    rows.map(|rows| rows.iter().map(row).collect())
}

#[tokio::test]
async fn an_event_that_moves_a_label_has_what_it_releases() {
    let stage = Stage::new().await;
    let mut watch = stage.follow(&stage.ada, "production").await;

    stage.set("a", "production", 1).await;
    assert_eq!(
        watch.next().await.unwrap().released.unwrap(),
        stage.released("production").await.0
    );
    stage.promote("latest", "production").await;
    let promoted = watch.next().await.unwrap().released.unwrap();
    assert_eq!(promoted, stage.released("production").await.0);
    assert_eq!(promoted.len(), 3);
    let before = stage.revision().await;
    stage.patch("b", AgentPatch::default().role("third")).await;
    assert_eq!(watch.next().await.unwrap().released, None);
    stage.set("b", "production", 3).await;
    assert_eq!(
        versions(watch.next().await.unwrap().released),
        Some(vec!["b 3".to_owned()])
    );
    let restore = LabelRestore::new("production".parse().unwrap(), before);
    let restored = stage
        .world
        .service
        .restore_label(&stage.ada, stage.workspace, restore, false);
    restored.await.unwrap();
    assert_eq!(
        versions(watch.next().await.unwrap().released),
        Some(vec!["b 2".to_owned()])
    );

    // Another label, and a removal.
    stage.set("a", "staging", 2).await;
    assert_eq!(watch.next().await.unwrap().released, None);
    let removed = stage
        .world
        .service
        .remove_label(&stage.ada, Some(stage.workspace), "a", "production");
    removed.await.unwrap();
    assert_eq!(watch.next().await.unwrap().released, None);
}

#[tokio::test]
async fn only_readers_that_follow_the_label_get_it_and_they_share_the_text() {
    let stage = Stage::new().await;
    let mut following = [
        stage.follow(&stage.ada, "production").await,
        stage.follow(&stage.ada, "production").await,
    ];
    let mut other = stage.follow(&stage.ada, "staging").await;
    let without = stage.world.service.watch(&stage.ada, stage.workspace, After::Now);
    let mut without = without.await.unwrap();
    stage.set("a", "production", 2).await;

    let [one, two] = &mut following;
    let (one, two) = (one.read().await.unwrap().changes, two.read().await.unwrap().changes);
    assert!(Arc::ptr_eq(one[0].json(), two[0].json()));
    assert!(one[0].decode().unwrap().released.is_some());
    for watch in [&mut other, &mut without] {
        let read = watch.read().await.unwrap().changes;
        assert_eq!(read[0].decode().unwrap().released, None);
        assert!(!read[0].json().contains("released\":"), "{}", read[0].json());
    }
}

#[tokio::test]
async fn a_limited_key_gets_its_agents_and_its_label_alone() {
    let stage = Stage::new().await;
    let only_b = |new: NewApiKey| new.agents(vec!["b".parse::<AgentId>().unwrap()]);
    let mut of_b = stage.follow(&stage.limited(only_b).await, "production").await;
    let mut all = stage.follow(&stage.ada, "production").await;
    stage.promote("latest", "production").await;
    assert_eq!(all.next().await.unwrap().released.unwrap().len(), 3);
    let event = of_b.next().await.unwrap();
    assert_eq!(
        (event.changes.len(), versions(event.released)),
        (1, Some(vec!["b 2".to_owned()]))
    );

    let production: Label = "production".parse().unwrap();
    let pinned = stage.limited(|new| new.label(production)).await;
    let mut followed = stage.follow(&pinned, "production").await;
    stage.set("a", "production", 1).await;
    assert_eq!(
        versions(followed.next().await.unwrap().released),
        Some(vec!["a 1".to_owned()])
    );
    let watch = stage
        .world
        .service
        .watch(&pinned, stage.workspace, After::Now)
        .await
        .unwrap();
    let staging: Label = "staging".parse().unwrap();
    assert_eq!(kind(watch.with_released(staging)), ErrorKind::Forbidden);
}

#[tokio::test]
async fn what_is_long_or_no_longer_kept_is_left_out() {
    let stage = Stage::new().await;
    for agent_id in ["a", "b", "c"] {
        stage
            .patch(agent_id, AgentPatch::default().persona_prompt("x".repeat(70_000)))
            .await;
    }
    let mut watch = stage.follow(&stage.ada, "production").await;
    stage.set("a", "production", 3).await;
    assert_eq!(
        versions(watch.next().await.unwrap().released),
        Some(vec!["a 3".to_owned()])
    );
    stage.promote("latest", "production").await;
    let event = watch.next().await.unwrap();
    assert_eq!((event.changes.len(), event.released), (2, None), "two of 70 kB");

    stage.set("c", "production", 1).await;
    let scan = Scan::all(Partition::Workspace(stage.workspace), Kind::AgentVersion);
    let kept = stage.world.store.scan(&scan).await.unwrap().entries;
    let writes = kept.into_iter().map(|(key, _)| Write::Delete(key)).collect();
    let batch = Batch {
        checks: Vec::new(),
        writes,
    };
    stage.world.store.commit(batch).await.unwrap();
    assert_eq!(watch.next().await.unwrap().released, None);
}

#[tokio::test]
async fn many_old_releases_are_not_read_at_once() {
    let stage = Stage::new().await;
    for letter in ["x", "y"] {
        let long = AgentPatch::default().persona_prompt(letter.repeat(100_000));
        stage.patch("a", long).await;
    }
    let before = stage
        .world
        .service
        .released(&stage.ada, stage.workspace, "latest", None);
    let before = before.await.unwrap().value.cursor();
    for number in 0..20 {
        stage.set("a", "production", 3 + number % 2).await;
    }
    let watch = stage.world.service.watch(&stage.ada, stage.workspace, before);
    let mut watch = watch
        .await
        .unwrap()
        .with_released("production".parse().unwrap())
        .unwrap();
    let read = watch.read().await.unwrap();
    let bytes: usize = read.changes.iter().map(|event| event.json().len()).sum();
    assert_eq!((read.changes.len(), read.has_more), (20, false));
    assert!((1 << 20..2 << 20).contains(&bytes), "{bytes}");
    let without = read.changes.last().unwrap().decode().unwrap();
    assert_eq!(without.released, None);
}
