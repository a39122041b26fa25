//! What operators of the deployment may do in all workspaces. These calls need the session token of an operator.

use agentcfg_core::model::{ApiKey, ApiKeyId, IdRef, UserId, Workspace};

use crate::request::Call;
use crate::response::ApiResponse;
use crate::{Client, Error};

const WORKSPACES: &str = "/api/operator/workspaces";
const API_KEYS: &str = "/api/operator/api-keys";
const USERS: &str = "/api/operator/users";

impl Client {
    /// Lists all workspaces of the deployment in the order of their creation.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) for callers who are no operators.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// for workspace in client.list_all_workspaces().await? {
    ///     println!("{} has the plan {}", workspace.name, workspace.plan);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_all_workspaces(&self) -> Result<Vec<Workspace>, Error> {
        self.send(Call::get(WORKSPACES), ApiResponse::json).await
    }

    /// Reads an API key of any workspace, without its secret.
    ///
    /// # Errors
    ///
    /// [`is_not_found`](Error::is_not_found) for an unknown key, [`is_forbidden`](Error::is_forbidden) for callers who
    /// are no operators.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let key = client.find_api_key("4fQ8mZr2LkV7xN0bTy6W").await?;
    /// println!("{} opens the workspace {}", key.name, key.workspace_id);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn find_api_key(&self, key_id: impl Into<IdRef<'_, ApiKeyId>>) -> Result<ApiKey, Error> {
        let call = Call::get(API_KEYS).query("key_id", key_id.into().as_str());
        self.send(call, ApiResponse::json).await
    }

    /// Revokes an API key of any workspace: the server refuses the next request with it.
    ///
    /// # Errors
    ///
    /// [`is_not_found`](Error::is_not_found) for a key that is unknown or revoked already,
    /// [`is_forbidden`](Error::is_forbidden) for callers who are no operators.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// client.revoke_any_api_key("4fQ8mZr2LkV7xN0bTy6W").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn revoke_any_api_key(&self, key_id: impl Into<IdRef<'_, ApiKeyId>>) -> Result<(), Error> {
        let call = Call::delete(API_KEYS).query("key_id", key_id.into().as_str());
        self.send(call, ApiResponse::success).await
    }

    /// Removes a user from all workspaces, and ends the user's browser sessions. From then on workspaces refuse the
    /// user's tokens until an owner makes the user a member again, and the user can create no workspace.
    ///
    /// # Errors
    ///
    /// [`is_not_found`](Error::is_not_found) for an unknown user, [`is_conflict`](Error::is_conflict) for the last
    /// owner of a workspace, which the message names; [`is_forbidden`](Error::is_forbidden) for callers who are no
    /// operators.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// client.remove_user(&"grace@example.com".parse()?).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove_user(&self, user_id: &UserId) -> Result<(), Error> {
        self.send(Call::delete(USERS).query("user_id", user_id), ApiResponse::success)
            .await
    }
}
