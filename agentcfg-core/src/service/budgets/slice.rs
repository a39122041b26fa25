//! What one process holds of a budget in one period: a slice of the limit, from which calls reserve without asking the
//! store.
//!
//! The account in the store has the slice of each process. What a process has spent stays in its slice until it reports
//! it, so that a process that is killed leaves no more unaccounted for than the account says that it holds.

use crate::clock::HOUR;
use crate::service::records::{BudgetAccount, ProcessTag, SliceHolder};

/// How long a process may reserve from its slice after it has reported, in milliseconds. Others take it to be gone
/// after [`GONE_AFTER`], so that clocks may differ by the rest.
const VALID_FOR: i64 = 10_000;
/// The age of a report, in milliseconds, after which its process is taken to be gone.
const GONE_AFTER: i64 = 20_000;
/// How long a process that was asked to give back takes only what it needs, in milliseconds.
const TIGHT_FOR: i64 = 10_000;
/// For how many milliseconds an answer of the others to a request to give back holds.
const ASK_EVERY: i64 = 1_000;
/// After how many milliseconds without a call a slice is given back.
const IDLE_AFTER: i64 = 10_000;
/// After how many milliseconds a process reports, although nothing has changed.
const REPORT_EVERY: i64 = 5_000;
/// A slice is this part of the limit, if a reservation needs no more.
const SLICES: u64 = 50;
/// As a budget runs out, a slice is this part of the rest.
const SLICES_OF_REST: u64 = 10;
/// For how many milliseconds an account keeps the last report of a process that holds nothing. A commit whose outcome
/// is not known is decided long before.
const REPORT_KEPT_FOR: i64 = HOUR;
/// The rest of a budget that refuses nothing: sums with it do not overflow.
const ENDLESS: u64 = u64::MAX / 4;

/// A share of the limit that an event is made for, once in a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Threshold {
    pub(super) percent: u8,
    /// The bit of the account that says so.
    pub(super) bit: u8,
}

/// The first refusal also reaches the last of them.
const THRESHOLDS: [Threshold; 3] = [
    Threshold { percent: 50, bit: 1 },
    Threshold { percent: 80, bit: 2 },
    Threshold { percent: 100, bit: 4 },
];

/// The slice of a process.
#[derive(Debug, Default)]
pub(super) struct Slice {
    /// What the account says that this process holds.
    held: u64,
    /// What calls in flight have reserved of it.
    open: u64,
    /// What calls have spent of it since the last report.
    spent: u64,
    /// What calls have spent that was not reserved in it.
    beyond: u64,
    /// The number of the last report.
    report: u64,
    /// The number of the last one that was taken over: what it says is in the account, and not here any more.
    taken_over: u64,
    /// The number of the last one after which another process has settled what was spent, if that was taken into
    /// account.
    settled_after: Option<u64>,
    /// The reports whose outcome is not known. Each of them checks that the account is as it was read, so at most one
    /// is committed, which may be one that was given up.
    undecided: Vec<Report>,
    /// Readings of the monotonic clock: when the last report began, when a call reserved last, until when only what is
    /// needed is taken.
    reported: Option<i64>,
    used: i64,
    tight_until: Option<i64>,
    answered: u64,
    /// When this process asked the others to give back.
    asked_at: Option<i64>,
    /// What calls in flight had reserved at the last report.
    shown_open: u64,
    /// Whether a call was refused, which reaches the threshold of 100 %.
    refused: bool,
}

/// What a report says, so that it is taken into account once.
#[derive(Debug, Clone, Copy)]
struct Report {
    number: u64,
    spent: u64,
    beyond: u64,
    /// What it gives back, which no call may reserve meanwhile.
    giving: u64,
}

/// The moment of an exchange with the account.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// Milliseconds of the clock.
    pub(super) now: i64,
    /// Milliseconds of the monotonic clock.
    pub(super) steady: i64,
}

/// The limit of a budget, as far as the account needs it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    pub(super) nanos: u64,
    /// Whether calls beyond it are refused.
    pub(super) refuses: bool,
}

impl Slice {
    /// What a call can reserve.
    fn free(&self) -> u64 {
        let giving = self.undecided.iter().map(|report| report.giving).max();
        self.unreserved().saturating_sub(giving.unwrap_or_default())
    }

    /// What is neither reserved nor spent.
    fn unreserved(&self) -> u64 {
        self.held.saturating_sub(self.open).saturating_sub(self.spent)
    }

