//! The sender: finds the webhooks with something to send, and gives each a session.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::lease::LeaseSeen;
use super::numbers::SenderNumbers;
use super::places::{Places, Signal};
use super::session::{self, End, Resources};
use crate::error::Error;
use crate::model::{Timestamp, WebhookId, WorkspaceId};
use crate::service::AgentCfg;
use crate::service::pieces::Pieces;
use crate::service::records::{self, Entries, Stored, StoredWebhook, WebhookState};
use crate::webhook::Transport;

/// How long a webhook rests after its session has failed, in milliseconds.
const REST: i64 = 10_000;

/// How long a webhook with as many pending events as it may have reads no further ones, in milliseconds, unless an attempt is
/// due before.
const FULL: i64 = 10_000;

/// How many workspaces a look for the new events of this service reads.
const CHANGED: usize = 32;

/// Sends the events of all workspaces to their webhooks.
///
/// The log of a workspace is the outbox: nothing is queued in memory alone, and after a crash the sender goes on from the
/// cursors in the store. Several servers on one store share the work: for each webhook one of them sends at a time, by a
/// lease in the store.
///
/// It has no timer. Its owner calls [`tick`](Self::tick) about once a second, and [`stop`](Self::stop) at the end. An owner that
/// also waits for [`changed`](Self::changed) sends the events of this service without that delay.
/// (Decisions, chapter 16.)
///
/// ```
/// use agentcfg_core::service::WebhookSender;
/// use agentcfg_core::webhook::{Answer, Outgoing, Transport};
/// use agentcfg_core::{AgentCfg, store::MemoryStore};
/// use std::sync::Arc;
///
/// struct Taken;
///
/// #[async_trait::async_trait]
/// impl Transport for Taken {
///     async fn post(&self, _: Outgoing) -> Answer {
///         Answer { status: Some(200), ..Answer::default() }
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let service = AgentCfg::builder(MemoryStore::new()).build();
/// let sender = WebhookSender::new(&service, Arc::new(Taken))?;
/// sender.tick().await?;
/// sender.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct WebhookSender {
    service: AgentCfg,
    transport: Arc<dyn Transport>,
    holder: Box<str>,
    signal: watch::Sender<Signal>,
    places: Arc<Places>,
    known: Arc<Mutex<HashMap<WebhookId, Known>>>,
    sessions: tokio::sync::Mutex<JoinSet<()>>,
}

/// What the sender remembers of a webhook, so that an idle one costs no more than the read of its version.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// The version of the state that the rest was read from.
    version: u64,
    /// The last revision without anything to send.
    position: u64,
    next_at: Option<Timestamp>,
    is_failing: bool,
    /// Whether another process holds the lease.
    is_leased: bool,
    /// The steady time at which this version was first seen.
    since: i64,
    /// The steady time before which no session begins.
    not_before: i64,
    /// The steady time before which no session begins for new events alone.
    reads_after: i64,
    /// The steady time at which the last session began.
    began_at: Option<i64>,
    is_active: bool,
    /// Whether its log was longer during the session than before. The session may have ended without the new entries.
    has_more: bool,
}

/// A webhook with something to send.
struct Due {
    /// As in [`Known`].
    began_at: Option<i64>,
    workspace: WorkspaceId,
    id: WebhookId,
    is_failing: bool,
}

/// The order in which webhooks get places. Workspaces alternate, so that one with thousands of slow receivers delays no other.
/// Of a workspace those whose last session began first are first, so that none is always too late. Failing webhooks have places of
/// their own ([`Places`]), so they are counted apart from the others.
fn in_turn(mut due: Vec<Due>) -> Vec<Due> {
    due.sort_by_key(|due| due.began_at);
    let mut counts: HashMap<(WorkspaceId, bool), usize> = HashMap::new();
    let mut ranked: Vec<(usize, Due)> = Vec::with_capacity(due.len());
    for due in due {
        let count = counts.entry((due.workspace, due.is_failing)).or_default();
        ranked.push((*count, due));
        *count += 1;
    }
    ranked.sort_by_key(|(rank, due)| (*rank, due.began_at));
    ranked.into_iter().map(|(_, due)| due).collect()
}

