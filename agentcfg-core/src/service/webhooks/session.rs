//! The session of one webhook: it reads the events from the log, sends them and records the results.
//!
//! A session begins by writing its process into the lease of the webhook's state. Each of its commits checks that the
//! state is the one that it wrote, so after another process has taken the lease, or a manager has moved the cursor, the
//! commits of the old session fail and it ends. What it had sent without recording it is sent again (at least once).

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::deliveries::{Attempted, Prepared, Secrets, kept_attempts, message_id};
use super::event_log::{event_head, log_after, numbered};
use super::lease::LeaseSeen;
use super::queue::Queue;
use super::session_permits::{Permit, SessionPermits, Signal};
use super::webhook_with_state::{WebhookWithState, changed};
use crate::error::{Error, ErrorKind};
use crate::model::{Action, Actor, DisabledReason, Epoch, WebhookDelivery, WebhookId, WorkspaceId};
use crate::service::AgentCfg;
use crate::service::access::Access;
use crate::service::records::{
    self, Encoded, EncodedKey, Outcome, Pending, Stored, StoredWebhook, Transaction, WebhookState, encode,
};
use crate::service::retry::Rounds;
use crate::webhook::{self, EventHead, Transport};

/// After how many entries that are no events of the webhook its position is stored without a delivery.
const STORED_AFTER: u64 = 1000;

/// How often a session renews its lease, in milliseconds. Each commit renews it too.
const RENEWED_AFTER: i64 = 5_000;

/// How long a session goes on without a renewal, in milliseconds. It is shorter than [`LeaseSeen::LEASE`] by more than
/// a process is likely to be suspended.
const HELD: i64 = 12_000;

/// How long a session goes on while another webhook waits for a session, in milliseconds. Then it ends, and waits too.
const TIME_SLICE: i64 = 10_000;

/// The result of a session.
pub(super) enum End {
    /// Nothing to send up to this revision. Nothing was stored.
    Nothing(u64),
    /// The maximum of events is pending, so no further one was read. Nothing was stored.
    Full,
    /// The session has sent what was due, has made room, or was stopped; or the webhook was changed, disabled or
    /// deleted, or another process has taken the lease.
    Done,
}

/// What a session needs from its sender.
pub(super) struct Resources {
    pub(super) service: AgentCfg,
    pub(super) transport: Arc<dyn Transport>,
    /// The name of this process in leases.
    pub(super) holder: Box<str>,
    pub(super) signal: watch::Receiver<Signal>,
    pub(super) places: Arc<SessionPermits>,
    pub(super) permit: Permit,
}

pub(super) struct WebhookSession {
    resources: Resources,
    epoch: Epoch,
    webhook: Stored<StoredWebhook>,
    state: Stored<WebhookState>,
    secrets: Arc<Secrets>,
    queue: Queue,
    /// Entries of the log after the queue's position, in order.
    page: VecDeque<(u64, EventHead)>,
    in_flight: JoinSet<Delivered>,
    /// Attempts that are not recorded yet, with their numbers.
    unrecorded: Vec<(u64, WebhookDelivery)>,
    recorded: u64,
    /// When the last successful commit began, by the monotonic clock.
    renewed_at: i64,
    /// When the session began, by the monotonic clock.
    began_at: i64,
    /// Whether the last commit failed, because storage is not available.
    is_stalled: bool,
    /// Whether no further attempt may begin.
    is_ending: bool,
}

/// The result of an attempt.
struct Delivered {
    event: Pending,
    kind: String,
    message: Prepared,
    attempted: Attempted,
}

