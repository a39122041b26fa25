//! A slow network: a proxy that delays what passes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::stats::Series;

/// Starts a proxy to a local port. What a client sends arrives after this delay, and so does what the server sends; the
/// proxy ends with the process. Returns the proxy's port.
///
/// # Errors
///
/// If there is no port.
pub fn delayed(port: u16, delay: Duration) -> Result<u16, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            if let Err(error) = connect(client, port, delay) {
                eprintln!("the slow network: {error}");
            }
        }
    });
    Ok(address.port())
}

fn connect(client: TcpStream, port: u16, delay: Duration) -> std::io::Result<()> {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    pass(client.try_clone()?, server.try_clone()?, delay);
    pass(server, client, delay);
    Ok(())
}

/// Passes bytes on after the delay. Threads, because the timers of an async runtime are exact to a millisecond only.
fn pass(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let (packets, arriving) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if packets
                .send((Instant::now() + delay, buffer[..length].to_vec()))
                .is_err()
            {
                return;
            }
        }
    });
    thread::spawn(move || {
        // By default the kernel delays a wake-up by up to 50 µs to save power.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1_000));
        while let Ok((at, bytes)) = arriving.recv() {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                return;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}

/// The median time of a round trip of one byte over a network with this delay in each direction, in milliseconds, at
/// this rate.
///
/// At a low rate the processors sleep in between, and each process on the way takes longer to wake up. Requests at that
/// rate meet the same machine.
///
/// # Errors
///
/// If the connection breaks.
pub fn round_trip(delay: Duration, per_second: f64) -> Result<f64, Failure> {
    let echo = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = delayed(echo.local_addr()?.port(), delay)?;
    thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = echo.accept()?;
        stream.set_nodelay(true)?;
        let mut byte = [0];
        while stream.read(&mut byte)? == 1 {
            stream.write_all(&byte)?;
        }
        Ok(())
    });
    let mut stream = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    stream.set_nodelay(true)?;
    let mut times = Series::new();
    let interval = Duration::from_secs_f64(1.0 / per_second);
    let mut due = Instant::now();
    for _ in 0..200 {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        due += interval;
        let started = Instant::now();
        stream.write_all(b"?")?;
        stream.read_exact(&mut [0])?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    Ok(times.median())
}
