//! What tests of migrations share: the state that is moved, and what `migrate` prints.

use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use agentcfg_core::AgentCfg;
use agentcfg_core::model::{Agent, NewAgent, NewWorkspace, Parameters, Precondition, Role, Tag, WorkspaceId};
use agentcfg_core::store::redb::{RedbOptions, RedbStore};
use agentcfg_core::store::{Batch, Key, Store, Write};

#[track_caller]
pub fn succeeds(output: &Output, says: &str) {
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success() && out.contains(says), "{out}{err}");
}

#[track_caller]
pub fn fails(output: &Output, says: &str) {
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && err.contains(says), "{err}");
}

/// Creates workspaces with agents, members and a history, and a member who was removed again.
pub async fn fill(service: &AgentCfg) -> Vec<WorkspaceId> {
    let ada = service.trusted_user("ada").unwrap();
    let mut workspaces = Vec::new();
    for name in ["North", "Süd"] {
        let workspace = service
            .create_workspace(&ada, NewWorkspace::new(name))
            .await
            .unwrap()
            .id;
        for agent in ["a", "b", "c"] {
            let new = NewAgent::new(workspace, agent.parse().unwrap(), "Ä").parameters(Parameters::from([(
                "x".to_owned(),
                serde_json::from_str("1e16").unwrap(),
            )]));
            service.create_agent(&ada, new).await.unwrap();
        }
        service
            .delete_agent(&ada, Some(workspace), "b", &Precondition::None)
            .await
            .unwrap();
        for user in ["bob", "eve"] {
            service
                .set_member(&ada, workspace, &user.parse().unwrap(), Role::Viewer)
                .await
                .unwrap();
        }
        service
            .remove_member(&ada, workspace, &"eve".parse().unwrap())
            .await
            .unwrap();
        workspaces.push(workspace);
    }
    workspaces
}

/// A workspace's agents, the tag of their list, and the numbers of members and of log entries.
pub type VisibleState = (Vec<Agent>, Tag, usize, usize);

/// The state is the same apart from the epoch in the tags.
#[track_caller]
pub fn same_in_another_epoch(there: &[VisibleState], before: &[VisibleState]) {
    let without_epoch = |seen: &[VisibleState]| -> Vec<_> {
        seen.iter()
            .map(|(agents, tag, members, log)| (agents.clone(), (tag.kind(), tag.number()), *members, *log))
            .collect()
    };
    assert_eq!(without_epoch(there), without_epoch(before));
    for (there, before) in there.iter().zip(before) {
        assert_ne!(there.1.epoch(), before.1.epoch());
    }
}

/// Everything that a caller can read.
pub async fn visible_state(service: &AgentCfg, workspaces: &[WorkspaceId]) -> Vec<VisibleState> {
    let ada = service.trusted_user("ada").unwrap();
    let mut all = Vec::new();
    for workspace in workspaces {
        let list = service
            .list_agents(&ada, *workspace, &Default::default())
            .await
            .unwrap();
        let members = service.list_members(&ada, *workspace).await.unwrap();
        let log = service.audit_log(&ada, *workspace, 0, 1000).await.unwrap();
        all.push((
            list.value.agents().unwrap().to_vec(),
            list.tag,
            members.len(),
            log.len(),
        ));
    }
    all
}

pub fn open(dir: &Path) -> Arc<dyn Store> {
    Arc::new(RedbStore::open(dir.join("store.redb"), RedbOptions::default()).unwrap())
}

pub async fn put(store: &dyn Store, key: &Key) -> u64 {
    let writes = vec![Write::Put(key.clone(), b"1".to_vec())];
    store.commit(Batch { checks: vec![], writes }).await.unwrap().numbers[0]
}
