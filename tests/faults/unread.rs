//! Long answers that are not read: of each kind, by one caller and by many. The memory of the server stays bounded,
//! others are served meanwhile, and the memory is free again afterwards.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agentcfg_tests::harness::{Request, Server, Studio, Wire, scratch, setting};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use serde_json::{Value, json};

use crate::crowds::raise_open_files;

/// The full form has this many times the clients of the short form. `CASES` sets the number: 1 is the short form.
const FULL: usize = 10;
/// Connections of one crowd in the short form, and keys of a crowd of many callers.
const CONNECTIONS: usize = 100;
const KEYS: usize = 40;
const AGENTS: usize = 900;
/// The memory in MiB that a crowd may cost.
const GROWTH: u64 = 256;
/// The memory that may be left of it, and the time for that.
const LEFT: u64 = 64;
const BACK: Duration = Duration::from_secs(60);
/// How long another request may take meanwhile.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The kinds of long answers, each with its address. A stream is asked for by its type.
const KINDS: [(&str, &str); 6] = [
    ("lists of the past", "/api/agents/configs?revision={revision}&"),
    ("pages of changes", "/api/changes?after=start&limit=1000&"),
    ("pages of the audit log", "/api/audit-log?limit=1000&"),
    ("lists of all labels", "/api/agents/labels?"),
    ("lists of all current versions", "/api/agents/versions?"),
    (STREAMS, "/api/changes?after=start&"),
];
const STREAMS: &str = "streams from the start";

/// Fills the workspace, and returns a revision whose list is made for each request.
fn fill(studio: &Studio<'_>, persona: usize) -> u64 {
    let apply = format!("/api/agents/apply?workspace_id={}", studio.id);
    let numbers: Vec<_> = (0..AGENTS).collect();
    // A request has 10 MiB at most.
    for numbers in numbers.chunks(AGENTS / 5) {
        let agents = numbers.iter().map(|number| {
            let persona = format!("{number} ").repeat(persona / 4);
            json!({"agent_id": format!("agent-{number}"), "display_name": "Long", "persona_prompt": persona})
        });
        let body = json!({"agents": agents.collect::<Vec<_>>()});
        let request = studio.server.post(&apply).bearer(&studio.owner);
        request.json(&body).send().expect(200);
    }
    for label in ["production", "staging"] {
        let promote = format!("/api/agents/labels/promote?workspace_id={}", studio.id);
        let request = studio.server.post(promote).bearer(&studio.owner);
        request.json(&json!({"from": "latest", "to": label})).send().expect(200);
    }
    let revision = studio.audit_page(1)[0]["revision"].as_u64().unwrap();
    studio.create("last", &Value::Null).expect(201);
    revision
}

/// Connections that have asked, and read nothing.
fn ask(requests: &[Request], connections: usize) -> Vec<TcpStream> {
    let connect = |number: usize| {
        let mut stream = TcpStream::connect(requests[0].address()).unwrap();
        // What is not read must wait in the server.
        set_socket_recv_buffer_size(&stream, 4096).unwrap();
        stream.write_all(&requests[number % requests.len()].to_bytes()).unwrap();
        stream
    };
    (0..connections).map(connect).collect()
}

/// How many of these answers have begun with 200, were refused because too much is unread, and have not begun.
fn statuses(unread: &[TcpStream]) -> [usize; 3] {
    let mut counts = [0; 3];
    for mut stream in unread {
        stream.set_nonblocking(true).unwrap();
        let mut line = [0; 12];
        let kind = match (stream.read(&mut line), &line) {
            (Ok(12), b"HTTP/1.1 200") => 0,
            (Ok(12), b"HTTP/1.1 429" | b"HTTP/1.1 503") => 1,
            (Ok(12), line) => panic!("{}", String::from_utf8_lossy(line)),
            _ => 2,
        };
        counts[kind] += 1;
    }
    counts
}

/// Another caller, in another workspace: asks for its short list again and again, and measures each answer.
fn times(other: &Studio<'_>, is_over: &AtomicBool) -> Vec<Duration> {
    let key = other.key_with(&json!({"scope": "read", "rate_limit": 1_000_000})).key;
    let target = format!("/api/agents/configs?workspace_id={}", other.id);
    let request = other.server.get(target).bearer(key);
    let (mut wire, mut times) = (Wire::connect(other.server.address()), Vec::new());
    while !is_over.load(Ordering::SeqCst) {
        let asked = Instant::now();
        request.send_on(&mut wire).expect(200);
        times.push(asked.elapsed());
        thread::sleep(Duration::from_millis(5));
    }
    times.sort();
    times
}

/// The time in which 99 % of the requests were answered, in milliseconds.
fn p99(times: &[Duration]) -> f64 {
    times[times.len() * 99 / 100].as_secs_f64() * 1000.0
}