/// Sends what is due for one webhook.
///
/// # Errors
///
/// When storage fails or a secret does not open.
pub(super) async fn run(
    resources: Resources,
    (workspace, id): (WorkspaceId, WebhookId),
    lease: LeaseSeen,
) -> Result<End, Error> {
    let service = resources.service.clone();
    let Some(found) = service.find_webhook(workspace, id).await? else {
        return Ok(End::Done);
    };
    if !found.webhook.value.enabled || !lease.may_take(&found.state, &resources.holder) {
        return Ok(End::Done);
    }
    let mut queue = Queue::of(&found.state.value);
    let types = &found.webhook.value.types;
    let mut page = VecDeque::new();
    if !queue.is_due(service.now()) {
        if !queue.may_read(found.webhook.value.ordered) {
            return Ok(End::Full);
        }
        loop {
            page = numbered(service.scan(log_after(workspace, queue.position())).await?).await?;
            if page.is_empty() {
                return service.end_without_events(found, &queue).await;
            }
            while page.front().is_some_and(|(_, event)| !types.include(&event.action)) {
                if let Some((revision, _)) = page.pop_front() {
                    queue.skip(revision);
                }
            }
            if !page.is_empty() {
                break;
            }
        }
    }
    if queue.lacks_previous() {
        let previous = service.previous_event(&found, queue.position()).await?;
        queue.set_previous(previous);
    }
    let began_at = service.inner.clock.steady_millis();
    let mut session = WebhookSession {
        epoch: service.epoch().await?,
        secrets: Arc::new(service.open_secrets(&found.webhook.value)?),
        queue,
        page,
        in_flight: JoinSet::new(),
        unrecorded: Vec::new(),
        recorded: found.state.value.recorded,
        renewed_at: began_at,
        began_at,
        is_stalled: false,
        is_ending: false,
        webhook: found.webhook,
        state: found.state,
        resources,
    };
    match session.save(true).await? {
        true => session.deliver().await,
        false => Ok(End::Done),
    }
}

impl WebhookSession {
    fn service(&self) -> &AgentCfg {
        &self.resources.service
    }

    /// Sends until nothing is in flight, and nothing is due or the session is to end.
    async fn deliver(mut self) -> Result<End, Error> {
        loop {
            while let Some(joined) = self.in_flight.try_join_next() {
                if let Some(reason) = self.finish(joined.map_err(panicked)?)? {
                    return self.disable(reason).await;
                }
            }
            self.is_ending = self.is_ending || self.resources.signal.borrow().is_stopping || self.must_make_room();
            let (ordered, is_new) = (self.webhook.value.ordered, !self.unrecorded.is_empty());
            // The next event of an ordered webhook is not sent before the last one is recorded.
            if ordered && is_new && !self.try_save().await? {
                return Ok(End::Done);
            }
            if !self.fill().await? {
                return Ok(End::Done);
            }
            if !self.unrecorded.is_empty() && !self.is_stalled && !self.try_save().await? {
                return Ok(End::Done);
            }
            if self.in_flight.is_empty() && !self.is_stalled {
                // The end releases the lease.
                self.save(false).await?;
                return Ok(End::Done);
            }
            tokio::select! {
                Some(joined) = self.in_flight.join_next() => {
                    if let Some(reason) = self.finish(joined.map_err(panicked)?)? {
                        return self.disable(reason).await;
                    }
                }
                signal = self.resources.signal.changed() => {
                    self.is_ending |= signal.is_err();
                    let silent = self.service().inner.clock.steady_millis() - self.renewed_at;
                    if (silent >= RENEWED_AFTER || self.is_stalled) && !self.try_save().await? {
                        return Ok(End::Done);
                    }
                }
            }
        }
    }

    /// Begins attempts as long as there is room, first at the events that are due, then at new ones. False when the
    /// session is no longer the one that sends.
    ///
    /// Each read of the log finds the webhook in the same snapshot. So no event that was committed after the webhook
    /// was disabled, changed or deleted is sent as before.
    async fn fill(&mut self) -> Result<bool, Error> {
        if !self.page.is_empty() && !self.is_ending && !self.is_stalled {
            // The page was read before: the webhook may have been deleted since, or its workspace.
            let webhook = self.service().read(self.webhook_key()).await?;
            if !self.follow(webhook.as_ref()).await? {
                return Ok(false);
            }
        }
        while !self.is_ending && !self.is_stalled && self.queue.has_room(self.webhook.value.ordered) {
            let (now, ordered) = (self.service().now(), self.webhook.value.ordered);
            let Some(slot) = self.slot() else { break };
            if let Some(due) = self.queue.first_due(ordered, now) {
                let key = records::audit_entry(self.webhook.value.workspace_id, due.revision).encoded();
                let (found, webhook) = self.service().read((key, self.webhook_key())).await?;
                if !self.follow(webhook.as_ref()).await? {
                    return Ok(false);
                }
                match found {
                    _ if self.is_ending => {}
                    Some(event) => self.send(due, &event_head(event).await?, slot)?,
                    None => {
                        let (webhook, revision) = (self.webhook.value.id, due.revision);
                        tracing::warn!(%webhook, revision, "a pending event is not in the log");
                        self.queue.forget(revision);
                    }
                }
                continue;
            }
            if !self.queue.may_read(ordered) {
                break;
            }
            if self.page.is_empty() {
                let entries = log_after(self.webhook.value.workspace_id, self.queue.position());
                let (page, webhook) = self.service().scan_with(entries, self.webhook_key()).await?;
                self.page = numbered(page).await?;
                if !self.follow(webhook.as_ref()).await? {
                    return Ok(false);
                }
            }
            if self.is_ending {
                break;
            }
            let Some((revision, event)) = self.page.pop_front() else {
                break;
            };
            if !self.webhook.value.types.include(&event.action) {
                self.queue.skip(revision);
                continue;
            }
            let pending = self.queue.push(revision, now);
            self.send(pending, &event, slot)?;
        }
        Ok(true)
    }

