//! The models that a workspace can call.

use agentcfg_core::model::{ModelInfo, WorkspaceId};

use crate::request::Call;
use crate::response::ApiResponse;
use crate::{Client, Error};

const MODELS: &str = "/api/models";

impl Client {
    /// Lists the models of the catalogue, each with the credential that the workspace's next call would use.
    ///
    /// This client does not make the calls themselves. Use the provider's own SDK with the base URL
    /// `{server}/api/agents/model-calls/{provider}`.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `agents:read` in the workspace.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::CredentialSource;
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// for model in client.list_models(workspace).await? {
    ///     if model.credential != CredentialSource::None {
    ///         println!("{} of {}", model.id, model.provider);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_models(&self, workspace: WorkspaceId) -> Result<Vec<ModelInfo>, Error> {
        let call = Call::get(MODELS).query("workspace_id", workspace);
        self.send(call, ApiResponse::json).await
    }
}
