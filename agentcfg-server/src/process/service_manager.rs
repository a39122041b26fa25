//! Messages to the service manager, in the protocol of `sd_notify(3)`: ready, stopping, the status line and the
//! watchdog.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use std::time::Duration;

use agentcfg_core::AgentCfg;

/// Longest time that a message may wait for room in the manager's socket. The next message tries again.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// The interval at which the status line follows the state of storage.
const STATUS_EVERY: Duration = Duration::from_secs(10);

/// What the start and the end may take beyond their own settings: recovery of the store, and its last commit.
const MARGIN: Duration = Duration::from_secs(60);

/// The service manager that started this process, or none.
///
/// A message that cannot be sent is logged and does not stop the server, as `sd_notify(3)` recommends.
pub struct ServiceManager {
    socket: Option<(UnixDatagram, UnixAddress)>,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// Reads `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID` with this function. Without the first, no message is
    /// sent.
    pub fn from_env(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let socket = variable("NOTIFY_SOCKET").and_then(|name| match open(&name) {
            Ok(opened) => Some(opened),
            Err(error) => {
                tracing::warn!(name = %name.display(), %error, "cannot use NOTIFY_SOCKET, the service manager gets no messages");
                None
            }
        });
        let watchdog = match watchdog(&variable) {
            Ok(watchdog) => watchdog,
            Err(fault) => {
                tracing::warn!(fault, "the watchdog gets no messages");
                None
            }
        };
        Self { socket, watchdog }
    }

    /// The store is being opened, which may take this long for a database that does not answer yet.
    pub fn opening(&self, wait: Duration) {
        self.send(&format!("STATUS=opening the store\n{}", extend(wait)));
    }

    /// Requests are answered.
    pub fn ready(&self, url: &str) {
        self.send(&format!("READY=1\nSTATUS=serving on {url}"));
    }

    /// Requests in flight are finished, which may take this long.
    pub fn stopping(&self, timeout: Duration) {
        self.send(&format!(
            "STOPPING=1\nSTATUS=finishing requests in flight\n{}",
            extend(timeout)
        ));
    }

    /// Tells the watchdog twice in its interval that the process is alive, for ever.
    ///
    /// It is a task among those that answer requests: when they are stuck, so is this one, and the manager restarts the
    /// process. An outage of the database does not end it, because a restart would not help.
    pub async fn keep_alive(&self) {
        let (Some(limit), Some(_)) = (self.watchdog, &self.socket) else {
            return;
        };
        let mut due = tokio::time::interval(limit / 2);
        due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            due.tick().await;
            self.send("WATCHDOG=1");
        }
    }

    /// Writes into the status line when storage stops to answer, and when it answers again, for ever.
    pub async fn follow_storage(&self, service: AgentCfg, url: &str) -> Infallible {
        if self.socket.is_none() {
            drop(service);
            return std::future::pending().await;
        }
        let mut was_ready = true;
        loop {
            tokio::time::sleep(STATUS_EVERY).await;
            let is_ready = service.ready().await.is_ok();
            if is_ready != was_ready {
                let note = if is_ready { "" } else { ", but storage does not answer" };
                self.send(&format!("STATUS=serving on {url}{note}"));
            }
            was_ready = is_ready;
        }
    }

    fn send(&self, message: &str) {
        let Some((socket, manager)) = &self.socket else { return };
        if let Err(error) = socket.send_to_addr(message.as_bytes(), manager) {
            tracing::warn!(message, %error, "could not send a message to the service manager");
        }
    }
}

/// The request for more time than the manager's own timeout.
fn extend(time: Duration) -> String {
    format!("EXTEND_TIMEOUT_USEC={}", (time + MARGIN).as_micros())
}

fn open(name: &OsStr) -> io::Result<(UnixDatagram, UnixAddress)> {
    let address = match name.as_bytes() {
        [b'@', name @ ..] => abstract_address(name)?,
        [b'/', ..] => UnixAddress::from_pathname(name)?,
        _ => return Err(io::Error::other("must be an absolute path, or @ and an abstract name")),
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(SEND_TIMEOUT))?;
    Ok((socket, address))
}

