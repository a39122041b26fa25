//! Workspaces.

use super::access::{Access, membership_workspace};
use super::authn::Kind as CallerKind;
use super::change::{Applied, Attempt, Change};
use super::{AgentCfg, Caller, schema};
use crate::error::{Error, ErrorKind};
use crate::model::{
    Action, Actor, ActorType, Member, NewWorkspace, Permission, Role, TargetType, Workspace, WorkspaceId,
    WorkspacePatch, WorkspaceView,
};
use crate::store::{Check, Key, Kind, Scan};
use crate::validate::IntoValid;

impl AgentCfg {
    /// Creates a workspace; the user becomes its owner.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for the name, [`ErrorKind::Forbidden`] for an API key.
    pub async fn create_workspace(
        &self,
        caller: &Caller,
        new: impl IntoValid<NewWorkspace>,
    ) -> Result<Workspace, Error> {
        let user_id = caller.user_id()?;
        let new = new.into_valid()?.into_inner();
        let now = self.now();
        let id = WorkspaceId::new(self.new_id(now)?);
        let plan = self.settings().default_plan;
        let workspace = Workspace {
            id,
            name: new.name,
            plan,
            created_at: now,
            updated_at: now,
        };
        let owner = Member {
            user_id: user_id.to_owned(),
            role: Role::Owner,
            created_at: now,
        };
        let access = Access::without_membership(id, caller.actor(), Check::Absent(schema::workspace(id)));
        let change = Change::new(
            &access,
            now,
            Action::WorkspaceCreated,
            TargetType::Workspace,
            id.to_string(),
        )
        .replace(schema::workspace(id), None, &workspace)?
        .put(schema::member(id, user_id), &owner)?
        .put(schema::membership(user_id, id), &schema::Present {})?;
        match self.apply(change).await? {
            Applied::Done(_) => Ok(workspace),
            // The identifier is fresh, and no counter is touched.
            Applied::Raced | Applied::Limit => Err(Error::new(
                ErrorKind::Internal,
                "a fresh workspace identifier was taken",
            )),
        }
    }

    /// The workspaces of a user with the user's role in each, or the one of an API key; in the order
    /// of their creation.
    ///
    /// # Errors
    ///
    /// When storage fails.
    pub async fn list_workspaces(&self, caller: &Caller) -> Result<Vec<WorkspaceView>, Error> {
        let (user_id, ids) = match &caller.0 {
            CallerKind::ApiKey { known, .. } => (None, vec![known.workspace_id]),
            CallerKind::User { user_id } => {
                let scan = Scan::all(schema::memberships(user_id), Kind::Membership);
                let entries = self.store().scan(&scan).await?.entries;
                let ids = entries
                    .iter()
                    .map(|(key, _)| membership_workspace(key))
                    .collect::<Result<_, _>>()?;
                (Some(user_id), ids)
            }
        };
        let mut keys: Vec<Key> = ids.iter().copied().map(schema::workspace).collect();
        keys.extend(
            user_id
                .iter()
                .flat_map(|user_id| ids.iter().map(|id| schema::member(*id, user_id))),
        );
        let records = self.store().get(&keys).await?;
        let mut views = Vec::with_capacity(ids.len());
        for i in 0..ids.len() {
            // A membership that ended between the two reads has no member record any more.
            let role = match (user_id, records.get(ids.len() + i)) {
                (None, _) => None,
                (Some(_), Some(Some(record))) => Some(schema::decode::<Member>(&keys[ids.len() + i], record)?.role),
                (Some(_), _) => continue,
            };
            if let Some(record) = &records[i] {
                views.push(WorkspaceView {
                    workspace: schema::decode(&keys[i], record)?,
                    role,
                });
            }
        }
        views.sort_unstable_by_key(|view| (view.workspace.created_at, view.workspace.id));
        Ok(views)
    }

    /// Renames a workspace, which needs `workspace:manage`, or changes its plan, which needs an
    /// operator and no membership.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for the name, [`ErrorKind::Forbidden`] without the right,
    /// [`ErrorKind::NotFound`] when an operator names an unknown workspace.
    pub async fn update_workspace(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        patch: impl IntoValid<WorkspacePatch>,
    ) -> Result<Workspace, Error> {
        let user_id = caller.user_id()?;
        let patch = patch.into_valid()?;
        let operator = self.settings().operators.contains(user_id);
        if operator && patch.plan.is_some() && patch.name.is_none() {
            return self.settle(|| self.try_change_plan(user_id, workspace, &patch)).await;
        }
        self.settle(|| async {
            let access = self.membership(caller, workspace).await?;
            if patch.plan.is_some() && !operator {
                return Err(Error::new(
                    ErrorKind::Forbidden,
                    "only an operator of this deployment may change the plan",
                ));
            }
            access.require(Permission::WorkspaceManage)?;
            let access = if patch.plan.is_some() {
                access.acting_as(operator_actor(user_id))
            } else {
                access
            };
            self.try_update_workspace(&access, &patch).await
        })
        .await
    }

    async fn try_change_plan(
        &self,
        user_id: &str,
        id: WorkspaceId,
        patch: &WorkspacePatch,
    ) -> Result<Attempt<Workspace>, Error> {
        let key = schema::workspace(id);
        let record = self.store().get(std::slice::from_ref(&key)).await?.pop().flatten();
        let record = record.ok_or_else(|| super::not_found("workspace", &id.to_string()))?;
        let access = Access::without_membership(id, operator_actor(user_id), Check::Version(key, record.version));
        self.try_update_workspace(&access, patch).await
    }

    async fn try_update_workspace(&self, access: &Access, patch: &WorkspacePatch) -> Result<Attempt<Workspace>, Error> {
        let key = schema::workspace(access.workspace());
        let record = self.store().get(std::slice::from_ref(&key)).await?.pop().flatten();
        let record = record.ok_or_else(|| super::not_found("workspace", &access.workspace().to_string()))?;
        let before: Workspace = schema::decode(&key, &record)?;
        let now = self.now().max(before.updated_at.plus_millis(1));
        let after = Workspace {
            name: patch.name.clone().unwrap_or_else(|| before.name.clone()),
            plan: patch.plan.unwrap_or(before.plan),
            updated_at: now,
            ..before.clone()
        };
        let id = after.id.to_string();
        let change = Change::new(access, now, Action::WorkspaceUpdated, TargetType::Workspace, id)
            .check(Check::Version(key.clone(), record.version))
            .replace(key, Some(&before), &after)?;
        Ok(match self.apply(change).await? {
            Applied::Done(_) => Attempt::Done(after),
            Applied::Raced | Applied::Limit => Attempt::Raced,
        })
    }
}

fn operator_actor(user_id: &str) -> Actor {
    Actor {
        kind: ActorType::Operator,
        id: user_id.to_owned(),
    }
}
