//! The checker finds nothing in a history without a fault, and each fault that is planted in one.

use super::checker::violations;
use super::history::{Action, Entry, History, Op, Outcome, Seen};

fn op(begin: u64, end: u64, action: Action, outcome: Outcome) -> Op {
    Op {
        begin,
        end,
        action,
        outcome,
    }
}

fn done() -> Outcome {
    Outcome::Done(Seen::default())
}

fn value(version: u64, value: &str) -> Outcome {
    Outcome::Done(Seen {
        version,
        value: value.into(),
        count: 0,
    })
}

fn create(agent: &str) -> Action {
    Action::Create { agent: agent.into() }
}

fn claim(agent: &str) -> Action {
    Action::Claim { agent: agent.into() }
}

fn release(agent: &str) -> Action {
    Action::Release { agent: agent.into() }
}

fn read() -> Action {
    Action::Read {
        register: "register-0".into(),
    }
}

fn write(value: &str, basis: u64) -> Action {
    Action::Write {
        register: "register-0".into(),
        value: value.into(),
        basis,
    }
}

fn uses() -> Action {
    Action::Use { key: "k".into() }
}

fn revoke() -> Action {
    Action::Revoke { key: "k".into() }
}

fn entry(revision: u64, action: &str, target: &str, version: u64, value: Option<&str>) -> Entry {
    Entry {
        revision,
        action: action.into(),
        target: target.into(),
        version,
        value: value.map(str::to_owned),
    }
}

/// A history without a fault: creations with each outcome, two writes, and a key.
fn good() -> History {
    let mut history = History {
        limit: 1,
        ops: vec![
            op(0, 1, create("a"), done()),
            op(2, 5, create("b"), Outcome::Unknown),
            op(3, 4, create("c"), Outcome::Unknown),
            op(6, 7, create("b"), Outcome::Refused(409)),
            op(10, 13, claim("x"), done()),
            op(11, 14, claim("y"), Outcome::Refused(422)),
            op(15, 16, release("x"), Outcome::Unknown),
            op(17, 18, release("x"), Outcome::Refused(404)),
            op(19, 20, claim("z"), done()),
            op(
                21,
                22,
                Action::Count,
                Outcome::Done(Seen {
                    count: 1,
                    ..Seen::default()
                }),
            ),
            op(30, 31, read(), value(1, "register-0")),
            op(32, 37, write("one", 1), value(2, "one")),
            op(33, 36, write("lost", 1), Outcome::Refused(412)),
            op(34, 35, read(), value(2, "one")),
            op(38, 39, write("two", 2), Outcome::Unknown),
            op(40, 41, read(), value(3, "two")),
            op(42, 43, write("never", 3), Outcome::Unknown),
            op(50, 51, uses(), done()),
            op(52, 55, revoke(), Outcome::Unknown),
            op(53, 54, uses(), Outcome::Refused(401)),
            op(56, 57, revoke(), Outcome::Refused(404)),
            op(58, 59, uses(), Outcome::Refused(401)),
            op(60, 61, uses(), Outcome::Refused(503)),
        ],
        ..History::default()
    };
    history.open.log = vec![
        entry(1, "workspace.created", "", 0, None),
        entry(2, "agent.created", "register-0", 1, Some("register-0")),
        entry(3, "agent.created", "a", 1, Some("a")),
        entry(4, "agent.created", "b", 1, Some("b")),
        entry(5, "agent.updated", "register-0", 2, Some("one")),
        entry(6, "agent.updated", "register-0", 3, Some("two")),
        entry(7, "api_key.revoked", "k", 0, None),
    ];
    let open = ["a", "b", "register-0"].map(str::to_owned).into_iter().collect();
    history.open.listed = vec![open];
    (history.open.counted, history.open.head) = (3, 7);
    history.limited.log = vec![
        entry(1, "workspace.created", "", 0, None),
        entry(2, "agent.created", "x", 1, Some("x")),
        entry(3, "agent.deactivated", "x", 1, None),
        entry(4, "agent.created", "z", 1, Some("z")),
    ];
    history.limited.listed = vec![["z".to_owned()].into()];
    (history.limited.counted, history.limited.head) = (1, 4);
    history
}

#[test]
fn a_history_without_a_fault_passes() {
    assert_eq!(violations(&good()), Vec::<String>::new());
}

#[track_caller]
fn found(plant: impl FnOnce(&mut History), text: &str) {
    let mut history = good();
    plant(&mut history);
    let violations = violations(&history);
    assert!(
        violations.iter().any(|found| found.contains(text)),
        "{text}: {violations:#?}"
    );
}

/// Replaces the outcome of the operation that begins at this time.
fn outcome(history: &mut History, begin: u64, outcome: Outcome) {
    let op = history.ops.iter_mut().find(|op| op.begin == begin);
    op.unwrap().outcome = outcome;
}

