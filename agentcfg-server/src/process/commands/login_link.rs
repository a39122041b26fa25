//! `login-link`: a link that signs a user in to the dashboard once.

use std::process::ExitCode;

use agentcfg_core::AgentCfg;
use agentcfg_core::model::UserId;

use super::error::CommandError;
use super::preconditions::{require_local_provider, require_user};
use super::runtime::runtime;
use super::stdout::{self, note};
use crate::process::backend::{DatabaseLocation, connect, open_store};
use crate::process::cli::LoginLinkArgs;
use crate::process::config::{Config, Flags};
use crate::process::control::{self, Order};
use crate::process::datadir::{DataDir, DataDirError};

pub(super) fn run(args: &LoginLinkArgs) -> Result<ExitCode, CommandError> {
    let config = Config::load(Flags::from(args), std::env::vars_os())?;
    require_local_provider(&config, "login-link")?;
    require_user(&args.user)?;
    let user: UserId = args.user.parse()?;
    if let Some(location) = DatabaseLocation::of(&config) {
        return runtime()?.block_on(async {
            let database = connect(&config, &location).await?;
            let service = AgentCfg::builder(database.store()).build();
            let printed = print(&service, &config, &user).await;
            database.close().await;
            printed
        });
    }
    let dir = DataDir::open(&config.data)?;
    dir.require_store()?;
    match dir.lock() {
        Ok(lock) => {
            let service = AgentCfg::builder(open_store(&lock, config.cache_mb)?).build();
            note!(
                "note: no server runs on {}; the link is for one that is started within 5 minutes",
                dir.path().display()
            );
            runtime()?.block_on(print(&service, &config, &user))
        }
        // A running server has the store open.
        Err(DataDirError::Locked { path, holder }) => {
            let order = Order::LoginLink { user };
            control::request(&dir, &order, &mut std::io::stdout())
                .map_err(|error| format!("{} is in use by {holder}, and it made no link: {error}", path.display()))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(error.into()),
    }
}

async fn print(service: &AgentCfg, config: &Config, user: &UserId) -> Result<ExitCode, CommandError> {
    let login = service.make_login_code(user).await?;
    stdout::print(&format!("{}\n", config.login_link(config.listen, &login.code)))?;
    Ok(ExitCode::SUCCESS)
}
