//! Access control: every operation under every role and scope, in the caller's own workspace and in a foreign one.

use agentcfg_core::model::{
    AgentPatch, NewAgent, NewWorkspace, Role, Scope, StatusReport, WorkspaceId, WorkspacePatch,
};
use agentcfg_core::{Caller, Error, ErrorKind};
use uuid::Uuid;

use super::support::{ANY, World, new_key};

#[derive(Debug, Clone, Copy)]
enum Operation {
    ListAgents,
    AgentStatus,
    CreateAgent,
    UpdateAgent,
    DeleteAgent,
    RestoreAgent,
    ReportStatus,
    ListMembers,
    SetMember,
    RemoveMember,
    ListKeys,
    CreateKey,
    RevokeKey,
    AuditLog,
    Rename,
}

use Operation::*;

/// The columns: keys `read`, `write`, `admin`, then roles `viewer`, `member`, `admin`, `owner`.
const TABLE: [(Operation, [bool; 7]); 15] = {
    const Y: bool = true;
    const N: bool = false;
    [
        (ListAgents, [Y, Y, Y, Y, Y, Y, Y]),
        (AgentStatus, [Y, Y, Y, Y, Y, Y, Y]),
        (CreateAgent, [N, Y, Y, N, Y, Y, Y]),
        (UpdateAgent, [N, Y, Y, N, Y, Y, Y]),
        (DeleteAgent, [N, Y, Y, N, Y, Y, Y]),
        (RestoreAgent, [N, Y, Y, N, Y, Y, Y]),
        (ReportStatus, [N, Y, Y, N, Y, Y, Y]),
        (ListMembers, [N, N, Y, N, Y, Y, Y]),
        (SetMember, [N, N, N, N, N, Y, Y]),
        (RemoveMember, [N, N, N, N, N, Y, Y]),
        (ListKeys, [N, N, Y, N, N, Y, Y]),
        (CreateKey, [N, N, N, N, N, Y, Y]),
        (RevokeKey, [N, N, N, N, N, Y, Y]),
        (AuditLog, [N, N, Y, N, N, Y, Y]),
        (Rename, [N, N, N, N, N, N, Y]),
    ]
};

/// Runs the operation once as this caller. The owner creates what it needs beforehand.
async fn run(world: &World, operation: Operation, caller: &Caller, workspace: WorkspaceId) -> Result<(), Error> {
    let service = &world.service;
    let to = Some(workspace);
    match operation {
        ListAgents => drop(service.list_agents(caller, workspace, &Default::default()).await?),
        AgentStatus => drop(service.agent_status(caller, workspace).await?),
        CreateAgent => drop(
            service
                .create_agent(caller, NewAgent::new(workspace, "fresh".parse().unwrap(), "F"))
                .await?,
        ),
        UpdateAgent => drop(
            service
                .update_agent(caller, to, "kept", AgentPatch::default(), ANY)
                .await?,
        ),
        DeleteAgent => drop(service.delete_agent(caller, to, "kept", ANY).await?),
        RestoreAgent => drop(service.restore_agent(caller, to, "gone", ANY).await?),
        ReportStatus => drop(service.report_status(caller, to, "kept", StatusReport::idle()).await?),
        ListMembers => drop(service.list_members(caller, workspace).await?),
        SetMember => drop(
            service
                .set_member(caller, workspace, &"new".parse().unwrap(), Role::Member)
                .await?,
        ),
        RemoveMember => drop(
            service
                .remove_member(caller, workspace, &"guest".parse().unwrap())
                .await?,
        ),
        ListKeys => drop(service.list_api_keys(caller, workspace).await?),
        CreateKey => drop(service.create_api_key(caller, new_key(workspace, Scope::Read)).await?),
        RevokeKey => {
            let keys = service.list_api_keys(&world.user("ada"), workspace).await?;
            service.revoke_api_key(caller, &keys[0].id).await?;
        }
        AuditLog => drop(service.audit_log(caller, workspace, 0, 1).await?),
        Rename => {
            let patch = WorkspacePatch::default().name("x");
            service.update_workspace(caller, workspace, patch).await?;
        }
    }
    Ok(())
}

