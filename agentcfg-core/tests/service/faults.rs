//! Faults of the store: the kind of error, and no operation applied twice.

use std::sync::Arc;

use agentcfg_core::model::{
    AgentPatch, NewAgent, NewWorkspace, Plan, Role, Scope, StatusReport, WorkspaceId, WorkspacePatch,
};
use agentcfg_core::{AgentCfg, Caller, Error, ErrorKind};

use super::support::{ANY, Fault, Faulty, World, kind, new_key};

/// A world, the same service on a store that fails on request, and a workspace with one agent.
async fn with_faulty_store() -> (World, Arc<Faulty>, AgentCfg, WorkspaceId) {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    world.agent(workspace, "ada", "writer").await;
    world.member(workspace, "ada", "mel", Role::Member).await;
    let faulty = Faulty::new(&world.store);
    let service = world.behind(Arc::clone(&faulty) as _);
    (world, faulty, service, workspace)
}

const MUTATIONS: usize = 9;

/// Runs the mutation with this number; returns the number of audit entries that it writes.
async fn mutate(service: &AgentCfg, ada: &Caller, workspace: WorkspaceId, number: usize) -> Result<usize, Error> {
    let to = Some(workspace);
    match number {
        0 => drop(
            service
                .create_agent(ada, NewAgent::new(workspace, "editor".parse().unwrap(), "E"))
                .await?,
        ),
        1 => drop(
            service
                .update_agent(ada, to, "writer", AgentPatch::default(), ANY)
                .await?,
        ),
        2 => drop(service.delete_agent(ada, to, "writer", ANY).await?),
        3 => drop(
            service
                .set_member(ada, workspace, &"new".parse().unwrap(), Role::Owner)
                .await?,
        ),
        4 => drop(service.remove_member(ada, workspace, &"mel".parse().unwrap()).await?),
        5 => drop(service.create_api_key(ada, new_key(workspace, Scope::Read)).await?),
        6 => drop(
            service
                .update_workspace(ada, workspace, WorkspacePatch::default())
                .await?,
        ),
        7 => {
            service.report_status(ada, to, "writer", StatusReport::idle()).await?;
            return Ok(0);
        }
        _ => {
            service.create_workspace(ada, NewWorkspace::new("x")).await?;
            return Ok(0);
        }
    }
    Ok(1)
}

#[tokio::test]
async fn an_unavailable_store_fails_the_request_and_changes_nothing() {
    for number in 0..MUTATIONS {
        let (world, faulty, service, workspace) = with_faulty_store().await;
        let ada = world.user("ada");
        let before = world.log(workspace, "ada").await;
        faulty.script([Fault::Unavailable]);
        let error = mutate(&service, &ada, workspace, number).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "mutation {number}");
        assert!(!error.message().contains("secret"), "{}", error.message());
        // One attempt only: the caller decides about a retry.
        assert_eq!(faulty.commits(), 1);
        assert_eq!(world.log(workspace, "ada").await, before);
        mutate(&service, &ada, workspace, number).await.unwrap();
        faulty.fail_reads(true);
        let error = mutate(&service, &ada, workspace, number).await;
        if number != 8 {
            assert_eq!(kind(error), ErrorKind::Unavailable, "mutation {number}");
        }
    }
}

#[tokio::test]
async fn a_commit_with_an_unknown_outcome_is_reported_and_not_retried() {
    for number in 0..MUTATIONS {
        for made in [false, true] {
            let (world, faulty, service, workspace) = with_faulty_store().await;
            let ada = world.user("ada");
            let before = world.log(workspace, "ada").await.len();
            faulty.script([if made { Fault::Made } else { Fault::Lost }]);
            let error = mutate(&service, &ada, workspace, number).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "mutation {number}");
            assert_eq!(faulty.commits(), 1, "mutation {number}");
            let entries = world.log(workspace, "ada").await.len() - before;
            assert_eq!(entries, usize::from(made && number < 7), "mutation {number}");
        }
    }
}

