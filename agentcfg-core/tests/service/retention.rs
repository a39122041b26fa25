//! Retention: what is removed from the history, what stays, and what readers of the rest see.

use std::collections::BTreeMap;

use agentcfg_core::model::{
    After, AgentConfig, AgentFilter, AgentPatch, ApplyAgents, AsOf, AuditFilter, LabelHistoryFilter, LabelRestore,
    LabelTarget, NewAgent, Rollback, Timestamp, VersionPage, VersionSelector, WorkspaceId,
};
use agentcfg_core::store::{Kind, Partition, Scan};
use agentcfg_core::{ErrorKind, Settings};
use proptest::prelude::*;
use serde_json::json;

use super::support::{ANY, World, failure, kind};

const AGENT: &str = "writer";
const DAY: i64 = 24 * 60 * 60 * 1000;

/// A prompt that is long enough to be kept as an edit of the one before.
fn prompt(word: &str) -> String {
    let line = |number: usize| format!("Rule {number}: answer in one sentence.\n");
    (0..60).map(line).collect::<String>() + word
}

/// A workspace with an agent, in which versions and entries are kept for so many days.
struct Kept {
    world: World,
    workspace: WorkspaceId,
}

impl Kept {
    async fn new(audit: u32, versions: u32) -> Self {
        let mut settings = Settings::default();
        settings.audit_retention_days = Some(audit);
        settings.version_retention_days = (versions > 0).then_some(versions);
        let world = World::on_disk(settings);
        let workspace = world.workspace("ada").await;
        let new = NewAgent::new(workspace, AGENT.parse().unwrap(), "Writer").persona_prompt(prompt("first"));
        world.service.create_agent(&world.user("ada"), new).await.unwrap();
        Self { world, workspace }
    }

    async fn edit(&self, word: &str) {
        let (service, ada) = (&self.world.service, self.world.user("ada"));
        let patch = AgentPatch::default().persona_prompt(prompt(word));
        service
            .update_agent(&ada, Some(self.workspace), AGENT, patch, ANY)
            .await
            .unwrap();
    }

    /// Makes the versions up to this one, one each day.
    async fn edit_daily(&self, last: u64) {
        for number in 2..=last {
            self.world.clock.advance_millis(DAY);
            self.edit(&format!("version {number}")).await;
        }
    }

    async fn versions(&self) -> Vec<u64> {
        let (service, ada) = (&self.world.service, self.world.user("ada"));
        let all = service
            .list_versions(&ada, Some(self.workspace), AGENT, VersionPage::default())
            .await
            .unwrap();
        all.into_iter().map(|version| version.version).collect()
    }

    async fn config(&self, version: u64) -> Result<AgentConfig, agentcfg_core::Error> {
        let (service, ada) = (&self.world.service, self.world.user("ada"));
        let version = VersionSelector::Version(version);
        let found = service.get_version(&ada, Some(self.workspace), AGENT, version).await;
        found.map(|found| found.config)
    }

    async fn at(&self, as_of: AsOf) -> Result<AgentConfig, agentcfg_core::Error> {
        let (service, ada) = (&self.world.service, self.world.user("ada"));
        let filter = AgentFilter::default().as_of(as_of);
        let list = service.list_agents(&ada, self.workspace, &filter).await?;
        Ok(list.value.agents().unwrap()[0].config())
    }

    async fn revisions(&self) -> Vec<u64> {
        let (service, ada) = (&self.world.service, self.world.user("ada"));
        let all = AuditFilter::default().limit(1000);
        let entries = service.search_audit_log(&ada, self.workspace, &all).await.unwrap();
        entries.into_iter().map(|entry| entry.revision).collect()
    }

    async fn stored(&self, of: Kind) -> usize {
        let scan = Scan::all(Partition::Workspace(self.workspace), of);
        self.world.store.scan(&scan).await.unwrap().entries.len()
    }
}

#[tokio::test]
async fn without_a_setting_nothing_goes() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    world.clock.advance_millis(DAY * 10_000);
    let removed = world.service.remove_old_history().await.unwrap();
    assert_eq!((removed.entries, removed.versions), (0, 0));
    assert_eq!(world.log(workspace, "ada").await.len(), 1);
}

