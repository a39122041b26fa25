//! The limits of sessions and attempts of all webhooks, and the signal from the sender to the sessions.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};

use super::sender_numbers::SenderNumbers;
use crate::model::UserId;
use crate::sync::lock;

/// The number of sessions, and again as many for receivers that are slow or fail. Each session has one attempt in
/// flight.
const SESSIONS: usize = 256;

/// The number of further attempts in flight, over all sessions. So the connections of a server are bounded, and each
/// session goes on with at least one.
const FURTHER_ATTEMPTS: usize = 384;

/// Who a webhook is accounted to: the first owner of its workspace, if there is one.
pub(super) type Account = Option<UserId>;

/// The permits of sessions and attempts. Webhooks whose receivers are slow or fail have permits of their own, so that
/// they delay no other.
pub(super) struct SessionPermits {
    prompt: Pool,
    late: Pool,
    further: Pool,
    pub(super) numbers: SenderNumbers,
}

/// Permits that accounts share by dynamic thresholds: each gets another one while it holds fewer than are free. One
/// account alone gets half, two that take all they can get a third each, and one that comes new finds a free one at
/// once.
#[derive(Clone)]
struct Pool(Arc<Mutex<Shares>>);

struct Shares {
    free: usize,
    accounts: HashMap<Account, Share>,
}

/// The permits of one account.
#[derive(Default)]
struct Share {
    held: usize,
    /// The webhooks that found no permit and for which no session has ended yet.
    waiting: usize,
    /// Whether a webhook found no permit since the last tick began.
    is_short: bool,
}

/// The right to run a session or an attempt, until it is dropped.
pub(super) struct Permit {
    pool: Pool,
    account: Account,
}

impl Pool {
    fn of(free: usize) -> Self {
        Self(Arc::new(Mutex::new(Shares {
            free,
            accounts: HashMap::new(),
        })))
    }

    fn take(&self, account: &Account) -> Option<Permit> {
        let mut shares = lock(&self.0);
        let held = shares.accounts.get(account).map_or(0, |share| share.held);
        if held >= shares.free {
            return None;
        }
        shares.free -= 1;
        shares.accounts.entry(account.clone()).or_default().held += 1;
        Some(Permit {
            pool: self.clone(),
            account: account.clone(),
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut shares = lock(&self.pool.0);
        shares.free += 1;
        if let Entry::Occupied(mut share) = shares.accounts.entry(self.account.take()) {
            share.get_mut().held -= 1;
            let Share {
                held,
                waiting,
                is_short,
            } = share.get();
            if *held == 0 && *waiting == 0 && !is_short {
                share.remove();
            }
        }
    }
}

impl Default for SessionPermits {
    fn default() -> Self {
        Self {
            prompt: Pool::of(SESSIONS),
            late: Pool::of(SESSIONS),
            further: Pool::of(FURTHER_ATTEMPTS),
            numbers: SenderNumbers::default(),
        }
    }
}

impl SessionPermits {
    fn pool(&self, is_late: bool) -> &Pool {
        if is_late { &self.late } else { &self.prompt }
    }

    /// A permit for a session. Without one, the webhook counts as waiting.
    pub(super) fn enter(&self, account: &Account, is_late: bool) -> Option<Permit> {
        let pool = self.pool(is_late);
        let permit = pool.take(account);
        if permit.is_none() {
            let mut shares = lock(&pool.0);
            let share = shares.accounts.entry(account.clone()).or_default();
            share.waiting += 1;
            share.is_short = true;
        }
        permit
    }

    /// Whether webhooks of this account found no permit since the last tick began. The next tick then gives the permits
    /// in its order.
    pub(super) fn is_short(&self, account: &Account, is_late: bool) -> bool {
        let shares = lock(&self.pool(is_late).0);
        shares.accounts.get(account).is_some_and(|share| share.is_short)
    }

    /// Whether the session with this permit must end for a webhook that waits: one of its account, or any one when no
    /// permit is left. One session ends for each waiting webhook.
    pub(super) fn must_leave(&self, permit: &Permit) -> bool {
        let mut shares = lock(&permit.pool.0);
        let Shares { free, accounts } = &mut *shares;
        let is_waiting = |share: &Share| share.waiting > 0;
        let waiting = match accounts.get(&permit.account).is_some_and(is_waiting) {
            true => accounts.get_mut(&permit.account),
            false if *free == 0 => accounts.values_mut().find(|share| is_waiting(share)),
            false => None,
        };
        waiting.map(|share| share.waiting -= 1).is_some()
    }

    /// Resets the waiting webhooks, until they find no permit again.
    pub(super) fn reset_waiting(&self) {
        for pool in [&self.prompt, &self.late] {
            lock(&pool.0).accounts.retain(|_, share| {
                (share.waiting, share.is_short) = (0, false);
                share.held > 0
            });
        }
    }

    /// A permit for an attempt beside the first one of its session.
    pub(super) fn slot(&self, session: &Permit) -> Option<Permit> {
        self.further.take(&session.account)
    }

    /// Moves a session to the permits that it belongs to now. False when there is none left for it: the session ends,
    /// and its webhook waits for the next tick.
    pub(super) fn move_to_pool(&self, permit: &mut Permit, is_late: bool) -> bool {
        let pool = self.pool(is_late);
        if Arc::ptr_eq(&permit.pool.0, &pool.0) {
            return true;
        }
        match pool.take(&permit.account) {
            Some(entered) => {
                *permit = entered;
                true
            }
            None => false,
        }
    }
}

/// The signal from the sender to its sessions.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Signal {
    pub(super) ticks: u64,
    /// Whether the sessions must end: no further attempt begins.
    pub(super) is_stopping: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str) -> Account {
        Some(name.parse().unwrap())
    }

