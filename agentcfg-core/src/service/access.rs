//! What a caller may do in a workspace.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::entry::{ApiKeyCaller, Caller, CallerKind, KeyFacts, Prefetch, lacks, lacks_scope, unauthorized};
use super::key_limits::KeyLimits;
use super::records::{self, Encoded, Entries, Membership, Stored, StoredApiKey, Transaction, WorkspacePlan};
use super::{AgentCfg, groups, no_member};
use crate::error::{Error, ErrorKind};
use crate::model::{Actor, Member, Message, Permission, PermissionSet, Role, Scope, Timestamp, UserId, WorkspaceId};
use crate::store::Check;
use crate::token;

/// The proof that a caller may act in a workspace. Methods that a caller reaches take the workspace from it, and
/// mutations their actor and the guard of their commit. Only the authorisation makes one for a caller;
/// [`Access::without_membership`] makes those of changes that need no membership.
pub(super) struct Access {
    workspace: WorkspaceId,
    basis: Basis,
    /// The actor for the audit log, where it is not the one of the basis.
    acting_as: Option<Actor>,
    pub(super) role: Option<Role>,
    permissions: PermissionSet,
    /// What an API key is limited to.
    limits: KeyLimits,
    prefetch: Option<Arc<Prefetch>>,
    /// The caller's message, which the audit entry keeps.
    message: Option<Message>,
    /// The identifier of the caller's request, which the audit entry keeps.
    request_id: Option<Arc<str>>,
}

/// The basis of an authorisation: the record that was decided on.
enum Basis {
    /// An API key's record, at this version.
    ApiKey {
        id: token::Id,
        version: u64,
        scope: Scope,
        granted: PermissionSet,
        expires_at: Option<Timestamp>,
    },
    /// The membership of a user at this version.
    Member { user_id: UserId, version: u64 },
    /// The membership of a group of a user's at this version, and the check that no operator has removed the user.
    Group {
        user_id: UserId,
        group: UserId,
        version: u64,
        not_removed: Box<Check>,
    },
    /// An operation that needs no membership, and its actor. Boxed, since it is rare and an access is moved often.
    Other(Box<(Check, Actor)>),
}

impl Access {
    pub(super) fn workspace(&self) -> WorkspaceId {
        self.workspace
    }

    /// The access for a change that needs no membership, such as that of a workspace's founder, of an operator who
    /// changes a plan, and of this service when it disables a webhook. `guard` is the basis of the decision.
    pub(super) fn without_membership(workspace: WorkspaceId, actor: Actor, guard: Check) -> Self {
        Self {
            workspace,
            basis: Basis::Other(Box::new((guard, actor))),
            acting_as: None,
            role: None,
            permissions: PermissionSet::default(),
            limits: KeyLimits::default(),
            prefetch: None,
            message: None,
            request_id: None,
        }
    }

    /// The same access for a request of this caller, whose message and identifier the audit entry keeps.
    pub(super) fn in_request_of(mut self, caller: &Caller) -> Self {
        self.message.clone_from(&caller.message);
        self.request_id.clone_from(&caller.request_id);
        self
    }

    /// The access of an API key whose facts are current.
    fn by_key_with(id: token::Id, facts: &KeyFacts, prefetch: Option<Arc<Prefetch>>) -> Self {
        Self {
            workspace: facts.workspace_id,
            basis: Basis::ApiKey {
                id,
                version: facts.version,
                scope: facts.scope,
                granted: facts.granted,
                expires_at: facts.expires_at(),
            },
            acting_as: None,
            role: None,
            permissions: facts.permissions,
            limits: facts.limits.clone(),
            prefetch,
            message: None,
            request_id: None,
        }
    }

    /// The access of a user by the user's own membership.
    pub(super) fn of_member(user_id: UserId, workspace: WorkspaceId, member: Stored<Member>) -> Self {
        let version = member.version;
        Self::with_role(workspace, member.value.role, Basis::Member { user_id, version })
    }

    /// The access of a user by the membership of a group.
    pub(super) fn of_group(user_id: UserId, workspace: WorkspaceId, group: Stored<Member>, not_removed: Check) -> Self {
        let basis = Basis::Group {
            user_id,
            group: group.value.user_id,
            version: group.version,
            not_removed: Box::new(not_removed),
        };
        Self::with_role(workspace, group.value.role, basis)
    }

    fn with_role(workspace: WorkspaceId, role: Role, basis: Basis) -> Self {
        Self {
            workspace,
            basis,
            acting_as: None,
            role: Some(role),
            permissions: role.permissions(),
            limits: KeyLimits::default(),
            prefetch: None,
            message: None,
            request_id: None,
        }
    }

    /// Whether a group of the user's is what lets the user in.
    pub(super) fn is_by_group(&self) -> bool {
        matches!(self.basis, Basis::Group { .. })
    }

    /// The same access under another actor in the audit log.
    pub(super) fn acting_as(self, actor: Actor) -> Self {
        Self {
            acting_as: Some(actor),
            ..self
        }
    }