#[tokio::test]
async fn a_conflicting_commit_is_retried_on_fresh_reads_and_applied_once() {
    for number in 0..MUTATIONS - 1 {
        let (world, faulty, service, workspace) = with_faulty_store().await;
        let before = world.log(workspace, "ada").await.len();
        faulty.script([Fault::Conflict(1), Fault::Conflict(0), Fault::Conflict(1)]);
        let entries = mutate(&service, &world.user("ada"), workspace, number).await.unwrap();
        assert_eq!(faulty.commits(), 4, "mutation {number}");
        assert_eq!(
            world.log(workspace, "ada").await.len() - before,
            entries,
            "mutation {number}"
        );
    }
}

#[tokio::test]
async fn endless_conflicts_end_as_unavailable() {
    let (world, faulty, service, workspace) = with_faulty_store().await;
    faulty.script(std::iter::repeat_with(|| Fault::Conflict(1)).take(100_000));
    let error = mutate(&service, &world.user("ada"), workspace, 1).await;
    assert_eq!(kind(error), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_retry_sees_concurrent_changes() {
    let (world, faulty, service, workspace) = with_faulty_store().await;
    let ada = world.user("ada");
    let rival = world.service.clone();
    let caller = ada.clone();
    // A rival takes the identifier between the read and the commit.
    faulty.script([Fault::After(Box::pin(async move {
        rival
            .create_agent(&caller, NewAgent::new(workspace, "editor".parse().unwrap(), "Rival"))
            .await
            .unwrap();
    }))]);
    let created = service
        .create_agent(&ada, NewAgent::new(workspace, "editor".parse().unwrap(), "Mine"))
        .await;
    assert_eq!(kind(created), ErrorKind::Conflict);
    // A rival deletes the agent.
    let (rival, caller) = (world.service.clone(), ada.clone());
    faulty.script([Fault::After(Box::pin(async move {
        rival
            .delete_agent(&caller, Some(workspace), "writer", ANY)
            .await
            .unwrap();
    }))]);
    let updated = service
        .update_agent(&ada, Some(workspace), "writer", AgentPatch::default(), ANY)
        .await;
    assert_eq!(kind(updated), ErrorKind::NotFound);
    // An owner withdraws the caller's role.
    let (rival, owner, mel) = (world.service.clone(), ada.clone(), world.user("mel"));
    faulty.script([Fault::After(Box::pin(async move {
        rival
            .set_member(&owner, workspace, &"mel".parse().unwrap(), Role::Viewer)
            .await
            .unwrap();
    }))]);
    let created = service
        .create_agent(&mel, NewAgent::new(workspace, "late".parse().unwrap(), "L"))
        .await;
    assert_eq!(kind(created), ErrorKind::Forbidden);
    assert_eq!(world.listed(workspace, "ada").await, ["editor"]);
}

#[tokio::test]
async fn a_retry_uses_the_current_plan_and_record() {
    let (world, faulty, service, workspace) = with_faulty_store().await;
    let ada = world.user("ada");
    let plan = |plan| WorkspacePatch::default().plan(plan);
    let meanwhile = |patch: WorkspacePatch| {
        let (operator, root) = (world.service.clone(), world.user("root"));
        Fault::After(Box::pin(async move {
            operator.update_workspace(&root, workspace, patch).await.unwrap();
        }))
    };
    // The plan shrinks between the read and the commit.
    world.set_plan(workspace, Plan::Pro).await;
    for agent_id in ["a", "b"] {
        world.agent(workspace, "ada", agent_id).await;
    }
    faulty.script([meanwhile(plan(Plan::Free))]);
    let created = service
        .create_agent(&ada, NewAgent::new(workspace, "fourth".parse().unwrap(), "F"))
        .await;
    assert_eq!(kind(created), ErrorKind::PlanLimit);
    // The plan changes during a rename: neither change is lost.
    faulty.script([meanwhile(plan(Plan::Team))]);
    let rename = WorkspacePatch::default().name("Atelier");
    let after = service.update_workspace(&ada, workspace, rename).await.unwrap();
    assert_eq!((&*after.name, after.plan), ("Atelier", Plan::Team));
    // The agent is deleted during a status report.
    let (rival, caller) = (world.service.clone(), ada.clone());
    faulty.script([Fault::After(Box::pin(async move {
        rival
            .delete_agent(&caller, Some(workspace), "writer", ANY)
            .await
            .unwrap();
    }))]);
    let reported = service
        .report_status(&ada, Some(workspace), "writer", StatusReport::idle())
        .await;
    assert_eq!(kind(reported), ErrorKind::NotFound);
}

#[tokio::test]
async fn an_admin_cannot_remove_a_member_who_becomes_an_owner_concurrently() {
    let (world, faulty, service, workspace) = with_faulty_store().await;
    let adi = world.member(workspace, "ada", "adi", Role::Admin).await;
    let (owner, ada) = (world.service.clone(), world.user("ada"));
    faulty.script([Fault::After(Box::pin(async move {
        owner
            .set_member(&ada, workspace, &"mel".parse().unwrap(), Role::Owner)
            .await
            .unwrap();
    }))]);
    let removed = service.remove_member(&adi, workspace, &"mel".parse().unwrap()).await;
    assert_eq!(kind(removed), ErrorKind::Forbidden);
    assert_eq!(world.service.list_members(&adi, workspace).await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_key_that_is_revoked_before_the_commit_changes_nothing() {
    for number in [0, 1, 2, 7] {
        let (world, faulty, service, workspace) = with_faulty_store().await;
        let (created, key) = world.key_caller(workspace, "ada", Scope::Admin).await;
        let (owner, ada) = (world.service.clone(), world.user("ada"));
        faulty.script([Fault::After(Box::pin(async move {
            owner.revoke_api_key(&ada, &created.record.id).await.unwrap();
        }))]);
        let before = world.log(workspace, "ada").await.len();
        let result = mutate(&service, &key, workspace, number).await;
        assert_eq!(kind(result), ErrorKind::Unauthorized, "mutation {number}");
        // The only new entry is that of the revocation.
        assert_eq!(world.log(workspace, "ada").await.len(), before + 1);
        assert_eq!(faulty.commits(), 1, "mutation {number}");
    }
}

#[tokio::test]
async fn authentication_is_unavailable_without_the_store() {
    let (world, faulty, service, workspace) = with_faulty_store().await;
    let key = world.key(workspace, "ada", Scope::Read).await.key;
    let caller = service.authenticate(&key).await.unwrap();
    faulty.fail_reads(true);
    assert_eq!(kind(service.authenticate(&key).await), ErrorKind::Unavailable);
    assert_eq!(kind(service.ready().await), ErrorKind::Unavailable);
    let list = service.list_agents(&caller, workspace, &Default::default()).await;
    assert_eq!(kind(list), ErrorKind::Unavailable);
    faulty.fail_reads(false);
    service.ready().await.unwrap();
}

#[tokio::test]
async fn last_uses_are_kept_until_a_flush_succeeds() {
    let (world, faulty, service, workspace) = with_faulty_store().await;
    let ada = world.user("ada");
    let key = world.key(workspace, "ada", Scope::Read).await.key;
    service.authenticate(&key).await.unwrap();
    faulty.script([Fault::Unavailable, Fault::Lost]);
    for expected in [ErrorKind::Unavailable, ErrorKind::OutcomeUnknown] {
        assert_eq!(kind(service.flush().await), expected);
        assert!(
            service.list_api_keys(&ada, workspace).await.unwrap()[0]
                .last_used_at
                .is_some()
        );
    }
    // The last use stays visible while it is being written.
    let (during, caller) = (service.clone(), ada.clone());
    faulty.script([Fault::After(Box::pin(async move {
        let keys = during.list_api_keys(&caller, workspace).await.unwrap();
        assert!(keys[0].last_used_at.is_some());
    }))]);
    service.flush().await.unwrap();
    assert!(
        world.service.list_api_keys(&ada, workspace).await.unwrap()[0]
            .last_used_at
            .is_some()
    );
    // A use during the write is written by the next flush.
    world.clock.advance_millis(60_000);
    service.authenticate(&key).await.unwrap();
    let (during, clock, again) = (service.clone(), Arc::clone(&world.clock), key.clone());
    faulty.script([Fault::After(Box::pin(async move {
        clock.advance_millis(60_000);
        during.authenticate(&again).await.unwrap();
    }))]);
    service.flush().await.unwrap();
    let listed = service.list_api_keys(&ada, workspace).await.unwrap();
    assert_eq!(listed[0].last_used_at, Some(world.now()));
    service.flush().await.unwrap();
    // Nothing is left to write.
    let commits = faulty.commits();
    service.flush().await.unwrap();
    assert_eq!(faulty.commits(), commits);
}
