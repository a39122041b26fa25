//! Data of the last release without versions, and what that release answered for it.
//!
//! `store.redb.gz` is its data file, `postgres.sql` the same records in a database, and `expected.json` has the list of all
//! agents that it answered at each revision. The files are never regenerated.

use std::sync::Arc;

use agentcfg_core::model::{
    Agent, AgentFilter, AgentPatch, AgentState, AsOf, Precondition, VersionPage, VersionSelector, WorkspaceId,
};
use agentcfg_core::store::{Key, Kind, Partition, PartitionKind, Record, Scan, Store};
use agentcfg_core::{AgentCfg, Caller, ErrorKind};
use serde_json::Value;

/// The data file.
pub const REDB: &[u8] = include_bytes!("store.redb.gz");
/// The database.
pub const POSTGRES: &str = include_str!("postgres.sql");

const EXPECTED: &str = include_str!("expected.json");
const ANY: &Precondition = &Precondition::None;

struct Seen {
    revision: u64,
    at: agentcfg_core::model::Timestamp,
    agents: Vec<Agent>,
}

struct Data {
    service: AgentCfg,
    ada: Caller,
    workspace: WorkspaceId,
    seen: Vec<Seen>,
}

/// All records of a workspace.
async fn records(store: &dyn Store, workspace: WorkspaceId) -> Vec<(Key, Record)> {
    let mut all = Vec::new();
    for kind in Kind::ALL {
        if kind.partition_kind() == PartitionKind::Workspace {
            let scan = Scan::all(Partition::Workspace(workspace), kind);
            all.extend(store.scan(&scan).await.unwrap().entries);
        }
    }
    all
}

/// Opens a store with the data, and compares every answer about the past before and after first changes.
pub async fn check(store: Arc<dyn Store>) {
    let expected: Value = serde_json::from_str(EXPECTED).unwrap();
    let workspace: WorkspaceId = expected["workspace"].as_str().unwrap().parse().unwrap();
    let seen = expected["lists"].as_array().unwrap().iter().map(|list| Seen {
        revision: list["revision"].as_u64().unwrap(),
        at: list["at"].as_str().unwrap().parse().unwrap(),
        agents: serde_json::from_value(list["agents"].clone()).unwrap(),
    });
    let service = AgentCfg::builder(Arc::clone(&store)).build();
    let data = Data {
        ada: service.trusted_user(expected["user"].as_str().unwrap()).unwrap(),
        service,
        workspace,
        seen: seen.collect(),
    };
    let before = records(&*store, workspace).await;
    assert!(before.iter().all(|(key, _)| key.kind() != Kind::AgentVersion));
    data.each_agent_is_its_version_1().await;
    data.each_list_is_answered_again().await;
    data.single_versions_know_the_present_alone().await;
    assert_eq!(records(&*store, workspace).await, before, "reading changes nothing");

    data.first_changes_keep_the_old_content().await;
    data.each_list_is_answered_again().await;
    data.single_versions_know_the_present_alone().await;
    data.each_list_since_is_answered_again().await;
}

impl Data {
    fn last(&self) -> &Seen {
        self.seen.last().unwrap()
    }

    async fn list(&self, as_of: Option<AsOf>) -> Vec<Agent> {
        let filter = AgentFilter {
            state: AgentState::All,
            as_of,
            ..AgentFilter::default()
        };
        let list = self
            .service
            .list_agents(&self.ada, self.workspace, &filter)
            .await
            .unwrap();
        list.value.agents().unwrap().to_vec()
    }

    async fn version(&self, agent: &Agent, selector: VersionSelector<'_>) -> Result<u64, ErrorKind> {
        let found = self
            .service
            .get_version(&self.ada, Some(self.workspace), &agent.agent_id, selector)
            .await;
        found.map(|found| found.version).map_err(|error| error.kind())
    }

