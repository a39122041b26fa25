//! A full disk: reads are served all the time, changes are answered 503, and both the readiness and the metrics say so.

use std::fs::{self, File};
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agentcfg_tests::harness::{Server, Studio, Wire, eventually, free_address, not_run, run, scratch, setting};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A small file system of its own, until it is dropped.
struct Disk(TempDir);

impl Disk {
    /// Mounts it, which needs the rights of root.
    fn mount(megabytes: u32) -> Option<Self> {
        let dir = scratch();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "tmpfs"])
            .arg(dir.path())
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(dir));
        }
        not_run("a small file system cannot be mounted");
        None
    }

    fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    /// Writes a file until nothing more fits, and returns its path.
    fn fill_up(&self) -> PathBuf {
        let path = self.0.path().join("filler");
        let mut file = File::options().create(true).append(true).open(&path).unwrap();
        for size in [1 << 16, 1 << 12, 1] {
            while file.write_all(&vec![b'x'; size]).is_ok() {}
        }
        path
    }

    /// Writes a file that leaves so many bytes, and returns its path.
    fn fill_up_to(&self, left: u64) -> PathBuf {
        let path = self.fill_up();
        let file = File::options().write(true).open(&path).unwrap();
        let length = file.metadata().unwrap().len();
        file.set_len(length - left).unwrap();
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0.path()).output();
    }
}

/// Sets a flag when it is dropped.
struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn server_on(data: &Path, metrics: SocketAddr) -> Server {
    Server::builder()
        .data(data)
        .set("metrics_listen", metrics.to_string())
        .set("session_rate_limit", "1000000")
        .set("default_plan", "enterprise")
        .start()
}

/// The metric of this name.
fn metric(address: SocketAddr, name: &str) -> f64 {
    let answer = Wire::connect(address)
        .send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        .receive("GET")
        .unwrap();
    let text = String::from_utf8(answer.plain_body()).unwrap();
    let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("{name} in {text}"))[name.len() + 1..]
        .parse()
        .unwrap()
}

/// Each part of the first start meets the end of the disk once.
#[test]
fn a_refused_first_start_leaves_nothing_and_blames_the_disk() {
    let Some(disk) = Disk::mount(24) else { return };
    let data = disk.data();
    for left in [0, 4 << 10, 8 << 10, 16 << 10, 100 << 10] {
        let filler = disk.fill_up_to(left);
        let text = data.to_str().unwrap();
        let start = run(["serve", "--listen", "127.0.0.1:0", "--data", text]);
        let said = start.failed_with(&["space left"]);
        assert!(!said.contains("master keys"), "{left}: {said}");
        assert!(!data.exists(), "{left}: {said}");
        fs::remove_file(filler).unwrap();
    }
    let server = Server::builder().data(&data).start();
    assert!(
        !server.stderr().contains("session.key is missing"),
        "{}",
        server.stderr()
    );
}

fn degraded() -> Value {
    json!({"status": "degraded", "reason": "read-only"})
}

#[test]
fn a_full_disk_stops_changes_and_no_read() {
    let Some(disk) = Disk::mount(24) else { return };
    let metrics = free_address();
    let server = server_on(&disk.data(), metrics);
    let studio = Studio::on(&server);
    for number in 0..20 {
        studio.create(&format!("a{number}"), &Value::Null).expect(201);
    }
    assert_eq!(metric(metrics, "agentcfg_storage_ready"), 1.0);
    assert_eq!(
        server.get("/readyz").send().expect(200).json(),
        json!({"status": "ready"})
    );

    let stop = AtomicBool::new(false);
    let (reads, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for reader in 0..3 {
            let (studio, stop, reads) = (studio.clone(), &stop, &reads);
            scope.spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    assert!(studio.agent_ids().len() >= 20);
                    studio.on_agent("GET", &format!("a{reader}")).send().expect(200);
                    reads.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        // A failed assertion ends the readers too.
        let stopping = Stopping(&stop);
        // A writer whose changes use up the disk, and which goes on when it is full.
        let filler = disk.fill_up();
        for number in 0..300 {
            let answer = studio.create(&format!("late-{number}"), &json!({"persona_prompt": "x".repeat(4_000)}));
            if answer.status == 503 {
                assert!(answer.header("retry-after").is_some(), "{answer:?}");
                refused.fetch_add(1, Ordering::SeqCst);
            }
        }
        assert!(refused.load(Ordering::SeqCst) > 250, "{refused:?}");
        assert_eq!(server.get("/readyz").send().expect(200).json(), degraded());
        assert_eq!(metric(metrics, "agentcfg_storage_ready"), 0.0);
        let failures = metric(metrics, "agentcfg_storage_failures_total");
        assert!(failures <= 3.0, "{failures} repairs");

        fs::remove_file(filler).unwrap();
        let start = Instant::now();
        while studio.create("after", &Value::Null).status != 201 {
            assert!(start.elapsed() < Duration::from_secs(1), "no change is taken");
        }
        assert_eq!(
            server.get("/readyz").send().expect(200).json(),
            json!({"status": "ready"})
        );
        assert_eq!(metric(metrics, "agentcfg_storage_ready"), 1.0);
        let before = reads.load(Ordering::SeqCst);
        while reads.load(Ordering::SeqCst) == before {
            thread::yield_now();
        }
        drop(stopping);
    });
    server.stop();
    run(["check", "--data", disk.data().to_str().unwrap()]).succeeded();
}

