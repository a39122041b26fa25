//! Observability: logs on standard error, metrics on an address of their own.

mod access;
mod endpoint;
mod log_stream;
mod metrics;
mod model_calls;
mod parts;
mod process;
mod register;
mod spans;
mod text_format;

use std::io::{IsTerminal, stderr};

use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, reload};

pub use access::AccessLog;
pub use endpoint::serve_metrics;
pub use metrics::{Metrics, StoreNumbers};
pub use spans::SpanExport;

use self::log_stream::LogStream;
use crate::process::config::{Config, LogFormat};

/// Why logging cannot start.
#[derive(Debug, thiserror::Error)]
#[error("cannot start logging: {0}")]
pub struct TelemetryError(String);

/// Changes the filter of the log while the server runs.
pub struct LogFilter(Box<dyn Fn(EnvFilter) -> Result<(), TelemetryError> + Send>);

impl LogFilter {
    /// Takes the filter of these settings.
    ///
    /// # Errors
    ///
    /// When it is not valid.
    pub fn apply(&self, config: &Config) -> Result<(), TelemetryError> {
        (self.0)(filter(config)?)
    }
}

/// Installs the process-wide subscriber, and logs what is doubtful in the configuration. Only the binary calls this,
/// once.
///
/// # Errors
///
/// When the filter is not valid, or a subscriber is already installed.
pub fn init(config: &Config) -> Result<LogFilter, TelemetryError> {
    fn reloading<S: Send + Sync + 'static>(handle: reload::Handle<EnvFilter, S>) -> LogFilter {
        let failed = |error: reload::Error| TelemetryError(error.to_string());
        LogFilter(Box::new(move |filter| handle.reload(filter).map_err(failed)))
    }
    let stream = LogStream::of(config.log_format).map_err(|error| TelemetryError(error.to_string()))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter(config)?)
        .with_writer(stream)
        // It would panic where the stream takes nothing.
        .log_internal_errors(false);
    let (filter, installed) = match config.log_format {
        LogFormat::Text => {
            let builder = builder.with_ansi(colours()).with_filter_reloading();
            (reloading(builder.reload_handle()), builder.finish().try_init())
        }
        LogFormat::Json => {
            let builder = builder.json().flatten_event(true).with_filter_reloading();
            (reloading(builder.reload_handle()), builder.finish().try_init())
        }
    };
    installed.map_err(|error| TelemetryError(error.to_string()))?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    Ok(filter)
}

/// Checks the filter of the log.
///
/// # Errors
///
/// When it is not valid.
pub fn check(config: &Config) -> Result<(), TelemetryError> {
    filter(config).map(drop)
}

fn filter(config: &Config) -> Result<EnvFilter, TelemetryError> {
    let failed = |error: &dyn std::fmt::Display| TelemetryError(error.to_string());
    let filter = EnvFilter::try_new(&config.log).map_err(|error| failed(&error))?;
    // The access log has a setting of its own, which is independent of the level of other logs.
    let level = if config.access_log { "info" } else { "off" };
    let directive = format!("{}={level}", access::TARGET).parse();
    Ok(filter.add_directive(directive.map_err(|error| failed(&error))?))
}

/// Whether log lines have colours: on a terminal, unless `NO_COLOR` is set.
fn colours() -> bool {
    stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