    /// Whether the time slice is over and another webhook waits for a session.
    fn must_make_room(&self) -> bool {
        let Resources { places, permit, .. } = &self.resources;
        self.service().inner.clock.steady_millis() - self.began_at >= TIME_SLICE && places.must_leave(permit)
    }

    /// A place for one more attempt: the first of a session needs none, the others share those of the server.
    fn slot(&self) -> Option<Option<Permit>> {
        if self.in_flight.is_empty() {
            return Some(None);
        }
        let Resources { places, permit, .. } = &self.resources;
        places.slot(permit).map(Some)
    }

    fn webhook_key(&self) -> EncodedKey<StoredWebhook> {
        self.webhook.key.clone().encoded()
    }

    /// Adopts another version of the webhook. False when the session has lost its lease.
    async fn follow(&mut self, now: Option<&Encoded<StoredWebhook>>) -> Result<bool, Error> {
        if now.map(Encoded::version) == Some(self.webhook.version) {
            return Ok(true);
        }
        self.adopt().await
    }

    /// Starts an attempt, which holds its permit until it has ended.
    fn send(&mut self, event: Pending, logged: &EventHead, slot: Option<Permit>) -> Result<(), Error> {
        self.queue.take(event.revision);
        let webhook = &self.webhook.value;
        let message = Prepared {
            url: webhook.url.clone(),
            id: message_id(webhook, self.epoch, event.revision),
            body: webhook::body(webhook.workspace_id, event.revision, event.previous, logged)?.into(),
        };
        let (service, transport) = (self.service().clone(), Arc::clone(&self.resources.transport));
        let (secrets, kind) = (Arc::clone(&self.secrets), logged.action.clone());
        self.in_flight.spawn(async move {
            let attempted = service.attempt(&message, &secrets, &*transport).await;
            drop(slot);
            Delivered {
                event,
                kind,
                message,
                attempted,
            }
        });
        Ok(())
    }

    /// Applies the decision after an attempt. A returned reason means that the webhook must be disabled.
    fn finish(&mut self, delivered: Delivered) -> Result<Option<DisabledReason>, Error> {
        let Delivered {
            event,
            kind,
            message,
            attempted,
        } = delivered;
        let service = &self.resources.service;
        let (at, now) = (attempted.at, service.now());
        let (id, revision) = (self.webhook.value.id, event.revision);
        let verdict = self
            .queue
            .finish(revision, &attempted.answer, at, now, service.entropy())?;
        let numbers = &self.resources.places.numbers;
        numbers.count(attempted.answer.is_success());
        if verdict.is_given_up {
            numbers.count_given_up();
            tracing::warn!(webhook = %id, revision, attempts = verdict.attempt, "an event is given up");
        }
        self.recorded += 1;
        let record = attempted.record(message.id, kind, Some(revision), verdict.attempt, verdict.next_at);
        self.unrecorded.push((self.recorded, record));
        if !self
            .resources
            .places
            .move_to_pool(&mut self.resources.permit, self.queue.is_late())
        {
            // There is no permit left for it: it goes on once there is.
            self.is_ending = true;
        }
        Ok(verdict.disable)
    }

    /// As [`Self::save`]; false when the session has lost its lease. While storage is not available the session waits,
    /// as long as its lease lasts.
    async fn try_save(&mut self) -> Result<bool, Error> {
        match self.save(true).await {
            Ok(true) => {
                self.is_stalled = false;
                Ok(true)
            }
            Ok(false) => Ok(false),
            Err(error) => {
                let silent = self.service().inner.clock.steady_millis() - self.renewed_at;
                let may_wait = matches!(error.kind(), ErrorKind::Unavailable) && silent < HELD;
                self.is_stalled = may_wait;
                if may_wait { Ok(true) } else { Err(error) }
            }
        }
    }