#[tokio::test]
async fn old_entries_go_and_positions_before_the_rest_are_gone() {
    let kept = Kept::new(5, 0).await;
    let (service, ada, workspace) = (&kept.world.service, kept.world.user("ada"), kept.workspace);
    let list = service
        .list_agents(&ada, workspace, &AgentFilter::default())
        .await
        .unwrap();
    let first = list.value.cursor();
    service
        .set_label(&ada, Some(workspace), AGENT, "production", LabelTarget::new(1))
        .await
        .unwrap();
    kept.edit_daily(10).await;
    // Entries 1 to 3 are of the first day, and the entry of version n is n + 2. Those of the last five days stay.
    let removed = service.remove_old_history().await.unwrap();
    assert_eq!((removed.entries, removed.versions), (6, 0));
    assert_eq!(kept.revisions().await, [12, 11, 10, 9, 8, 7]);
    assert_eq!(service.remove_old_history().await.unwrap().entries, 0, "a second time");
    // The log: by offset, and by time.
    let page = AuditFilter::default().offset(4).limit(10);
    let page = service.search_audit_log(&ada, workspace, &page).await.unwrap();
    assert_eq!(page.iter().map(|entry| entry.revision).collect::<Vec<_>>(), [8, 7]);
    let early = AuditFilter::default().until(kept.world.now().plus_millis(-9 * DAY));
    assert_eq!(service.search_audit_log(&ada, workspace, &early).await.unwrap(), []);
    // The feed: positions before the rest.
    let after = |revision| agentcfg_core::model::Cursor::new(first.epoch(), workspace, revision);
    let message = "the position is from before revision 7, where the log begins now: its entries are kept for 5 days";
    assert_eq!(
        failure(service.changes(&ada, workspace, After::Start, 10).await),
        (ErrorKind::Gone, message.to_owned())
    );
    assert_eq!(kind(service.changes(&ada, workspace, first, 10).await), ErrorKind::Gone);
    assert_eq!(
        kind(service.changes(&ada, workspace, after(5), 10).await),
        ErrorKind::Gone
    );
    let page = service.changes(&ada, workspace, after(6), 10).await.unwrap();
    assert_eq!(page.events.len(), 6);
    // Decisions that need the removed part are refused.
    let body = json!({"agents": [{"agent_id": AGENT, "display_name": "W"}], "base": first.to_string()});
    let body = ApplyAgents::from_json(&serde_json::to_vec(&body).unwrap()).unwrap();
    assert_eq!(
        kind(service.apply_agents(&ada, workspace, body, false).await),
        ErrorKind::Precondition
    );
    let restore = LabelRestore::new("production".parse().unwrap(), 2);
    assert_eq!(
        kind(service.restore_label(&ada, workspace, restore, false).await),
        ErrorKind::Gone
    );
    let all = LabelHistoryFilter::default();
    let mut history = service.label_history(&ada, workspace, "production", all).await.unwrap();
    assert_eq!(history.next().await.unwrap(), None);
    // Versions and states of the past stay.
    assert_eq!(kept.config(1).await.unwrap().persona_prompt, Some(prompt("first")));
    assert_eq!(
        kept.at(AsOf::Revision(2)).await.unwrap().persona_prompt,
        Some(prompt("first"))
    );
    // A log without entries begins after its head.
    kept.world.clock.advance_millis(DAY * 6);
    assert_eq!(service.remove_old_history().await.unwrap().entries, 6);
    assert!(kept.revisions().await.is_empty());
    assert_eq!(
        kind(service.changes(&ada, workspace, after(11), 10).await),
        ErrorKind::Gone
    );
    assert_eq!(
        service
            .changes(&ada, workspace, after(12), 10)
            .await
            .unwrap()
            .events
            .len(),
        0
    );
    kept.edit("after all").await;
    assert_eq!(kept.revisions().await, [13]);
}

