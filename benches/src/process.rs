//! Child processes and their resource usage.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server in its own process; ended when dropped.
pub struct Server {
    child: Child,
    /// Whether it has child processes, which it ends itself when it is asked to.
    has_children: bool,
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
                return Ok(Self {
                    child,
                    has_children: false,
                    address,
                    facts,
                });
            }
            if let Some((name, value)) = line.split_once('=') {
                facts.push((name.to_owned(), value.to_owned()));
            }
        }
        Err(std::io::Error::other("the server ended before it listened"))
    }

    /// Starts a program that is told where to listen and may have child processes, and waits until it listens.
    ///
    /// # Errors
    ///
    /// If it does not start, or does not listen in time.
    pub fn start_at(command: &mut Command, address: SocketAddr) -> std::io::Result<Self> {
        const ATTEMPTS: usize = 4000;
        let child = command.stdin(Stdio::null()).spawn()?;
        let mut server = Self {
            child,
            has_children: true,
            address,
            facts: Vec::new(),
        };
        for _ in 0..ATTEMPTS {
            if TcpStream::connect(address).is_ok() {
                return Ok(server);
            }
            if let Some(status) = server.child.try_wait()? {
                return Err(std::io::Error::other(format!("the server ended with {status}")));
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        Err(std::io::ErrorKind::TimedOut.into())
    }

    /// Asks the server to stop, and waits until it has exited.
    pub fn stop(mut self) -> std::io::Result<()> {
        self.ask_to_stop()
    }

    fn ask_to_stop(&mut self) -> std::io::Result<()> {
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

    /// Seconds of processor time that the process and its child processes have used so far.
    pub fn cpu_seconds(&self) -> f64 {
        self.processes().into_iter().map(cpu_seconds).sum()
    }

    /// Waits until the process does hardly anything, such as for callers that have left.
    pub fn wait_until_idle(&self) {
        const LOOK: Duration = Duration::from_millis(100);
        const LOOKS: usize = 200;
        for _ in 0..LOOKS {
            let before = self.cpu_seconds();
            std::thread::sleep(LOOK);
            if self.cpu_seconds() - before <= 0.01 {
                return;
            }
        }
    }

    /// Resident memory of the process and its child processes in MiB.
    pub fn resident_mib(&self) -> f64 {
        self.processes().into_iter().map(|id| memory_mib(id, "VmRSS:")).sum()
    }

    /// The peak of resident memory in MiB since the start, or since [`Self::forget_peak`].
    pub fn peak_mib(&self) -> f64 {
        memory_mib(self.child.id(), "VmHWM:")
    }

    /// Resets the peak to the current resident memory.
    pub fn forget_peak(&self) -> std::io::Result<()> {
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5")
    }

    /// The process and its child processes.
    fn processes(&self) -> Vec<u32> {
        let own = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|id| id.parse().ok());
        std::iter::once(own).chain(children).collect()
    }
}

fn memory_mib(process: u32, field: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .unwrap_or_default();
    let kib = line.split_whitespace().next().and_then(|text| text.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

/// An address for a program that needs a port by its number: one that was free a moment ago.
///
/// # Errors
///
/// If no port is free.
pub fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

/// Seconds of processor time that a process has used so far.
fn cpu_seconds(process: u32) -> f64 {
    /// Clock ticks per second; Linux guarantees this value to user space.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The process name is in parentheses and may contain spaces.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / TICKS
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.has_children && self.ask_to_stop().is_ok() {
            return;
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
