//! Creation, list and changes of workspaces.

use std::collections::{BTreeMap, BTreeSet};

use super::access::Access;
use super::change::Change;
use super::entry::CallerKind;
use super::records::{self, EntityKey, Entries, Membership, Stored, WorkspacePlace};
use super::retry::Attempt;
use super::{AgentCfg, Caller, groups, not_found};
use crate::error::{Error, ErrorKind};
use crate::model::{
    Action, Actor, Member, NewWorkspace, Permission, Role, TargetType, Timestamp, UserId, Workspace, WorkspaceCreation,
    WorkspaceId, WorkspacePatch, WorkspaceView,
};
use crate::validate::IntoValid;

impl AgentCfg {
    /// Creates a workspace; the user becomes its owner.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for the name, [`ErrorKind::Forbidden`] for an API key, for a user whom an operator has
    /// removed, and where the settings leave it to operators, [`ErrorKind::PlanLimit`] for a user who owns as many as
    /// [`Settings::max_workspaces_per_user`](super::Settings).
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let workspace = service.create_workspace(&ada, NewWorkspace::new("Studio North")).await?;
    /// println!("{} has the plan {}", workspace.id, workspace.plan);
    /// # Ok(()) }) }
    /// ```
    pub async fn create_workspace(
        &self,
        caller: &Caller,
        new: impl IntoValid<NewWorkspace>,
    ) -> Result<Workspace, Error> {
        let user_id = caller.user_id()?;
        if self.settings().workspace_creation == WorkspaceCreation::Operators && !self.is_operator(user_id) {
            return Err(Error::new(
                ErrorKind::Forbidden,
                "only an operator of this deployment may create workspaces",
            ));
        }
        let new = new.into_valid()?.into_inner();
        // The first workspace of a store finds no epoch and makes it. Reads of a workspace then never have to write, so
        // that a full disk does not stop them.
        self.epoch().await?;
        self.retry_lost_races(|| self.try_create_workspace(caller, user_id, &new))
            .await
    }

    async fn try_create_workspace(
        &self,
        caller: &Caller,
        user_id: &UserId,
        new: &NewWorkspace,
    ) -> Result<Attempt<Workspace>, Error> {
        let user = self.read(records::user(user_id)).await?;
        if groups::is_removed(user.as_ref()) {
            return Err(Error::new(
                ErrorKind::Forbidden,
                "an operator of this deployment has removed you, so that you can create no workspace; an owner of one can make you a member",
            ));
        }
        let now = self.now();
        let id = WorkspaceId::new(self.new_id(now)?);
        let plan = self.settings().default_plan;
        let workspace = Workspace {
            id,
            name: new.name.clone(),
            plan,
            created_at: now,
            updated_at: now,
        };
        let owner = Member {
            user_id: user_id.clone(),
            role: Role::Owner,
            created_at: now,
            name: None,
            email: None,
        };
        let key = records::workspace(id);
        let access = Access::without_membership(id, caller.actor(), key.absent()).in_request_of(caller);
        let mut change = Change::new(
            &access,
            now,
            Action::WorkspaceCreated,
            TargetType::Workspace,
            id.to_string(),
        )
        .create(key, &workspace)?
        .check(records::user(user_id).unchanged(user.as_ref()))
        .put(records::workspace_place(id), &WorkspacePlace {})?
        .put(records::member(id, user_id), &owner)?
        .put(records::membership(user_id, id), &Membership {})?;
        let limit = self.settings().max_workspaces_per_user;
        if let Some(most) = limit.filter(|_| !self.is_operator(user_id)) {
            let most = u64::from(most);
            if self.number_of_owned(user_id).await? >= most {
                return Err(Error::new(
                    ErrorKind::PlanLimit,
                    format!("a user owns at most {most} workspaces, delete one first"),
                ));
            }
            // A change of the user's record, read before the count, so that of creations at the same time each counts
            // those before it.
            let user = user.map(|found| found.value).unwrap_or_default();
            change = change.put(records::user(user_id), &user)?;
        }
        // The identifier is fresh, so only the user's record can have changed.
        self.apply(change).await?.attempt(workspace)
    }

    /// The workspaces of a user with the user's role in each, or the one of an API key; in the order
    /// of their creation.
    ///
    /// # Errors
    ///
    /// When storage fails.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// for view in service.list_workspaces(&ada).await? {
    ///     println!("{}: {:?}", view.workspace.name, view.role);
    /// }
    /// # assert_eq!(service.list_workspaces(&ada).await?[0].workspace.id, studio);
    /// # Ok(()) }) }
    /// ```
    pub async fn list_workspaces(&self, caller: &Caller) -> Result<Vec<WorkspaceView>, Error> {
        let mut views: Vec<_> = match &caller.kind {
            CallerKind::ApiKey(key) => {
                let access = self.access_of_key(key).await?;
                let found = self.read(records::workspace(access.workspace())).await?;
                found.into_iter().map(|found| view(found, None)).collect()
            }
            CallerKind::User { user_id, session } => {
                let found = self.workspaces_of(user_id, &session.groups).await?.into_iter();
                found.map(|(view, _)| view).collect()
            }
        };
        views.sort_unstable_by_key(order);
        Ok(views)
    }

    /// How many workspaces a user owns.
    async fn number_of_owned(&self, user_id: &UserId) -> Result<u64, Error> {
        let entries = Entries::<Membership>::of(records::memberships(user_id));
        let keys = |memberships: &[EntityKey<Membership>]| {
            let keys = memberships
                .iter()
                .map(|membership| Ok(records::member(membership.workspace()?, user_id)));
            keys.collect::<Result<Vec<_>, Error>>()
        };
        let (_, members) = self.scan_linked(entries, keys).await?;
        let owned = members
            .into_iter()
            .flatten()
            .filter(|member| member.value.role == Role::Owner);
        Ok(owned.count() as u64)
    }

