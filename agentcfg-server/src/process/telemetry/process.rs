//! What every process exposes to Prometheus: memory, processor time, open files, start. The names are those that its
//! client libraries have agreed on, and the numbers are those of Linux.

use std::fs;
use std::sync::atomic::AtomicU64;

use agentcfg_core::clock::{Clock, SystemClock};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

/// The metrics of this process.
#[derive(Debug)]
pub(super) struct ProcessMetrics {
    cpu: Counter<f64, AtomicU64>,
    resident: Gauge,
    virtual_memory: Gauge,
    open_files: Gauge,
    registry: Registry,
}

impl ProcessMetrics {
    /// The metrics, where the system tells them.
    pub(super) fn new() -> Option<Self> {
        let now = Numbers::read()?;
        let made = Self {
            cpu: Counter::default(),
            resident: Gauge::default(),
            virtual_memory: Gauge::default(),
            open_files: Gauge::default(),
            registry: Registry::default(),
        };
        Some(made.registered(&now))
    }

    fn registered(mut self, now: &Numbers) -> Self {
        let all = &mut self.registry;
        let help = "Total user and system CPU time spent";
        all.register_with_unit("process_cpu", help, Unit::Seconds, self.cpu.clone());
        let help = "Resident memory size";
        all.register_with_unit("process_resident_memory", help, Unit::Bytes, self.resident.clone());
        let help = "Virtual memory size";
        all.register_with_unit("process_virtual_memory", help, Unit::Bytes, self.virtual_memory.clone());
        all.register(
            "process_open_fds",
            "Number of open file descriptors",
            self.open_files.clone(),
        );
        let most = Gauge::<i64>::default();
        most.set(max_open_files());
        all.register("process_max_fds", "Maximum number of open file descriptors", most);
        let start = Gauge::<f64, AtomicU64>::default();
        start.set(start_time(now));
        let help = "Start time of the process since the Unix epoch";
        all.register_with_unit("process_start_time", help, Unit::Seconds, start);
        self
    }

    /// The registry with the numbers of this moment.
    pub(super) fn render(&self) -> &Registry {
        if let Some(now) = Numbers::read() {
            self.cpu.inc_by((now.cpu_seconds - self.cpu.get()).max(0.0));
            self.resident.set(now.resident_bytes);
            self.virtual_memory.set(now.virtual_bytes);
        }
        if let Ok(files) = fs::read_dir("/proc/self/fd") {
            // One of them is the directory itself.
            let count = files.count().saturating_sub(1);
            self.open_files.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        &self.registry
    }
}

/// The numbers of a process in `/proc/self/stat`.
#[derive(Debug, PartialEq)]
struct Numbers {
    cpu_seconds: f64,
    /// Seconds between the start of the system and that of the process.
    started: f64,
    virtual_bytes: i64,
    resident_bytes: i64,
}

impl Numbers {
    fn read() -> Option<Self> {
        let text = fs::read_to_string("/proc/self/stat").ok()?;
        let page = i64::try_from(page_size()).ok()?;
        Self::of(&text, clock_ticks_per_second(), page)
    }

    fn of(text: &str, ticks_per_second: u64, page: i64) -> Option<Self> {
        // The name of the program, in parentheses, may contain anything.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<f64>().ok();
        let whole = |at: usize| fields.get(at)?.parse::<i64>().ok();
        #[allow(clippy::cast_precision_loss, reason = "a small number")]
        let ticks = ticks_per_second as f64;
        Some(Self {
            cpu_seconds: (number(11)? + number(12)?) / ticks,
            started: number(19)? / ticks,
            virtual_bytes: whole(20)?,
            resident_bytes: whole(21)?.saturating_mul(page),
        })
    }
}

/// When the process was started, in seconds since 1970. The files of the whole system may be hidden, so the clock tells
/// when it was started.
fn start_time(now: &Numbers) -> f64 {
    let since_boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    #[allow(clippy::cast_precision_loss, reason = "seconds of this century")]
    let (up, unix) = (since_boot.tv_sec as f64, SystemClock.now().unix_millis() as f64 / 1e3);
    unix - (up - now.started).max(0.0)
}

/// The limit of open files; the greatest number where there is none.
fn max_open_files() -> i64 {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(i64::MAX, |limit| i64::try_from(limit).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn the_numbers_are_read_whatever_the_program_is_called() {
        let text = "4242 (a) b (c) S 1 4242 4242 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 5 0 7000 123456789 2500 184467 1 1 0 0";
        let expected = Numbers {
            cpu_seconds: 2.0,
            started: 70.0,
            virtual_bytes: 123_456_789,
            resident_bytes: 2500 * 4096,
        };
        assert_eq!(Numbers::of(text, 100, 4096), Some(expected));
        for short in ["", "4242 (a) S 1", "4242 a S 1 2"] {
            assert_eq!(Numbers::of(short, 100, 4096), None);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_metrics_of_this_process_are_plausible() {
        let metrics = ProcessMetrics::new().unwrap();
        let mut text = String::new();
        encode(&mut text, metrics.render()).unwrap();
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
            line.unwrap_or_else(|| panic!("{name} in {text}"))
                .parse::<f64>()
                .unwrap()
        };
        assert!(value("process_resident_memory_bytes") > 1e6);
        assert!(value("process_virtual_memory_bytes") >= value("process_resident_memory_bytes"));
        assert!(value("process_cpu_seconds_total") >= 0.0);
        assert!(value("process_open_fds") >= 3.0 && value("process_open_fds") <= value("process_max_fds"));
        let age = SystemClock.now().unix_millis() as f64 / 1e3 - value("process_start_time_seconds");
        assert!((-2.0..3600.0).contains(&age), "{age}");
    }
}
