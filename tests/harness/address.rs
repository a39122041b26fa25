//! Addresses for programs that cannot listen on port 0 and tell their port.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::process::geteuid;

/// Below the ports that the system assigns to listeners on port 0 and to connections, so that neither takes one in the
/// time between the choice and the start of the program.
const FIRST: u16 = 12_000;
const PORTS: u16 = 20_000;

/// An address of this machine on which nothing listens. No other call gets it as long as this process runs, nor do the
/// tests in other processes.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    static RESERVED: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let locks = std::env::temp_dir().join(format!("agentcfg-test-ports-{}", geteuid().as_raw()));
    fs::create_dir_all(&locks).unwrap();
    // Each process begins elsewhere. The multiplier has no factor in common with the number of ports.
    let begin = std::process::id().wrapping_mul(7919) % u32::from(PORTS);
    for _ in 0..PORTS {
        let number = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = FIRST + u16::try_from((begin + number) % u32::from(PORTS)).unwrap();
        let Ok(lock) = File::create(locks.join(port.to_string())) else {
            continue;
        };
        // The lock ends with the file, and so with the process.
        if lock.try_lock().is_err() {
            continue;
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() {
            RESERVED.lock().unwrap_or_else(PoisonError::into_inner).push(lock);
            return address;
        }
    }
    panic!("no port from {FIRST} to {} is free", FIRST + PORTS - 1);
}