    /// Refuses this access outside of its workspace, to which an API key is bound.
    pub(super) fn in_workspace(self, workspace: WorkspaceId) -> Result<Self, Error> {
        if self.workspace == workspace {
            return Ok(self);
        }
        Err(Error::new(
            ErrorKind::Forbidden,
            "the API key belongs to another workspace",
        ))
    }

    /// Takes the workspace's revision that was read together with the credential, if it was.
    pub(super) fn take_revision(&self) -> Option<u64> {
        self.prefetch.as_ref()?.take_revision()
    }

    /// Takes the workspace's plan that was read together with the credential, if it was.
    pub(super) fn take_plan(&self) -> Option<Encoded<WorkspacePlan>> {
        self.prefetch.as_ref()?.take_plan()
    }

    /// When the API key of this access expires, if it does.
    pub(super) fn key_expires_at(&self) -> Option<Timestamp> {
        match &self.basis {
            Basis::ApiKey { expires_at, .. } => *expires_at,
            Basis::Member { .. } | Basis::Group { .. } | Basis::Other(_) => None,
        }
    }

    /// The caller's message for the audit entry.
    pub(super) fn message(&self) -> Option<&Message> {
        self.message.as_ref()
    }

    /// The identifier of the caller's request for the audit entry.
    pub(super) fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// Who acts, for the audit entry.
    pub(super) fn actor(&self) -> Actor {
        match (&self.acting_as, &self.basis) {
            (Some(actor), _) => actor.clone(),
            (None, Basis::Other(other)) => other.1.clone(),
            (None, Basis::ApiKey { id, .. }) => Actor::api_key(id.as_str()),
            (None, Basis::Member { user_id, .. } | Basis::Group { user_id, .. }) => Actor::user(user_id.as_str()),
        }
    }

    /// A transaction that is committed only if the basis of this access has not changed.
    pub(super) fn transaction(&self) -> Transaction {
        let transaction = Transaction::default().check(self.guard());
        match &self.basis {
            // A membership of the user's own wins over that of a group.
            Basis::Group {
                user_id, not_removed, ..
            } => transaction
                .check(records::member(self.workspace, user_id).absent())
                .check(Check::clone(not_removed)),
            _ => transaction,
        }
    }

    /// The check that a mutation makes in its commit: the basis of the decision has not changed.
    pub(super) fn guard(&self) -> Check {
        match &self.basis {
            Basis::ApiKey { id, version, .. } => Check::Version(records::api_key(id.as_str()).into(), *version),
            Basis::Member { user_id: id, version } | Basis::Group { group: id, version, .. } => {
                Check::Version(records::member(self.workspace, id).into(), *version)
            }
            Basis::Other(other) => other.0.clone(),
        }
    }

    /// Every permission that the caller has in the workspace.
    pub(super) fn permissions(&self) -> PermissionSet {
        self.permissions
    }

    /// The agents and the label that the caller is limited to.
    pub(super) fn limits(&self) -> &KeyLimits {
        &self.limits
    }

    /// Refuses a caller that lacks the permission.
    pub(super) fn require(&self, permission: Permission) -> Result<(), Error> {
        if self.permissions.contains(permission) {
            return Ok(());
        }
        Err(match (&self.basis, self.role) {
            (Basis::ApiKey { scope, granted, .. }, _) => lacks_scope(*scope, *granted, permission),
            (_, Some(role)) => lacks(format_args!("the role {role}"), permission),
            (_, None) => lacks("the caller", permission),
        })
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
        let from_memory = match &caller.kind {
            CallerKind::ApiKey(key) => self.access_from_memory(key),
            CallerKind::User { .. } => None,
        };
        let access = match from_memory {
            Some(access) => access.in_workspace(workspace)?,
            // Boxed, so that the future of the fast path stays small.
            None => Box::pin(self.access_by_store(caller, workspace)).await?,
        };
        access.require(permission)?;
        Ok(access.in_request_of(caller))
    }

