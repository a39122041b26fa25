//! The sender: finds the webhooks with something to send, and gives each a session.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::lease::LeaseSeen;
use super::sender_memory::{DueWebhook, WebhookMemory, in_turn};
use super::sender_numbers::SenderNumbers;
use super::session::{self, End, Resources};
use super::session_permits::{Account, SessionPermits, Signal};
use crate::clock::MINUTE;
use crate::error::Error;
use crate::model::{WebhookId, WorkspaceId};
use crate::service::AgentCfg;
use crate::service::chunked_reads::Chunks;
use crate::service::records::{self, Entries, StoredWebhook};
use crate::sync::lock;
use crate::webhook::Transport;

/// How many workspaces one call of [`WebhookSender::send_changed`] reads at most.
const CHANGED: usize = 32;

/// After how many milliseconds the owner of a workspace is read again.
const ACCOUNTS_READ_AFTER: i64 = MINUTE;

/// Sends the events of all workspaces to their webhooks.
///
/// The log of a workspace is the outbox: nothing is queued in memory alone, and after a crash the sender goes on from
/// the cursors in the store. Several servers on one store share the work: for each webhook one of them sends at a time,
/// by a lease in the store.
///
/// It has no timer. Its owner calls [`tick`](Self::tick) about once a second, and [`stop`](Self::stop) at the end. An
/// owner that also waits for [`changed`](Self::changed) sends the events of this service without that delay.
///
/// ```
/// use agentcfg_core::service::WebhookSender;
/// use agentcfg_core::webhook::{DeliveryAnswer, Outgoing, Transport};
/// use agentcfg_core::{AgentCfg, store::MemoryStore};
/// use std::sync::Arc;
///
/// struct Taken;
///
/// #[async_trait::async_trait]
/// impl Transport for Taken {
///     async fn post(&self, _: Outgoing) -> DeliveryAnswer {
///         DeliveryAnswer::default().status(200)
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
    places: Arc<SessionPermits>,
    accounts: Mutex<HashMap<WorkspaceId, (Account, i64)>>,
    known: Arc<Mutex<HashMap<WebhookId, WebhookMemory>>>,
    sessions: tokio::sync::Mutex<JoinSet<()>>,
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
            accounts: Mutex::default(),
            known: Arc::default(),
            sessions: tokio::sync::Mutex::default(),
        })
    }

    /// The counters of this sender.
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
        let mut workspaces: HashMap<WorkspaceId, Vec<WebhookId>> = HashMap::new();
        let mut pieces = Chunks::of(records::webhook_places());
        while let Some(found) = pieces.next(&self.service).await? {
            let mut enabled = Vec::with_capacity(found.len());
            for place in found {
                let (id, place) = (place.key().webhook()?, place.value()?);
                if place.enabled {
                    seen.insert(id);
                    workspaces.entry(place.workspace_id).or_default().push(id);
                    enabled.push((place.workspace_id, id));
                }
            }
            lag += self.examine(&enabled, &mut due).await?;
        }
        lock(&self.known).retain(|id, known| known.is_active || seen.contains(id));
        lock(&self.accounts).retain(|workspace, _| workspaces.contains_key(workspace));
        self.service.inner.new_events.end_tick(workspaces);
        self.places.numbers.set_lag(lag);
        self.places.reset_waiting();
        self.note_accounts(&mut due).await?;
        for due in in_turn(due) {
            self.begin(due).await;
        }
        Ok(())
    }

    /// Waits until this service has committed an event in a workspace with webhooks, and the sender has not read it
    /// yet. Then its owner calls [`send_changed`](Self::send_changed).
    ///
    /// Events that other servers have committed, and attempts that become due, are found by [`tick`](Self::tick) alone.
    /// Dropping this future loses nothing.
    ///
    /// ```
    /// # use agentcfg_core::service::WebhookSender;
    /// # use agentcfg_core::webhook::{DeliveryAnswer, Outgoing, Transport};
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # use std::{sync::Arc, time::Duration};
    /// # struct Taken;
    /// # #[async_trait::async_trait]
    /// # impl Transport for Taken {
    /// #     async fn post(&self, _: Outgoing) -> DeliveryAnswer {
    /// #         DeliveryAnswer::default().status(200)
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
    /// It reads some of these workspaces; for the others `changed` is ready again. Webhooks whose session is running,
    /// here or in another process, are not read. It is no tick: leases are not renewed, and while webhooks wait for a
    /// place it gives none.
    ///
    /// # Errors
    ///
    /// When storage fails. The next tick finds what was not read.
    ///
    /// ```
    /// # use agentcfg_core::service::WebhookSender;
    /// # use agentcfg_core::webhook::{DeliveryAnswer, Outgoing, Transport};
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # use std::sync::Arc;
    /// # struct Taken;
    /// # #[async_trait::async_trait]
    /// # impl Transport for Taken {
    /// #     async fn post(&self, _: Outgoing) -> DeliveryAnswer {
    /// #         DeliveryAnswer::default().status(200)
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
        for (workspace, known) in self.service.inner.new_events.take(CHANGED) {
            if let Some(ids) = known {
                webhooks.extend(ids.into_iter().map(|id| (workspace, id)));
                continue;
            }
            let found = self
                .service
                .scan(Entries::<StoredWebhook>::in_workspace(workspace))
                .await?;
            let enabled = found.into_values()?.into_iter().filter(|webhook| webhook.enabled);
            webhooks.extend(enabled.map(|webhook| (workspace, webhook.id)));
        }
        self.retain_free(&mut webhooks);
        if webhooks.is_empty() {
            return Ok(());
        }
        self.examine(&webhooks, &mut due).await?;
        self.note_accounts(&mut due).await?;
        due.retain(|due| !self.places.is_short(&due.account, due.is_late));
        for due in in_turn(due) {
            self.begin(due).await;
        }
        Ok(())
    }

    /// Removes the webhooks for which no session can begin now. A session that runs here has the webhook examined again
    /// when it ends.
    fn retain_free(&self, webhooks: &mut Vec<(WorkspaceId, WebhookId)>) {
        let steady = self.service.inner.clock.steady_millis();
        let mut all = lock(&self.known);
        webhooks.retain(|(_, id)| match all.get_mut(id) {
            Some(known) if known.is_active => {
                known.has_more = true;
                false
            }
            Some(known) => known.is_free(steady, self.service.store().is_shared()),
            None => true,
        });
    }

    /// Removes the sessions that have ended.
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
    async fn examine(&self, webhooks: &[(WorkspaceId, WebhookId)], due: &mut Vec<DueWebhook>) -> Result<u64, Error> {
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
        let mut all = lock(&self.known);
        for ((workspace, id), state) in webhooks.iter().zip(states) {
            let Some(state) = state else { continue };
            let head = heads.get(workspace).copied().unwrap_or_default();
            let known = all.entry(*id).or_default();
            if !known.is_active && known.version != state.version() {
                known.read(&state.decode()?, &self.holder, steady);
            }
            lag += head.saturating_sub(known.position);
            known.has_more |= known.is_active && head > known.began_head;
            if known.is_due(head, now, steady, self.service.store().is_shared()) {
                due.push(DueWebhook {
                    began_at: known.began_at,
                    head,
                    workspace: *workspace,
                    id: *id,
                    is_late: known.is_late,
                    account: None,
                });
            }
        }
        Ok(lag)
    }

    /// Finds who each of these webhooks is accounted to.
    async fn note_accounts(&self, due: &mut [DueWebhook]) -> Result<(), Error> {
        let steady = self.service.inner.clock.steady_millis();
        for due in due {
            let known = lock(&self.accounts).get(&due.workspace).cloned();
            due.account = match known.filter(|(_, read_at)| *read_at >= steady - ACCOUNTS_READ_AFTER) {
                Some((account, _)) => account,
                None => {
                    let account = self.service.first_owner(due.workspace).await?;
                    lock(&self.accounts).insert(due.workspace, (account.clone(), steady));
                    account
                }
            };
        }
        Ok(())
    }

    async fn begin(
        &self,
        DueWebhook {
            workspace,
            id,
            head,
            is_late,
            account,
            ..
        }: DueWebhook,
    ) {
        let Some(version) = lock(&self.known).get(&id).map(|known| known.version) else {
            return;
        };
        let Some(permit) = self.places.enter(&account, is_late) else {
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
        if let Some(known) = lock(&self.known).get_mut(&id) {
            known.is_active = true;
            known.began_at = Some(self.service.inner.clock.steady_millis());
            known.began_head = head;
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
                    tracing::warn!(%workspace, webhook = %id, ?error, "a webhook's session failed; it is retried later");
                }
            }
        };
        self.sessions.lock().await.spawn(session);
    }
}

/// Marks a webhook as active while its session runs, also when the session panics.
struct Active {
    all: Arc<Mutex<HashMap<WebhookId, WebhookMemory>>>,
    workspace: WorkspaceId,
    id: WebhookId,
    service: AgentCfg,
    /// The result of the session; `None` when it failed.
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
        if let Some(known) = lock(&self.all).get_mut(&self.id) {
            has_more = std::mem::take(&mut known.has_more);
            known.end(self.end.as_ref(), steady);
        }
        if has_more {
            self.service.inner.new_events.note_again(self.workspace);
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
