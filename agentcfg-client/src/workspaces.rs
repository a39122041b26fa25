//! Workspaces.

use agentcfg_core::model::{NewWorkspace, Workspace, WorkspaceId, WorkspacePatch, WorkspaceView};

use crate::request::Call;
use crate::response::ApiResponse;
use crate::{Client, Error};

const WORKSPACES: &str = "/api/workspaces";

impl Client {
    /// Lists the workspaces of the session's user with the role in each, in the order of creation.
    /// An API key gets its own workspace, without a role.
    ///
    /// # Errors
    ///
    /// [`is_unauthorized`](Error::is_unauthorized) for a bad credential.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// for view in client.list_workspaces().await? {
    ///     println!("{}: {:?}", view.workspace.name, view.role);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_workspaces(&self) -> Result<Vec<WorkspaceView>, Error> {
        self.send(Call::get(WORKSPACES), ApiResponse::json).await
    }

    /// Creates a workspace; the session's user becomes its owner.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for the name, [`is_forbidden`](Error::is_forbidden) for an
    /// API key.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), agentcfg_client::Error> {
    /// use agentcfg_client::model::NewWorkspace;
    /// let studio = client.create_workspace(&NewWorkspace::new("Studio")).await?;
    /// println!("{} on the plan {}", studio.id, studio.plan);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_workspace(&self, new: &NewWorkspace) -> Result<Workspace, Error> {
        self.send(Call::post(WORKSPACES).json(new), ApiResponse::json).await
    }

    /// Renames a workspace, which needs `workspace:manage`, or changes its plan, which needs an
    /// operator.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for the name, [`is_forbidden`](Error::is_forbidden) without
    /// the right, [`is_not_found`](Error::is_not_found) when an operator names an unknown workspace.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// use agentcfg_client::model::WorkspacePatch;
    /// let rename = WorkspacePatch::default().name("Studio South");
    /// let studio = client.update_workspace(workspace, &rename).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update_workspace(&self, workspace: WorkspaceId, patch: &WorkspacePatch) -> Result<Workspace, Error> {
        let call = Call::patch(WORKSPACES).query("workspace_id", workspace);
        self.send(call.json(patch), ApiResponse::json).await
    }

    /// Deletes a workspace with all that it holds, for good. `confirm` is its exact name.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for another name, [`is_forbidden`](Error::is_forbidden) for everyone but an
    /// owner.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// client.delete_workspace(workspace, "Studio North").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_workspace(&self, workspace: WorkspaceId, confirm: &str) -> Result<(), Error> {
        let call = Call::delete(WORKSPACES).query("workspace_id", workspace);
        self.send(call.query("confirm", confirm), ApiResponse::success).await
    }
}
