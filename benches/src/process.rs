//! Child processes and their resource usage.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

/// A server in its own process; killed when dropped.
pub struct Server {
    child: Child,
    /// The address that it listens on.
    pub address: SocketAddr,
    /// The `name=value` lines that it printed before.
    pub facts: Vec<(String, String)>,
}

impl Server {
    /// Starts a program that prints `name=value` lines and then `listening on http://ADDRESS`.
    pub fn start(command: &mut Command) -> std::io::Result<Self> {
        let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn()?;
        let out = child.stdout.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
        let mut facts = Vec::new();
        for line in BufReader::new(out).lines() {
            let line = line?;
            if let Some(address) = line.strip_prefix("listening on http://") {
                let address = address.parse().map_err(std::io::Error::other)?;
                return Ok(Self { child, address, facts });
            }
            if let Some((name, value)) = line.split_once('=') {
                facts.push((name.to_owned(), value.to_owned()));
            }
        }
        Err(std::io::Error::other("the server ended before it listened"))
    }

    /// Asks the server to stop, and waits until it has exited.
    pub fn stop(mut self) -> std::io::Result<()> {
        let asked = Command::new("kill").arg(self.child.id().to_string()).status()?;
        if asked.success() {
            self.child.wait()?;
        }
        Ok(())
    }

    /// The value of a printed `name=value` line.
    pub fn fact(&self, name: &str) -> &str {
        self.facts
            .iter()
            .find(|(known, _)| known == name)
            .map_or("", |(_, value)| value)
    }

    /// Seconds of processor time used so far.
    pub fn cpu_seconds(&self) -> f64 {
        /// Clock ticks per second; Linux guarantees this value to user space.
        const TICKS: f64 = 100.0;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        // The process name is in parentheses and may contain spaces.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |i: usize| fields.get(i).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        (ticks(11) + ticks(12)) / TICKS
    }

    /// Resident memory in MiB.
    pub fn resident_mib(&self) -> f64 {
        self.memory_mib("VmRSS:")
    }

    /// The peak of resident memory in MiB since the start, or since [`Self::forget_peak`].
    pub fn peak_mib(&self) -> f64 {
        self.memory_mib("VmHWM:")
    }

    /// Resets the peak to the current resident memory.
    pub fn forget_peak(&self) -> std::io::Result<()> {
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5")
    }

    fn memory_mib(&self, field: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(field))
            .unwrap_or_default();
        line.split_whitespace()
            .next()
            .and_then(|text| text.parse::<f64>().ok())
            .unwrap_or(0.0)
            / 1024.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
