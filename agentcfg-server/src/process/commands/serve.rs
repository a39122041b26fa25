//! `serve`: the server in production.

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use agentcfg_core::AgentCfg;
use agentcfg_core::sync::lock;

use super::error::CommandError;
use super::program::program;
use super::runtime::runtime;
use super::stdout::{note, say};
use crate::process::cli::ServeArgs;
use crate::process::config::{Config, Flags, LogFormat};
use crate::process::parts::settings;
use crate::process::server::{self, Server};
use crate::process::service_manager::ServiceManager;
use crate::process::telemetry::LogFilter;
use crate::process::{signals, telemetry};

pub(super) fn run(args: &ServeArgs) -> Result<ExitCode, CommandError> {
    let config = Config::load(Flags::from(args), std::env::vars_os())?;
    let filter = telemetry::init(&config)?;
    let log_format = config.log_format;
    let reload = Arc::new(Reload {
        flags: Flags::from(args),
        state: Mutex::new(ReloadState {
            filter,
            service: None,
            is_asked: false,
        }),
    });
    let asked = {
        let reload = Arc::clone(&reload);
        move || reload.ask()
    };
    let ended = runtime()?.block_on(async {
        let listener = server::bind(config.listen, "--listen").await?;
        let mut shutdown = Box::pin(signals::shutdown()?);
        let others = tokio::spawn(signals::others(asked)?);
        let manager = Arc::new(ServiceManager::from_env(|name| std::env::var_os(name)));
        let living = tokio::spawn({
            let manager = Arc::clone(&manager);
            async move { manager.keep_alive().await }
        });
        manager.opening(config.database_wait);
        // In a task of its own, because the recovery of a long file does not pause.
        let mut opening = tokio::spawn(Server::open(config));
        let opened = tokio::select! {
            opened = &mut opening => opened,
            () = &mut shutdown => {
                opening.abort();
                opening.await
            }
        };
        let server = match opened {
            Ok(opened) => opened?,
            Err(stopped) if stopped.is_cancelled() => {
                tracing::info!("stopped before the server was ready");
                return Ok(ExitCode::SUCCESS);
            }
            Err(failed) => std::panic::resume_unwind(failed.into_panic()),
        };
        match server.dir() {
            Some(dir) if server.is_new() => introduce(&server, dir.path()),
            Some(dir) => tracing::info!(data = %dir.path().display(), "using the data directory"),
            None => tracing::info!("using the database"),
        }
        let (service, address) = (server.service().clone(), listener.local_addr()?);
        reload.started(&service);
        let timeout = server.config().shutdown_delay + server.config().shutdown_timeout;
        let url = format!("{}://{address}", server.config().scheme());
        let ready = |_| {
            announce(&url);
            manager.ready(&url);
        };
        let shutdown = async {
            tokio::select! {
                () = shutdown => {}
                never = manager.follow_storage(service, &url) => match never {}
            }
            manager.stopping(timeout);
        };
        server.run(listener, ready, shutdown).await?;
        living.abort();
        others.abort();
        Ok(ExitCode::SUCCESS)
    });
    match (ended, log_format) {
        // Each line of the log is JSON then.
        (Err(error), LogFormat::Json) => {
            let error = CommandError::to_string(&error);
            tracing::error!(error, "agentcfg-server has ended");
            Ok(ExitCode::FAILURE)
        }
        (ended, _) => ended,
    }
}

/// Reads the settings again on SIGHUP.
struct Reload {
    flags: Flags,
    state: Mutex<ReloadState>,
}

struct ReloadState {
    filter: LogFilter,
    /// `None` until the server has started.
    service: Option<AgentCfg>,
    /// Whether a signal came before that.
    is_asked: bool,
}

impl Reload {
    /// A signal has come. A start has read the settings already, so they are read again when it has ended.
    fn ask(&self) {
        let mut state = lock(&self.state);
        match &state.service {
            Some(service) => reload(&self.flags, &state.filter, service),
            None => {
                state.is_asked = true;
                tracing::info!("the settings are read again when the server has started");
            }
        }
    }

    /// The server has started.
    fn started(&self, service: &AgentCfg) {
        let mut state = lock(&self.state);
        if state.is_asked {
            reload(&self.flags, &state.filter, service);
        }
        state.service = Some(service.clone());
    }
}

/// Reads the settings again, and takes the filter of the log, the limits and the models from them. Settings that cannot
/// be read change nothing.
fn reload(flags: &Flags, filter: &LogFilter, service: &AgentCfg) {
    match read_again(flags, filter, service) {
        Ok(config) => tracing::info!(
            log = config.log,
            "the settings were read again: log, the limits of plans, sessions and workspaces, and the models with their prices are \
             taken, others at the next start; certificates are read when their files change"
        ),
        Err(error) => tracing::error!(error, "the settings could not be read again, the old ones stay"),
    }
}

fn read_again(flags: &Flags, filter: &LogFilter, service: &AgentCfg) -> Result<Config, String> {
    let config = Config::load(flags.clone(), std::env::vars_os()).map_err(|error| error.to_string())?;
    let models = config.catalogue().map_err(|error| error.to_string())?;
    let new_provider = "a provider that is not in use yet needs a restart";
    service
        .set_models(&models)
        .map_err(|error| format!("{error}; {new_provider}"))?;
    service
        .set_limits(&settings(&config))
        .map_err(|error| error.to_string())?;
    filter.apply(&config).map_err(|error| error.to_string())?;
    Ok(config)
}

/// Prints the line that says that the server is ready, the only one on standard output.
pub(super) fn announce(url: &str) {
    // The parent process may have closed the pipe, which does not stop the server.
    say!("listening on {url}");
}

/// Prints hints at the first start.
fn introduce(server: &Server, data: &Path) {
    let data = std::fs::canonicalize(data).unwrap_or_else(|_| data.to_owned());
    let (data, program) = (data.display(), program());
    let (holds, token) = match server.sessions() {
        Some(_) if server.config().session_secret.is_some() => (
            "the store and the master key of saved provider keys",
            format!("{program} token --user YOUR_ID with the same session_secret\nprints a session token"),
        ),
        Some(_) => (
            "the store, the secret of the session tokens and the master key of saved provider keys",
            format!("{program} token --user YOUR_ID --data {data}\nprints a session token"),
        ),
        None => (
            "the store and the master key of saved provider keys",
            "get a session token from the identity provider".to_owned(),
        ),
    };
    if server.config().log_format == LogFormat::Json {
        let next = token.replace('\n', " ");
        tracing::info!(%data, holds, next, "made a new data directory; backups do not contain master.key: keep a copy of it");
        return;
    }
    note!(
        "Made a new data directory: {data}\n\
         It holds {holds}; only their owner can read these files.\n\
         Backups do not contain master.key: keep a copy of it.\n\
         Next: {token}; POST /api/workspaces with it makes the first workspace.\n\
         Back up with: {program} backup --data {data} --out FILE\n\
         Stop with Ctrl-C or SIGTERM."
    );
}