#[cfg(target_os = "linux")]
fn abstract_address(name: &[u8]) -> io::Result<UnixAddress> {
    use std::os::linux::net::SocketAddrExt;
    UnixAddress::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn abstract_address(_: &[u8]) -> io::Result<UnixAddress> {
    Err(io::Error::other("this system has no abstract sockets"))
}

/// The interval of the watchdog, if it watches this process.
fn watchdog(variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<Duration>, &'static str> {
    let number = |value: OsString| value.to_str().and_then(|text| text.parse::<u64>().ok());
    let Some(micros) = variable("WATCHDOG_USEC") else {
        return Ok(None);
    };
    let micros = number(micros)
        .filter(|micros| *micros > 0)
        .ok_or("WATCHDOG_USEC must be a positive number of microseconds")?;
    let watched = match variable("WATCHDOG_PID") {
        Some(pid) => number(pid).ok_or("WATCHDOG_PID must be a process id")?,
        None => std::process::id().into(),
    };
    Ok((watched == u64::from(std::process::id())).then(|| Duration::from_micros(micros)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::backend::Backend;
    use crate::process::config::Config;

    /// A manager's socket, and what a process that it starts finds in its environment.
    struct Manager {
        socket: UnixDatagram,
        env: Vec<(&'static str, OsString)>,
    }

    impl Manager {
        fn at(socket: UnixDatagram, name: impl Into<OsString>) -> Self {
            socket.set_nonblocking(true).unwrap();
            let env = vec![("NOTIFY_SOCKET", name.into())];
            Self { socket, env }
        }

        fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
            self.env.push((name, value.into()));
            self
        }

        fn started(&self) -> ServiceManager {
            from(&self.env)
        }

        /// The next message, if there is one.
        fn message(&self) -> Option<String> {
            let mut bytes = [0; 512];
            let length = self.socket.recv(&mut bytes).ok()?;
            Some(String::from_utf8(bytes[..length].to_vec()).unwrap())
        }
    }

    fn from(env: &[(&'static str, OsString)]) -> ServiceManager {
        ServiceManager::from_env(|asked| {
            let found = env.iter().find(|(name, _)| *name == asked);
            found.map(|(_, value)| value.clone())
        })
    }

    fn in_a_directory(dir: &tempfile::TempDir) -> Manager {
        let path = dir.path().join("notify");
        Manager::at(UnixDatagram::bind(&path).unwrap(), path)
    }

    const URL: &str = "http://127.0.0.1:7420";

    #[test]
    fn messages_have_the_words_of_the_protocol() {
        let dir = tempfile::tempdir().unwrap();
        let manager = in_a_directory(&dir);
        let started = manager.started();
        started.opening(Duration::from_secs(30));
        assert_eq!(
            manager.message().unwrap(),
            "STATUS=opening the store\nEXTEND_TIMEOUT_USEC=90000000"
        );
        started.ready(URL);
        assert_eq!(
            manager.message().unwrap(),
            "READY=1\nSTATUS=serving on http://127.0.0.1:7420"
        );
        started.stopping(Duration::from_secs(5));
        assert_eq!(
            manager.message().unwrap(),
            "STOPPING=1\nSTATUS=finishing requests in flight\nEXTEND_TIMEOUT_USEC=65000000"
        );
        assert_eq!(manager.message(), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_abstract_socket_is_reached() {
        let name = format!("agentcfg-test-{}", std::process::id());
        let socket = UnixDatagram::bind_addr(&abstract_address(name.as_bytes()).unwrap()).unwrap();
        let manager = Manager::at(socket, format!("@{name}"));
        manager.started().ready(URL);
        assert!(manager.message().unwrap().starts_with("READY=1\n"));
    }

    #[test]
    fn without_a_usable_socket_nothing_is_sent_and_nothing_fails() {
        assert!(from(&[]).socket.is_none());
        for name in ["", "notify", "vsock:2:1", "/nul\0l"] {
            let none = from(&[("NOTIFY_SOCKET", name.into())]);
            assert!(none.socket.is_none(), "{name:?}");
            none.ready(URL);
        }
        let gone = from(&[("NOTIFY_SOCKET", "/nonexistent/notify".into())]);
        gone.ready(URL);
    }

    #[test]
    fn a_full_socket_delays_a_message_and_does_not_block_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let manager = in_a_directory(&dir);
        let started = manager.started();
        let (socket, to) = started.socket.as_ref().unwrap();
        socket.set_nonblocking(true).unwrap();
        while socket.send_to_addr(b"X", to).is_ok() {}
        socket.set_nonblocking(false).unwrap();
        started.ready(URL);
        while manager.message().as_deref() == Some("X") {}
        started.ready(URL);
        assert!(manager.message().unwrap().starts_with("READY=1\n"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_watchdog_is_told_twice_in_its_interval() {
        let dir = tempfile::tempdir().unwrap();
        let manager = in_a_directory(&dir).with("WATCHDOG_USEC", "20000000");
        let started = manager.started();
        let ended = tokio::time::timeout(Duration::from_secs(35), started.keep_alive()).await;
        assert!(ended.is_err(), "it goes on");
        for second in [0, 10, 20, 30] {
            assert_eq!(manager.message().as_deref(), Some("WATCHDOG=1"), "second {second}");
        }
        assert_eq!(manager.message(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_status_line_follows_storage() {
        let dir = tempfile::tempdir().unwrap();
        let manager = in_a_directory(&dir);
        let started = manager.started();
        let config = Config {
            data: dir.path().join("data"),
            ..Config::default()
        };
        let backend = Backend::open(&config).await.unwrap();
        let service = AgentCfg::builder(backend.store()).build();
        let following = started.follow_storage(service, URL);
        let mut following = std::pin::pin!(following);
        let mut seconds = async |seconds| {
            let passed = tokio::time::timeout(Duration::from_secs(seconds), &mut following).await;
            assert!(passed.is_err(), "it goes on");
        };
        seconds(25).await;
        assert_eq!(manager.message(), None, "nothing has changed");
        backend.close().await;
        seconds(25).await;
        assert_eq!(
            manager.message().unwrap(),
            "STATUS=serving on http://127.0.0.1:7420, but storage does not answer"
        );
        assert_eq!(manager.message(), None);
    }

    #[tokio::test]
    async fn a_watchdog_of_another_process_or_without_an_interval_is_told_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let own = std::process::id().to_string();
        for (usec, pid) in [
            ("20000000", "1"),
            ("20000000", "x"),
            ("0", &own),
            ("-1", &own),
            ("2s", &own),
            ("", &own),
        ] {
            let manager = in_a_directory(&dir)
                .with("WATCHDOG_USEC", usec)
                .with("WATCHDOG_PID", pid);
            manager.started().keep_alive().await;
            assert_eq!(manager.message(), None, "{usec} {pid}");
            std::fs::remove_file(dir.path().join("notify")).unwrap();
        }
        let watching = in_a_directory(&dir)
            .with("WATCHDOG_USEC", "1000000")
            .with("WATCHDOG_PID", own);
        assert_eq!(watching.started().watchdog, Some(Duration::from_secs(1)));
    }
}
