//! Runs each target over its corpus and over mutations of it, with a bound of time for each input and of memory for
//! all.
//!
//! `AGENTCFG_FUZZ_SECONDS` and `AGENTCFG_FUZZ_SEED` run each target for a time, from another seed; `AGENTCFG_FUZZ_FILE`
//! runs it on one file.

#![allow(clippy::disallowed_methods, reason = "it measures how long an input takes")]

use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, fs, panic};

use agentcfg_fuzz_targets::{TARGETS, mutate};
use fastrand::Rng;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// The mutations of a target where no time is given.
const MUTATIONS: u32 = 3000;

/// How much time of the processor one input may take. One of 64 KiB takes some milliseconds without optimisation.
const SLOW: Duration = Duration::from_secs(1);

/// How long one input may take on a busy machine. A longer one waits for something.
const STUCK: Duration = Duration::from_secs(30);

/// The memory of the process, in bytes: an allocation beyond it aborts the test.
const MEMORY: u64 = 2 << 30;

/// The time of the processor that this thread has used. All work of a target is on it.
fn time_of_thread() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number, got {text}")),
    )
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(name);
    let entries = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn try_out(name: &str) {
    let limit = getrlimit(Resource::Data);
    let bounded = Rlimit {
        current: Some(MEMORY.min(limit.maximum.unwrap_or(MEMORY))),
        ..limit
    };
    setrlimit(Resource::Data, bounded).unwrap();
    let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).unwrap();
    if let Some(file) = env::var_os("AGENTCFG_FUZZ_FILE") {
        let input = fs::read(file).unwrap();
        let worked = time_of_thread();
        target(&input);
        println!("{name}: {} bytes took {:?}", input.len(), time_of_thread() - worked);
        return;
    }
    let corpus = corpus(name);
    assert!(!corpus.is_empty(), "{name} has a corpus");
    let mut rng = Rng::with_seed(number("AGENTCFG_FUZZ_SEED").unwrap_or(1));
    let until = number("AGENTCFG_FUZZ_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut inputs = 0;
    let mut slowest = (Duration::ZERO, 0);
    loop {
        let input = match corpus.get(inputs as usize) {
            Some(input) => input.clone(),
            None => mutate::mutation(&corpus, &mut rng),
        };
        let (start, worked) = (Instant::now(), time_of_thread());
        let outcome = panic::catch_unwind(|| target(&input));
        let taken = time_of_thread() - worked;
        if outcome.is_err() || taken > SLOW || start.elapsed() > STUCK {
            let path = env::temp_dir().join(format!("agentcfg-fuzz-{name}-{inputs}"));
            fs::write(&path, &input).unwrap();
            let path = path.display();
            panic!("input {inputs} of {name}, kept in {path}: {outcome:?} after {taken:?}");
        }
        slowest = slowest.max((taken, input.len()));
        inputs += 1;
        let goes_on = match until {
            Some(until) => Instant::now() < until,
            None => inputs < MUTATIONS + corpus.len() as u32,
        };
        if !goes_on {
            break;
        }
    }
    println!(
        "{name}: {inputs} inputs, the slowest took {:?} for {} bytes",
        slowest.0, slowest.1
    );
}

macro_rules! targets {
    ($($name:ident)+) => {
        $(
            #[test]
            fn $name() {
                try_out(stringify!($name));
            }
        )+

        #[test]
        fn every_target_is_tried_out_and_has_a_program() {
            let tried = [$(stringify!($name)),+];
            let known: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(tried.as_slice(), known);
            for name in known {
                let program = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fuzz/fuzz_targets/{name}.rs"));
                let text = fs::read_to_string(&program).unwrap_or_else(|error| panic!("{}: {error}", program.display()));
                assert!(text.contains(&format!("run(\"{name}\", input)")), "{text}");
            }
        }
    };
}

targets! {
    agent_files backups bodies config_files credentials cursors envelopes http_heads mcp queries requests session_tokens webhook_urls
}
