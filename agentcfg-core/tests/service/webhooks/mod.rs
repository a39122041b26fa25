//! Webhooks: their rules, and what a sender does with them, on a clock that the test moves.

mod changes;
mod delivery;
mod leases;
mod new_events;
mod rules;
mod secrets;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use agentcfg_core::clock::ManualClock;
use agentcfg_core::model::{
    NewAgent, NewWebhook, NewWorkspace, Webhook, WebhookDelivery, WebhookId, WebhookWithSecret, WorkspaceId,
};
use agentcfg_core::service::WebhookSender;
use agentcfg_core::store::{MemoryStore, Store};
use agentcfg_core::vault::{MasterKey, Vault};
use agentcfg_core::webhook::{DeliveryAnswer, Outgoing, SigningSecret, Transport};
use agentcfg_core::{AgentCfg, Caller, Settings};
use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::support::{START, Shared};

/// The receiver of most tests.
const URL: &str = "https://hooks.example.com/agentcfg";

/// A service with webhooks, a receiver that the test controls, and a sender.
struct Hooks {
    service: AgentCfg,
    clock: Arc<ManualClock>,
    store: Arc<dyn Store>,
    receiver: Arc<Receiver>,
    sender: WebhookSender,
    ada: Caller,
    studio: WorkspaceId,
}

/// Receives messages in place of the network.
#[derive(Default)]
struct Receiver {
    received: Mutex<Vec<Outgoing>>,
    /// The next answers of each URL; 200 when there are none.
    answers: Mutex<HashMap<String, VecDeque<DeliveryAnswer>>>,
    /// The URLs that answer only when the test lets them.
    gates: Mutex<HashMap<String, Arc<Semaphore>>>,
}

#[async_trait]
impl Transport for Receiver {
    async fn post(&self, message: Outgoing) -> DeliveryAnswer {
        let url = message.url.clone();
        self.received.lock().unwrap().push(message);
        let gate = self.gates.lock().unwrap().get(&url).cloned();
        if let Some(gate) = gate {
            gate.acquire().await.unwrap().forget();
        }
        let planned = self.answers.lock().unwrap().get_mut(&url).and_then(VecDeque::pop_front);
        planned.unwrap_or_else(|| status(200))
    }
}

fn status(status: u16) -> DeliveryAnswer {
    DeliveryAnswer::default().status(status).response("answer")
}

impl Receiver {
    fn answer(&self, url: &str, answers: impl IntoIterator<Item = DeliveryAnswer>) {
        self.answers
            .lock()
            .unwrap()
            .entry(url.to_owned())
            .or_default()
            .extend(answers);
    }

    fn gate(&self, url: &str) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(0));
        self.gates.lock().unwrap().insert(url.to_owned(), Arc::clone(&gate));
        gate
    }

    /// The messages since the last call.
    fn take(&self) -> Vec<Outgoing> {
        std::mem::take(&mut *self.received.lock().unwrap())
    }

    fn count(&self) -> usize {
        self.received.lock().unwrap().len()
    }
}

fn key(byte: u8) -> MasterKey {
    format!("{byte:02x}").repeat(32).parse().unwrap()
}

fn instance(store: &Arc<dyn Store>, clock: &Arc<ManualClock>, is_shared: bool) -> AgentCfg {
    let store: Arc<dyn Store> = match is_shared {
        true => Arc::new(Shared(Arc::clone(store))),
        false => Arc::clone(store),
    };
    AgentCfg::builder(store)
        .clock(Arc::clone(clock) as _)
        .settings(Settings::default().webhook_allowed_hosts(vec!["hooks.internal:8080".parse().unwrap()]))
        .unwrap()
        .vault(Vault::new(vec![key(1)]).unwrap())
        .build()
}

impl Hooks {
    async fn new() -> Self {
        Self::on(Arc::new(MemoryStore::new()), false).await
    }

    async fn on(store: Arc<dyn Store>, is_shared: bool) -> Self {
        let clock = Arc::new(ManualClock::at(START.parse().unwrap()));
        let service = instance(&store, &clock, is_shared);
        let receiver = Arc::new(Receiver::default());
        let ada = service.trusted_user("ada").unwrap();
        let new = NewWorkspace::new("Studio");
        let studio = service.create_workspace(&ada, new).await.unwrap().id;
        Self {
            sender: WebhookSender::new(&service, Arc::clone(&receiver) as _).unwrap(),
            service,
            clock,
            store,
            receiver,
            ada,
            studio,
        }
    }

    /// Another server on the same store, with the same receiver.
    fn another(&self) -> WebhookSender {
        let service = instance(&self.store, &self.clock, true);
        WebhookSender::new(&service, Arc::clone(&self.receiver) as _).unwrap()
    }

    async fn create(&self) -> WebhookWithSecret {
        self.create_with(|_| {}).await
    }

    async fn create_with(&self, choose: impl FnOnce(&mut NewWebhook)) -> WebhookWithSecret {
        let mut new = NewWebhook::new(self.studio, URL);
        choose(&mut new);
        self.service.create_webhook(&self.ada, new).await.unwrap()
    }

    async fn webhook(&self, id: WebhookId) -> Webhook {
        let all = self.service.list_webhooks(&self.ada, self.studio).await.unwrap();
        all.into_iter().find(|webhook| webhook.id == id).unwrap()
    }

    async fn deliveries(&self, id: WebhookId) -> Vec<WebhookDelivery> {
        self.service.webhook_deliveries(&self.ada, id).await.unwrap()
    }

    /// Makes an event.
    async fn agent(&self, agent_id: &str) {
        let new = NewAgent::new(self.studio, agent_id.parse().unwrap(), agent_id);
        self.service.create_agent(&self.ada, new).await.unwrap();
    }

    /// The messages that one look of the sender brings.
    async fn sent(&self) -> Vec<Outgoing> {
        self.sender.tick().await.unwrap();
        self.sender.idle().await;
        self.receiver.take()
    }

    fn pass(&self, seconds: i64) {
        self.clock.advance_millis(seconds * 1000);
    }
}

fn body(message: &Outgoing) -> Value {
    serde_json::from_slice(&message.body).unwrap()
}

fn revisions(messages: &[Outgoing]) -> Vec<u64> {
    let revision = |message| body(message)["data"]["revision"].as_u64().unwrap();
    messages.iter().map(revision).collect()
}

fn is_signed_by(message: &Outgoing, secret: &str) -> bool {
    let secret: SigningSecret = secret.parse().unwrap();
    let expected = secret.sign(&message.id, message.timestamp, &message.body);
    message.signature.split(' ').any(|signature| signature == expected)
}

/// Lets the other tasks go on until something holds.
async fn until(mut holds: impl FnMut() -> bool) {
    for _ in 0..100_000 {
        if holds() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it does not come to hold");
}
