//! Rights that are withdrawn under load: no request that starts after the answer of the withdrawal succeeds, on any
//! connection.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use agentcfg_tests::harness::{
    Dice, Events, Request, Response, Server, Studio, Wire, eventually, scratch, setting, unique,
};
use serde_json::json;

use crate::provider::{self, Provider};

/// Requests in the short form; `CASES` sets another number.
const REQUESTS: usize = 20_000;
/// Requests that are sent at once on one connection.
const PIPELINED: usize = 16;
/// Batches on a connection before the withdrawal is asked for, and after its answer.
const BEFORE: usize = 3;
const AFTER: usize = 3;
const CONNECTIONS: usize = 2;
/// The least number of requests of one round.
const OF_A_ROUND: usize = CONNECTIONS * PIPELINED * (BEFORE + AFTER);
/// Rounds at the same time.
const WORKERS: usize = 3;
/// Rounds in one workspace.
const ROUNDS_OF_A_WORKSPACE: usize = 100;

const MANAGED: &str = "sk-managed-0123456789";

/// What withdraws the right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Withdrawal {
    Revocation,
    Rotation,
    RevocationUnderModelCalls,
    RemovalOfAMember,
    Demotion,
    SignOut,
    DeletionOfAProviderKey,
    LowerPlan,
}

impl Withdrawal {
    const ALL: [Self; 8] = [
        Self::Revocation,
        Self::Rotation,
        Self::RevocationUnderModelCalls,
        Self::RemovalOfAMember,
        Self::Demotion,
        Self::SignOut,
        Self::DeletionOfAProviderKey,
        Self::LowerPlan,
    ];

    /// Whether an answer shows that the right is still there.
    fn is_success(self, answer: &Response) -> bool {
        match self {
            // Without the right it is 403, with it the agent is not found.
            Self::Demotion => expect_one_of(answer, &[200, 404, 403]) != 403,
            Self::RemovalOfAMember => expect_one_of(answer, &[200, 403]) == 200,
            Self::DeletionOfAProviderKey | Self::LowerPlan => {
                expect_one_of(answer, &[200]);
                provider::credential(answer) != MANAGED
            }
            _ => expect_one_of(answer, &[200, 401]) == 200,
        }
    }
}

fn expect_one_of(answer: &Response, statuses: &[u16]) -> u16 {
    assert!(statuses.contains(&answer.status), "{answer:?}");
    answer.status
}

#[derive(Debug, Default)]
struct Figures {
    requests: AtomicUsize,
    withdrawals: AtomicUsize,
    /// Requests that started after the answer of the withdrawal.
    started_after: AtomicUsize,
    /// Requests that succeeded although they started after it.
    succeeded_after: AtomicUsize,
    /// Requests that succeeded although an earlier one on the same connection was refused.
    succeeded_after_refusal: AtomicUsize,
    streams: AtomicUsize,
    /// Events of later commits on streams of a withdrawn right.
    late_events: AtomicUsize,
}

/// One right under load.
struct Round<'a> {
    withdrawal: Withdrawal,
    load: Vec<Request>,
    /// Opens a stream with the same right.
    stream: Option<Request>,
    withdraw: Box<dyn Fn() + 'a>,
}

/// The rounds of one worker, in one workspace.
struct Worker<'a> {
    studio: Studio<'a>,
    members: Vec<(String, String)>,
    number: usize,
}

impl<'a> Worker<'a> {
    fn new(server: &'a Server, first: usize) -> Self {
        let studio = Studio::on(server);
        studio.create("a", &json!({"model": "gpt-5.5"})).expect(201);
        let members = (0..4)
            .map(|_| unique("member"))
            .map(|user| (user.clone(), server.token(&user)));
        Self {
            members: members.collect(),
            studio,
            number: first,
        }
    }