impl WebhookSender {
    /// A sender for the webhooks of a service.
    ///
    /// # Errors
    ///
    /// When there is no randomness for the name of this sender.
    pub fn new(service: &AgentCfg, transport: Arc<dyn Transport>) -> Result<Self, Error> {
        let name: Uuid = service.new_id(service.now())?;
        service.inner.new_events.follow();
        Ok(Self {
            service: service.clone(),
            transport,
            holder: name.simple().to_string().into(),
            signal: watch::Sender::default(),
            places: Arc::default(),
            known: Arc::default(),
            sessions: tokio::sync::Mutex::default(),
        })
    }

    /// What this sender has counted.
    pub fn numbers(&self) -> SenderNumbers {
        self.places.numbers.clone()
    }

    /// Looks once for webhooks with something to send and begins to send. Sessions that are at work renew their leases.
    ///
    /// # Errors
    ///
    /// When storage fails. The next call tries again.
    pub async fn tick(&self) -> Result<(), Error> {
        self.signal.send_modify(|signal| signal.ticks += 1);
        self.reap().await;
        self.service.inner.new_events.begin_tick();
        let (mut due, mut seen, mut lag) = (Vec::new(), HashSet::new(), 0);
        let mut workspaces = HashSet::new();
        let mut pieces = Pieces::of(records::webhook_places());
        while let Some(found) = pieces.next(&self.service).await? {
            let mut enabled = Vec::with_capacity(found.len());
            for place in found {
                let (id, place) = (place.key().webhook()?, place.value()?);
                if place.enabled {
                    seen.insert(id);
                    workspaces.insert(place.workspace_id);
                    enabled.push((place.workspace_id, id));
                }
            }
            lag += self.examine(&enabled, &mut due).await?;
        }
        self.known().retain(|id, known| known.is_active || seen.contains(id));
        self.service.inner.new_events.end_tick(workspaces);
        self.places.numbers.set_lag(lag);
        self.places.look_again();
        for Due { workspace, id, .. } in in_turn(due) {
            self.begin(workspace, id).await;
        }
        Ok(())
    }

    /// Waits until this service has committed an event in a workspace with webhooks, and the sender has not read it yet. Then its
    /// owner calls [`send_changed`](Self::send_changed).
    ///
    /// Events that other servers have committed, and attempts that become due, are found by [`tick`](Self::tick) alone. Dropping this
    /// future loses nothing.
    ///
    /// ```
    /// # use agentcfg_core::service::WebhookSender;
    /// # use agentcfg_core::webhook::{Answer, Outgoing, Transport};
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # use std::{sync::Arc, time::Duration};
    /// # struct Taken;
    /// # #[async_trait::async_trait]
    /// # impl Transport for Taken {
    /// #     async fn post(&self, _: Outgoing) -> Answer {
    /// #         Answer { status: Some(200), ..Answer::default() }
    /// #     }
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let service = AgentCfg::builder(MemoryStore::new()).build();
    /// let sender = WebhookSender::new(&service, Arc::new(Taken))?;
    /// let mut second = tokio::time::interval(Duration::from_secs(1));
    /// # for _ in 0..1 {
    /// // In a loop:
    /// tokio::select! {
    ///     _ = second.tick() => sender.tick().await?,
    ///     () = sender.changed() => sender.send_changed().await?,
    /// }
    /// // Many commits are one look.
    /// tokio::time::sleep(Duration::from_millis(50)).await;
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn changed(&self) {
        self.service.inner.new_events.noted().await;
    }

