//! A model of several processes that hold slices of one budget.

use proptest::prelude::*;

use super::slice::{Gone, Limit, Moment, Slice, Wish};
use crate::service::records::{BudgetAccount, ProcessTag};

const PROCESSES: usize = 3;

/// What a process does next.
#[derive(Debug, Clone)]
enum Step {
    /// It reserves for a call, after an exchange if that is needed.
    Reserve { process: usize, amount: u64 },
    /// One of its calls ends, at this share of what it had reserved, in percent.
    End { process: usize, call: usize, percent: u64 },
    /// It reports.
    Report { process: usize, wish: Wish },
    /// It sends a report, whose outcome is not known yet.
    Send { process: usize, wish: Wish },
    /// It learns the outcome of the report that it has sent.
    Learn { process: usize },
    /// It gives up the report that it has sent, which may be committed later.
    GiveUp { process: usize },
    /// A report that it has given up is committed, if the account is as it was read.
    Late { process: usize },
    /// All four one after another: the next report loses against the one that was given up.
    LoseAgainstLate { process: usize, wish: Wish },
    /// It is killed, and another one is started in its place.
    Kill { process: usize },
    /// Time passes, in milliseconds.
    Wait { millis: i64 },
    /// The limit is changed.
    Limit { nanos: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let process = 0..PROCESSES;
    let wish = || {
        prop_oneof![
            Just(Wish::Report),
            Just(Wish::Keep),
            Just(Wish::GiveBack),
            (1_u64..400).prop_map(take)
        ]
    };
    prop_oneof![
        8 => (process.clone(), 1_u64..400).prop_map(|(process, amount)| Step::Reserve { process, amount }),
        8 => (process.clone(), any::<usize>(), 0_u64..=100)
            .prop_map(|(process, call, percent)| Step::End { process, call, percent }),
        4 => (process.clone(), wish()).prop_map(|(process, wish)| Step::Report { process, wish }),
        3 => (process.clone(), wish()).prop_map(|(process, wish)| Step::Send { process, wish }),
        2 => process.clone().prop_map(|process| Step::Learn { process }),
        2 => process.clone().prop_map(|process| Step::GiveUp { process }),
        2 => process.clone().prop_map(|process| Step::Late { process }),
        1 => (process.clone(), wish()).prop_map(|(process, wish)| Step::LoseAgainstLate { process, wish }),
        1 => process.prop_map(|process| Step::Kill { process }),
        2 => (0_i64..15_000).prop_map(|millis| Step::Wait { millis }),
        1 => (0_u64..5_000).prop_map(|nanos| Step::Limit { nanos }),
    ]
}

/// A call that lacks this amount takes it.
fn take(lack: u64) -> Wish {
    Wish::Take {
        least: lack,
        lack,
        waiting: lack,
    }
}

/// A process with its calls in flight, by what they have reserved.
#[derive(Default)]
struct Process {
    tag: ProcessTag,
    slice: Slice,
    calls: Vec<u64>,
    /// The report that it has sent.
    sent: Option<Commit>,
    /// The reports that it has given up.
    given_up: Vec<Commit>,
    /// What its ended calls have cost.
    cost: u64,
}

/// A commit of an account, which checks that the account has still this version.
struct Commit {
    version: u64,
    account: BudgetAccount,
    began: i64,
}

struct World {
    account: BudgetAccount,
    version: u64,
    processes: Vec<Process>,
    limit: Limit,
    now: i64,
    /// What ended calls have cost of processes that are gone.
    cost_of_gone: u64,
    /// Whether the limit was lowered, so that what is spent and held may be more for a while.
    was_lowered: bool,
}

impl World {
    fn moment(&self) -> Moment {
        Moment {
            now: self.now,
            steady: self.now,
        }
    }

    /// Exchanges until a commit is executed, like a process that learns each outcome.
    fn exchange(&mut self, process: usize, wish: Wish) {
        self.learn(process);
        self.send(process, wish);
        self.learn(process);
    }

    fn send(&mut self, process: usize, wish: Wish) {
        if self.processes[process].sent.is_some() {
            return;
        }
        let (at, mut account) = (self.moment(), self.account.clone());
        let (own, limit) = (&mut self.processes[process], self.limit);
        own.slice.exchange(&mut account, own.tag, limit, at, wish);
        own.sent = Some(Commit {
            version: self.version,
            account,
            began: at.steady,
        });
    }

