//! The examples are the other files of this directory, and what those that need a server share is here. The
//! documentation tests of this crate compile the code of the README and run it where possible.

use std::env;
use std::error::Error;

use agentcfg_client::Client;
use agentcfg_client::model::WorkspaceId;

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
pub struct Readme;

/// A variable of the environment.
///
/// # Errors
///
/// When it is not set.
pub fn setting(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("set {name}"))
}

/// The workspace that `WORKSPACE_ID` names, or that of the credential.
///
/// # Errors
///
/// When the variable holds no identifier, or the credential opens no workspace.
pub async fn workspace(client: &Client) -> Result<WorkspaceId, Box<dyn Error>> {
    if let Ok(id) = env::var("WORKSPACE_ID") {
        return Ok(id.parse()?);
    }
    let own = client.list_workspaces().await?;
    Ok(own.first().ok_or("the credential opens no workspace")?.workspace.id)
}
