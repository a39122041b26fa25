//! Crowds: slow heads, slow bodies, slow readers, idle connections and unknown keys. Other requests are answered
//! meanwhile, and the memory of the server stays bounded and is free again afterwards.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agentcfg_tests::harness::{Dice, Server, Studio, Wire, scratch, setting};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};

/// The full form has this many times the clients of the short form. `CASES` sets the number: 1 is the short form.
const FULL: usize = 20;
/// How long another request may take meanwhile.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The memory in MiB that a crowd may cost at its peak, and that may be left of it.
const PEAK: u64 = 512;
const LEFT: u64 = 128;
/// The bytes that the kernel may keep for one client that does not read. It has a limit for all connections of the
/// machine.
const MOST_UNSENT: u64 = 512 << 10;

/// The sizes of a form.
struct Size {
    times: usize,
    /// How long a crowd stays, and how long after it the memory is measured.
    stays: Duration,
    rests: Duration,
}

impl Size {
    fn get() -> Self {
        let times = setting("CASES", 1).min(FULL);
        let is_full = times == FULL;
        Self {
            times,
            stays: Duration::from_secs(if is_full { 20 } else { 3 }),
            rests: Duration::from_secs(if is_full { 60 } else { 1 }),
        }
    }

    fn slow(&self) -> usize {
        100 * self.times
    }

    fn idle(&self) -> usize {
        500 * self.times
    }

    fn unknown_keys(&self) -> usize {
        50_000 * self.times
    }
}

/// A server with an observer, which measures its memory and how long others wait.
struct Scene<'a> {
    server: &'a Server,
    studio: Studio<'a>,
    size: Size,
}

/// What the observer saw.
#[derive(Debug, Default)]
struct Seen {
    before_mib: u64,
    peak_mib: u64,
    after_mib: u64,
    others: usize,
    slowest_ms: u128,
}

/// Ends a crowd when it is dropped.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Scene<'_> {
    /// Runs a crowd, and watches the server until some time after it.
    fn watch(&self, name: &str, clients: usize, crowd: impl FnOnce(&AtomicBool) -> String + Send) {
        let mut seen = Seen {
            before_mib: self.server.memory_mib(),
            ..Seen::default()
        };
        let is_over = AtomicBool::new(false);
        let told = thread::scope(|scope| {
            let (is_over, stays) = (&is_over, self.size.stays);
            // A failed assertion ends the crowd too.
            let _ending = Ending(is_over);
            let crowd = scope.spawn(move || {
                let told = crowd(is_over);
                is_over.store(true, Ordering::SeqCst);
                told
            });
            let start = Instant::now();
            while !crowd.is_finished() {
                let asked = Instant::now();
                self.server.get("/readyz").send().expect(200);
                assert!(!self.studio.agent_ids().is_empty());
                seen.slowest_ms = seen.slowest_ms.max(asked.elapsed().as_millis());
                seen.others += 2;
                seen.peak_mib = seen.peak_mib.max(self.server.memory_mib());
                if start.elapsed() > stays {
                    is_over.store(true, Ordering::SeqCst);
                }
                thread::sleep(Duration::from_millis(20));
            }
            crowd.join().unwrap()
        });
        thread::sleep(self.size.rests);
        seen.after_mib = self.server.memory_mib();
        println!("FIGURES {clients} {name}: {seen:?}, {told}");
        assert!(seen.slowest_ms < TIMEOUT.as_millis(), "{name}: {seen:?}");
        assert!(seen.peak_mib < seen.before_mib + PEAK, "{name}: {seen:?}");
        assert!(seen.after_mib < seen.before_mib + LEFT, "{name}: {seen:?}");
        self.server.get("/readyz").send().expect(200);
    }
}

pub fn raise_open_files() {
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    let _ = setrlimit(Resource::Nofile, files);
}

/// Connections that do not block.
fn connect(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    let open = || {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    };
    (0..count).map(|_| open()).collect()
}

/// Sends a byte a turn on each connection, until the crowd is over. Returns how many the server has closed or answered.
fn dribble(address: SocketAddr, count: usize, start: &[u8], is_over: &AtomicBool) -> usize {
    let mut streams = connect(address, count);
    for stream in &mut streams {
        let _ = stream.write_all(start);
    }
    let mut ended = 0;
    while !is_over.load(Ordering::SeqCst) && !streams.is_empty() {
        streams.retain_mut(|stream| {
            let is_open = stream.write_all(b"a").is_ok();
            let is_silent = matches!(stream.read(&mut [0; 256]), Err(error) if error.kind() == ErrorKind::WouldBlock);
            ended += usize::from(!(is_open && is_silent));
            is_open && is_silent
        });
        thread::sleep(Duration::from_millis(250));
    }
    ended
}

