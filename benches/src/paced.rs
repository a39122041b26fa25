//! An open-loop load generator at a fixed rate: requests are sent when they are due, whether or not the server
//! keeps up, and the latency counts from then. So a server that stalls is charged for every delayed request and not
//! only for one (no coordinated omission).

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU64;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::response;

/// The longest wait for a response; a server that takes longer is broken.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The rate of a load.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Connections that take the requests in turn. Each has at most one request in flight.
    pub connections: usize,
    /// Requests per second over all connections.
    pub per_second: f64,
    /// The status that counts as answered.
    pub status: u16,
}

/// The result of a paced run.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Responses with the expected status.
    pub answered: u64,
    /// Responses with another status.
    pub refused: u64,
    /// The duration of the run.
    pub elapsed: Duration,
    /// Sorted.
    latencies: Vec<Duration>,
}

impl Outcome {
    /// Expected responses per second.
    pub fn per_second(&self) -> f64 {
        self.answered as f64 / self.elapsed.as_secs_f64()
    }

    /// Milliseconds within which this share of the requests was answered.
    pub fn percentile(&self, share: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        let at = (self.latencies.len() as f64 * share) as usize;
        self.latencies
            .get(at.min(last))
            .map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e3)
    }
}

/// A load that runs until it is stopped.
pub struct Paced {
    clients: Vec<JoinHandle<io::Result<Outcome>>>,
    stop: Arc<OnceLock<Instant>>,
    started: Instant,
}

impl Paced {
    /// Opens the connections and starts to send the requests in turn.
    pub fn start(address: SocketAddr, pace: Pace, requests: &Arc<[Vec<u8>]>) -> io::Result<Self> {
        Self::start_from(0, address, pace, requests)
    }

    /// As [`Self::start`], from this request on.
    pub fn start_from(first: usize, address: SocketAddr, pace: Pace, requests: &Arc<[Vec<u8>]>) -> io::Result<Self> {
        let stop = Arc::new(OnceLock::new());
        let streams = (0..pace.connections).map(|_| TcpStream::connect(address));
        let streams: Vec<TcpStream> = streams.collect::<Result<_, _>>()?;
        let started = Instant::now();
        let step = Duration::from_secs_f64(1.0 / pace.per_second);
        let mut clients = Vec::with_capacity(pace.connections);
        for (number, stream) in streams.into_iter().enumerate() {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            let client = Client {
                stream,
                first: first + number,
                pace,
                due: started + step * number as u32,
                interval: step * pace.connections as u32,
                requests: Arc::clone(requests),
                stop: Arc::clone(&stop),
            };
            // Blocking threads are cheaper than a runtime's timers, and exact to some microseconds.
            clients.push(thread::Builder::new().stack_size(128 << 10).spawn(|| client.run())?);
        }
        Ok(Self { clients, stop, started })
    }

    /// Runs for this long and then stops.
    pub fn run_for(self, time: Duration) -> io::Result<Outcome> {
        thread::sleep(time);
        self.stop()
    }

    /// Stops. Requests that are due but not sent count with their waiting time so far.
    pub fn stop(self) -> io::Result<Outcome> {
        let end = *self.stop.get_or_init(Instant::now);
        let mut whole = Outcome {
            elapsed: end - self.started,
            ..Outcome::default()
        };
        for client in self.clients {
            let part = client.join().map_err(|_| io::Error::other("a client panicked"))??;
            whole.answered += part.answered;
            whole.refused += part.refused;
            whole.latencies.extend(part.latencies);
        }
        whole.latencies.sort_unstable();
        Ok(whole)
    }
}

/// One connection and its share of the requests.
struct Client {
    stream: TcpStream,
    /// Its first request.
    first: usize,
    pace: Pace,
    due: Instant,
    interval: Duration,
    requests: Arc<[Vec<u8>]>,
    stop: Arc<OnceLock<Instant>>,
}

impl Client {
    fn run(mut self) -> io::Result<Outcome> {
        // By default the kernel delays a wake-up by up to 50 µs to save power.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1_000))?;
        let mut outcome = Outcome::default();
        let mut buffer = vec![0; 128 << 10];
        let mut next = self.first;
        loop {
            thread::sleep(self.due.saturating_duration_since(Instant::now()));
            if let Some(end) = self.stop.get() {
                while self.due < *end {
                    outcome.latencies.push(*end - self.due);
                    self.due += self.interval;
                }
                return Ok(outcome);
            }
            self.stream.write_all(&self.requests[next % self.requests.len()])?;
            let status = self.read_response(&mut buffer)?;
            let now = Instant::now();
            if self.stop.get().is_none_or(|end| now <= *end) {
                if status == self.pace.status {
                    outcome.answered += 1;
                } else {
                    outcome.refused += 1;
                }
            }
            outcome.latencies.push(now - self.due);
            self.due += self.interval;
            next += self.pace.connections;
        }
    }

    /// Reads a response. A body that is longer than the buffer overwrites itself, since only its length counts.
    fn read_response(&mut self, buffer: &mut [u8]) -> io::Result<u16> {
        let (mut filled, mut whole) = (0, None);
        while whole.is_none_or(|whole| filled < whole) {
            let start = if whole.is_some() { buffer.len() / 2 } else { filled };
            let room = buffer.get_mut(start..).filter(|room| !room.is_empty());
            filled += match self.stream.read(room.ok_or_else(response::broken)?)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => count,
            };
            if whole.is_none() {
                whole = response::whole_length(&buffer[..filled])?;
            }
        }
        response::status(buffer)
    }
}
