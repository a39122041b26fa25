//! Backups through the running server: one that was finished restores, and holds what was acknowledged before it began.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use agentcfg_tests::harness::{Server, Studio, run};

use super::keys::Known;
use super::log;

/// A finished backup.
pub struct Backup {
    path: PathBuf,
    /// The revision that was acknowledged before it began.
    floor: u64,
}

/// Makes backups until the server is gone.
pub fn make(studio: &Studio<'_>, dir: &Path, floor: u64, stop: &AtomicBool) -> Vec<Backup> {
    let mut finished = Vec::new();
    let mut floor = floor;
    while !stop.load(Ordering::SeqCst) {
        let path = dir.join(format!("backup-{}", finished.len()));
        let made = run([
            "backup".as_ref(),
            "--data".as_ref(),
            studio.server.data().as_os_str(),
            "--out".as_ref(),
            path.as_os_str(),
        ]);
        assert!(!made.stderr.contains("panicked"), "{made:?}");
        if !made.status.success() {
            break;
        }
        finished.push(Backup { path, floor });
        match log::try_last(studio) {
            Some(last) => floor = last,
            None => break,
        }
    }
    finished
}

impl Backup {
    /// Restores it and compares it with the store that it was made of.
    pub fn verify(self, studio: &Studio<'_>, keys: &[Known], start: impl FnOnce(&Path) -> Server) {
        let dir = self.path.with_extension("restored");
        let data = studio.server.data();
        let [from, to] = [&self.path, &dir].map(|path| path.to_str().unwrap());
        run(["restore", "--from", from, "--data", to]).succeeded();
        for secret in ["master.key", "session.key"] {
            fs::copy(data.join(secret), dir.join(secret)).unwrap();
        }
        let restored = start(&dir);
        let copy = Studio {
            server: &restored,
            ..studio.clone()
        };
        let entries = log::since(&copy, 0);
        let last = entries.len() as u64;
        assert!(
            last >= self.floor,
            "the backup ends at {last}, {} was acknowledged",
            self.floor
        );
        let original = log::since(studio, 0);
        assert_eq!(entries, original[..entries.len()], "the log of a backup");
        let then = studio
            .list_request(&format!("&revision={last}"))
            .send()
            .expect(200)
            .json();
        assert_eq!(copy.list().json(), then, "the list of a backup at {last}");
        let target = format!("/api/agents/configs?workspace_id={}&limit=1", studio.id);
        for known in keys {
            let expected = if known.is_live_after(&entries) { 200 } else { 401 };
            let answer = restored.get(&target).bearer(&known.key.key).send();
            assert_eq!(answer.status, expected, "{known:?}: {answer:?}");
        }
        restored.stop();
        run(["check", "--data", to]).succeeded();
        fs::remove_dir_all(dir).unwrap();
    }
}
