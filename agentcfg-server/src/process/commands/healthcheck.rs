//! `healthcheck`: asks the running server whether it is ready.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use agentcfg_core::tls;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use super::error::CommandError;
use super::stdout::say;
use crate::process::cli::SettingsArgs;
use crate::process::config::{Config, Flags, on_this_machine};
use crate::process::datadir::DataDir;
use crate::process::parts::trusted_proxies;

/// The time for the connection, and between two pieces of the answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What helps where the address of the server is not known.
const ADVICE: &str = "name the address with --listen, or set metrics_listen";

/// The longest answer that is read.
const LONGEST: u64 = 64 << 10;

pub(super) fn run(args: &SettingsArgs) -> Result<ExitCode, CommandError> {
    let flags = Flags {
        is_beside_server: true,
        ..Flags::from(args)
    };
    let config = Config::load(flags, std::env::vars_os())?;
    let target = Target::of(&config)?;
    let answer = target.ask().map_err(|error| target.failed(&error))?;
    let (status, text) = read_answer(&answer).ok_or_else(|| target.failed(&io::Error::other("no HTTP answer")))?;
    if status != 200 {
        return Err(format!("not ready: {} answers {status}: {text}", target.url()).into());
    }
    say!("{text}");
    Ok(ExitCode::SUCCESS)
}

/// Where the server answers.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    address: SocketAddr,
    is_tls: bool,
    /// Whether the server expects a header of the PROXY protocol from this machine.
    expects_proxy: bool,
}

impl Target {
    /// The address of the server with these settings. That of the metrics serves probes alone, so that connections of
    /// clients do not take their place.
    fn of(config: &Config) -> Result<Self, CommandError> {
        if let Some(address) = config.metrics_listen.filter(|address| address.port() != 0) {
            return Ok(Self {
                address: on_this_machine(address),
                is_tls: false,
                expects_proxy: false,
            });
        }
        let address = match config.listen.port() {
            0 => served_on(config, ADVICE).map_err(|error| format!("not ready: {error}"))?,
            _ => config.listen,
        };
        let address = on_this_machine(address);
        Ok(Self {
            address,
            is_tls: config.tls_cert.is_some(),
            // The connection comes from the address that it goes to.
            expects_proxy: config.proxy_protocol && trusted_proxies(config).has(address.ip()),
        })
    }

    fn url(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}/readyz", self.address)
    }

    fn failed(&self, error: &io::Error) -> String {
        let why = match error.kind() {
            io::ErrorKind::ConnectionRefused => "nothing listens there".to_owned(),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                format!("no answer within {} seconds", TIMEOUT.as_secs())
            }
            _ => error.to_string(),
        };
        format!(
            "not ready: cannot ask {}: {why}; the settings must be those of the running server",
            self.url()
        )
    }

    /// Everything that the server answers.
    fn ask(&self) -> io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect_timeout(&self.address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        if self.expects_proxy {
            // No client is behind this connection.
            stream.write_all(b"PROXY UNKNOWN\r\n")?;
        }
        let request = format!(
            "GET /readyz HTTP/1.1\r\nHost: {}\r\nUser-Agent: agentcfg-server-healthcheck\r\nConnection: close\r\n\r\n",
            self.address
        );
        match self.is_tls {
            true => exchange(encrypted(stream, self.address)?, &request),
            false => exchange(stream, &request),
        }
    }
}

/// The address of a server that has chosen its port, from its data directory. `advice` is for the case that there
/// is none.
pub(super) fn served_on(config: &Config, advice: &str) -> Result<SocketAddr, CommandError> {
    if config.is_shared() {
        return Err(
            format!("listen has port 0, and there is no data directory to look the port up in: {advice}").into(),
        );
    }
    let dir = DataDir::open(&config.data)?;
    dir.served_address().ok_or_else(|| {
        let dir = dir.path().display();
        format!("listen has port 0, and no server has written its address into {dir}: {advice}").into()
    })
}

fn exchange(mut stream: impl Read + Write, request: &str) -> io::Result<Vec<u8>> {
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    let mut answer = Vec::new();
    match stream.take(LONGEST).read_to_end(&mut answer) {
        // The end of a TLS connection without a farewell.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && !answer.is_empty() => Ok(answer),
        Err(error) => Err(error),
        Ok(_) => Ok(answer),
    }
}

fn encrypted(stream: TcpStream, address: SocketAddr) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    // As a kubelet does: the certificate is for the name that clients use, not for this address, and the question holds
    // no secret.
    let config = tls::unverified_builder()
        .map_err(io::Error::other)?
        .with_no_client_auth();
    let name = ServerName::from(address.ip());
    let connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(connection, stream))
}

/// The status and the body of an answer.
fn read_answer(answer: &[u8]) -> Option<(u16, String)> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some((status, body.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::datadir::TokenSource;

    fn target(change: impl FnOnce(&mut Config)) -> Result<Target, String> {
        let mut config = Config::default();
        change(&mut config);
        Target::of(&config).map_err(|error| error.to_string())
    }

    #[test]
    fn the_address_is_that_of_the_probes() {
        let at = |url: &str, is_tls| {
            Ok(Target {
                address: url.parse().unwrap(),
                is_tls,
                expects_proxy: false,
            })
        };
        assert_eq!(target(|_| {}), at("127.0.0.1:7420", false));
        let open = |config: &mut Config| config.listen = "0.0.0.0:443".parse().unwrap();
        assert_eq!(target(open), at("127.0.0.1:443", false));
        let encrypted = |config: &mut Config| {
            open(config);
            config.tls_cert = Some("cert.pem".into());
        };
        assert_eq!(target(encrypted), at("127.0.0.1:443", true));
        let metrics = |config: &mut Config| {
            encrypted(config);
            config.metrics_listen = "[::]:7421".parse().ok();
        };
        assert_eq!(target(metrics), at("[::1]:7421", false));
    }

    #[test]
    fn a_port_that_the_server_has_chosen_is_in_its_data_directory() {
        let dir = tempfile::tempdir().unwrap();
        let chosen = |config: &mut Config| {
            config.listen = "127.0.0.1:0".parse().unwrap();
            config.data = dir.path().to_owned();
        };
        assert!(target(chosen).unwrap_err().contains("--listen"));
        let mut lock = DataDir::open(dir.path()).unwrap().lock().unwrap();
        lock.announce("127.0.0.1:1234", TokenSource::Directory).unwrap();
        assert_eq!(target(chosen).unwrap().url(), "http://127.0.0.1:1234/readyz");
    }

    #[test]
    fn an_answer_is_read() {
        let answer = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\n{}\n";
        assert_eq!(read_answer(answer), Some((503, "{}".to_owned())));
        for none in [&b""[..], b"SSH-2.0\r\n", b"HTTP/1.1 2\r\n\r\n"] {
            assert_eq!(read_answer(none), None);
        }
    }
}