    /// The next round, with a right that was just granted.
    fn round(&mut self) -> Round<'_> {
        let withdrawal = Withdrawal::ALL[self.number % Withdrawal::ALL.len()];
        let (user, token) = &self.members[self.number / Withdrawal::ALL.len() % self.members.len()];
        self.number += 1;
        let (studio, server, id) = (&self.studio, self.studio.server, self.studio.id);
        let list = format!("/api/agents/configs?workspace_id={id}");
        let changes = format!("/api/changes?workspace_id={id}&after=now");
        let new_key = |scope: &str| studio.key_with(&json!({"scope": scope, "rate_limit": 1_000_000}));
        let as_owner = |request: Request, status: u16| {
            move || {
                request.send().expect(status);
            }
        };
        let owner = &studio.owner;
        let (load, stream, withdraw): (_, _, Box<dyn Fn()>) = match withdrawal {
            Withdrawal::Revocation | Withdrawal::Rotation => {
                let key = new_key("write");
                let withdraw = if withdrawal == Withdrawal::Revocation {
                    let request = server.delete(format!("/api/api-keys?key_id={}", key.id));
                    as_owner(request.bearer(owner), 200)
                } else {
                    let request = server.post(format!("/api/api-keys/rotate?key_id={}", key.id));
                    as_owner(request.json(&json!({})).bearer(owner), 201)
                };
                let change = server.patch(format!("{list}&agent_id=a")).json(&json!({"role": "x"}));
                let mut load = vec![server.get(&list).bearer(&key.key); PIPELINED - 1];
                load.push(change.bearer(&key.key));
                (load, Some(server.get(changes).bearer(&key.key)), Box::new(withdraw))
            }
            Withdrawal::RevocationUnderModelCalls => {
                let key = new_key("write");
                let request = server.delete(format!("/api/api-keys?key_id={}", key.id)).bearer(owner);
                let load = vec![provider::call(studio, "a", &key.key); PIPELINED];
                (load, None, Box::new(as_owner(request, 200)))
            }
            Withdrawal::RemovalOfAMember => {
                studio.set_member(user, "member").expect(200);
                let request = server.delete(format!("/api/workspaces/members?workspace_id={id}&user_id={user}"));
                let load = vec![server.get(&list).bearer(token); PIPELINED];
                let stream = server.get(changes).bearer(token);
                (load, Some(stream), Box::new(as_owner(request.bearer(owner), 200)))
            }
            Withdrawal::Demotion => {
                studio.set_member(user, "member").expect(200);
                let withdraw = move || {
                    studio.set_member(user, "viewer").expect(200);
                };
                let change = server
                    .patch(format!("{list}&agent_id=unknown"))
                    .json(&json!({"role": "x"}));
                let load = vec![change.bearer(token); PIPELINED];
                (load, Some(server.get(changes).bearer(token)), Box::new(withdraw))
            }
            Withdrawal::SignOut => {
                studio.set_member(user, "member").expect(200);
                let answer = server.post("/api/sessions").bearer(token).send().expect(204);
                let cookie = answer.need("set-cookie").split(';').next().unwrap().to_owned();
                let by_cookie = |request: Request| request.header("Cookie", &cookie);
                let request = server.delete("/api/sessions").header("Sec-Fetch-Site", "same-origin");
                let withdraw = as_owner(by_cookie(request), 204);
                let load = vec![by_cookie(server.get(&list)); PIPELINED];
                (load, Some(by_cookie(server.get(changes))), Box::new(withdraw))
            }
            Withdrawal::DeletionOfAProviderKey | Withdrawal::LowerPlan => {
                studio.set_plan("enterprise");
                provider::save(studio, Some(&unique("sk-workspace"))).send().expect(200);
                let load = vec![provider::call(studio, "a", owner); PIPELINED];
                let withdraw: Box<dyn Fn()> = match withdrawal {
                    Withdrawal::LowerPlan => Box::new(|| studio.set_plan("free")),
                    _ => Box::new(as_owner(provider::save(studio, None), 200)),
                };
                (load, None, withdraw)
            }
        };
        Round {
            withdrawal,
            load,
            stream,
            withdraw,
        }
    }
}

/// Sends load on one connection until some batches that started after the withdrawal are answered.
fn press(round: (Withdrawal, &[Request]), ended: &AtomicBool, answered: &AtomicUsize, figures: &Figures) {
    let (withdrawal, load) = round;
    let batch: Vec<u8> = load.iter().flat_map(Request::to_bytes).collect();
    let Some(address) = load.first().map(Request::address) else {
        return;
    };
    let mut wire = Wire::connect(address);
    let (mut after, mut was_refused) = (0, false);
    while after < AFTER {
        let is_late = ended.load(Ordering::SeqCst);
        wire.send(&batch);
        for _ in load {
            let answer = wire.receive("GET").expect("the connection stays open");
            let succeeded = withdrawal.is_success(&answer);
            figures.requests.fetch_add(1, Ordering::Relaxed);
            figures.started_after.fetch_add(usize::from(is_late), Ordering::Relaxed);
            figures
                .succeeded_after
                .fetch_add(usize::from(is_late && succeeded), Ordering::Relaxed);
            let relapsed = was_refused && succeeded;
            figures
                .succeeded_after_refusal
                .fetch_add(usize::from(relapsed), Ordering::Relaxed);
            was_refused |= !succeeded;
        }
        after += usize::from(is_late);
        answered.fetch_add(1, Ordering::SeqCst);
    }
}

