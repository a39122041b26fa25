//! An etcd cluster for one benchmark.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Failure;

/// The limits that `docs/etcd.md` names.
const LIMITS: [&str; 4] = [
    "--max-txn-ops=10000",
    "--max-request-bytes=10485760",
    "--auto-compaction-retention=10m",
    "--quota-backend-bytes=8589934592",
];

/// A cluster of three members on this machine with its default durability, in a temporary directory.
pub struct EtcdCluster {
    directory: tempfile::TempDir,
    members: Vec<(Child, u16)>,
}

impl EtcdCluster {
    /// Starts the members, and waits until they have a leader.
    ///
    /// # Errors
    ///
    /// Without the programs `etcd` and `etcdctl`, or when the cluster does not answer within half a minute.
    pub fn start() -> Result<Self, Failure> {
        let ports = (0..6).map(|_| free_port()).collect::<Result<Vec<_>, _>>()?;
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let initial: Vec<_> = (0..3)
            .map(|number| format!("m{number}={}", url(ports[number])))
            .collect();
        let mut cluster = Self {
            directory: tempfile::tempdir()?,
            members: Vec::new(),
        };
        for number in 0..3 {
            let (peer, client) = (url(ports[number]), url(ports[3 + number]));
            let name = format!("m{number}");
            let member = Command::new("etcd")
                .args(["--name", &name, "--data-dir"])
                .arg(cluster.directory.path().join(&name))
                .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
                .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
                .args([
                    "--initial-cluster",
                    &initial.join(","),
                    "--logger=zap",
                    "--log-level=error",
                ])
                .args(LIMITS)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(File::create(cluster.log(&name))?)
                .spawn()
                .map_err(|_| "etcd is missing: apt-get install etcd-server")?;
            cluster.members.push((member, ports[3 + number]));
        }
        let started = Instant::now();
        while !cluster.answers()? {
            if started.elapsed() > Duration::from_secs(30) {
                return Err(std::fs::read_to_string(cluster.log("m0"))?.into());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(cluster)
    }

    /// The addresses of the members.
    pub fn endpoints(&self) -> String {
        let addresses: Vec<_> = self
            .members
            .iter()
            .map(|(_, port)| format!("http://127.0.0.1:{port}"))
            .collect();
        addresses.join(",")
    }

    fn log(&self, member: &str) -> PathBuf {
        self.directory.path().join(format!("{member}.log"))
    }

    fn answers(&self) -> Result<bool, Failure> {
        let status = Command::new("etcdctl")
            .env("ETCDCTL_API", "3")
            .args(["--endpoints", &self.endpoints(), "--command-timeout=2s", "get", "none"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .map_err(|_| "etcdctl is missing: apt-get install etcd-client")?;
        Ok(status.success())
    }
}

impl Drop for EtcdCluster {
    fn drop(&mut self) {
        for (member, _) in &mut self.members {
            let _ = member.kill();
            let _ = member.wait();
        }
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