    fn learn(&mut self, process: usize) {
        let Some(sent) = self.processes[process].sent.take() else {
            return;
        };
        let (began, is_committed) = (sent.began, self.commit(sent));
        let own = &mut self.processes[process];
        match is_committed {
            true => own.slice.exchanged(&self.account, own.tag, began),
            false => own.slice.not_exchanged(),
        }
    }

    fn commit(&mut self, commit: Commit) -> bool {
        let is_unchanged = commit.version == self.version;
        if is_unchanged {
            self.version += 1;
            self.account = commit.account;
        }
        is_unchanged
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Reserve { process, amount } => {
                let now = self.now;
                let mut is_reserved = self.processes[process].slice.reserve(amount, now);
                if !is_reserved {
                    let lack = self.processes[process].slice.lacks(amount);
                    self.exchange(process, take(lack));
                    // The exchange may not have given it all.
                    is_reserved = self.processes[process].slice.reserve(amount, now);
                }
                if is_reserved {
                    self.processes[process].calls.push(amount);
                }
            }
            Step::End { process, call, percent } => {
                let process = &mut self.processes[process];
                if process.calls.is_empty() {
                    return;
                }
                let reserved = process.calls.swap_remove(call % process.calls.len());
                let cost = reserved * percent / 100;
                process.cost += cost;
                process.slice.settle(reserved, cost);
            }
            Step::Report { process, wish } => self.exchange(process, wish),
            Step::Send { process, wish } => self.send(process, wish),
            Step::Learn { process } => self.learn(process),
            Step::GiveUp { process } => {
                let own = &mut self.processes[process];
                own.given_up.extend(own.sent.take());
            }
            Step::Late { process } => {
                if let Some(late) = self.processes[process].given_up.pop() {
                    self.commit(late);
                }
            }
            Step::LoseAgainstLate { process, wish } => {
                let [first, second] = [Wish::Report, wish].map(|wish| Step::Send { process, wish });
                for step in [
                    first,
                    Step::GiveUp { process },
                    second,
                    Step::Late { process },
                    Step::Learn { process },
                ] {
                    self.take(step);
                }
            }
            Step::Kill { process } => {
                let killed = std::mem::take(&mut self.processes[process]);
                self.cost_of_gone += killed.cost;
                self.processes[process].tag = killed.tag + PROCESSES as ProcessTag;
            }
            Step::Wait { millis } => self.now += millis,
            Step::Limit { nanos } => {
                self.was_lowered |= nanos < self.limit.nanos;
                self.limit.nanos = nanos;
                self.processes.iter_mut().for_each(|process| process.slice.invalidate());
            }
        }
    }

    /// What was spent and is held, of which no more than the limit may ever be.
    fn counted(&self) -> u64 {
        self.account.spent + self.account.held()
    }