    /// The workspaces of a user, in the order of the list, each with the number of its active agents.
    pub(super) async fn workspaces_of(
        &self,
        user_id: &UserId,
        groups: &[UserId],
    ) -> Result<Vec<(WorkspaceView, u64)>, Error> {
        let mut views: BTreeMap<WorkspaceId, (WorkspaceView, u64)> = BTreeMap::new();
        for (view, active_agents) in self.memberships_of(user_id).await? {
            views.insert(view.workspace.id, (view, active_agents));
        }
        let own: BTreeSet<_> = views.keys().copied().collect();
        let (groups, is_known) = self.groups_that_count(user_id, groups).await?;
        let mut is_in_by_group = false;
        for group in groups {
            for (view, active_agents) in self.memberships_of(group).await? {
                is_in_by_group = true;
                let id = view.workspace.id;
                // The user's own membership wins, and of several groups the highest role.
                let is_higher = views.get(&id).is_none_or(|(known, _)| known.role < view.role);
                if is_higher && !own.contains(&id) {
                    views.insert(id, (view, active_agents));
                }
            }
        }
        if is_in_by_group && !is_known {
            self.note_user(user_id).await;
        }
        let mut views: Vec<_> = views.into_values().collect();
        views.sort_unstable_by_key(|(view, _)| order(view));
        Ok(views)
    }

    /// The workspaces of one user or group, with the numbers of their active agents.
    async fn memberships_of(&self, id: &str) -> Result<Vec<(WorkspaceView, u64)>, Error> {
        let entries = Entries::<Membership>::of(records::memberships(id));
        let keys = |memberships: &[EntityKey<Membership>]| {
            let keys = memberships.iter().map(|membership| {
                let workspace = membership.workspace()?;
                let counter = records::active_agents(workspace);
                Ok((records::workspace(workspace), records::member(workspace, id), counter))
            });
            keys.collect::<Result<Vec<_>, Error>>()
        };
        let (_, found) = self.scan_linked(entries, keys).await?;
        let views = found.into_iter().filter_map(|(workspace, member, active_agents)| {
            Some((view(workspace?, Some(member?.value.role)), active_agents))
        });
        Ok(views.collect())
    }

    /// Renames a workspace, which needs `workspace:manage`, or changes its plan, which needs an
    /// operator and no membership.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for the name, [`ErrorKind::Forbidden`] without the right,
    /// [`ErrorKind::NotFound`] when an operator names an unknown workspace.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let patch = WorkspacePatch::default().name("Studio South");
    /// let workspace = service.update_workspace(&ada, studio, patch).await?;
    /// assert_eq!(workspace.name, "Studio South");
    /// # Ok(()) }) }
    /// ```
    pub async fn update_workspace(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        patch: impl IntoValid<WorkspacePatch>,
    ) -> Result<Workspace, Error> {
        let user_id = caller.user_id()?;
        let patch = patch.into_valid()?;
        let operator = self.is_operator(user_id);
        if operator && patch.plan.is_some() && patch.name.is_none() {
            return self
                .retry_lost_races(|| self.try_change_plan((caller, user_id), workspace, &patch))
                .await;
        }
        self.retry_lost_races(|| async {
            let access = self.membership(caller, workspace).await?;
            if patch.plan.is_some() && !operator {
                return Err(Error::new(
                    ErrorKind::Forbidden,
                    "only an operator of this deployment may change the plan",
                ));
            }
            access.require(Permission::WorkspaceManage)?;
            let access = if patch.plan.is_some() {
                access.acting_as(Actor::operator(user_id))
            } else {
                access
            };
            self.try_update_workspace(&access, &patch).await
        })
        .await
    }

    pub(super) fn is_operator(&self, user_id: &UserId) -> bool {
        self.settings().operators.contains(user_id.as_str())
    }

    async fn try_change_plan(
        &self,
        (caller, user_id): (&Caller, &str),
        id: WorkspaceId,
        patch: &WorkspacePatch,
    ) -> Result<Attempt<Workspace>, Error> {
        let found = self.stored_workspace(id).await?;
        let access = Access::without_membership(id, Actor::operator(user_id), found.unchanged());
        let access = access.in_request_of(caller);
        self.try_update_workspace(&access, patch).await
    }

    async fn try_update_workspace(&self, access: &Access, patch: &WorkspacePatch) -> Result<Attempt<Workspace>, Error> {
        let found = self.stored_workspace(access.workspace()).await?;
        let before = &found.value;
        let now = self.after(before.updated_at);
        let after = Workspace {
            name: patch.name.clone().unwrap_or_else(|| before.name.clone()),
            plan: patch.plan.unwrap_or(before.plan),
            updated_at: now,
            ..before.clone()
        };
        let id = after.id.to_string();
        let change =
            Change::new(access, now, Action::WorkspaceUpdated, TargetType::Workspace, id).replace(found, &after)?;
        self.apply(change).await?.attempt(after)
    }

    async fn stored_workspace(&self, id: WorkspaceId) -> Result<Stored<Workspace>, Error> {
        let found = self.read(records::workspace(id)).await?;
        found.ok_or_else(|| not_found("workspace", &id.to_string()))
    }
}

/// The place of a workspace in the list.
fn order(view: &WorkspaceView) -> (Timestamp, WorkspaceId) {
    (view.workspace.created_at, view.workspace.id)
}

fn view(found: Stored<Workspace>, role: Option<Role>) -> WorkspaceView {
    WorkspaceView {
        workspace: found.value,
        role,
    }
}
