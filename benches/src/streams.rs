//! Streams of the change feed: what opens them, and changes that they see.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::process::Server;
use crate::product::Product;
use crate::request::send;
use crate::{Failure, response};

/// Streams of one API key: as many as it may have.
pub const PER_KEY: usize = 10;
/// Changes a second, over all workspaces.
pub const CHANGES: f64 = 100.0;
/// Connections that write.
const WRITERS: usize = 8;

/// A server with the requests of its streams and of its changes.
pub struct Target {
    /// The server.
    pub server: Server,
    /// The requests that open streams, each for `PER_KEY` of them.
    pub opens: Vec<String>,
    /// The heads of the requests that change something, one for each workspace, with the number of streams that see it.
    pub changes: Vec<(String, usize)>,
    is_product: bool,
    /// The text of an event, with `STAMP` for the time.
    pub event: String,
}

/// Fills the store of a data directory with workspaces of one agent each. Returns each key with its workspace, those of
/// one workspace together.
///
/// # Errors
///
/// If the program or the server does not start.
pub fn fill(
    product: &Product,
    program: &str,
    data: &Path,
    workspaces: usize,
    keys: usize,
) -> Result<Vec<(String, String)>, Failure> {
    // The first start creates the directory with its keys and an empty store, which is then filled.
    product.serve(data)?.stop()?;
    let mut fill = Command::new(program);
    fill.arg("fill").arg(data.join("store.redb"));
    let filled = Server::start(fill.args([workspaces, 1, keys].map(|count| count.to_string())))?;
    let pairs = filled.fact("pairs").split(',');
    let pairs = pairs
        .filter_map(|pair| pair.split_once(' '))
        .map(|(workspace, key)| (workspace.to_owned(), key.to_owned()))
        .collect();
    filled.stop()?;
    Ok(pairs)
}