#[test]
fn a_full_disk_is_noticed_without_a_writer() {
    let Some(disk) = Disk::mount(16) else { return };
    let metrics = free_address();
    let server = server_on(&disk.data(), metrics);
    disk.fill_up();
    assert_eq!(server.get("/readyz").send().expect(200).json(), degraded());
    assert_eq!(metric(metrics, "agentcfg_storage_ready"), 0.0);
    eventually("the log says so", || server.stderr().contains("the disk is full"));
}

/// A disk with room for a short change and none for a long one: readiness tells of the one that was refused.
#[test]
fn readiness_tells_of_a_change_that_found_no_room_until_there_clearly_is_some() {
    let Some(disk) = Disk::mount(24) else { return };
    let metrics = free_address();
    let server = Server::builder()
        .data(disk.data())
        .set("metrics_listen", metrics.to_string())
        .set("max_persona_prompt", "200000")
        .start();
    let studio = Studio::on(&server);
    let filler = disk.fill_up_to(700 << 10);
    let long = json!({"persona_prompt": "x".repeat(200_000)});
    for number in 0..3 {
        studio.create(&format!("long-{number}"), &long).expect(503);
        assert_eq!(server.get("/readyz").send().expect(200).json(), degraded());
        assert_eq!(metric(metrics, "agentcfg_storage_ready"), 0.0);
    }
    assert!(!server.stderr().contains("commits are served"), "{}", server.stderr());
    assert!(metric(metrics, "agentcfg_storage_free_bytes") < f64::from(1 << 20));
    fs::remove_file(filler).unwrap();
    studio.create("long", &long).expect(201);
    assert_eq!(
        server.get("/readyz").send().expect(200).json(),
        json!({"status": "ready"})
    );
    assert_eq!(metric(metrics, "agentcfg_storage_ready"), 1.0);
    let file = fs::metadata(disk.data().join("store.redb")).unwrap().len();
    assert!(metric(metrics, "agentcfg_storage_file_bytes") > 0.9 * file as f64);
}

#[test]
fn the_log_warns_before_the_disk_is_full() {
    let Some(disk) = Disk::mount(24) else { return };
    let server = Server::builder().data(disk.data()).start();
    let studio = Studio::on(&server);
    assert!(!server.stderr().contains("nearly full"), "{}", server.stderr());
    disk.fill_up_to(2 << 20);
    eventually("the log warns", || server.stderr().contains("nearly full"));
    studio.create("kept", &Value::Null).expect(201);
    assert_eq!(
        server.get("/readyz").send().expect(200).json(),
        json!({"status": "ready"})
    );
    assert!(!server.stderr().contains("the disk is full"), "{}", server.stderr());
}

/// A store has no epoch before its first workspace; a read that had to make it would fail here.
#[test]
fn the_first_read_of_a_workspace_is_served_on_a_full_disk() {
    let Some(disk) = Disk::mount(16) else { return };
    let server = Server::builder().data(disk.data()).start();
    let studio = Studio::on(&server);
    disk.fill_up();
    assert!(studio.agent_ids().is_empty());
    studio.create("late", &Value::Null).expect(503);
}

