//! Health checks: whether the server is up and ready.

use crate::request::Call;
use crate::{Client, Error, RetryPolicy};

impl Client {
    /// Succeeds when the server's process is up. Makes one attempt and needs no credential.
    ///
    /// # Errors
    ///
    /// When no successful response arrives.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// client.healthy().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn healthy(&self) -> Result<(), Error> {
        self.probe("/healthz").await
    }

    /// Succeeds when the server can reach its storage. Makes one attempt and needs no credential.
    ///
    /// It also succeeds while the server serves reads and refuses changes, such as on a full disk.
    ///
    /// # Errors
    ///
    /// [`is_unavailable`](Error::is_unavailable) when the server is up but not ready.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// match client.ready().await {
    ///     Ok(()) => println!("ready"),
    ///     Err(error) if error.is_unavailable() => println!("up, but not ready: {}", error.message()),
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ready(&self) -> Result<(), Error> {
        self.probe("/readyz").await
    }

    async fn probe(&self, path: &'static str) -> Result<(), Error> {
        self.send_with(&RetryPolicy::NEVER, Call::get(path), |_| Ok(())).await
    }
}
