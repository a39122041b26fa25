//! Who the caller is.

use super::entry::{CallerKind, unauthorized};
use super::records;
use super::{AgentCfg, Caller, no_member};
use crate::error::Error;
use crate::model::{CallerType, CallerWorkspace, PermissionSet, Role, Scope, WhoAmI, Workspace};

impl AgentCfg {
    /// Says who the caller is, and what it may do in which workspace.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unauthorized`](crate::ErrorKind::Unauthorized) for an API key that was revoked or has expired; else
    /// when storage fails.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// use agentcfg_core::model::Role;
    /// let me = service.whoami(&ada).await?;
    /// assert_eq!(me.workspaces[0].role, Some(Role::Owner));
    /// # Ok(()) }) }
    /// ```
    pub async fn whoami(&self, caller: &Caller) -> Result<WhoAmI, Error> {
        match &caller.kind {
            CallerKind::ApiKey(key) => {
                let access = self.access_of_key(key).await?;
                let id = access.workspace();
                let key = records::api_key(key.id.as_str());
                let query = (key, records::workspace(id), records::active_agents(id));
                let (record, workspace, active_agents) = self.read(query).await?;
                let record = record.ok_or_else(unauthorized)?.value;
                let workspace = workspace.ok_or_else(no_member)?.value;
                let scope = Some(record.scope);
                let workspace = self.caller_workspace(workspace, None, scope, access.permissions(), active_agents);
                Ok(WhoAmI {
                    kind: CallerType::ApiKey,
                    id: record.id.as_str().to_owned(),
                    expires_at: record.expires_at,
                    workspaces: vec![workspace],
                })
            }
            CallerKind::User { user_id, session } => {
                let found = self.workspaces_of(user_id, &session.groups).await?.into_iter();
                let workspaces = found.map(|(view, active_agents)| {
                    let permissions = view.role.map(Role::permissions).unwrap_or_default();
                    self.caller_workspace(view.workspace, view.role, None, permissions, active_agents)
                });
                Ok(WhoAmI {
                    kind: CallerType::User,
                    id: user_id.to_string(),
                    expires_at: session.expires_at,
                    workspaces: workspaces.collect(),
                })
            }
        }
    }

    fn caller_workspace(
        &self,
        workspace: Workspace,
        role: Option<Role>,
        scope: Option<Scope>,
        permissions: PermissionSet,
        active_agents: u64,
    ) -> CallerWorkspace {
        CallerWorkspace {
            id: workspace.id,
            name: workspace.name,
            plan: workspace.plan,
            role,
            scope,
            permissions: permissions.iter().collect(),
            active_agents,
            agent_limit: self.agent_limit(workspace.plan),
            limits: self.limits(),
        }
    }
}