    /// Reads the webhooks of the workspaces that [`changed`](Self::changed) waits for, and begins to send.
    ///
    /// It reads some of these workspaces, so that it takes no longer than a tick; for the others `changed` is ready again. It is
    /// no tick: leases are not renewed, and while webhooks wait for a place it gives none.
    ///
    /// # Errors
    ///
    /// When storage fails. The next tick finds what was not read.
    ///
    /// ```
    /// # use agentcfg_core::service::WebhookSender;
    /// # use agentcfg_core::webhook::{Answer, Outgoing, Transport};
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # use std::sync::Arc;
    /// # struct Taken;
    /// # #[async_trait::async_trait]
    /// # impl Transport for Taken {
    /// #     async fn post(&self, _: Outgoing) -> Answer {
    /// #         Answer { status: Some(200), ..Answer::default() }
    /// #     }
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let service = AgentCfg::builder(MemoryStore::new()).build();
    /// let sender = WebhookSender::new(&service, Arc::new(Taken))?;
    /// sender.send_changed().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn send_changed(&self) -> Result<(), Error> {
        self.reap().await;
        let (mut webhooks, mut due) = (Vec::new(), Vec::new());
        for workspace in self.service.inner.new_events.take(CHANGED) {
            let found = self
                .service
                .scan(Entries::<StoredWebhook>::in_workspace(workspace))
                .await?;
            let enabled = found.into_values()?.into_iter().filter(|webhook| webhook.enabled);
            webhooks.extend(enabled.map(|webhook| (workspace, webhook.id)));
        }
        if webhooks.is_empty() {
            return Ok(());
        }
        self.examine(&webhooks, &mut due).await?;
        due.retain(|due| !self.places.is_short(due.is_failing));
        for Due { workspace, id, .. } in in_turn(due) {
            self.begin(workspace, id).await;
        }
        Ok(())
    }

    /// Forgets the sessions that have ended.
    async fn reap(&self) {
        while self.sessions.lock().await.try_join_next().is_some() {}
    }

    /// Begins no further attempts, and waits until those in flight have ended and are recorded.
    pub async fn stop(&self) {
        self.signal.send_modify(|signal| signal.is_stopping = true);
        self.idle().await;
    }

    /// Waits until nothing is being sent.
    pub async fn idle(&self) {
        let mut sessions = self.sessions.lock().await;
        while sessions.join_next().await.is_some() {}
    }

    /// Adds the webhooks with something to send to `due`. Returns how many revisions they have not read.
    async fn examine(&self, webhooks: &[(WorkspaceId, WebhookId)], due: &mut Vec<Due>) -> Result<u64, Error> {
        let workspaces: HashSet<WorkspaceId> = webhooks.iter().map(|(workspace, _)| *workspace).collect();
        let workspaces: Vec<WorkspaceId> = workspaces.into_iter().collect();
        let heads = workspaces.iter().map(|workspace| records::revision(*workspace));
        let states = webhooks
            .iter()
            .map(|(workspace, id)| records::webhook_state(*workspace, *id).encoded());
        let states = self.service.read(states.collect::<Vec<_>>()).await?;
        let heads = self.service.read(heads.collect::<Vec<_>>()).await?;
        let heads: HashMap<WorkspaceId, u64> = workspaces.into_iter().zip(heads).collect();

        let (now, steady) = (self.service.now(), self.service.inner.clock.steady_millis());
        let mut lag = 0;
        let mut all = self.known();
        for ((workspace, id), state) in webhooks.iter().zip(states) {
            let Some(state) = state else { continue };
            let head = heads.get(workspace).copied().unwrap_or_default();
            let known = all.entry(*id).or_default();
            if !known.is_active && known.version != state.version() {
                known.read(&state.decode()?, &self.holder, steady);
            }
            lag += head.saturating_sub(known.position);
            known.has_more = known.is_active && head > known.position;
            if known.is_due(head, now, steady, self.service.inner.remote_store) {
                due.push(Due {
                    began_at: known.began_at,
                    workspace: *workspace,
                    id: *id,
                    is_failing: known.is_failing,
                });
            }
        }
        Ok(lag)
    }

    async fn begin(&self, workspace: WorkspaceId, id: WebhookId) {
        let (is_failing, version) = match self.known().get(&id) {
            Some(known) => (known.is_failing, known.version),
            None => return,
        };
        let Some(permit) = self.places.enter(is_failing) else {
            return;
        };
        let resources = Resources {
            service: self.service.clone(),
            transport: Arc::clone(&self.transport),
            holder: self.holder.clone(),
            signal: self.signal.subscribe(),
            places: Arc::clone(&self.places),
            permit,
        };
        if let Some(known) = self.known().get_mut(&id) {
            known.is_active = true;
            known.began_at = Some(self.service.inner.clock.steady_millis());
        }
        let mut active = Active {
            all: Arc::clone(&self.known),
            workspace,
            id,
            service: self.service.clone(),
            end: None,
        };
        let session = async move {
            match session::run(resources, (workspace, id), LeaseSeen { version }).await {
                Ok(end) => active.ended(end),
                Err(error) => {
                    tracing::warn!(%workspace, webhook = %id, ?error, "a webhook rests, because its session failed");
                }
            }
        };
        self.sessions.lock().await.spawn(session);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<WebhookId, Known>> {
        locked(&self.known)
    }
}