#[test]
fn faults_of_answers_are_found() {
    found(|h| outcome(h, 2, Outcome::Refused(500)), "unexpected status 500");
    found(|h| outcome(h, 2, Outcome::Hung), "no answer within a minute");
    found(|h| outcome(h, 40, Outcome::Refused(404)), "unexpected status 404");
}

#[test]
fn faults_of_creations_are_found() {
    let without = |h: &mut History, agent: &str| {
        h.open.log.retain(|entry| entry.target != agent);
        h.open
            .log
            .iter_mut()
            .zip(1..)
            .for_each(|(entry, revision)| entry.revision = revision);
        h.open.head -= 1;
    };
    found(
        |h| without(h, "a"),
        "the creation of a was answered, and is not in the log",
    );
    found(
        |h| outcome(h, 2, Outcome::Refused(503)),
        "the creation of b was refused, and is in the log",
    );
    let both = |h: &mut History| {
        outcome(h, 2, done());
        outcome(h, 6, done());
    };
    found(both, "b was created 1 times, and answered 2 times");
    found(
        |h| h.ops.push(op(70, 71, create("taken"), Outcome::Refused(409))),
        "taken was taken before it was created",
    );
    found(|h| h.open.log[2].target = "other".into(), "no client has asked for");
    let twice = |h: &mut History| {
        h.open.log.push(entry(8, "agent.created", "a", 1, Some("a")));
        h.open.head = 8;
    };
    found(twice, "a was created 2 times");
    found(twice, "does not follow from the entries before it");
}

#[test]
fn faults_of_the_log_and_the_counters_are_found() {
    found(|h| h.open.log[3].revision = 5, "a gap in the log");
    found(|h| h.open.head = 8, "does not end at its head");
    found(|h| h.open.counted = 4, "4 agents are counted and 3 are there");
    let list = |agents: &[&str]| agents.iter().map(|agent| (*agent).to_owned()).collect();
    found(
        |h| h.limited.listed[0] = list(&[]),
        "the list of server 0 and the log differ",
    );
    found(
        |h| h.open.listed[0] = list(&["a", "b", "c", "register-0"]),
        "the list of server 0 and the log differ",
    );
}

#[test]
fn faults_of_the_limit_are_found() {
    let count = |count| {
        Outcome::Done(Seen {
            count,
            ..Seen::default()
        })
    };
    found(|h| outcome(h, 21, count(2)), "more agents than the limit 1");
    found(|h| h.limited.log.swap(2, 3), "2 agents with a limit of 1");
    found(|h| outcome(h, 11, done()), "the creation of y was answered");
    found(
        |h| h.ops.push(op(23, 24, release("z"), done())),
        "0 deletions in the log",
    );
}

#[test]
fn faults_of_keys_are_found() {
    found(|h| outcome(h, 58, done()), "accepted after the revocation was answered");
    found(
        |h| outcome(h, 50, Outcome::Refused(401)),
        "refused before the revocation began",
    );
}

#[test]
fn faults_of_registers_are_found() {
    // A read of a version that was replaced before it began.
    found(|h| outcome(h, 40, value(1, "register-0")), "older than version Some(2)");
    // Two writes on the same version are both answered.
    found(
        |h| outcome(h, 33, value(2, "lost")),
        "the log has another value, or none",
    );
    // A write that was answered is not in the log.
    found(
        |h| outcome(h, 42, value(4, "never")),
        "the log has another value, or none",
    );
    // A write that was refused is in the log.
    found(
        |h| outcome(h, 38, Outcome::Refused(412)),
        "refused, and made as version 3",
    );
    found(
        |h| outcome(h, 38, Outcome::Refused(503)),
        "refused, and made as version 3",
    );
    // A write was made on another version than its condition says.
    let another_basis = |h: &mut History| h.ops[14].action = write("two", 1);
    found(another_basis, "made as version 3, but not on its condition");
    // A read shows what was written after it.
    let early = |h: &mut History| h.ops[15] = op(35, 36, read(), value(3, "two"));
    found(early, "has seen what was written later");
    // A write is refused although its condition held.
    let held = |h: &mut History| h.ops.push(op(44, 45, write("last", 3), Outcome::Refused(412)));
    found(held, "the condition held");
    // A version is missing, and a value that no client wrote is there.
    found(|h| h.open.log[5].version = 4, "version 4 is no 3");
    found(
        |h| h.open.log[5].value = Some("foreign".into()),
        "no client wrote foreign",
    );
    // The answer shows another value than the one that was written.
    let other = |h: &mut History| h.ops[11].action = write("other", 1);
    found(other, "the answer is not of this write");
}