/// Asks for long answers and reads none of them. Returns what the kernel keeps of one connection at most.
fn ask_and_do_not_read(address: SocketAddr, count: usize, request: &[u8], is_over: &AtomicBool) -> u64 {
    let mut streams = connect(address, count);
    for stream in &streams {
        // What is not read must wait in the server. With usual sizes the kernel would take gigabytes for all of these
        // connections, and delay those of others when its own limit for all connections of the machine is reached.
        set_socket_recv_buffer_size(stream, 4096).unwrap();
    }
    // Several answers are more than what the buffers of the connection hold.
    for stream in &mut streams {
        for _ in 0..8 {
            let _ = stream.write_all(request);
        }
    }
    while !is_over.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(50));
    }
    most_unsent(address)
}

/// The most bytes that the kernel keeps for one connection of a server on this address (`tx_queue` of `/proc/net/tcp`).
fn most_unsent(server: SocketAddr) -> u64 {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let port = format!(":{:04X}", server.port());
    let queues = table.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next()?;
        let (unsent, _) = fields.nth(2)?.split_once(':')?;
        local.ends_with(&port).then(|| u64::from_str_radix(unsent, 16).ok())?
    });
    queues.max().unwrap_or(0)
}

/// Sends this many requests with unknown keys, pipelined on a few connections. Returns how many were refused.
fn try_unknown_keys(address: SocketAddr, count: usize, mut dice: Dice) -> usize {
    const CONNECTIONS: usize = 4;
    const PIPELINED: usize = 100;
    let refused = AtomicUsize::new(0);
    thread::scope(|scope| {
        for number in 0..CONNECTIONS {
            let (mut dice, refused) = (dice.split(number), &refused);
            scope.spawn(move || {
                let mut wire = Wire::connect(address);
                for _ in 0..count / CONNECTIONS / PIPELINED {
                    let batch: String = (0..PIPELINED)
                        .map(|_| {
                            let key = unknown_key(&mut dice);
                            let head = "GET /api/agents/configs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer";
                            format!("{head} {key}\r\n\r\n")
                        })
                        .collect();
                    wire.send(batch);
                    for _ in 0..PIPELINED {
                        let answer = wire.receive("GET").expect("the connection stays open");
                        assert_eq!(answer.status, 401, "{answer:?}");
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    refused.into_inner()
}

/// A well-formed key with a valid checksum that was never issued, so that it costs a read of the store.
fn unknown_key(dice: &mut Dice) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let random: String = (0..63).map(|_| char::from(DIGITS[dice.below(62)])).collect();
    let text = format!("svc_live_{random}");
    let mut rest = crc32fast::hash(text.as_bytes());
    let mut checksum = [b'0'; 6];
    for digit in checksum.iter_mut().rev() {
        *digit = DIGITS[(rest % 62) as usize];
        rest /= 62;
    }
    format!("{text}{}", String::from_utf8_lossy(&checksum))
}

#[test]
fn crowds_are_served_in_bounded_memory_beside_others() {
    raise_open_files();
    let mut dice = Dice::of("crowds");
    let place = scratch();
    let server = Server::builder()
        .data(place.path().join("data"))
        .set("default_plan", "enterprise")
        .set("session_rate_limit", "1000000")
        // Above the largest crowd, so that others need not wait for a slot.
        .set("max_connections", "12000")
        .start();
    let studio = Studio::on(&server);
    studio.create("a", &Value::Null).expect(201);
    // The workspace of the slow readers has a list of half a megabyte.
    let long = studio.sibling();
    for number in 0..100 {
        let fields = json!({"persona_prompt": "x".repeat(5000)});
        long.create(&format!("long-{number}"), &fields).expect(201);
    }
    let scene = Scene {
        server: &server,
        studio,
        size: Size::get(),
    };
    let address = server.address();
    let slow = scene.size.slow();
    scene.watch("slow heads", slow, |is_over| {
        let head = b"GET /api/agents/configs HTTP/1.1\r\nHost: x\r\nX-Slow: ";
        format!("{} ended by the server", dribble(address, slow, head, is_over))
    });
    let body = format!(
        "PATCH /api/agents/configs?agent_id=a&workspace_id={} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{{\"role\":\"",
        scene.studio.id, scene.studio.owner
    );
    scene.watch("slow bodies", slow, |is_over| {
        format!(
            "{} ended by the server",
            dribble(address, slow, body.as_bytes(), is_over)
        )
    });
    let request = long.list_request("").to_bytes();
    scene.watch("slow readers", slow, |is_over| {
        let unsent = ask_and_do_not_read(address, slow, &request, is_over);
        assert!(
            (1..MOST_UNSENT).contains(&unsent),
            "the kernel keeps {unsent} bytes of one connection"
        );
        format!("each with 8 lists of half a megabyte, of which the kernel keeps {unsent} bytes at most")
    });
    let idle = scene.size.idle();
    scene.watch("idle connections", idle, |is_over| {
        let streams = connect(address, idle);
        while !is_over.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(50));
        }
        format!("{} open", streams.len())
    });
    let keys = scene.size.unknown_keys();
    scene.watch("unknown keys", keys, |_| {
        let start = Instant::now();
        let refused = try_unknown_keys(address, keys, dice.split(0));
        assert_eq!(refused, keys);
        format!(
            "all refused, {:.0} a second",
            refused as f64 / start.elapsed().as_secs_f64()
        )
    });
}