    /// Reserves this amount, if that much is free and the slice is valid.
    pub(super) fn reserve(&mut self, amount: u64, steady: i64) -> bool {
        let is_valid = self.reported.is_some_and(|at| steady.saturating_sub(at) < VALID_FOR);
        if !is_valid || self.free() < amount {
            return false;
        }
        self.open += amount;
        self.used = steady;
        true
    }

    /// Reserves what is free, if it is at least this amount, and returns how much that was.
    pub(super) fn reserve_rest(&mut self, least: u64, most: u64, steady: i64) -> Option<u64> {
        let amount = self.free().min(most);
        (amount >= least && self.reserve(amount, steady)).then_some(amount)
    }

    /// What this process lacks to reserve this amount.
    pub(super) fn lacks(&self, amount: u64) -> u64 {
        amount.saturating_sub(self.free())
    }

    /// Replaces a reservation by a smaller one.
    pub(super) fn shrink(&mut self, from: u64, to: u64) {
        self.open = self.open.saturating_sub(from.saturating_sub(to));
    }

    /// Ends a call: its reservation is replaced by what it cost. Returns whether what is left is to be given back at
    /// once.
    pub(super) fn settle(&mut self, reserved: u64, cost: u64) -> bool {
        self.open = self.open.saturating_sub(reserved);
        self.spent = self.spent.saturating_add(cost.min(reserved));
        self.charge(cost.saturating_sub(reserved));
        self.tight_until.is_some()
    }

    /// Counts what was spent without a reservation.
    pub(super) fn charge(&mut self, cost: u64) {
        self.beyond = self.beyond.saturating_add(cost);
    }

    /// Whether this process has asked the others to give back a moment ago.
    pub(super) fn has_asked(&self, steady: i64) -> bool {
        self.asked_at.is_some_and(|at| steady.saturating_sub(at) < ASK_EVERY)
    }

    /// Notes that this process asks the others to give back.
    pub(super) fn note_asking(&mut self, steady: i64) {
        self.asked_at = Some(steady);
    }

    /// Notes that a call was refused.
    pub(super) fn note_refusal(&mut self) {
        self.refused = true;
    }

    /// Lets nothing be reserved before the next exchange, because the budget was changed.
    pub(super) fn invalidate(&mut self) {
        self.reported = None;
    }

    /// Forgets everything, because the budget is removed.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether it holds and owes nothing, so that it can be forgotten.
    pub(super) fn is_empty(&self) -> bool {
        self.held == 0 && self.open == 0 && self.unreported() == 0 && self.undecided.is_empty()
    }

    /// What was spent since the last report.
    pub(super) fn unreported(&self) -> u64 {
        self.spent.saturating_add(self.beyond)
    }

    /// What was spent and is not in this reading of the account, which may have a report that was not taken over yet.
    /// `None` where the account was read before the report that was taken over last.
    pub(super) fn not_in(&self, account: &BudgetAccount, own: ProcessTag) -> Option<u64> {
        let reported = account.holders.get(&own).map_or(0, |own| own.report);
        if reported < self.taken_over {
            return None;
        }
        let counted = self.undecided.iter().find(|report| report.number == reported);
        let counted = counted.map_or(0, |report| report.spent.saturating_add(report.beyond));
        let settled = account.holders.get(&own).map_or(0, |own| self.settled_of(own));
        Some(self.unreported().saturating_sub(counted).saturating_sub(settled))
    }

    /// What another process has settled of what was spent, and is not taken into account yet.
    fn settled_of(&self, own: &SliceHolder) -> u64 {
        match self.settled_after == Some(own.report) {
            true => 0,
            false => own.settled,
        }
    }

    /// What calls in flight have reserved.
    pub(super) fn open(&self) -> u64 {
        self.open
    }

    /// Whether others have asked since this process answered last.
    pub(super) fn is_asked(&self, account: &BudgetAccount) -> bool {
        self.held > 0 && account.asked > self.answered
    }

    /// Whether a report is due.
    pub(super) fn is_due(&self, steady: i64) -> bool {
        let age = self.reported.map_or(i64::MAX, |at| steady.saturating_sub(at));
        self.unreported() > 0
            || !self.undecided.is_empty()
            || self.shown_open != self.open
            || (self.held > 0 && (age >= REPORT_EVERY || self.is_tight(steady) && self.free() > 0))
            || self.is_idle(steady)
    }

    fn is_idle(&self, steady: i64) -> bool {
        self.held > 0 && self.open == 0 && steady.saturating_sub(self.used) >= IDLE_AFTER
    }

