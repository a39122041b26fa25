//! Servers that all test processes of one run share: nextest starts a process for each test, so that what a process
//! shares would serve one test.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, parent_id};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The directory below `parent` of a server that all test processes of this run of nextest share; `None` in any other
/// run. The first test that needs the server calls `start`, which starts each process of it by [`end_with_run`]; the
/// others wait until `start` has returned.
pub fn of_run(parent: &Path, name: &str, start: impl FnOnce(&Path)) -> Option<PathBuf> {
    let run = std::env::var("NEXTEST_RUN_ID").ok()?;
    let place = parent.join(format!("agentcfg-{name}-{run}"));
    fs::create_dir_all(&place).unwrap();
    let lock = File::create(place.join("lock")).unwrap();
    lock.lock().unwrap();
    if !place.join("started").exists() {
        start(&place);
        File::create(place.join("started")).unwrap();
    }
    Some(place)
}

/// Starts a process that ends, and whose directory is removed, when the run of nextest ends that this test belongs to.
#[expect(clippy::zombie_processes, reason = "it outlives this process")]
pub fn end_with_run(server: &Command, place: &Path) {
    const KEEPER: &str = "run=$1 place=$2; shift 2; \"$@\" & server=$!
        while kill -0 $run; do sleep 1; done
        kill -INT $server; wait $server; rm -rf \"$place\"";
    let mut keeper = Command::new("/bin/sh");
    keeper
        .args(["-c", KEEPER, "sh"])
        .arg(parent_id().to_string())
        .arg(place);
    keeper.arg(server.get_program()).args(server.get_args());
    // In a group of its own, so that the end of this test does not reach it.
    keeper.process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
    let log = File::options().create(true).append(true).open(place.join("log"));
    keeper.stderr(log.unwrap());
    keeper.spawn().unwrap();
}

/// A name that no other test process has used or will use, also where process ids repeat.
pub fn process_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let mut random = [0; 8];
        let mut file = File::open("/dev/urandom").unwrap();
        std::io::Read::read_exact(&mut file, &mut random).unwrap();
        super::hex(random)
    })
}
