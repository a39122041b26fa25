//! Who the caller is.

use super::entry::{Kind as CallerKind, unauthorized};
use super::records;
use super::{AgentCfg, Caller, no_member};
use crate::error::{Error, ErrorKind};
use crate::model::{CallerType, CallerWorkspace, PermissionSet, Role, Scope, WhoAmI, WorkspaceId};

impl AgentCfg {
    /// Says who the caller is, and what it may do in which workspace. (Decisions, chapter 17.)
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unauthorized`] for an API key that was revoked or has expired; else when storage fails.
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
                let record = self.read(records::api_key(key.id.as_str())).await?;
                let record = record.ok_or_else(unauthorized)?.value;
                let workspace = self
                    .caller_workspace(access.workspace(), None, Some(record.scope), access.permissions())
                    .await?;
                Ok(WhoAmI {
                    kind: CallerType::ApiKey,
                    id: record.id.as_str().to_owned(),
                    expires_at: record.expires_at,
                    workspaces: vec![workspace],
                })
            }
            CallerKind::User { user_id, session } => {
                let mut workspaces = Vec::new();
                for view in self.list_workspaces(caller).await? {
                    let Some(role) = view.role else { continue };
                    let found = self
                        .caller_workspace(view.workspace.id, Some(role), None, role.permissions())
                        .await;
                    match found {
                        Ok(workspace) => workspaces.push(workspace),
                        // It was removed since the list was read.
                        Err(error) if error.kind() == ErrorKind::Forbidden => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(WhoAmI {
                    kind: CallerType::User,
                    id: user_id.to_string(),
                    expires_at: session.expires_at,
                    workspaces,
                })
            }
        }
    }

    async fn caller_workspace(
        &self,
        id: WorkspaceId,
        role: Option<Role>,
        scope: Option<Scope>,
        permissions: PermissionSet,
    ) -> Result<CallerWorkspace, Error> {
        let (found, active_agents) = self.read((records::workspace(id), records::active_agents(id))).await?;
        let workspace = found.ok_or_else(no_member)?.value;
        Ok(CallerWorkspace {
            id,
            name: workspace.name,
            plan: workspace.plan,
            role,
            scope,
            permissions: permissions.iter().collect(),
            active_agents,
            agent_limit: self.agent_limit(workspace.plan),
        })
    }
}