    fn is_tight(&self, steady: i64) -> bool {
        self.tight_until.is_some_and(|until| steady < until)
    }

    /// Takes over what the account says of this process, after a commit whose outcome was not known, or when the slice
    /// was settled by an operator: what that counted is not reported again.
    fn reconcile(&mut self, own: Option<&SliceHolder>) {
        self.held = own.map_or(0, |own| own.held);
        let Some(own) = own else { return };
        let done = self.undecided.iter().find(|report| report.number == own.report);
        if let Some(done) = done.copied() {
            self.take_over(done);
        }
        let settled = self.settled_of(own);
        if settled > 0 {
            self.settled_after = Some(own.report);
            let of_slice = settled.min(self.spent);
            self.spent -= of_slice;
            self.beyond = self.beyond.saturating_sub(settled - of_slice);
        }
        self.report = self.report.max(own.report);
    }

    /// Takes over a report that was committed, so that no other one can be.
    fn take_over(&mut self, report: Report) {
        self.spent = self.spent.saturating_sub(report.spent);
        self.beyond = self.beyond.saturating_sub(report.beyond);
        self.taken_over = report.number;
        self.undecided.clear();
    }

    /// Prepares an exchange with the account, which becomes what is to be stored: reports what was spent, takes
    /// `wanted` more if the limit allows it, or gives back what is not needed. A give-back of everything comes at the
    /// end of the process.
    pub(super) fn exchange(
        &mut self,
        account: &mut BudgetAccount,
        own: ProcessTag,
        limit: Limit,
        at: Moment,
        wish: Wish,
    ) {
        self.reconcile(account.holders.get(&own));
        account.forget_old_reports(at.now);
        if account.asked > self.answered {
            self.tight_until = Some(at.steady.saturating_add(TIGHT_FOR));
            // An exchange that keeps what is free is no answer. One that takes keeps what its call needs, or nothing.
            if wish != Wish::Keep {
                self.answered = account.asked;
            }
        }
        if !self.is_tight(at.steady) {
            self.tight_until = None;
        }
        let (spent, beyond) = (self.spent, self.beyond);
        account.spent = account.spent.saturating_add(spent).saturating_add(beyond);
        let mut held = self.held.saturating_sub(spent);
        let before = account.holders.remove(&own);
        let taken = held.saturating_add(account.held());
        let rest = account.rest(limit).saturating_sub(held);
        let mut giving = 0;
        match wish {
            Wish::Take { least, lack, waiting } => {
                let is_tight = self.is_tight(at.steady);
                let wanted = match is_tight {
                    true => lack,
                    false => waiting.max(lack).max((limit.nanos / SLICES).min(rest / SLICES_OF_REST)),
                };
                if least <= rest {
                    held = held.saturating_add(wanted.min(rest));
                } else if is_tight {
                    // Several processes may each have a part that is too small for a call. Together they pay for one.
                    giving = self.unreserved();
                }
            }
            Wish::Keep => {}
            Wish::Report => {
                let keeps = !self.is_tight(at.steady) && !self.is_idle(at.steady);
                giving = if keeps { 0 } else { self.unreserved() };
            }
            Wish::GiveBack => giving = self.unreserved(),
        }
        if limit.refuses {
            // The limit may have been lowered.
            let over = account.spent.saturating_add(taken).saturating_sub(limit.nanos);
            giving = giving.max(over.min(self.unreserved()));
        }
        held = held.saturating_sub(giving);
        self.report += 1;
        self.shown_open = self.open;
        let held_before = before.as_ref().map_or(0, |before| before.held);
        // One that holds nothing stays for as long as the outcome of its last report may be asked for.
        let holder = match held.max(held_before).max(spent).max(beyond) > 0 || !self.undecided.is_empty() {
            true => Some(SliceHolder {
                held,
                open: self.open,
                report: self.report,
                reported_at: at.now,
                answered: self.answered,
                settled: 0,
            }),
            false => before,
        };
        account.holders.extend(holder.map(|holder| (own, holder)));
        self.undecided.push(Report {
            number: self.report,
            spent,
            beyond,
            giving,
        });
    }

    /// Takes over an exchange that was committed, and began at this reading of the monotonic clock.
    pub(super) fn exchanged(&mut self, account: &BudgetAccount, own: ProcessTag, began: i64) {
        if let Some(report) = self.undecided.pop() {
            self.take_over(report);
        }
        self.reconcile(account.holders.get(&own));
        self.reported = Some(began);
        self.refused &= account.notified & THRESHOLDS[2].bit == 0;
    }

