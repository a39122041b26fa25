//! API keys: every reader may list them; only sessions may create, rotate and revoke them.

use agentcfg_core::model::{ApiKey, ApiKeyId, CreatedApiKey, IdRef, NewApiKey, RotateApiKey, WorkspaceId};

use crate::request::Call;
use crate::response::ApiResponse;
use crate::{Client, Error};

const API_KEYS: &str = "/api/api-keys";
const ROTATE: &str = "/api/api-keys/rotate";

impl Client {
    /// Lists the API keys of a workspace without their secrets, in the order of creation. Revoked
    /// and expired keys are included.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `api_keys:read` in the workspace.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// for key in client.list_api_keys(workspace).await? {
    ///     println!("{}: last used {:?}", key.name, key.last_used_at);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_api_keys(&self, workspace: WorkspaceId) -> Result<Vec<ApiKey>, Error> {
        let call = Call::get(API_KEYS).query("workspace_id", workspace);
        self.send(call, ApiResponse::json).await
    }

    /// Creates an API key. Only this response contains its plaintext.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for a field out of its bounds or an expiry in the past,
    /// [`is_forbidden`](Error::is_forbidden) without `api_keys:manage`, which no API key has.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::{Environment, NewApiKey, Scope};
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let created = client
    ///     .create_api_key(&NewApiKey::new(workspace, "CI", Environment::Production, Scope::Write).rate_limit(600))
    ///     .await?;
    /// let for_the_pipeline = client.with_api_key(&created.key)?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_api_key(&self, new: &NewApiKey) -> Result<CreatedApiKey, Error> {
        self.send(Call::post(API_KEYS).json(new), ApiResponse::json).await
    }

    /// Replaces an API key by a new one with the same name, environment, scope and limit. Only this response contains
    /// the plaintext of the new key. The old one ends after the overlap.
    ///
    /// # Errors
    ///
    /// [`is_not_found`](Error::is_not_found) for a key that is unknown, or of a workspace that the user is no member
    /// of; [`is_conflict`](Error::is_conflict) for a key that has ended; [`is_forbidden`](Error::is_forbidden) without
    /// `api_keys:manage`.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::RotateApiKey;
    /// let an_hour = RotateApiKey::default().overlap_seconds(3600);
    /// let created = client.rotate_api_key("4fQ8mZr2LkV7xN0bTy6W", &an_hour).await?;
    /// let for_the_pipeline = client.with_api_key(&created.key)?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn rotate_api_key(
        &self,
        key_id: impl Into<IdRef<'_, ApiKeyId>>,
        rotate: &RotateApiKey,
    ) -> Result<CreatedApiKey, Error> {
        let call = Call::post(ROTATE).query("key_id", key_id.into().as_str());
        self.send(call.json(rotate), ApiResponse::json).await
    }

    /// Revokes an API key: the server refuses the next request with it.
    ///
    /// # Errors
    ///
    /// [`is_not_found`](Error::is_not_found) for a key that is unknown, revoked already, or of a
    /// workspace that the user is no member of; [`is_forbidden`](Error::is_forbidden) without
    /// `api_keys:manage`.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// client.revoke_api_key("4fQ8mZr2LkV7xN0bTy6W").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn revoke_api_key(&self, key_id: impl Into<IdRef<'_, ApiKeyId>>) -> Result<(), Error> {
        let call = Call::delete(API_KEYS).query("key_id", key_id.into().as_str());
        self.send(call, ApiResponse::success).await
    }
}
