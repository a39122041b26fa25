//! What watchers saw, compared with the log: concurrent writers, kills, stops, reconnections and slow readers.
//!
//! A watch is to be ordered, unique, reliable, resumable and bookmarkable. Each watcher keeps what it received over all
//! of its connections; afterwards each event must be in the log, as it is in the log, and none may be missing.
//!
//! `AGENTCFG_TEST_FEED_KILLS` says how often the server is killed; see `scripts/feed-oracle.sh`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::Duration;

use agentcfg_tests::harness::{Event, Request, Server, Studio, Wire, eventually, scratch};
use serde_json::{Value, json};

const WRITERS: usize = 4;

/// How a watcher reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Keeps its connection.
    Steady,
    /// Connects again after a few events.
    Flapping,
    /// Pauses between events, so that the server's sends wait for it.
    Slow,
    /// Reads pages of JSON and waits for them.
    Paging,
    /// Sees agents alone.
    Viewer,
}

const WATCHERS: [Manner; 6] = [
    Manner::Steady,
    Manner::Steady,
    Manner::Flapping,
    Manner::Slow,
    Manner::Paging,
    Manner::Viewer,
];

/// The server of the moment, and where the log ends.
struct Stage {
    server: RwLock<Arc<Server>>,
    workspace: String,
    owner: String,
    viewer: String,
    /// The last revision of the run; 0 while it is not known.
    end: AtomicU64,
    acknowledged: AtomicUsize,
}

impl Stage {
    fn server(&self) -> Arc<Server> {
        Arc::clone(&self.server.read().unwrap())
    }

    fn get(&self, credential: &str, query: &str) -> Request {
        let target = format!("/api/changes?workspace_id={}&{query}", self.workspace);
        self.server().get(target).bearer(credential)
    }
}

/// What one watcher received, in the order of its arrival.
#[derive(Debug, Default)]
struct Seen {
    events: Vec<Value>,
    /// A bookmark, and how many events came before it.
    bookmarks: Vec<(u64, usize)>,
    cursor: Option<String>,
    connections: usize,
}

fn revision_of(cursor: &str) -> u64 {
    cursor.rsplit_once("-c").unwrap().1.parse().unwrap()
}

impl Seen {
    fn position(&self) -> u64 {
        self.cursor.as_deref().map_or(0, revision_of)
    }

    fn take(&mut self, event: Event) {
        match event.name.as_str() {
            "change" => {
                assert_eq!(event.id.as_deref(), event.data["cursor"].as_str());
                self.events.push(event.data);
                self.cursor = event.id;
            }
            "bookmark" => {
                let cursor = event.id.expect("a bookmark has a cursor");
                self.bookmarks.push((revision_of(&cursor), self.events.len()));
                self.cursor = Some(cursor);
            }
            "end" => {}
            other => panic!("an event {other}: {:?}", event.data),
        }
    }
}