    /// Forgets an exchange that was not committed: it changes nothing, or the account has changed. An earlier one of
    /// unknown outcome may be the reason.
    pub(super) fn not_exchanged(&mut self) {
        self.undecided.pop();
    }

    /// Whether a call was refused since the last exchange.
    pub(super) fn was_refused(&self) -> bool {
        self.refused
    }
}

/// What a process wants of an exchange besides reporting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// What one call lacks, or all calls that wait; nothing if the rest is less than `least`.
    Take { least: u64, lack: u64, waiting: u64 },
    /// Nothing, and nothing is given back.
    Keep,
    /// Nothing. What is not needed is given back.
    Report,
    /// Nothing, and nothing is kept that no call has reserved.
    GiveBack,
}

impl BudgetAccount {
    /// What is neither spent nor held. A budget that refuses nothing has no end.
    pub(super) fn rest(&self, limit: Limit) -> u64 {
        match limit.refuses {
            true => limit.nanos.saturating_sub(self.spent).saturating_sub(self.held()),
            false => ENDLESS,
        }
    }

    /// Forgets the last reports of processes that hold nothing and whose outcome cannot be asked for any more.
    fn forget_old_reports(&mut self, now: i64) {
        self.holders
            .retain(|_, holder| holder.held > 0 || now.saturating_sub(holder.reported_at) < REPORT_KEPT_FOR);
    }

    /// What processes hold.
    pub(super) fn held(&self) -> u64 {
        sum(self.holders.values())
    }

    /// Whether a process other than this one holds something, is not gone, and has not answered the last request to
    /// give back.
    pub(super) fn awaits_others(&self, own: ProcessTag, gone: Gone) -> bool {
        let mut others = self.others(own, gone);
        others.any(|holder| holder.answered < self.asked)
    }

    /// Whether a process other than this one holds something and is not gone.
    pub(super) fn has_others(&self, own: ProcessTag, gone: Gone) -> bool {
        self.others(own, gone).next().is_some()
    }

    fn others(&self, own: ProcessTag, gone: Gone) -> impl Iterator<Item = &SliceHolder> {
        self.holders
            .iter()
            .filter(move |(tag, holder)| **tag != own && holder.held > 0 && !gone.is_gone(holder))
            .map(|(_, holder)| holder)
    }

    /// What processes other than this one hold that are gone.
    pub(super) fn unsettled(&self, own: ProcessTag, gone: Gone) -> u64 {
        sum(self.gone(own, gone).map(|(_, holder)| holder))
    }

    /// The processes other than this one that are gone, with what they hold.
    pub(super) fn gone(&self, own: ProcessTag, gone: Gone) -> impl Iterator<Item = (ProcessTag, &SliceHolder)> {
        let holders = self.holders.iter().map(|(tag, holder)| (*tag, holder));
        holders.filter(move |(tag, holder)| *tag != own && holder.held > 0 && gone.is_gone(holder))
    }

    /// What calls of other processes have reserved that are not gone.
    pub(super) fn open_of_others(&self, own: ProcessTag, gone: Gone) -> u64 {
        self.others(own, gone)
            .fold(0, |sum, holder| sum.saturating_add(holder.open))
    }

    /// The first threshold that is reached and that no event was made for.
    pub(super) fn next_threshold(&self, limit: u64, counted: u64, was_refused: bool) -> Option<Threshold> {
        let is_reached = |threshold: &Threshold| {
            let is_spent = u128::from(counted) * 100 >= u128::from(limit) * u128::from(threshold.percent);
            // A limit of nothing is reached by the first refusal.
            (is_spent && counted > 0) || (was_refused && threshold.percent == 100)
        };
        let mut open = THRESHOLDS
            .into_iter()
            .filter(|threshold| self.notified & threshold.bit == 0);
        open.find(is_reached)
    }
}

/// Which processes are taken to be gone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gone {
    /// Milliseconds of the clock.
    pub(super) now: i64,
    /// When this process began, where no other one can have used the store since.
    pub(super) alone_since: Option<i64>,
}

impl Gone {
    fn is_gone(self, holder: &SliceHolder) -> bool {
        self.now.saturating_sub(holder.reported_at) >= GONE_AFTER
            || self.alone_since.is_some_and(|since| holder.reported_at < since)
    }
}

fn sum<'a>(holders: impl Iterator<Item = &'a SliceHolder>) -> u64 {
    holders.fold(0, |sum, holder| sum.saturating_add(holder.held))
}