/// Creates a workspace with a record of every kind that an operation acts on.
async fn workspace_with_records(world: &World, owner: &str) -> WorkspaceId {
    let workspace = world.workspace(owner).await;
    world.agent(workspace, owner, "kept").await;
    world.agent(workspace, owner, "gone").await;
    world
        .service
        .delete_agent(&world.user(owner), Some(workspace), "gone", ANY)
        .await
        .unwrap();
    world.member(workspace, owner, "guest", Role::Viewer).await;
    world.key(workspace, owner, Scope::Read).await;
    workspace
}

#[tokio::test]
async fn each_role_and_scope_may_do_what_the_table_says_and_nothing_else() {
    for (operation, row) in TABLE {
        for (column, allowed) in row.into_iter().enumerate() {
            let world = World::new();
            let workspace = workspace_with_records(&world, "ada").await;
            let caller = match column {
                0..3 => world.key_caller(workspace, "ada", Scope::ALL[column]).await.1,
                3..6 => world.member(workspace, "ada", "caller", Role::ALL[column - 3]).await,
                _ => world.user("ada"),
            };
            let before = world.log(workspace, "ada").await.len();
            let result = run(&world, operation, &caller, workspace).await;
            let kind = result.as_ref().err().map(Error::kind);
            let expected = (!allowed).then_some(ErrorKind::Forbidden);
            assert_eq!(kind, expected, "{operation:?} in column {column}: {result:?}");
            if !allowed {
                assert_eq!(world.log(workspace, "ada").await.len(), before);
            }
        }
    }
}

#[tokio::test]
async fn every_operation_in_a_foreign_workspace_is_forbidden() {
    let world = World::new();
    let (home, foreign) = (
        workspace_with_records(&world, "eve").await,
        workspace_with_records(&world, "ada").await,
    );
    let nowhere = WorkspaceId::new(Uuid::from_u128(5));
    let before = world.log(foreign, "ada").await.len();
    let callers = [
        world.user("eve"),
        world.user("nobody"),
        world.user("root"),
        world.key_caller(home, "eve", Scope::Admin).await.1,
    ];
    for (operation, _) in TABLE {
        for (number, caller) in callers.iter().enumerate() {
            if matches!(operation, RevokeKey) {
                let keys = world.service.list_api_keys(&world.user("ada"), foreign).await.unwrap();
                let result = world.service.revoke_api_key(caller, &keys[0].id).await;
                let expected = if number == 3 {
                    ErrorKind::Forbidden
                } else {
                    ErrorKind::NotFound
                };
                assert_eq!(result.unwrap_err().kind(), expected);
                continue;
            }
            let mut messages = Vec::new();
            for workspace in [foreign, nowhere] {
                let error = run(&world, operation, caller, workspace).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Forbidden, "{operation:?} by caller {number}");
                messages.push(error.message().to_owned());
            }
            // The message does not reveal whether the workspace exists.
            assert_eq!(messages[0], messages[1], "{operation:?} by caller {number}");
        }
    }
    assert_eq!(world.log(foreign, "ada").await.len(), before);
}

#[tokio::test]
async fn an_api_key_can_neither_create_nor_manage_workspaces() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (_, key) = world.key_caller(workspace, "ada", Scope::Admin).await;
    let new = NewWorkspace::new("x");
    let error = world.service.create_workspace(&key, new).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    assert!(key.user_id().is_err());
}

#[tokio::test]
async fn a_change_of_role_takes_effect_at_once() {
    let world = World::new();
    let workspace = workspace_with_records(&world, "ada").await;
    let caller = world.member(workspace, "ada", "mel", Role::Viewer).await;
    for (role, allowed) in [(Role::Member, true), (Role::Viewer, false), (Role::Admin, true)] {
        world.member(workspace, "ada", "mel", role).await;
        let result = world
            .another_instance()
            .update_agent(&caller, None, "kept", AgentPatch::default(), ANY)
            .await;
        assert_eq!(result.is_ok(), allowed, "{role}");
    }
}
