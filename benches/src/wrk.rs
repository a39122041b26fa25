//! The load generator wrk. It needs less processor time and cache than one in this crate, and so disturbs the
//! server less.

use std::io::Write;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use crate::Failure;
use crate::load::Outcome;

/// Requests a path over this many keep-alive connections, each of which repeats the request after the response.
pub fn run(address: SocketAddr, path: &str, key: &str, connections: usize, time: Duration) -> Result<Outcome, Failure> {
    start(address, path, connections, time, &["--header", &bearer(key)])
}

/// As [`run`], with `POST` and this body of JSON.
///
/// # Errors
///
/// If wrk does not run, or a connection breaks.
pub fn post(
    address: SocketAddr,
    path: &str,
    key: &str,
    body: &str,
    connections: usize,
    time: Duration,
) -> Result<Outcome, Failure> {
    let mut script = tempfile::NamedTempFile::new()?;
    write!(script, "wrk.method = 'POST'\nwrk.body = [==[{body}]==]")?;
    let script = script.path().to_string_lossy();
    let more = [
        "--script",
        &script,
        "--header",
        &bearer(key),
        "--header",
        "content-type: application/json",
    ];
    start(address, path, connections, time, &more)
}

fn bearer(key: &str) -> String {
    format!("authorization: Bearer {key}")
}

fn start(
    address: SocketAddr,
    path: &str,
    connections: usize,
    time: Duration,
    more: &[&str],
) -> Result<Outcome, Failure> {
    // wrk accepts whole seconds only.
    let seconds = time.as_secs_f64().ceil().max(1.0);
    let output = Command::new("wrk")
        .args(["--threads", "1", "--connections", &connections.to_string()])
        .args(["--duration", &format!("{seconds}s")])
        .args(more)
        .arg(format!("http://{address}{path}"))
        .output()
        .map_err(|error| format!("wrk is needed to generate the load, as in `apt-get install wrk`: {error}"))?;
    let report = String::from_utf8_lossy(&output.stdout);
    outcome(&report).ok_or_else(|| format!("wrk reported: {report}{}", String::from_utf8_lossy(&output.stderr)).into())
}

/// Reads `226304 requests in 2.00s, 711.82MB read` and the lines about errors.
fn outcome(report: &str) -> Option<Outcome> {
    let line = report.lines().find(|line| line.contains(" requests in "))?;
    let (requests, rest) = line.trim().split_once(" requests in ")?;
    let seconds: f64 = rest.split_once("s,")?.0.parse().ok()?;
    let all: u64 = requests.parse().ok()?;
    let refused = match report.split_once("Non-2xx or 3xx responses: ") {
        Some((_, rest)) => rest.lines().next()?.trim().parse().ok()?,
        None => 0,
    };
    let is_whole = !report.contains("Socket errors");
    is_whole.then(|| Outcome {
        answered: all - refused,
        refused,
        elapsed: Duration::from_secs_f64(seconds),
    })
}
