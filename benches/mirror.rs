//! Mirrors of a label: the time from a promotion until each of them shows it. Some are those of the clients for Python
//! and TypeScript, in processes of their own.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agentcfg_benches::product::Product;
use agentcfg_benches::request::{body, send};
use agentcfg_benches::stats::{Series, rounds, seconds, setting};
use agentcfg_benches::streams::{self, PER_KEY};
use agentcfg_benches::{Failure, cargo, runtime};
use agentcfg_client::{Client, ReleasedMirror};
use tokio::task::LocalSet;

const AGENTS: usize = 33;
/// Mirrors of a process of Python or TypeScript.
const IN_PROCESS: usize = 50;
/// From one promotion to the next.
const STEP: Duration = Duration::from_millis(500);

/// The version that a mirror shows, and since when, in microseconds since 1970.
type Sight = (u64, u64);

fn main() -> Result<(), Failure> {
    streams::raise_open_files();
    let count: usize = setting("MIRRORS", 1000);
    let keys = count / PER_KEY;
    if keys <= 2 * IN_PROCESS / PER_KEY {
        return Err(format!("MIRRORS must be more than {}", 2 * IN_PROCESS).into());
    }
    let product = Product::build()?;
    let data = tempfile::tempdir()?;
    let server = product.serve(data.path())?;
    let url = format!("http://{}", server.address);
    let workspace = product.small_workspace(server.address)?;
    workspace.seed(server.address, AGENTS)?;
    let made = (0..keys).map(|_| product.key(server.address, &workspace.id));
    let keys = made.collect::<Result<Vec<_>, _>>()?;
    let releases = Releases {
        address: server.address,
        key: product.admin_key(server.address, &workspace.id)?,
        workspace: workspace.id,
    };
    releases.promote()?;

    let python = cargo::root().join("target/python/bin/python");
    let of_process = IN_PROCESS / PER_KEY;
    let mut of_python = Command::new(python);
    of_python
        .arg(cargo::root().join("benches/mirror/mirrors.py"))
        .env("PYTHONPATH", cargo::root().join("clients/python/src"));
    let mut of_typescript = Command::new("node");
    of_typescript.arg(cargo::root().join("benches/mirror/mirrors.mjs"));
    let workspace = releases.workspace.as_str();
    let python = Mirrors::start(&mut of_python, &url, workspace, &keys[..of_process])?;
    let typescript = Mirrors::start(&mut of_typescript, &url, workspace, &keys[of_process..2 * of_process])?;

    let runtime = runtime()?;
    let local = LocalSet::new();
    let seen: Rc<RefCell<Vec<Sight>>> = Rc::default();
    runtime.block_on(local.run_until(follow(&url, workspace, &keys[2 * of_process..], &seen)))?;

    println!(
        "| mirrors | number | p50, ms | p99, ms | the last one, ms | answer to the promotion, p50, ms | CPU of the server, ms a promotion |"
    );
    println!("|---|---|---|---|---|---|---|");
    let kinds = [
        ("all", keys.len() * PER_KEY),
        ("Rust", keys.len() * PER_KEY - 2 * IN_PROCESS),
        ("Python", IN_PROCESS),
        ("TypeScript", IN_PROCESS),
    ];
    let mut figures: [[Series; 3]; 4] = Default::default();
    let (mut answers, mut cpus) = (Series::new(), Series::new());
    for _ in 0..rounds(3) {
        let cpu = server.cpu_seconds();
        let (send, done) = tokio::sync::oneshot::channel();
        let releases = releases.clone();
        thread::spawn(move || send.send(releases.run(Duration::from_secs_f64(seconds(10.0)))));
        let promotions = runtime.block_on(local.run_until(async {
            let promotions = done.await.map_err(|_| "the promotions were not made")??;
            tokio::time::sleep(2 * STEP).await;
            Ok::<_, Failure>(promotions)
        }))?;
        cpus.push((server.cpu_seconds() - cpu) * 1e3 / promotions.len() as f64);
        let mut of_answers: Vec<u64> = promotions.iter().map(|promotion| promotion.answer).collect();
        answers.push(at(&mut of_answers, 0.5));
        let sights = [seen.take(), python.seen(), typescript.seen()];
        let of_kind = sights.map(|sights| latencies(&sights, &promotions));
        let all = of_kind.concat();
        for (((_, number), series), mut found) in kinds.iter().zip(&mut figures).zip([all].into_iter().chain(of_kind)) {
            if found.len() != number * promotions.len() {
                return Err(format!("{} of {} releases were seen", found.len(), number * promotions.len()).into());
            }
            for (series, share) in series.iter_mut().zip([0.5, 0.99, 1.0]) {
                series.push(at(&mut found, share));
            }
        }
    }
    for (row, ((kind, number), [p50, p99, last])) in kinds.iter().zip(&figures).enumerate() {
        let rest = if row == 0 {
            format!("{answers} | {cpus}")
        } else {
            " | ".to_owned()
        };
        println!("| {kind} | {number} | {p50} | {p99} | {last} | {rest} |");
    }
    Ok(())
}

