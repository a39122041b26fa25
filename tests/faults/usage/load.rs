//! Callers that spend one budget after another on whatever servers are there.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use agentcfg_tests::harness::Dice;
use serde_json::json;

use super::biller::{Biller, INPUT, OUTPUT};
use crate::model_calls::Caller;

/// The greatest caps of calls.
const CAPS: std::ops::Range<usize> = 100..2000;
/// A cap is lowered to this many tokens at least.
const LEAST_CAP: i64 = 256;
/// The pause after an answer that the store is not there.
const PAUSE: Duration = Duration::from_millis(20);

/// The servers that take calls: the address of each and the number of its process; `None` for one that is not there.
pub struct Slots(RwLock<Vec<Option<(SocketAddr, usize)>>>);

impl Slots {
    pub fn new(servers: usize) -> Self {
        Self(RwLock::new(vec![None; servers]))
    }

    pub fn count(&self) -> usize {
        self.0.read().unwrap().len()
    }

    pub fn set(&self, slot: usize, server: Option<(SocketAddr, usize)>) {
        self.0.write().unwrap()[slot] = server;
    }

    /// One of those that are there.
    pub fn pick(&self, dice: &mut Dice) -> Option<(SocketAddr, usize)> {
        let there: Vec<_> = self.0.read().unwrap().iter().flatten().copied().collect();
        (!there.is_empty()).then(|| there[dice.below(there.len())])
    }
}

/// What the calls of a budget can cost at most and have cost, over time.
#[derive(Default)]
pub struct Meter(Mutex<Vec<(Instant, i64)>>);

impl Meter {
    fn add(&self, nanos: i64) -> Instant {
        let mut log = self.0.lock().unwrap();
        let (now, before) = (Instant::now(), log.last().map_or(0, |(_, sum)| *sum));
        log.push((now, before + nanos));
        now
    }

    /// The greatest sum between two moments.
    fn most(&self, from: Instant, to: Instant) -> i64 {
        let log = self.0.lock().unwrap();
        let first = log.partition_point(|(at, _)| *at < from).saturating_sub(1);
        let sums = log[first..].iter().take_while(|(at, _)| *at <= to);
        sums.map(|(_, sum)| *sum).max().unwrap_or(0)
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Whole,
    /// No budget paid for it.
    Refused,
    /// The store was not there.
    Unavailable,
    /// The connection broke: the server was killed.
    Lost,
}

#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub number: u32,
    pub budget: usize,
    /// The number of the process that it was sent to.
    pub process: usize,
    pub end: End,
    pub ended: Instant,
}

/// A call that no budget paid for.
#[derive(Debug, Clone, Copy)]
pub struct Refusal {
    pub budget: usize,
    pub at: Instant,
    /// What a call with the least cap would have cost.
    pub least: i64,
    /// The greatest sum of what was spent and reserved of its budget while it was decided.
    pub committed: i64,
}

/// What callers did.
#[derive(Default)]
pub struct Done {
    pub calls: Vec<Call>,
    pub refusals: Vec<Refusal>,
    pub wrong: Vec<String>,
}

pub struct Load<'a> {
    pub biller: &'a Biller,
    pub slots: &'a Slots,
    pub keys: Vec<String>,
    /// Calls that are to be answered with 200 or 402, and those of each budget.
    pub calls: usize,
    pub of_a_budget: usize,
    pub meters: Vec<Meter>,
    pub answered: AtomicUsize,
    pub next: AtomicU32,
}

impl Load<'_> {
    pub fn is_over(&self) -> bool {
        self.answered.load(Ordering::SeqCst) >= self.calls
    }

    /// Runs this many callers until all calls are answered.
    pub fn run(&self, callers: usize, mut dice: Dice) -> Done {
        let mut all = Done::default();
        thread::scope(|scope| {
            let work = |number: usize| {
                let dice = dice.split(number);
                scope.spawn(move || self.work(&self.keys[number % self.keys.len()], dice))
            };
            let callers: Vec<_> = (0..callers).map(work).collect();
            for caller in callers {
                let mut done = caller.join().unwrap();
                all.calls.append(&mut done.calls);
                all.refusals.append(&mut done.refusals);
                all.wrong.append(&mut done.wrong);
            }
        });
        all
    }

    fn work(&self, key: &str, mut dice: Dice) -> Done {
        let (mut done, mut connections) = (Done::default(), Vec::<(usize, Caller)>::new());
        while !self.is_over() {
            let Some((address, process)) = self.slots.pick(&mut dice) else {
                thread::sleep(Duration::from_millis(1));
                continue;
            };
            let at = connections.iter().position(|(of, _)| *of == process);
            let at = at.unwrap_or_else(|| {
                connections.push((process, Caller::new(address)));
                connections.len() - 1
            });
            let number = self.next.fetch_add(1, Ordering::SeqCst);
            let budget = self.answered.load(Ordering::SeqCst) / self.of_a_budget;
            let budget = budget.min(self.meters.len() - 1);
            let (body, cap) = body(number, &mut dice);
            let request = format!(
                "POST /api/agents/model-calls/openai/@agent-{budget}/v1/responses HTTP/1.1\r\nHost: x\r\n\
                 Authorization: Bearer {key}\r\nX-Request-Id: call-{number}\r\nContent-Type: application/json\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let input = body.len().div_ceil(3) as i64 * INPUT;
            let (most, least) = (input + cap * OUTPUT, input + cap.min(LEAST_CAP) * OUTPUT);
            let meter = &self.meters[budget];
            let sent = meter.add(most);
            let got = connections[at].1.call(request.as_bytes());
            let bill = self.biller.bills().of.get(&number).copied();
            let end = match got.status {
                Some(200) if got.is_whole => End::Whole,
                Some(402) => End::Refused,
                Some(503) => End::Unavailable,
                None => End::Lost,
                Some(200) => End::Lost,
                Some(_) => {
                    done.wrong.push(format!("{got:?}"));
                    break;
                }
            };
            let text = bill.map(|bill| bill.answer(number));
            match end {
                End::Whole if text.as_deref() != Some(&*got.body) => done.wrong.push(format!("{bill:?}, {got:?}")),
                End::Refused | End::Unavailable if bill.is_some() => {
                    done.wrong.push(format!("{bill:?} for a refused call: {got:?}"));
                }
                End::Refused if !got.body.contains(&format!("the agent \\\"agent-{budget}\\\"")) => {
                    done.wrong.push(format!("another budget refused: {got:?}"));
                }
                End::Refused => done.refusals.push(Refusal {
                    budget,
                    at: Instant::now(),
                    least,
                    committed: meter.most(sent, Instant::now()) - most,
                }),
                End::Unavailable => thread::sleep(PAUSE),
                End::Whole => {}
                End::Lost => {
                    connections.remove(at);
                }
            }
            let ended = meter.add(bill.map_or(0, |bill| bill.nanos()) - most);
            self.answered
                .fetch_add(usize::from(matches!(end, End::Whole | End::Refused)), Ordering::SeqCst);
            done.calls.push(Call {
                number,
                budget,
                process,
                end,
                ended,
            });
        }
        done
    }
}

/// The body of a call, and its cap.
fn body(number: u32, dice: &mut Dice) -> (String, i64) {
    let cap = CAPS.start + dice.below(CAPS.len());
    let prompt = format!("call {number} {}", "x".repeat(dice.below(60)));
    let body = json!({"model": "gpt-5.5", "input": prompt, "max_output_tokens": cap});
    (body.to_string(), cap as i64)
}

/// What a call costs on average.
pub fn average() -> i64 {
    (CAPS.start + CAPS.end) as i64 / 4 * OUTPUT
}