#[test]
fn long_answers_that_are_not_read_take_bounded_memory() {
    raise_open_files();
    let size = setting("CASES", 1).min(FULL);
    let is_full = size == FULL;
    let stays = Duration::from_secs(if is_full { 10 } else { 1 });
    let connections = CONNECTIONS * size;
    let place = scratch();
    let server = Server::builder()
        .data(place.path().join("data"))
        .set("default_plan", "enterprise")
        .set("session_rate_limit", "1000000")
        .set("max_persona_prompt", "60000")
        .start();
    let studio = Studio::on(&server);
    let revision = fill(&studio, if is_full { 30_000 } else { 5_000 });
    let other = Studio::on(&server);
    other.create("a", &Value::Null).expect(201);
    let key = |_| studio.key_with(&json!({"scope": "admin", "rate_limit": 1_000_000})).key;
    let keys: Vec<String> = (0..KEYS).map(key).collect();
    let request = |kind: usize, key: &str| {
        let (name, target) = KINDS[kind];
        let target = target.replace("{revision}", &revision.to_string());
        let request = server.get(format!("{target}workspace_id={}", studio.id)).bearer(key);
        match name == STREAMS {
            true => request.header("Accept", "text/event-stream"),
            false => request,
        }
    };
    // Each answer is read once, and each key is known, before memory is measured.
    let lengths: Vec<_> = (0..KINDS.len() - 1)
        .map(|kind| request(kind, &keys[0]).send().expect(200).body.len() >> 10)
        .collect();
    for key in &keys {
        server
            .get(format!("/api/agents/configs?limit=1&workspace_id={}", studio.id))
            .bearer(key)
            .send()
            .expect(200);
    }
    let before = server.memory_mib();
    let mut begun = 0;
    for (kind, (name, _)) in KINDS.iter().enumerate() {
        for callers in [1, KEYS] {
            let requests: Vec<_> = keys[..callers].iter().map(|key| request(kind, key)).collect();
            let quiet = watch(&server, &other, stays, || ());
            let busy = watch(&server, &other, stays, || ask(&requests, connections));
            let counts = statuses(&busy.crowd);
            begun += counts[0];
            drop(busy.crowd);
            let freed = Instant::now();
            let is_back = || server.memory_mib() <= before + LEFT;
            while !is_back() && freed.elapsed() < BACK {
                thread::sleep(Duration::from_millis(50));
            }
            let (after, took) = (server.memory_mib(), freed.elapsed().as_secs_f64());
            let growth = busy.peak_mib.saturating_sub(before);
            println!(
                "FIGURES {connections} unread {name} of {} KiB by {callers} callers: {} begun, {} refused, \
                 {} not begun; memory from {before} MiB by {growth} MiB, {after} MiB {took:.1} s afterwards; \
                 99 % of {} answers to others in {:.1} ms, {:.1} ms before, the slowest {} ms",
                lengths.get(kind).map_or("all".to_owned(), usize::to_string),
                counts[0],
                counts[1],
                counts[2],
                busy.times.len(),
                p99(&busy.times),
                p99(&quiet.times),
                busy.times.last().unwrap().as_millis()
            );
            assert!(growth <= GROWTH, "{name}: {growth} MiB");
            assert!(*busy.times.last().unwrap() < TIMEOUT, "{name}: {:?}", busy.times.last());
            assert!(is_back(), "{name}: {after} MiB after {took} s, {before} before");
        }
    }
    // A crowd of which none is answered would take no memory either.
    assert!(begun > 0, "no answer began");
}

/// What was seen while a crowd was there.
struct Watched<T> {
    crowd: T,
    times: Vec<Duration>,
    peak_mib: u64,
}

/// Measures the server and another caller, from the beginning of a crowd for some time after it is there.
fn watch<T: Send>(
    server: &Server,
    other: &Studio<'_>,
    stays: Duration,
    crowd: impl FnOnce() -> T + Send,
) -> Watched<T> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let measuring = scope.spawn(|| times(other, &is_over));
        let crowd = scope.spawn(crowd);
        let (mut peak_mib, mut there_since) = (server.memory_mib(), None::<Instant>);
        while there_since.is_none_or(|since| since.elapsed() < stays) {
            peak_mib = peak_mib.max(server.memory_mib());
            if there_since.is_none() && crowd.is_finished() {
                there_since = Some(Instant::now());
            }
            thread::sleep(Duration::from_millis(5));
        }
        is_over.store(true, Ordering::SeqCst);
        Watched {
            crowd: crowd.join().unwrap(),
            times: measuring.join().unwrap(),
            peak_mib,
        }
    })
}