/// Reads the stream to its end, after a commit that it may not show.
fn verify_stream(mut events: Events, studio: &Studio<'_>, figures: &Figures) {
    let withdrawn_at = studio.audit_page(1)[0]["revision"].as_u64().unwrap();
    studio.change("a", &json!({"role": unique("late")})).expect(200);
    figures.streams.fetch_add(1, Ordering::Relaxed);
    let mut last = None;
    while let Some(event) = events.event() {
        let revision = event.data["revision"].as_u64();
        let is_late = event.name == "change" && revision.is_some_and(|revision| revision > withdrawn_at);
        figures.late_events.fetch_add(usize::from(is_late), Ordering::Relaxed);
        last = Some(event.name);
    }
    assert_eq!(last.as_deref(), Some("end"));
}

/// Runs a round. `is_honest` is false for the control, which calls the right withdrawn before it is.
fn run(round: Round<'_>, studio: &Studio<'_>, is_honest: bool, figures: &Figures) {
    let (ended, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let stream = round.stream.as_ref().map(Request::follow);
    assert!(
        stream.as_ref().is_none_or(|stream| stream.head.status == 200),
        "{:?}",
        stream.map(|stream| stream.head)
    );
    thread::scope(|scope| {
        let pressing: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                let (load, ended, answered) = ((round.withdrawal, &*round.load), &ended, &answered);
                scope.spawn(move || press(load, ended, answered, figures))
            })
            .collect();
        let is_pressed = || answered.load(Ordering::SeqCst) >= CONNECTIONS * BEFORE;
        while !is_pressed() && !pressing.iter().any(|press| press.is_finished()) {
            thread::sleep(Duration::from_micros(200));
        }
        if !is_honest {
            ended.store(true, Ordering::SeqCst);
            eventually("requests are counted as late", || {
                pressing.iter().all(|press| press.is_finished())
            });
        }
        (round.withdraw)();
        ended.store(true, Ordering::SeqCst);
    });
    figures.withdrawals.fetch_add(1, Ordering::Relaxed);
    if let Some(stream) = stream.filter(|_| is_honest) {
        verify_stream(stream, studio, figures);
    }
}

fn server(data: std::path::PathBuf, provider: &Provider) -> Server {
    Server::builder()
        .data(data)
        .set("operators", "operator")
        .set("session_rate_limit", "1000000")
        .set("openai_base_url", provider.url())
        .set("openai_api_key", MANAGED)
        .start()
}

#[test]
fn no_request_succeeds_that_starts_after_the_answer_of_a_withdrawal() {
    let mut dice = Dice::of("revocations");
    let requests = setting("CASES", REQUESTS);
    let (provider, place) = (Provider::start(), scratch());
    let server = server(place.path().join("data"), &provider);
    let rounds = requests.div_ceil(OF_A_ROUND).div_ceil(WORKERS);
    let figures = Figures::default();
    thread::scope(|scope| {
        for number in 0..WORKERS {
            let first = dice.split(number).below(Withdrawal::ALL.len());
            let (server, figures) = (&server, &figures);
            scope.spawn(move || {
                let mut worker = Worker::new(server, first);
                for done in 0..rounds {
                    if done % ROUNDS_OF_A_WORKSPACE == ROUNDS_OF_A_WORKSPACE - 1 {
                        worker = Worker::new(server, worker.number);
                    }
                    let studio = worker.studio.clone();
                    run(worker.round(), &studio, true, figures);
                }
            });
        }
    });
    let calls = provider.calls();
    println!("FIGURES revocations: {figures:?}, {calls} model calls");
    assert_eq!(figures.succeeded_after.load(Ordering::SeqCst), 0, "{figures:?}");
    assert_eq!(figures.succeeded_after_refusal.load(Ordering::SeqCst), 0, "{figures:?}");
    assert_eq!(figures.late_events.load(Ordering::SeqCst), 0, "{figures:?}");
    assert!(figures.requests.load(Ordering::SeqCst) >= requests, "{figures:?}");
}

/// The control: the same rounds find each right that is called withdrawn too early.
#[test]
fn a_right_that_is_called_withdrawn_too_early_is_found() {
    let (provider, place) = (Provider::start(), scratch());
    let server = server(place.path().join("data"), &provider);
    let mut worker = Worker::new(&server, 0);
    let studio = worker.studio.clone();
    for withdrawal in Withdrawal::ALL {
        let figures = Figures::default();
        run(worker.round(), &studio, false, &figures);
        let found = figures.succeeded_after.load(Ordering::SeqCst);
        assert!(found > 0, "{withdrawal:?}: {figures:?}");
    }
    println!(
        "FIGURES revocations (control): each of {} kinds was found",
        Withdrawal::ALL.len()
    );
}