#[tokio::test]
async fn old_versions_go_in_groups_but_for_those_with_a_label() {
    let kept = Kept::new(5, 5).await;
    let (service, ada, workspace) = (&kept.world.service, kept.world.user("ada"), Some(kept.workspace));
    kept.edit_daily(30).await;
    service
        .set_label(&ada, workspace, AGENT, "production", LabelTarget::new(11))
        .await
        .unwrap();
    let middle = kept.world.now().plus_millis(-12 * DAY);
    // The first time the entries go. What they name is kept for readers that have them.
    let removed = service.remove_old_history().await.unwrap();
    assert_eq!((removed.entries, removed.versions), (25, 0));
    // Version 25 has replaced the third group five days ago.
    let removed = service.remove_old_history().await.unwrap();
    assert_eq!(removed.versions, 8, "1 to 8, while 9 to 16 have a label");
    let listed: Vec<u64> = (9..=30).rev().collect();
    assert_eq!(kept.versions().await, listed);
    kept.world.clock.advance_millis(DAY);
    service.remove_old_history().await.unwrap();
    assert_eq!(service.remove_old_history().await.unwrap().versions, 8, "17 to 24");
    assert_eq!(kept.stored(Kind::AgentVersion).await, 14);
    // What stays is whole.
    for number in (9..=16).chain(25..=30) {
        let config = kept.config(number).await.unwrap();
        assert_eq!(
            config.persona_prompt,
            Some(prompt(&format!("version {number}"))),
            "{number}"
        );
    }
    // What is gone says so.
    let horizon = kept.world.now().plus_millis(-5 * DAY);
    let message = format!(
        "version 20 of the agent \"writer\" is not kept any more: \
         of the versions replaced before {horizon}, 5 days ago, only those with a label are kept"
    );
    assert_eq!(failure(kept.config(20).await), (ErrorKind::Gone, message));
    let back = Rollback::to_version(3);
    assert_eq!(
        kind(service.roll_back_agent(&ada, workspace, AGENT, back, ANY).await),
        ErrorKind::Gone
    );
    let label = LabelTarget::new(3);
    assert_eq!(
        kind(service.set_label(&ada, workspace, AGENT, "staging", label).await),
        ErrorKind::Gone
    );
    let diff = service
        .diff_versions(&ada, workspace, AGENT, 3, VersionSelector::Current)
        .await;
    assert_eq!(kind(diff), ErrorKind::Gone);
    assert_eq!(kind(kept.at(AsOf::At(middle)).await), ErrorKind::Gone);
    assert_eq!(kind(kept.at(AsOf::Revision(15)).await), ErrorKind::Gone);
    // The label leaves the group, which stays while the label can be put back: as long as the log tells of it.
    let released = kept.revisions().await[0];
    service
        .remove_label(&ada, workspace, AGENT, "production")
        .await
        .unwrap();
    assert_eq!(service.remove_old_history().await.unwrap().versions, 0);
    service
        .restore_label(
            &ada,
            kept.workspace,
            LabelRestore::new("production".parse().unwrap(), released),
            false,
        )
        .await
        .unwrap();
    service
        .remove_label(&ada, workspace, AGENT, "production")
        .await
        .unwrap();
    kept.world.clock.advance_millis(6 * DAY);
    assert_eq!(service.remove_old_history().await.unwrap().versions, 8);
    assert_eq!(kept.versions().await, [30, 29, 28, 27, 26, 25]);
}

#[tokio::test]
async fn one_agent_does_not_keep_the_versions_of_another() {
    let kept = Kept::new(2, 2).await;
    let (service, ada) = (&kept.world.service, kept.world.user("ada"));
    // Its identifier is the beginning of the other's.
    kept.world.agent(kept.workspace, "ada", "write").await;
    kept.edit_daily(20).await;
    kept.world.clock.advance_millis(DAY * 3);
    for _ in 0..2 {
        service.remove_old_history().await.unwrap();
    }
    assert_eq!(kept.versions().await, [20, 19, 18, 17]);
    let other = service
        .list_versions(&ada, Some(kept.workspace), "write", VersionPage::default())
        .await
        .unwrap();
    assert_eq!(other.len(), 1);
}

#[derive(Debug, Clone)]
enum Step {
    Edit(String),
    Label(u64),
    Wait(u32),
    Remove,
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => "[a-z]{1,8}".prop_map(Step::Edit),
        1 => (1..40_u64).prop_map(Step::Label),
        6 => (1..60_u32).prop_map(Step::Wait),
        2 => Just(Step::Remove),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Each state of the last days can be read, whatever was removed, and so can what a label points at.
    #[test]
    fn what_is_kept_is_whole(all in proptest::collection::vec(steps(), 20..160)) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
            let kept = Kept::new(1, 2).await;
            let (service, ada, workspace) = (&kept.world.service, kept.world.user("ada"), Some(kept.workspace));
            let mut versions = BTreeMap::from([(1, kept.config(1).await.unwrap())]);
            let mut states: Vec<(Timestamp, u64)> = vec![(kept.world.now(), 1)];
            let mut labelled = None;
            for step in all {
                match step {
                    Step::Edit(word) => {
                        kept.world.clock.advance_millis(1);
                        kept.edit(&word).await;
                        let number = kept.versions().await[0];
                        versions.insert(number, kept.config(number).await.unwrap());
                        states.push((kept.world.now(), number));
                    }
                    Step::Label(version) => {
                        let set = service.set_label(&ada, workspace, AGENT, "live", LabelTarget::new(version)).await;
                        if set.is_ok() {
                            labelled = Some(version);
                        }
                    }
                    Step::Wait(hours) => kept.world.clock.advance_millis(i64::from(hours) * 3_600_000),
                    Step::Remove => {
                        service.remove_old_history().await.unwrap();
                    }
                }
                let since = kept.world.now().plus_millis(-2 * DAY);
                for number in kept.versions().await {
                    assert_eq!(kept.config(number).await.unwrap(), versions[&number]);
                }
                if let Some(version) = labelled {
                    assert_eq!(kept.config(version).await.unwrap(), versions[&version]);
                }
                for (time, number) in states.iter().filter(|(time, _)| *time >= since) {
                    assert_eq!(kept.at(AsOf::At(*time)).await.unwrap(), versions[number], "at {time}");
                }
                // Entries show the values of their versions.
                kept.revisions().await;
            }
        });
    }
}
