//! What a caller may do in a workspace.

use std::sync::Arc;

use super::AgentCfg;
use super::ahead::{Ahead, WorkspaceRecords};
use super::authn::{Caller, Kind};
use super::schema;
use crate::error::{Error, ErrorKind};
use crate::model::{Actor, ActorType, Member, Permission, PermissionSet, Role, WorkspaceId};
use crate::store::{Check, Direction, Scan};
use crate::token;

/// The proof that a caller may act in a workspace. Only authorisation makes one, and every access to
/// a workspace's records takes its workspace from here.
pub(super) struct Access {
    workspace: WorkspaceId,
    ground: Ground,
    /// Another name in the audit log than the ground's own.
    acting_as: Option<Actor>,
    pub(super) role: Option<Role>,
    permissions: PermissionSet,
    ahead: Option<Arc<Ahead>>,
}

/// What a decision rests on.
enum Ground {
    /// An API key's record, at this version.
    ApiKey { id: token::Id, version: u64 },
    /// A user's membership, at this version.
    Member { user_id: Arc<str>, version: u64 },
    /// Something that needs no membership, and who acts.
    Other(Check, Actor),
}

impl Access {
    pub(super) fn workspace(&self) -> WorkspaceId {
        self.workspace
    }

    /// The access of someone who needs no membership: the founder of a workspace, and an operator
    /// who changes its plan.
    pub(super) fn without_membership(workspace: WorkspaceId, actor: Actor, guard: Check) -> Self {
        Self {
            workspace,
            ground: Ground::Other(guard, actor),
            acting_as: None,
            role: None,
            permissions: PermissionSet::default(),
            ahead: None,
        }
    }

    /// The same access under another name in the audit log.
    pub(super) fn acting_as(self, actor: Actor) -> Self {
        Self {
            acting_as: Some(actor),
            ..self
        }
    }

    /// What was read along with the credential, if nobody took it yet.
    pub(super) fn take_ahead(&self) -> Option<WorkspaceRecords> {
        self.ahead.as_ref()?.take()
    }

    /// Who acts, for the audit log.
    pub(super) fn actor(&self) -> Actor {
        match (&self.acting_as, &self.ground) {
            (Some(actor), _) | (None, Ground::Other(_, actor)) => actor.clone(),
            (None, Ground::ApiKey { id, .. }) => Actor {
                kind: ActorType::ApiKey,
                id: id.as_str().to_owned(),
            },
            (None, Ground::Member { user_id, .. }) => Actor {
                kind: ActorType::User,
                id: user_id.to_string(),
            },
        }
    }

    /// What a mutation checks in its commit: that the ground of the decision still stands.
    pub(super) fn guard(&self) -> Check {
        match &self.ground {
            Ground::ApiKey { id, version } => Check::Version(schema::api_key(id.as_str()), *version),
            Ground::Member { user_id, version } => Check::Version(schema::member(self.workspace, user_id), *version),
            Ground::Other(guard, _) => guard.clone(),
        }
    }

    /// Whether a failed guard means that the credential itself is gone.
    pub(super) fn by_key(&self) -> bool {
        matches!(self.ground, Ground::ApiKey { .. })
    }

    /// Whether the permission is among the caller's.
    pub(super) fn require(&self, permission: Permission) -> Result<(), Error> {
        if self.permissions.contains(permission) {
            return Ok(());
        }
        let who = self
            .role
            .map_or_else(|| "this API key".to_owned(), |role| format!("the role {role}"));
        Err(Error::new(
            ErrorKind::Forbidden,
            format!("{who} lacks the permission {permission}"),
        ))
    }
}

impl AgentCfg {
    /// Decides whether a caller may do something in a workspace.
    ///
    /// A workspace that does not exist and one that the user is no member of get the same answer.
    pub(super) async fn access(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        permission: Permission,
    ) -> Result<Access, Error> {
        let access = self.membership(caller, workspace).await?;
        access.require(permission)?;
        Ok(access)
    }

    /// Whether a caller may do something in a workspace, for a request that is refused for another
    /// reason which only those may learn who could have made it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without the permission in the workspace.
    pub async fn authorize(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        permission: Permission,
    ) -> Result<(), Error> {
        self.access(caller, workspace, permission).await.map(drop)
    }

    /// As [`Self::access`], when the caller may leave the workspace out: an API key has one, and a
    /// user with a single membership means that one.
    pub(super) async fn access_default(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        permission: Permission,
    ) -> Result<Access, Error> {
        let workspace = match (workspace, &caller.0) {
            (Some(workspace), _) => workspace,
            (None, Kind::ApiKey { known, .. }) => known.workspace_id,
            (None, Kind::User { user_id }) => self.only_workspace(user_id).await?,
        };
        self.access(caller, workspace, permission).await
    }

    /// What a caller is in a workspace, whatever that allows.
    pub(super) async fn membership(&self, caller: &Caller, workspace: WorkspaceId) -> Result<Access, Error> {
        match &caller.0 {
            Kind::ApiKey { id, known, ahead } => {
                if known.workspace_id != workspace {
                    return Err(Error::new(
                        ErrorKind::Forbidden,
                        "the API key belongs to another workspace",
                    ));
                }
                Ok(Access {
                    workspace,
                    ground: Ground::ApiKey {
                        id: *id,
                        version: known.version,
                    },
                    acting_as: None,
                    role: None,
                    permissions: known.permissions,
                    ahead: ahead.clone(),
                })
            }
            Kind::User { user_id } => {
                let key = schema::member(workspace, user_id);
                let record = self.store().get(std::slice::from_ref(&key)).await?.pop().flatten();
                let Some(record) = record else {
                    return Err(Error::new(
                        ErrorKind::Forbidden,
                        "you are not a member of this workspace",
                    ));
                };
                let member: Member = schema::decode(&key, &record)?;
                Ok(Access {
                    workspace,
                    ground: Ground::Member {
                        user_id: Arc::clone(user_id),
                        version: record.version,
                    },
                    acting_as: None,
                    role: Some(member.role),
                    permissions: member.role.permissions(),
                    ahead: None,
                })
            }
        }
    }

    async fn only_workspace(&self, user_id: &str) -> Result<WorkspaceId, Error> {
        let scan = Scan {
            limit: 2,
            direction: Direction::Ascending,
            ..Scan::all(schema::memberships(user_id), crate::store::Kind::Membership)
        };
        let entries = self.store().scan(&scan).await?.entries;
        let why = match &entries[..] {
            [(key, _)] => return membership_workspace(key),
            [] => "you are a member of no workspace",
            _ => "you are a member of several workspaces",
        };
        Err(Error::new(
            ErrorKind::Invalid,
            format!("workspace_id is required: {why}"),
        ))
    }
}

/// The workspace that a membership's key names.
pub(super) fn membership_workspace(key: &crate::store::Key) -> Result<WorkspaceId, Error> {
    key.item().parse().map_err(|error| {
        Error::new(ErrorKind::Internal, "stored data could not be read").because(format!("{key:?}: {error}"))
    })
}
