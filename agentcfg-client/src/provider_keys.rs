//! Provider keys: a workspace's own credentials for the calls of its agents.

use agentcfg_core::model::{Provider, ProviderKeyInfo, ProviderKeyTest, WorkspaceId};
use agentcfg_core::secret::ProviderCredential;
use serde::Serialize;

use crate::request::Call;
use crate::response::ApiResponse;
use crate::{Client, Error};

const TEST: &str = "/api/provider-keys/test";
const PROVIDER_KEYS: &str = "/api/provider-keys";

/// The body that saves a key.
#[derive(Serialize)]
struct NewProviderKey<'a> {
    api_key: &'a str,
}

impl Client {
    /// Lists the providers for which the workspace has saved a key, without the keys.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `settings:read` in the workspace.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// for key in client.list_provider_keys(workspace).await? {
    ///     println!("{}: replaced at {}", key.provider, key.updated_at);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_provider_keys(&self, workspace: WorkspaceId) -> Result<Vec<ProviderKeyInfo>, Error> {
        let call = Call::get(PROVIDER_KEYS).query("workspace_id", workspace);
        self.send(call, ApiResponse::json).await
    }

    /// Saves the workspace's own key for a provider and replaces an earlier one. No endpoint returns it.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `provider_keys:manage`, which no API key has, or on a plan without
    /// own keys; [`is_unavailable`](Error::is_unavailable) when the server has no master key to seal it with.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::ProviderCredential;
    /// use agentcfg_client::model::Provider;
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let key = ProviderCredential::new(std::env::var("OPENAI_API_KEY")?)?;
    /// client.save_provider_key(workspace, Provider::OPENAI, &key).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn save_provider_key(
        &self,
        workspace: WorkspaceId,
        provider: Provider,
        credential: &ProviderCredential,
    ) -> Result<ProviderKeyInfo, Error> {
        let api_key = credential.expose();
        let call = provider_key(Call::put(PROVIDER_KEYS), workspace, provider).json(&NewProviderKey { api_key });
        self.send(call, ApiResponse::json).await
    }

    /// Tests the workspace's own key for a provider: the provider is asked for its list of models.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `provider_keys:manage`, [`is_not_found`](Error::is_not_found) when
    /// there is no such key. A provider that refuses the key, or does not answer, is no error.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// use agentcfg_client::model::Provider;
    /// let test = client.test_provider_key(workspace, Provider::OPENAI).await?;
    /// println!("{}", test.message);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn test_provider_key(
        &self,
        workspace: WorkspaceId,
        provider: Provider,
    ) -> Result<ProviderKeyTest, Error> {
        let call = provider_key(Call::post(TEST), workspace, provider);
        self.send(call, ApiResponse::json).await
    }

    /// Deletes the workspace's own key for a provider: the next call uses the managed credential, if there is one.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `provider_keys:manage`,
    /// [`is_not_found`](Error::is_not_found) when there is no such key.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// use agentcfg_client::model::Provider;
    /// client.delete_provider_key(workspace, Provider::OPENAI).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_provider_key(&self, workspace: WorkspaceId, provider: Provider) -> Result<(), Error> {
        let call = provider_key(Call::delete(PROVIDER_KEYS), workspace, provider);
        self.send(call, ApiResponse::success).await
    }
}

fn provider_key(call: Call, workspace: WorkspaceId, provider: Provider) -> Call {
    call.query("workspace_id", workspace).query("provider", provider)
}