/// One promotion: the version that it releases, when it was due, and the microseconds to its answer.
struct Promotion {
    version: u64,
    due: u64,
    answer: u64,
}

/// Changes an agent and releases it.
#[derive(Clone)]
struct Releases {
    address: SocketAddr,
    workspace: String,
    key: String,
}

impl Releases {
    fn run(&self, time: Duration) -> Result<Vec<Promotion>, Failure> {
        let end = now() + u64::try_from(time.as_micros())?;
        let mut made = Vec::new();
        while now() < end {
            let version = self.change()?;
            thread::sleep(STEP);
            let due = now();
            self.promote()?;
            made.push(Promotion {
                version,
                due,
                answer: now() - due,
            });
        }
        Ok(made)
    }

    /// Returns the version that the change makes.
    fn change(&self) -> Result<u64, Failure> {
        let path = format!("/api/agents/configs?workspace_id={}&agent_id=seed-0", self.workspace);
        let role = format!(r#"{{"role":"{}"}}"#, now());
        let answer = send(self.address, "PATCH", &path, &self.key, &role)?;
        let version = answer
            .lines()
            .find_map(|line| line.strip_prefix("agent-version: "))
            .and_then(|version| version.trim().parse().ok());
        Ok(version.ok_or(answer)?)
    }

    fn promote(&self) -> Result<(), Failure> {
        let path = format!("/api/agents/labels/promote?workspace_id={}", self.workspace);
        let promotion = r#"{"from":"latest","to":"production"}"#;
        let answer = send(self.address, "POST", &path, &self.key, promotion)?;
        match body(&answer) {
            Some(serde_json::Value::Array(moved)) if !moved.is_empty() => Ok(()),
            _ => Err(answer.into()),
        }
    }
}

/// Mirrors in a process of their own, which ends when this is dropped.
struct Mirrors {
    child: Child,
    lines: Receiver<String>,
}

impl Mirrors {
    /// Starts the process, and waits until its mirrors are live.
    fn start(command: &mut Command, url: &str, workspace: &str, keys: &[String]) -> Result<Self, Failure> {
        let (sender, lines) = mpsc::channel();
        let mut child = command
            .args([url, workspace, &PER_KEY.to_string()])
            .args(keys)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = child.stdout.take().ok_or("no standard output")?;
        thread::spawn(move || read_lines(BufReader::new(out), &sender));
        let mirrors = Self { child, lines };
        match mirrors.lines.recv_timeout(Duration::from_secs(60))?.as_str() {
            "ready" => Ok(mirrors),
            line => Err(line.into()),
        }
    }

    /// What the mirrors have shown since the last call.
    fn seen(&self) -> Vec<Sight> {
        let sight = |line: String| {
            let (version, micros) = line.split_once(' ')?;
            Some((version.parse().ok()?, micros.parse().ok()?))
        };
        self.lines.try_iter().filter_map(sight).collect()
    }
}

fn read_lines(out: impl BufRead, lines: &Sender<String>) {
    for line in out.lines().map_while(Result::ok) {
        if lines.send(line).is_err() {
            return;
        }
    }
}

impl Drop for Mirrors {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes the mirrors of these keys, each with a client of its own, and notes what they show while the runtime runs.
async fn follow(url: &str, workspace: &str, keys: &[String], seen: &Rc<RefCell<Vec<Sight>>>) -> Result<(), Failure> {
    for key in keys {
        for _ in 0..PER_KEY {
            let client = Client::builder(url).api_key(key).build()?;
            let mirror = client.mirror(workspace.parse()?).label("production".parse()?).await?;
            tokio::task::spawn_local(note(mirror, Rc::clone(seen)));
        }
    }
    // The streams of the last ones are open.
    tokio::time::sleep(Duration::from_secs(2)).await;
    Ok(())
}

async fn note(mut mirror: ReleasedMirror, seen: Rc<RefCell<Vec<Sight>>>) {
    while mirror.changed().await.is_ok() {
        if let Some(agent) = mirror.get("seed-0") {
            seen.borrow_mut().push((agent.version, now()));
        }
    }
}

/// The microseconds from each promotion to its sights.
fn latencies(sights: &[Sight], promotions: &[Promotion]) -> Vec<u64> {
    let latency = |(version, moment): &Sight| {
        let promotion = promotions.iter().find(|promotion| promotion.version == *version)?;
        Some(moment.saturating_sub(promotion.due))
    };
    sights.iter().filter_map(latency).collect()
}

/// A percentile of microseconds, in milliseconds.
fn at(micros: &mut [u64], share: f64) -> f64 {
    micros.sort_unstable();
    let last = micros.len().saturating_sub(1);
    let index = ((micros.len() as f64 * share) as usize).min(last);
    micros.get(index).map_or(f64::NAN, |micros| *micros as f64 / 1e3)
}

/// Microseconds since 1970, which all processes of the machine share.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