impl Target {
    /// The product, on a data directory that [`fill`] made. Every key is verified once.
    ///
    /// # Errors
    ///
    /// If a request fails.
    pub fn product(server: Server, pairs: &[(String, String)]) -> Result<Self, Failure> {
        let address = server.address;
        let mut changes: Vec<(String, usize)> = Vec::new();
        let mut last = "";
        for (workspace, key) in pairs {
            if workspace == last {
                if let Some((_, streams)) = changes.last_mut() {
                    *streams += PER_KEY;
                }
                continue;
            }
            last = workspace;
            let path = format!("/api/agents/configs?workspace_id={workspace}&agent_id=agent-0");
            let head = format!(
                "PATCH {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n"
            );
            changes.push((head, PER_KEY));
        }
        let (workspace, key) = pairs.first().ok_or("no workspace")?;
        for role in ["t0", "t1"] {
            let path = format!("/api/agents/configs?workspace_id={workspace}&agent_id=agent-0");
            send_change(address, &path, key, role)?;
        }
        let path = format!("/api/changes?workspace_id={workspace}&after=start");
        let answer = send(address, "GET", &path, key, "")?;
        let body = answer.split_once("\r\n\r\n").ok_or("no body")?.1;
        let events: Vec<serde_json::Value> = serde_json::from_str(body)?;
        let last = events.last().ok_or("no event")?;
        let text = last.to_string().replace(r#""to":"t1""#, r#""to":"tSTAMP""#);
        let cursor = last["cursor"].as_str().ok_or("no cursor")?;
        // Every key is verified once, so that the memory for it is there before the streams.
        let opens = pairs.iter().map(|(workspace, key)| {
            send(address, "GET", &format!("/api/changes?workspace_id={workspace}&after=now"), key, "")?;
            Ok(format!(
                "GET /api/changes?workspace_id={workspace}&after=now HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\naccept: text/event-stream\r\n\r\n"
            ))
        });
        Ok(Self {
            opens: opens.collect::<Result<_, Failure>>()?,
            changes,
            is_product: true,
            event: format!("event: change\nid: {cursor}\ndata: {text}\n\n"),
            server,
        })
    }

    /// Bare hyper.
    pub fn bare(server: Server, pairs: &[(String, String)]) -> Self {
        let mut changes: Vec<(String, usize)> = Vec::new();
        for (workspace, _) in pairs {
            let head = format!("POST /{workspace} HTTP/1.1\r\nhost: x\r\n");
            match changes.last_mut().filter(|(last, _)| *last == head) {
                Some((_, streams)) => *streams += PER_KEY,
                None => changes.push((head, PER_KEY)),
            }
        }
        let opens = pairs
            .iter()
            .map(|(workspace, _)| format!("GET /{workspace} HTTP/1.1\r\nhost: x\r\n\r\n"));
        Self {
            server,
            opens: opens.collect(),
            changes,
            is_product: false,
            event: String::new(),
        }
    }
}

fn send_change(address: SocketAddr, path: &str, key: &str, role: &str) -> Result<(), Failure> {
    let mut stream = TcpStream::connect(address)?;
    let body = format!(r#"{{"role":"{role}"}}"#);
    let length = body.len();
    write!(
        stream,
        "PATCH {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.starts_with("HTTP/1.1 200") {
        true => Ok(()),
        false => Err(answer.into()),
    }
}

/// What the writers of changes did.
#[derive(Debug, Default)]
pub struct Written {
    /// How many events the streams must get.
    pub events: usize,
    /// The time from each due moment to the answer, in microseconds.
    pub answers: Vec<u32>,
}

/// Changes all workspaces in turn, from threads of their own.
pub struct Writers(Vec<JoinHandle<Result<Written, Failure>>>);

impl Writers {
    /// Starts to write for this long. The times in the events count from `base`.
    pub fn start(target: &Target, base: Instant, time: Duration) -> Self {
        let writers = (0..WRITERS).map(|number| {
            let mine: Vec<(String, usize)> = target.changes.iter().skip(number).step_by(WRITERS).cloned().collect();
            let (address, is_product) = (target.server.address, target.is_product);
            thread::spawn(move || write_changes(address, &mine, number, base, time, is_product))
        });
        Self(writers.collect())
    }

    /// Waits for the end.
    ///
    /// # Errors
    ///
    /// If a change failed.
    pub fn join(self) -> Result<Written, Failure> {
        let mut all = Written::default();
        for writer in self.0 {
            let written = writer.join().map_err(|_| "a writer panicked")??;
            all.events += written.events;
            all.answers.extend(written.answers);
        }
        Ok(all)
    }
}

/// Changes one workspace after the other when it is due.
fn write_changes(
    address: SocketAddr,
    changes: &[(String, usize)],
    number: usize,
    base: Instant,
    time: Duration,
    is_product: bool,
) -> Result<Written, Failure> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let step = Duration::from_secs_f64(WRITERS as f64 / CHANGES);
    let started = Instant::now();
    let mut due = started + step.mul_f64(number as f64 / WRITERS as f64);
    let mut written = Written::default();
    let mut buffer = vec![0; 16 << 10];
    for (head, streams) in changes.iter().cycle() {
        if due >= started + time {
            break;
        }
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let stamp = (due - base).as_micros();
        let body = match is_product {
            true => format!(r#"{{"role":"t{stamp}"}}"#),
            false => stamp.to_string(),
        };
        write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len())?;
        let (mut filled, mut whole) = (0, None);
        while whole.is_none_or(|whole| filled < whole) {
            let count = stream.read(&mut buffer[filled..])?;
            if count == 0 {
                return Err("the server closed the connection of a writer".into());
            }
            filled += count;
            whole = whole.or(response::whole_length(&buffer[..filled])?);
        }
        if response::status(&buffer)? != 200 {
            return Err(String::from_utf8_lossy(&buffer[..filled]).into_owned().into());
        }
        written.answers.push(u32::try_from(due.elapsed().as_micros())?);
        written.events += streams;
        due += step;
    }
    Ok(written)
}

/// Raises the limit of open files of this process as far as the system allows.
pub fn raise_open_files() {
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    // If that fails, opening the streams reports it.
    let _ = setrlimit(Resource::Nofile, files);
}
