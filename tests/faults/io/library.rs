//! The library that makes calls of a server fail, built from `faults.c`.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;

use agentcfg_tests::harness::{Builder, scratch};
use tempfile::TempDir;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/faults/io/faults.c");

/// The numbers of the plan that the library and the test share, as in `faults.c`.
const PLAN: usize = 8;
const CALLS: usize = 6;
const FAILED: usize = 7;

/// Kinds of calls.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Kinds(u64);

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::READS => "reads",
            Self::WRITES => "writes",
            Self::SYNCS => "syncs",
            Self::RESIZES => "resizes",
            Self::CHANGES => "all but reads",
            _ => "none",
        })
    }
}

impl Kinds {
    pub const READS: Self = Self(1);
    pub const WRITES: Self = Self(2);
    pub const SYNCS: Self = Self(4);
    pub const RESIZES: Self = Self(8);
    /// All but reads.
    pub const CHANGES: Self = Self(2 + 4 + 8);

    pub const EACH: [Self; 5] = [Self::READS, Self::WRITES, Self::SYNCS, Self::RESIZES, Self::CHANGES];
}

/// Calls that fail.
#[derive(Debug, Clone, Default)]
pub struct Fault {
    pub kinds: Kinds,
    /// How many calls of these kinds succeed before.
    pub first: u64,
    pub count: u64,
    /// The error number.
    pub error: i32,
    /// Whether a failing sync undoes the writes since the last one.
    pub reverts: bool,
}

/// The built library and the plan.
pub struct Library {
    dir: TempDir,
    plan: File,
}

impl Library {
    /// Builds it; none without a C compiler.
    pub fn build() -> Option<Self> {
        let dir = scratch();
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"]);
        command
            .arg(dir.path().join("faults.so"))
            .arg(SOURCE)
            .args(["-ldl", "-lpthread"]);
        let output = command.output().ok()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let path = dir.path().join("plan");
        fs::write(&path, [0; PLAN * 8]).unwrap();
        let plan = File::options().read(true).write(true).open(&path).unwrap();
        Some(Self { dir, plan })
    }

    /// A server that runs with the library.
    pub fn load_into(&self, builder: Builder) -> Builder {
        builder
            .env("LD_PRELOAD", self.dir.path().join("faults.so"))
            .env("FAULT_PLAN", self.dir.path().join("plan"))
    }

    /// Chooses the file whose calls count.
    pub fn choose(&self, path: &Path) {
        self.write(0, &[fs::metadata(path).unwrap().ino()]);
    }

    /// Makes these calls fail from now on.
    pub fn set(&self, fault: &Fault) {
        // Without kinds nothing is counted, so that the change of the plan is seen as one.
        self.write(1, &[0]);
        let error = fault.error.unsigned_abs().into();
        self.write(2, &[fault.first, fault.count, error, fault.reverts.into(), 0, 0]);
        self.write(1, &[fault.kinds.0]);
    }

    /// Makes all calls work again; returns how many have failed.
    pub fn work(&self) -> u64 {
        self.write(1, &[0]);
        self.read(FAILED)
    }

    /// The calls that were counted since the last fault was set.
    pub fn calls(&self) -> u64 {
        self.read(CALLS)
    }

    fn write(&self, at: usize, numbers: &[u64]) {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        self.plan.write_all_at(&bytes, at as u64 * 8).unwrap();
    }

    fn read(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        self.plan.read_exact_at(&mut bytes, at as u64 * 8).unwrap();
        u64::from_ne_bytes(bytes)
    }
}
