//! The identity of the client.

use agentcfg_core::model::WhoAmI;

use crate::request::Call;
use crate::response::ApiResponse;
use crate::{Client, Error};

impl Client {
    /// Says whom the credential belongs to, when it ends, and what it may do in which workspace.
    ///
    /// # Errors
    ///
    /// [`is_unauthorized`](Error::is_unauthorized) for a bad credential.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), agentcfg_client::Error> {
    /// let me = client.whoami().await?;
    /// for workspace in me.workspaces {
    ///     println!("{}: {:?}", workspace.name, workspace.permissions);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn whoami(&self) -> Result<WhoAmI, Error> {
        self.send(Call::get("/api/whoami"), ApiResponse::json).await
    }
}