    /// Takes all permits that an account gets.
    fn all(permits: &SessionPermits, name: &str) -> Vec<Permit> {
        std::iter::from_fn(|| permits.enter(&account(name), false)).collect()
    }

    #[test]
    fn an_account_that_takes_all_it_can_get_leaves_half_for_others() {
        let permits = SessionPermits::default();
        let ada = all(&permits, "ada");
        assert_eq!(ada.len(), SESSIONS / 2);
        let grace = all(&permits, "grace");
        assert_eq!(grace.len(), SESSIONS / 4);
        assert!(permits.is_short(&account("ada"), false) && !permits.is_short(&account("linus"), false));
        assert!(permits.enter(&account("linus"), false).is_some());
        assert!(
            permits.enter(&account("ada"), true).is_some(),
            "the late ones have permits of their own"
        );
        drop((ada, grace));
        assert_eq!(all(&permits, "linus").len(), SESSIONS / 2);
    }

    #[test]
    fn a_session_leaves_for_a_webhook_of_its_account() {
        let permits = SessionPermits::default();
        let ada = all(&permits, "ada");
        let grace = permits.enter(&account("grace"), false).unwrap();
        assert!(!permits.must_leave(&grace));
        assert!(permits.must_leave(&ada[0]));
        assert!(!permits.must_leave(&ada[1]), "one session for each waiting webhook");
        assert!(permits.enter(&account("ada"), false).is_none());
        permits.reset_waiting();
        assert!(!permits.must_leave(&ada[1]) && !permits.is_short(&account("ada"), false));
    }

    #[test]
    fn a_session_leaves_for_any_webhook_when_no_permit_is_left() {
        let permits = SessionPermits::default();
        let one_each: Vec<Permit> = (0..SESSIONS)
            .map(|number| permits.enter(&account(&format!("user-{number}")), false).unwrap())
            .collect();
        assert!(permits.enter(&account("ada"), false).is_none());
        assert!(permits.must_leave(&one_each[7]));
        assert!(!permits.must_leave(&one_each[8]));
    }

    #[test]
    fn a_session_moves_to_the_permits_of_late_receivers_and_back() {
        let permits = SessionPermits::default();
        let mut permit = permits.enter(&account("ada"), false).unwrap();
        assert!(permits.move_to_pool(&mut permit, true));
        assert_eq!(
            (lock(&permits.prompt.0).free, lock(&permits.late.0).free),
            (SESSIONS, SESSIONS - 1)
        );
        assert!(permits.move_to_pool(&mut permit, true) && permits.move_to_pool(&mut permit, false));
        let slot = permits.slot(&permit);
        assert_eq!(lock(&permits.further.0).free, FURTHER_ATTEMPTS - 1);
        drop((permit, slot));
        assert!(lock(&permits.prompt.0).accounts.is_empty());
    }
}