/// Watches until the end of the run is known and reached.
fn watch(stage: &Stage, manner: Manner) -> Seen {
    let mut seen = Seen::default();
    let credential = if manner == Manner::Viewer {
        &stage.viewer
    } else {
        &stage.owner
    };
    let is_done = |seen: &Seen| {
        let end = stage.end.load(Ordering::SeqCst);
        end > 0 && seen.position() >= end
    };
    while !is_done(&seen) {
        if manner == Manner::Paging {
            page(stage, credential, &mut seen);
            continue;
        }
        let mut request = stage.get(credential, "after=start");
        if let Some(cursor) = &seen.cursor {
            request = request.header("Last-Event-ID", cursor);
        }
        let Ok(mut events) = request.try_follow() else {
            // The server is killed or not started yet.
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        if events.head.status != 200 {
            assert!(matches!(events.head.status, 429 | 503), "{:?}", events.head);
            thread::sleep(Duration::from_millis(20));
            continue;
        }
        seen.connections += 1;
        let mut count = 0;
        let most = if manner == Manner::Flapping { 5 } else { usize::MAX };
        while !is_done(&seen) && count < most {
            match events.next_within(Duration::from_millis(200)) {
                Ok(Some(event)) => {
                    count += 1;
                    seen.take(event);
                    if manner == Manner::Slow {
                        thread::sleep(Duration::from_millis(3));
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {}
                Ok(None) | Err(_) => break,
            }
        }
    }
    seen
}

fn page(stage: &Stage, credential: &str, seen: &mut Seen) {
    let after = seen.cursor.as_deref().unwrap_or("start");
    let request = stage.get(credential, &format!("after={after}&limit=7&wait=1"));
    let Ok(stream) = std::net::TcpStream::connect(stage.server().address()) else {
        thread::sleep(Duration::from_millis(5));
        return;
    };
    drop(stream);
    let answer = thread::scope(|scope| {
        // The server can be killed while the request waits, which the harness reports by a panic.
        let asked = scope.spawn(|| {
            Wire::connect(stage.server().address())
                .send(request.to_bytes())
                .receive("GET")
        });
        asked.join().ok().flatten()
    });
    let Some(answer) = answer.filter(|answer| answer.status == 200) else {
        return;
    };
    seen.connections += 1;
    for event in answer.json().as_array().unwrap() {
        seen.events.push(event.clone());
    }
    seen.cursor = Some(answer.need("change-cursor").to_owned());
}

/// Changes an agent of its own, and now and then a member, until the server is gone.
fn write(stage: &Stage, writer: usize, next: &mut usize, acknowledged: &mut Vec<String>) {
    let server = stage.server();
    let Ok(stream) = std::net::TcpStream::connect(server.address()) else {
        return;
    };
    drop(stream);
    let mut wire = Wire::connect(server.address());
    loop {
        let value = format!("{writer}-{next}");
        *next += 1;
        let (target, body) = if next.is_multiple_of(5) {
            let target = format!(
                "/api/workspaces/members?workspace_id={}&user_id=m{value}",
                stage.workspace
            );
            (target, json!({"role": "viewer"}))
        } else {
            let target = format!(
                "/api/agents/configs?workspace_id={}&agent_id=w{writer}",
                stage.workspace
            );
            (target, json!({"role": value}))
        };
        let method = if target.starts_with("/api/w") { "PUT" } else { "PATCH" };
        let request = server.request(method, target).bearer(&stage.owner).json(&body);
        match wire.send(request.to_bytes()).receive(method) {
            Some(answer) if answer.status == 200 => {
                stage.acknowledged.fetch_add(1, Ordering::SeqCst);
                acknowledged.push(value);
            }
            // Before a graceful stop is over, connections close.
            Some(answer) => assert_eq!(answer.status, 503, "{answer:?}"),
            None => return,
        }
    }
}

fn start(data: &Path) -> Server {
    Server::builder()
        .set("default_plan", "enterprise")
        .set("session_rate_limit", "1000000")
        .data(data)
        .start()
}

fn first_start(data: &Path) -> Server {
    // A server on a database makes its directory itself.
    match std::env::var_os("AGENTCFG_TEST_DATABASE") {
        None => start(data),
        Some(_) => Server::builder()
            .set("default_plan", "enterprise")
            .set("session_rate_limit", "1000000")
            .start(),
    }
}

/// The whole log, by pages.
fn log(stage: &Stage) -> Vec<Value> {
    let (mut events, mut after) = (Vec::new(), "start".to_owned());
    loop {
        let page = stage
            .get(&stage.owner, &format!("after={after}&limit=1000"))
            .send()
            .expect(200);
        let found = page.json().as_array().unwrap().clone();
        if found.is_empty() {
            return events;
        }
        events.extend(found);
        page.need("change-cursor").clone_into(&mut after);
    }
}

/// Compares what a watcher saw with the log.
fn check(manner: Manner, seen: &Seen, log: &[Value]) {
    let is_shown = |event: &&Value| manner != Manner::Viewer || event["type"].as_str().unwrap().starts_with("agent.");
    let shown: Vec<&Value> = log.iter().filter(is_shown).collect();
    let revision = |event: &Value| event["revision"].as_u64().unwrap();
    // Ordered and unique.
    for pair in seen.events.windows(2) {
        assert!(
            revision(&pair[0]) < revision(&pair[1]),
            "{manner:?}: {} after {}",
            pair[1]["revision"],
            pair[0]["revision"]
        );
    }
    // Reliable over all connections: the same events, none missing, none that the log does not have.
    for (found, expected) in seen.events.iter().zip(&shown) {
        assert_eq!(found, *expected, "{manner:?}");
    }
    assert_eq!(seen.events.len(), shown.len(), "{manner:?}");
    // Bookmarkable: all events up to a bookmark came before it, and none of those after it.
    for (bookmark, before) in &seen.bookmarks {
        let up_to = shown.iter().filter(|event| revision(event) <= *bookmark).count();
        assert_eq!(*before, up_to, "{manner:?}: at the bookmark of revision {bookmark}");
    }
}

#[test]
fn watchers_see_the_log_over_kills_stops_reconnections_and_pauses() {
    let kills: usize = match std::env::var("AGENTCFG_TEST_FEED_KILLS") {
        Ok(kills) => kills.parse().expect("a number of kills"),
        Err(_) => 4,
    };
    let dir = scratch();
    let mut data = dir.path().join("data");
    let server = first_start(&data);
    if std::env::var_os("AGENTCFG_TEST_DATABASE").is_some() {
        // The later servers find the database by a file in the first one's directory.
        std::fs::create_dir(&data).unwrap();
        for entry in std::fs::read_dir(server.data()).unwrap().flatten() {
            std::fs::copy(entry.path(), data.join(entry.file_name())).unwrap();
        }
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700)).unwrap();
    } else {
        data = server.data().to_owned();
    }
    let studio = Studio::on(&server);
    for writer in 0..WRITERS {
        studio.create(&format!("w{writer}"), &json!({})).expect(201);
    }
    let (workspace, owner, viewer) = (studio.id.to_string(), studio.owner.clone(), studio.member("viewer"));
    drop(studio);
    let stage = Stage {
        server: RwLock::new(Arc::new(server)),
        workspace,
        owner,
        viewer,
        end: AtomicU64::new(0),
        acknowledged: AtomicUsize::new(0),
    };
    let mut numbers = [0; WRITERS];
    let mut acknowledged = vec![Vec::new(); WRITERS];
    let all_seen = thread::scope(|scope| {
        let watchers: Vec<_> = WATCHERS
            .iter()
            .map(|manner| scope.spawn(|| watch(&stage, *manner)))
            .collect();
        for kill in 0..kills {
            let before = stage.acknowledged.load(Ordering::SeqCst);
            thread::scope(|writers| {
                for (writer, (number, acknowledged)) in numbers.iter_mut().zip(&mut acknowledged).enumerate() {
                    let stage = &stage;
                    writers.spawn(move || write(stage, writer, number, acknowledged));
                }
                // The kills come at different moments of a commit.
                let target = before + 10 + 7 * (kill % 9);
                eventually("the writers are at it", || {
                    stage.acknowledged.load(Ordering::SeqCst) >= target
                });
                match kill % 4 {
                    3 => stage.server().stop(),
                    _ => stage.server().kill(),
                }
            });
            *stage.server.write().unwrap() = Arc::new(start(&data));
        }
        // The last event is one that every watcher sees.
        let target = format!("/api/agents/configs?workspace_id={}&agent_id=w0", stage.workspace);
        let last = stage.server().patch(target).bearer(&stage.owner);
        last.json(&json!({"role": "last"})).send().expect(200);
        let cursor = stage.get(&stage.owner, "after=now").send().expect(200);
        let end = revision_of(cursor.need("change-cursor"));
        stage.end.store(end, Ordering::SeqCst);
        let seen = watchers.into_iter().map(|watcher| watcher.join().expect("a watcher"));
        seen.collect::<Vec<Seen>>()
    });
    let log = log(&stage);
    for (index, event) in log.iter().enumerate() {
        assert_eq!(event["revision"], index as u64 + 1, "the log has no gap");
    }
    for (manner, seen) in WATCHERS.iter().zip(&all_seen) {
        check(*manner, seen, &log);
        println!(
            "{manner:?}: {} events over {} connections",
            seen.events.len(),
            seen.connections
        );
    }
    // What was acknowledged is in the log, in the order of its writer.
    let mut written: HashMap<String, Vec<String>> = HashMap::new();
    for event in &log {
        let target = event["target"]["id"].as_str().unwrap();
        let (writer, value) = match event["changes"]["role"]["to"].as_str() {
            Some(value) if event["type"] == "agent.updated" => (target.to_owned(), value.to_owned()),
            _ if target.starts_with('m') => {
                let value = target[1..].to_owned();
                (format!("w{}", value.split('-').next().unwrap()), value)
            }
            _ => continue,
        };
        written.entry(writer).or_default().push(value);
    }
    for (writer, acknowledged) in acknowledged.iter().enumerate() {
        let mut rest = written[&format!("w{writer}")].iter();
        for value in acknowledged {
            assert!(
                rest.any(|found| found == value),
                "{value} was acknowledged and is not in the log"
            );
        }
    }
    println!("{} events in the log, {kills} kills and stops", log.len());
}

/// The comparison finds each kind of defect that a watch can have.
#[test]
fn the_comparison_finds_each_kind_of_defect() {
    let event = |revision: u64| json!({"revision": revision, "type": "agent.updated"});
    let log: Vec<Value> = (1..=6).map(event).collect();
    let good = || Seen {
        events: log.clone(),
        bookmarks: vec![(0, 0), (3, 3), (6, 6)],
        ..Seen::default()
    };
    let passes = |change: &dyn Fn(&mut Seen)| {
        let mut seen = good();
        change(&mut seen);
        std::panic::catch_unwind(|| check(Manner::Steady, &seen, &log)).is_ok()
    };
    assert!(passes(&|_| {}));
    type Defect<'a> = (&'a str, &'a dyn Fn(&mut Seen));
    let defects: [Defect<'_>; 7] = [
        ("missing", &|seen| drop(seen.events.remove(2))),
        ("missing at the end", &|seen| seen.events.truncate(5)),
        ("twice", &|seen| seen.events.insert(3, event(3))),
        ("out of order", &|seen| seen.events.swap(1, 2)),
        ("not in the log", &|seen| seen.events.push(event(7))),
        ("other content", &|seen| {
            seen.events[4]["type"] = "agent.restored".into()
        }),
        ("a bookmark too early", &|seen| seen.bookmarks[1] = (4, 3)),
    ];
    for (what, defect) in defects {
        assert!(!passes(defect), "{what}");
    }
}
