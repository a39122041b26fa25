//! Observability: logs on standard error, metrics on an address of their own.

mod endpoint;
mod metrics;

use std::io::{IsTerminal, stderr};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

pub use endpoint::serve_metrics;
pub use metrics::{Metrics, StoreNumbers};

use crate::process::config::LogFormat;

/// Why logging cannot start.
#[derive(Debug, thiserror::Error)]
#[error("cannot start logging: {0}")]
pub struct TelemetryError(String);

/// Installs the process-wide subscriber. Only the binary calls this, once.
///
/// # Errors
///
/// When the filter is not valid, or a subscriber is already installed.
pub fn init(filter: &str, format: LogFormat) -> Result<(), TelemetryError> {
    let filter = EnvFilter::try_new(filter).map_err(|error| TelemetryError(error.to_string()))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr);
    match format {
        LogFormat::Text => builder.with_ansi(colours()).finish().try_init(),
        LogFormat::Json => builder.json().flatten_event(true).finish().try_init(),
    }
    .map_err(|error| TelemetryError(error.to_string()))
}

/// Whether log lines have colours: on a terminal, unless `NO_COLOR` is set.
fn colours() -> bool {
    stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