    fn cost(&self) -> u64 {
        self.cost_of_gone + self.processes.iter().map(|process| process.cost).sum::<u64>()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_spent_and_held_never_exceeds_the_limit(
        limit in 0_u64..10_000,
        are_killed in any::<bool>(),
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut world = World {
            account: BudgetAccount::default(),
            version: 0,
            processes: (0..PROCESSES).map(|tag| Process { tag: tag as ProcessTag, ..Process::default() }).collect(),
            limit: Limit { nanos: limit, refuses: true },
            now: 1_000_000,
            cost_of_gone: 0,
            was_lowered: false,
        };
        for step in steps {
            if are_killed || !matches!(step, Step::Kill { .. }) {
                world.take(step);
            }
            if !world.was_lowered {
                prop_assert!(world.counted() <= world.limit.nanos, "{:?}", world.account);
            }
            let in_flight: u64 = world.processes.iter().flat_map(|process| &process.calls).sum();
            prop_assert!(world.cost() + in_flight <= world.counted(), "something is not accounted for: {:?}", world.account);
        }
        // All end: what those hold that are alive comes back, and what they have spent is exact.
        for process in 0..PROCESSES {
            while !world.processes[process].calls.is_empty() {
                world.take(Step::End { process, call: 0, percent: 50 });
            }
            world.exchange(process, Wish::GiveBack);
            world.exchange(process, Wish::GiveBack);
            prop_assert!(world.processes[process].slice.is_empty());
        }
        let cost_of_alive: u64 = world.processes.iter().map(|process| process.cost).sum();
        prop_assert!(world.account.spent >= cost_of_alive, "something that calls have cost is not counted");
        world.now += 60_000;
        let gone = Gone { now: world.now, alone_since: None };
        prop_assert_eq!(world.account.unsettled(ProcessTag::MAX, gone), world.account.held());
        prop_assert!(world.cost() >= world.account.spent, "more is counted than calls have cost");
        if !are_killed {
            prop_assert_eq!(world.cost(), world.account.spent, "each call is counted once");
        }
        prop_assert!(world.cost() <= world.counted());
    }

    #[test]
    fn the_whole_limit_can_be_used_by_several_processes(amounts in proptest::collection::vec(1_u64..30, 200)) {
        let limit = Limit { nanos: 2_000, refuses: true };
        let mut account = BudgetAccount::default();
        let mut slices: Vec<Slice> = (0..PROCESSES).map(|_| Slice::default()).collect();
        let mut now = 0;
        let mut spent = 0;
        for (index, amount) in amounts.into_iter().enumerate() {
            now += 100;
            let at = Moment { now, steady: now };
            let own = index % PROCESSES;
            let exchange = |slice: &mut Slice, account: &mut BudgetAccount, tag, wish| {
                slice.exchange(account, tag, limit, at, wish);
                slice.exchanged(account, tag, now);
            };
            let tag = own as ProcessTag;
            let mut is_reserved = slices[own].reserve(amount, now);
            if !is_reserved {
                let lack = slices[own].lacks(amount);
                exchange(&mut slices[own], &mut account, tag, take(lack));
                is_reserved = slices[own].reserve(amount, now);
            }
            if !is_reserved {
                // It asks the others, which give back at their next report.
                account.asked += 1;
                for (other, slice) in slices.iter_mut().enumerate() {
                    exchange(slice, &mut account, other as ProcessTag, Wish::Report);
                }
                let lack = slices[own].lacks(amount);
                exchange(&mut slices[own], &mut account, tag, take(lack));
                is_reserved = slices[own].reserve(amount, now);
                prop_assert_eq!(is_reserved, spent + amount <= limit.nanos, "{} of {}", spent + amount, limit.nanos);
            }
            if !is_reserved {
                continue;
            }
            slices[own].settle(amount, amount);
            spent += amount;
        }
        prop_assert!(spent <= limit.nanos);
    }
}

#[test]
fn thresholds_are_reached_once_and_the_first_refusal_reaches_the_last() {
    let mut account = BudgetAccount::default();
    let mut percents = |counted, was_refused| {
        let mut found = Vec::new();
        while let Some(threshold) = account.next_threshold(1_000, counted, was_refused) {
            account.notified |= threshold.bit;
            found.push(threshold.percent);
        }
        found
    };
    assert_eq!(percents(499, false), [] as [u8; 0]);
    assert_eq!(percents(500, false), [50]);
    assert_eq!(percents(700, true), [100]);
    assert_eq!(percents(1_000, true), [80]);
    assert_eq!(percents(2_000, true), [] as [u8; 0]);
    let nothing = BudgetAccount::default();
    assert_eq!(
        nothing.next_threshold(0, 0, false),
        None,
        "a limit of nothing is reached by a refusal"
    );
    assert_eq!(
        nothing.next_threshold(0, 0, true).map(|threshold| threshold.percent),
        Some(100)
    );
}

#[test]
fn a_process_that_does_not_report_may_not_reserve() {
    let limit = Limit {
        nanos: 1_000,
        refuses: true,
    };
    let (mut account, mut slice) = (BudgetAccount::default(), Slice::default());
    let at = Moment { now: 0, steady: 0 };
    slice.exchange(&mut account, 1, limit, at, take(100));
    slice.exchanged(&account, 1, 0);
    assert!(slice.reserve(10, 9_999));
    assert!(!slice.reserve(10, 10_000), "others may take it to be gone before long");
    assert!(slice.is_due(5_000));
}

#[test]
fn what_is_spent_is_counted_once_whenever_the_account_was_read() {
    let limit = Limit {
        nanos: 1_000,
        refuses: true,
    };
    let at = Moment { now: 0, steady: 0 };
    let (mut before, mut slice) = (BudgetAccount::default(), Slice::default());
    slice.exchange(&mut before, 1, limit, at, take(100));
    slice.exchanged(&before, 1, 0);
    assert!(slice.reserve(30, 0));
    slice.settle(30, 20);
    let shown = |slice: &Slice, account: &BudgetAccount| Some(account.spent + slice.not_in(account, 1)?);
    assert_eq!(shown(&slice, &before), Some(20));
    let mut after = before.clone();
    slice.exchange(&mut after, 1, limit, at, Wish::Report);
    // The report is on its way, and may be committed already.
    assert_eq!((shown(&slice, &before), shown(&slice, &after)), (Some(20), Some(20)));
    slice.charge(5);
    assert_eq!((shown(&slice, &before), shown(&slice, &after)), (Some(25), Some(25)));
    slice.exchanged(&after, 1, 0);
    assert_eq!(shown(&slice, &after), Some(25));
    assert_eq!(
        shown(&slice, &before),
        None,
        "it was read before the report was committed"
    );
}

/// Two calls wait, each in a process whose part is too small. Both ask, and one of them gets both parts.
#[test]
fn parts_that_are_too_small_alone_pay_for_one_call_together() {
    let limit = Limit {
        nanos: 5,
        refuses: true,
    };
    let at = Moment { now: 0, steady: 0 };
    let mut account = BudgetAccount::default();
    let mut slices = [Slice::default(), Slice::default()];
    let exchange = |slice: &mut Slice, account: &mut BudgetAccount, tag, wish| {
        slice.exchange(account, tag, limit, at, wish);
        slice.exchanged(account, tag, 0);
    };
    for (tag, part) in [(0, 3), (1, 2)] {
        exchange(&mut slices[tag], &mut account, tag as ProcessTag, take(part));
    }
    account.asked += 2;
    let mut paid = Vec::new();
    for tag in [0, 1] {
        let lack = slices[tag].lacks(4);
        exchange(&mut slices[tag], &mut account, tag as ProcessTag, take(lack));
        paid.push(slices[tag].reserve(4, 0));
    }
    assert_eq!(paid, [false, true]);
    let gone = Gone {
        now: 0,
        alone_since: None,
    };
    assert!(!account.awaits_others(0, gone), "the other one has answered");
    // A call that takes less takes what is left.
    let wish = Wish::Take {
        least: 1,
        lack: 4,
        waiting: 4,
    };
    exchange(&mut slices[0], &mut account, 0, wish);
    assert_eq!(slices[0].reserve_rest(1, 4, 0), Some(1));
}

/// A database that was frozen executes a commit that its caller has given up, between the next reading of the account
/// and the commit that follows from it.
#[test]
fn a_report_that_is_committed_after_it_was_given_up_counts_once() {
    let limit = Limit {
        nanos: 1_000,
        refuses: true,
    };
    let at = Moment { now: 0, steady: 0 };
    let (mut account, mut slice) = (BudgetAccount::default(), Slice::default());
    let exchange = |slice: &mut Slice, account: &BudgetAccount, wish| {
        let mut account = account.clone();
        slice.exchange(&mut account, 1, limit, at, wish);
        account
    };
    account = exchange(&mut slice, &account, take(100));
    slice.exchanged(&account, 1, 0);
    assert!(slice.reserve(100, 0));
    slice.settle(100, 60);
    let given_up = exchange(&mut slice, &account, Wish::GiveBack);
    let next = exchange(&mut slice, &account, Wish::Keep);
    assert_ne!(next, account);
    assert!(!slice.reserve(40, 0), "it may be given back already");
    account = given_up;
    slice.not_exchanged();
    account = exchange(&mut slice, &account, Wish::GiveBack);
    slice.exchanged(&account, 1, 0);
    assert_eq!((account.spent, account.held()), (60, 0));
    assert!(slice.is_empty());
}