#[test]
fn a_backup_on_a_full_disk_blames_the_disk() {
    let Some(disk) = Disk::mount(16) else { return };
    let studio = Studio::open();
    disk.fill_up();
    let out = disk.data().with_file_name("copy");
    let (data, out) = (studio.server.data().to_str().unwrap(), out.to_str().unwrap());
    let said =
        run(["backup", "--data", data, "--out", out]).failed_with(&["No space left", "free some space", "--out"]);
    assert!(!said.contains("damaged"), "{said}");
}

#[test]
fn a_server_starts_on_a_full_disk_and_serves_reads() {
    let Some(disk) = Disk::mount(16) else { return };
    let server = Server::builder().data(disk.data()).start();
    let studio = Studio::on(&server);
    studio.create("kept", &Value::Null).expect(201);
    // Not closed in order, so that the start repairs the file.
    server.kill();
    let filler = disk.fill_up();
    let again = Server::builder().data(disk.data()).start();
    let studio = Studio {
        server: &again,
        ..studio
    };
    assert_eq!(studio.agent_ids(), ["kept"]);
    studio.create("late", &Value::Null).expect(503);
    assert_eq!(again.get("/readyz").send().expect(200).json(), degraded());
    fs::remove_file(filler).unwrap();
    studio.create("late", &Value::Null).expect(201);
}

/// Fills of the disk in the short form of the test below; `CASES` sets another number.
const FILLS: usize = 4;
/// How soon changes must be taken again.
const HEALING: Duration = Duration::from_secs(1);

/// A disk that fills up and is freed again and again, under writers: no acknowledged change is lost, and no read fails.
#[test]
fn a_disk_that_fills_up_repeatedly_loses_nothing() {
    let Some(disk) = Disk::mount(24) else { return };
    let fills = setting("CASES", FILLS);
    let metrics = free_address();
    let server = server_on(&disk.data(), metrics);
    let studio = Studio::on(&server);
    let mut acknowledged = Vec::new();
    let (mut refused, mut slowest) = (0, Duration::ZERO);
    let reads = AtomicUsize::new(0);
    for fill in 0..fills {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let (studio, stop, reads) = (&studio, &stop, &reads);
            let stopping = Stopping(stop);
            let least = acknowledged.len();
            scope.spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    assert!(studio.agent_ids().len() >= least);
                    reads.fetch_add(1, Ordering::SeqCst);
                }
            });
            // The first changes come while the disk fills up.
            let filling = scope.spawn(|| disk.fill_up());
            let mut number = 0;
            let mut refused_here = 0;
            while refused_here < 20 {
                let id = format!("f{fill}-{number}");
                number += 1;
                let answer = studio.create(&id, &json!({"persona_prompt": "x".repeat(100)}));
                match answer.status {
                    201 => acknowledged.push(id),
                    503 => refused_here += 1,
                    _ => panic!("{answer:?}"),
                }
                if number % 8 == 0 && refused_here == 0 {
                    // Agents that are not needed, so that the list stays short.
                    studio.remove(&acknowledged.pop().unwrap());
                }
            }
            refused += refused_here;
            fs::remove_file(filling.join().unwrap()).unwrap();
            let start = Instant::now();
            let id = format!("f{fill}-after");
            while studio.create(&id, &Value::Null).status != 201 {
                assert!(start.elapsed() < HEALING, "no change is taken");
            }
            slowest = slowest.max(start.elapsed());
            acknowledged.push(id);
            drop(stopping);
        });
    }
    assert_eq!(
        server.get("/readyz").send().expect(200).json(),
        json!({"status": "ready"})
    );
    server.kill();
    run(["check", "--data", disk.data().to_str().unwrap()]).succeeded();
    let again = server_on(&disk.data(), metrics);
    let found = studio.identity().on(&again).agent_ids();
    for id in &acknowledged {
        assert!(found.contains(id), "{id} is lost");
    }
    println!(
        "FIGURES full disks: {fills} fills, {refused} changes refused, {} reads served, changes taken again after {} ms at most",
        reads.load(Ordering::SeqCst),
        slowest.as_millis()
    );
}