    /// Stores the queue and the attempts that are not recorded yet, and renews the lease or releases it. False when the
    /// session has lost its lease.
    async fn save(&mut self, holds: bool) -> Result<bool, Error> {
        let mut rounds = Rounds::default();
        loop {
            let began = self.service().inner.clock.steady_millis();
            let lease = holds.then(|| self.resources.holder.clone());
            let state = self.queue.state(self.recorded, lease);
            let transaction = self
                .recording(Transaction::default())?
                .check(self.webhook.unchanged())
                .check(self.state.unchanged())
                .put_subject(self.state.key.clone(), encode(&state)?);
            match self.service().commit(transaction).await? {
                Outcome::Done(done) => {
                    self.unrecorded.clear();
                    self.renewed_at = began;
                    self.state.version = done.version;
                    self.state.value = state;
                    return Ok(true);
                }
                Outcome::Raced | Outcome::Limit => {
                    if !self.adopt().await? {
                        return Ok(false);
                    }
                    rounds.lost().await?;
                }
            }
        }
    }

    /// Adds the attempts that are not recorded yet to a transaction, and removes those that are too old.
    fn recording(&self, mut transaction: Transaction) -> Result<Transaction, Error> {
        let (workspace, id) = (self.webhook.value.workspace_id, self.webhook.value.id);
        let key = |number| records::webhook_attempt(workspace, id, number);
        let kept = kept_attempts(self.recorded);
        for (number, record) in self.unrecorded.iter().filter(|(number, _)| kept.contains(number)) {
            transaction = transaction.put(key(*number), record)?;
        }
        let before = kept_attempts(self.state.value.recorded);
        for old in *before.start()..(*kept.start()).min(*before.end() + 1) {
            transaction = transaction.delete(key(old));
        }
        Ok(transaction)
    }

    /// Adopts the changes of a manager. False when the session has lost its lease.
    async fn adopt(&mut self) -> Result<bool, Error> {
        let webhook = &self.webhook.value;
        let found = self.service().find_webhook(webhook.workspace_id, webhook.id).await?;
        let Some(WebhookWithState { webhook, state }) = found else {
            return Ok(false);
        };
        if state.version != self.state.version {
            return Ok(false);
        }
        self.secrets = Arc::new(self.service().open_secrets(&webhook.value)?);
        self.is_ending |= !webhook.value.enabled;
        self.webhook = webhook;
        Ok(true)
    }

    /// Disables the webhook, with an entry in the audit log. Events in flight stay pending.
    async fn disable(mut self, reason: DisabledReason) -> Result<End, Error> {
        self.in_flight.abort_all();
        let mut rounds = Rounds::default();
        loop {
            let before = &self.webhook.value;
            let (workspace, id) = (before.workspace_id, before.id);
            let now = self.service().after(before.updated_at);
            let after = StoredWebhook {
                enabled: false,
                disabled_reason: Some(reason),
                updated_at: now,
                ..before.clone()
            };
            let actor = Actor::system("webhooks");
            let access = Access::without_membership(workspace, actor, self.webhook.unchanged());
            let change = changed(&access, now, Action::WebhookDisabled, id)
                .audit_diff(Some(&before.audited()), Some(&after.audited()))?
                .check(self.state.unchanged())
                .put(self.webhook.key.clone(), &after)?
                .put(records::webhook_place(id), &after.place())?
                .put(self.state.key.clone(), &self.queue.state(self.recorded, None))?
                .extended(|transaction| self.recording(transaction))?;
            match self.service().apply(change).await? {
                Outcome::Done(_) => {
                    tracing::warn!(%workspace, webhook = %id, %reason, "a webhook is disabled");
                    return Ok(End::Done);
                }
                Outcome::Raced | Outcome::Limit => {
                    if !self.adopt().await? || !self.webhook.value.enabled {
                        return Ok(End::Done);
                    }
                    rounds.lost().await?;
                }
            }
        }
    }
}

fn panicked(error: tokio::task::JoinError) -> Error {
    Error::new(ErrorKind::Internal, "the delivery task panicked").because(error)
}

impl AgentCfg {
    /// Ends a session that has found no event. The position is stored only when it has moved far.
    async fn end_without_events(&self, found: WebhookWithState, queue: &Queue) -> Result<End, Error> {
        let before = &found.state.value;
        if queue.position() - before.position < STORED_AFTER {
            return Ok(End::Nothing(queue.position()));
        }
        let after = queue.state(before.recorded, None);
        let transaction = Transaction::default()
            .check(found.webhook.unchanged())
            .check(found.state.unchanged())
            .put(found.state.key, &after)?;
        self.commit(transaction).await?;
        Ok(End::Done)
    }
}
