//! Members of a workspace.

use agentcfg_core::model::{Member, Role, RoleChange, UserId, WorkspaceId};

use crate::request::Call;
use crate::response::ApiResponse;
use crate::{Client, Error};

const MEMBERS: &str = "/api/workspaces/members";

impl Client {
    /// Lists the members of a workspace in the order in which they joined.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `users:read` in the workspace.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// for member in client.list_members(workspace).await? {
    ///     println!("{} is {}", member.user_id, member.role);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_members(&self, workspace: WorkspaceId) -> Result<Vec<Member>, Error> {
        let call = Call::get(MEMBERS).query("workspace_id", workspace);
        self.send(call, ApiResponse::json).await
    }

    /// Sets the role of a user in a workspace, and adds users who are not yet members.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for the user's identifier,
    /// [`is_forbidden`](Error::is_forbidden) without `members:manage`, or when a caller who is no
    /// owner grants or withdraws the role `owner`, [`is_conflict`](Error::is_conflict) when no owner would be left.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::Role;
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// client.set_member(workspace, &"grace@example.com".parse()?, Role::Member).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_member(&self, workspace: WorkspaceId, user_id: &UserId, role: Role) -> Result<Member, Error> {
        let call = member(Call::put(MEMBERS), workspace, user_id);
        self.send(call.json(&RoleChange::new(role)), ApiResponse::json).await
    }

    /// Removes a member. Members may remove themselves.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `members:manage`, or when a caller who is no
    /// owner removes an owner, [`is_not_found`](Error::is_not_found) when the user is no member,
    /// [`is_conflict`](Error::is_conflict) for the last owner.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// client.remove_member(workspace, &"grace@example.com".parse()?).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove_member(&self, workspace: WorkspaceId, user_id: &UserId) -> Result<(), Error> {
        let call = member(Call::delete(MEMBERS), workspace, user_id);
        self.send(call, ApiResponse::success).await
    }
}

fn member(call: Call, workspace: WorkspaceId, user_id: &UserId) -> Call {
    call.query("workspace_id", workspace).query("user_id", user_id)
}
