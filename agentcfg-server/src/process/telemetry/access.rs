//! The access log: a line for each answer.

use std::time::Duration;

use crate::api::{Answered, Observer};

/// The name of the access log in log filters.
pub(super) const TARGET: &str = "access";

/// The paths that load balancers ask for every few seconds. Neither log nor spans have them, which would hide those of
/// callers.
pub(super) const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// Logs each answer but those to probes: the request, its caller and its result. A line has the template of the path
/// and no query, because paths and queries may contain what does not belong into a log. The answer of a stream is
/// logged when it begins.
#[derive(Debug)]
pub struct AccessLog;

impl Observer for AccessLog {
    fn wants_caller(&self) -> bool {
        true
    }

    fn answered(&self, answered: &Answered<'_>) {
        if PROBES.contains(&answered.route) {
            return;
        }
        tracing::info!(
            target: TARGET,
            method = %answered.method,
            route = answered.route,
            status = answered.status,
            duration_ms = milliseconds(answered.took),
            request_id = answered.request_id,
            caller = answered.caller,
            refused_key = answered.refused_key,
            client = answered.client.map(tracing::field::display),
            bytes = answered.bytes,
            "answered"
        );
    }
}

/// With three digits after the point.
fn milliseconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 1_000_000.0).round() / 1000.0
}