fn locked(known: &Mutex<HashMap<WebhookId, Known>>) -> MutexGuard<'_, HashMap<WebhookId, Known>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Marks a webhook as active as long as its session runs, also when the session panics.
struct Active {
    all: Arc<Mutex<HashMap<WebhookId, Known>>>,
    workspace: WorkspaceId,
    id: WebhookId,
    service: AgentCfg,
    /// How the session ended; `None` when it failed.
    end: Option<End>,
}

impl Active {
    fn ended(&mut self, end: End) {
        self.end = Some(end);
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        let steady = self.service.inner.clock.steady_millis();
        let mut has_more = false;
        if let Some(known) = locked(&self.all).get_mut(&self.id) {
            has_more = std::mem::take(&mut known.has_more);
            known.end(self.end.as_ref(), steady);
        }
        if has_more {
            self.service.inner.new_events.note_again(self.workspace);
        }
    }
}

impl Known {
    /// Takes over a state that was read.
    fn read(&mut self, state: &Stored<WebhookState>, holder: &str, steady: i64) {
        *self = Self {
            version: state.version,
            position: state.value.position,
            next_at: state.value.next_at(),
            is_failing: state.value.failing_since.is_some(),
            is_leased: state.value.lease.as_deref().is_some_and(|other| other != holder),
            since: steady,
            not_before: self.not_before,
            reads_after: i64::MIN,
            began_at: self.began_at,
            is_active: false,
            has_more: false,
        };
    }

    /// Whether a session should begin.
    fn is_due(&self, head: u64, now: Timestamp, steady: i64, is_shared: bool) -> bool {
        let is_free = !self.is_leased || !is_shared || steady - self.since >= LeaseSeen::LEASE;
        let has_new = head > self.position && steady >= self.reads_after;
        let has_work = has_new || self.next_at.is_some_and(|next| next <= now);
        !self.is_active && is_free && has_work && steady >= self.not_before
    }

    /// Takes over the end of a session.
    fn end(&mut self, end: Option<&End>, steady: i64) {
        self.is_active = false;
        match end {
            Some(End::Nothing(position)) => self.position = *position,
            // Until the next attempt, or until its record is read again because another version of it is stored.
            Some(End::Full) => self.reads_after = steady + FULL,
            // The state was written, so it is read again.
            Some(End::Done) => self.version = 0,
            None => {
                self.version = 0;
                self.not_before = steady + REST;
            }
        }
    }
}

impl fmt::Debug for WebhookSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSender")
            .field("holder", &self.holder)
            .field("numbers", &self.numbers())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspaces_alternate_and_the_longest_wait_is_first() {
        let due = |workspace, id, began_at| Due {
            began_at,
            workspace: WorkspaceId::new(Uuid::from_u128(workspace)),
            id: WebhookId::new(Uuid::from_u128(id)),
            is_failing: false,
        };
        // The workspace 1 has many, the workspace 2 one whose turn was last, and the workspace 3 a new one.
        let all = vec![
            due(1, 10, Some(50)),
            due(1, 11, Some(10)),
            due(1, 12, Some(30)),
            due(2, 20, Some(90)),
            due(3, 30, None),
        ];
        assert_eq!(order(all), [30, 11, 20, 12, 10]);
        // Two failing ones of the workspace 1 have waited longest, and take no rank from its healthy one.
        let failing = |id| Due {
            is_failing: true,
            ..due(1, id, Some(1))
        };
        let all = vec![
            failing(10),
            failing(11),
            due(1, 12, Some(5)),
            due(2, 20, Some(90)),
            due(2, 21, Some(91)),
        ];
        assert_eq!(order(all), [10, 12, 20, 11, 21]);
    }

    fn order(due: Vec<Due>) -> Vec<u128> {
        in_turn(due).iter().map(|due| due.id.as_uuid().as_u128()).collect()
    }
}