    /// Checks that a caller has a permission in a workspace now: for routes of an app that are no methods of this
    /// service.
    ///
    /// The methods of the service check their permissions themselves.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without the permission in the workspace.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// service.authorize(&ada, studio, Permission::ApiKeysManage).await?;
    /// let eve = service.trusted_user("eve")?;
    /// assert!(service.authorize(&eve, studio, Permission::AgentsRead).await.is_err());
    /// # Ok(()) }) }
    /// ```
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
        let workspace = match workspace {
            Some(workspace) => workspace,
            None => self.default_workspace(caller).await?,
        };
        self.access(caller, workspace, permission).await
    }

    /// A caller's role or scope in a workspace, decided on the current record of the key or the membership. Permissions
    /// are not checked here.
    pub(super) async fn membership(&self, caller: &Caller, workspace: WorkspaceId) -> Result<Access, Error> {
        let access = match &caller.kind {
            CallerKind::ApiKey(key) => self.access_of_key(key).await?.in_workspace(workspace)?,
            CallerKind::User { .. } => self.access_by_store(caller, workspace).await?,
        };
        Ok(access.in_request_of(caller))
    }

    /// The access of an API key to its own workspace.
    pub(super) async fn access_of_key(&self, key: &ApiKeyCaller) -> Result<Access, Error> {
        match self.access_from_memory(key) {
            Some(access) => Ok(access),
            None => Box::pin(self.access_by_read(key)).await,
        }
    }

    /// The access of an API key that needs no read: while the stamp of its record is current, and in the first method
    /// after an entry on a remote store.
    fn access_from_memory(&self, key: &ApiKeyCaller) -> Option<Access> {
        let ApiKeyCaller { id, facts, prefetch } = key;
        let claimed = prefetch
            .as_ref()
            .filter(|prefetch| prefetch.claim(self.inner.clock.steady_millis()));
        let is_current = claimed.is_some() || facts.are_current(&self.inner.stamps);
        (is_current && !facts.are_expired(|| self.now())).then(|| Access::by_key_with(*id, facts, claimed.cloned()))
    }

    /// As [`Self::membership`], by the record as it is stored now.
    async fn access_by_store(&self, caller: &Caller, workspace: WorkspaceId) -> Result<Access, Error> {
        match &caller.kind {
            CallerKind::ApiKey(key) => self.access_by_read(key).await?.in_workspace(workspace),
            CallerKind::User { user_id, session } => {
                let rights = || self.read(groups::rights(workspace, user_id, &session.groups));
                let found = rights().await?;
                let is_unknown = found.0.is_none();
                let access = self.access_by_rights(user_id, workspace, found)?;
                if !is_unknown || !access.is_by_group() {
                    return Ok(access);
                }
                // Operators can remove a user of whom there is a record.
                self.note_user(user_id).await;
                self.access_by_rights(user_id, workspace, rights().await?)
            }
        }
    }

    /// The access of a user by what [`groups::rights`] has found: by the user's own membership, else by the one of a
    /// group with the highest role, unless an operator has removed the user.
    pub(super) fn access_by_rights(
        &self,
        user_id: &UserId,
        workspace: WorkspaceId,
        (user, memberships): groups::FoundRights,
    ) -> Result<Access, Error> {
        let mut memberships = memberships.into_iter();
        if let Some(own) = memberships.next().flatten() {
            return Ok(Access::of_member(user_id.clone(), workspace, own));
        }
        let of_groups = memberships.flatten().filter(|_| !groups::is_removed(user.as_ref()));
        let highest = of_groups.max_by_key(|member| member.value.role).ok_or_else(no_member)?;
        let not_removed = records::user(user_id).unchanged(user.as_ref());
        Ok(Access::of_group(user_id.clone(), workspace, highest, not_removed))
    }

    async fn access_by_read(&self, key: &ApiKeyCaller) -> Result<Access, Error> {
        let found = self.read(records::api_key(key.id.as_str()).encoded()).await?;
        self.access_by_record(key, found)
    }

    /// The access by the record of an API key.
    pub(super) fn access_by_record(
        &self,
        key: &ApiKeyCaller,
        found: Option<Encoded<StoredApiKey>>,
    ) -> Result<Access, Error> {
        let found = found.ok_or_else(unauthorized)?;
        if found.version() == key.facts.version {
            // The facts are those of this record, which need not be decoded.
            return match key.facts.are_expired(|| self.now()) {
                true => Err(unauthorized()),
                false => Ok(Access::by_key_with(key.id, &key.facts, None)),
            };
        }
        let stored = found.decode()?;
        if !stored.value.is_valid_at(self.now()) {
            return Err(unauthorized());
        }
        let facts = KeyFacts::of(&stored.value, stored.version, None, &self.settings());
        Ok(Access::by_key_with(key.id, &facts, None))
    }

    /// The workspace of a caller that names none: that of an API key, or a user's only one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for a user of no workspace or of several.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// assert_eq!(service.default_workspace(&ada).await?, studio);
    /// # Ok(()) }) }
    /// ```
    pub async fn default_workspace(&self, caller: &Caller) -> Result<WorkspaceId, Error> {
        match &caller.kind {
            CallerKind::ApiKey(key) => Ok(key.facts.workspace_id),
            CallerKind::User { user_id, session } => self.only_workspace(user_id, &session.groups).await,
        }
    }

    async fn only_workspace(&self, user_id: &UserId, groups: &[UserId]) -> Result<WorkspaceId, Error> {
        let mut found = BTreeSet::new();
        let (groups, _) = self.groups_that_count(user_id, groups).await?;
        for id in std::iter::once(user_id).chain(groups) {
            let entries = Entries::<Membership>::of(records::memberships(id)).limit(2);
            for membership in self.scan(entries).await?.into_keys() {
                found.insert(membership.workspace()?);
            }
        }
        let why = match found.len() {
            0 => "you are a member of no workspace",
            1 => "",
            _ => "you are a member of several workspaces",
        };
        match found.pop_first() {
            Some(workspace) if why.is_empty() => Ok(workspace),
            _ => Err(Error::new(
                ErrorKind::Invalid,
                format!("workspace_id is required: {why}"),
            )),
        }
    }
}