    async fn each_agent_is_its_version_1(&self) {
        assert_eq!(self.list(None).await, self.last().agents);
        for agent in &self.last().agents {
            let page = VersionPage::default();
            let versions = self
                .service
                .list_versions(&self.ada, Some(self.workspace), &agent.agent_id, page)
                .await;
            let [version] = &versions.unwrap()[..] else {
                panic!("one version of {}", agent.agent_id)
            };
            assert_eq!((version.version, version.created_at), (1, agent.updated_at));
            assert_eq!((&version.actor, &version.message), (&None, &None));
            let found = self
                .service
                .get_version(&self.ada, Some(self.workspace), &agent.agent_id, 1)
                .await
                .unwrap();
            assert_eq!(found.config, agent.config());
        }
        let current = self
            .service
            .current_versions(&self.ada, Some(self.workspace))
            .await
            .unwrap();
        let active = self.last().agents.iter().filter(|agent| agent.is_active);
        assert!(
            current
                .iter()
                .map(|version| &version.agent_id)
                .eq(active.map(|agent| &agent.agent_id))
        );
    }

    async fn each_list_is_answered_again(&self) {
        for (index, seen) in self.seen.iter().enumerate() {
            assert_eq!(
                self.list(Some(AsOf::Revision(seen.revision))).await,
                seen.agents,
                "{}",
                seen.revision
            );
            // Of several changes in one millisecond the last one counts.
            let is_last = self.seen.get(index + 1).is_none_or(|next| next.at > seen.at);
            if is_last {
                assert_eq!(self.list(Some(AsOf::At(seen.at))).await, seen.agents, "{}", seen.at);
            }
        }
    }

    /// Versions and times know version 1 alone; before it there is none.
    async fn single_versions_know_the_present_alone(&self) {
        for agent in &self.last().agents {
            assert_eq!(self.version(agent, VersionSelector::At(agent.updated_at)).await, Ok(1));
            let before = VersionSelector::At(agent.updated_at.plus_millis(-1));
            assert_eq!(self.version(agent, before).await, Err(ErrorKind::NotFound));
            for seen in &self.seen {
                let was_the_same = seen.agents.iter().any(|then| then == agent);
                let expected = if was_the_same { Ok(1) } else { Err(ErrorKind::NotFound) };
                let found = self.version(agent, VersionSelector::Revision(seen.revision)).await;
                assert_eq!(found, expected, "{} {}", agent.agent_id, seen.revision);
            }
        }
    }

    async fn first_changes_keep_the_old_content(&self) {
        let (service, ada, workspace) = (&self.service, &self.ada, Some(self.workspace));
        let patch = AgentPatch {
            display_name: Some("Changed".into()),
            ..AgentPatch::default()
        };
        assert_eq!(
            service
                .update_agent(ada, workspace, "writer", patch, ANY)
                .await
                .unwrap()
                .version,
            2
        );
        let nothing = AgentPatch::default();
        assert_eq!(
            service
                .update_agent(ada, workspace, "reviewer", nothing, ANY)
                .await
                .unwrap()
                .version,
            1
        );
        assert_eq!(
            service
                .restore_agent(ada, workspace, "gone", ANY)
                .await
                .unwrap()
                .version,
            1
        );
        service.delete_agent(ada, workspace, "untouched", ANY).await.unwrap();
        for agent in &self.last().agents {
            let first = service.get_version(ada, workspace, &agent.agent_id, 1).await.unwrap();
            assert_eq!((first.created_at, first.actor), (agent.updated_at, None));
            assert_eq!(first.config, agent.config());
        }
    }

    async fn each_list_since_is_answered_again(&self) {
        let head = self.service.audit_log(&self.ada, self.workspace, 0, 1).await.unwrap()[0].revision;
        assert_eq!(head, self.last().revision + 4);
        let present = self.list(None).await;
        assert_eq!(self.list(Some(AsOf::Revision(head))).await, present);
        let mut then = self.last().agents.clone();
        for (revision, agent_id) in (self.last().revision + 1..).zip(["writer", "reviewer", "gone", "untouched"]) {
            let now = present.iter().find(|agent| agent.agent_id == agent_id).unwrap();
            *then.iter_mut().find(|agent| agent.agent_id == agent_id).unwrap() = now.clone();
            assert_eq!(self.list(Some(AsOf::Revision(revision))).await, then, "{revision}");
            // Of several changes in one millisecond the last one counts.
            let others = present.iter().filter(|other| other.updated_at == now.updated_at);
            if others.count() == 1 {
                let at = Some(AsOf::At(now.updated_at));
                assert_eq!(self.list(at).await, then, "{}", now.updated_at);
            }
        }
    }
}
