//! Tests that need private parts of the service.
#![allow(clippy::unwrap_used)]

mod export;
mod models;
mod provider_keys;
mod rotation;
mod webhooks;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;

use super::{AgentCfg, Builder, Caller, ModelRequest, Settings};
use crate::clock::ManualClock;
use crate::model::{NewAgent, NewWorkspace, Plan, Provider, Workspace, WorkspaceId, WorkspacePatch};
use crate::secret::ProviderCredential;
use crate::store::{Batch, CommitError, Committed, Key, MemoryStore, Record, Scan, Scanned, Store, StoreError};
use crate::vault::{MasterKey, Vault};

/// A canary: a key that must appear in no output and no file.
const CANARY: &str = "sk-canary-0123456789-abcdefghij";

fn key(byte: u8) -> MasterKey {
    format!("{byte:02x}").repeat(32).parse().unwrap()
}

fn vault(bytes: &[u8]) -> Vault {
    Vault::new(bytes.iter().copied().map(key).collect()).unwrap()
}

fn credential(text: &str) -> ProviderCredential {
    ProviderCredential::new(text).unwrap()
}

fn builder(store: Arc<dyn Store>) -> Builder {
    AgentCfg::builder(store)
        .clock(Arc::new(ManualClock::at("2026-11-20T09:30:00Z".parse().unwrap())))
        .settings(Settings {
            default_plan: Plan::Pro,
            operators: ["olga".to_owned()].into(),
            max_workspaces_per_user: None,
            ..Settings::default()
        })
        .unwrap()
}

pub(super) fn service(store: &Arc<dyn Store>, keys: &[u8]) -> AgentCfg {
    builder(Arc::clone(store)).vault(vault(keys)).build()
}

pub(super) fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

pub(super) fn ada(service: &AgentCfg) -> Caller {
    service.trusted_user("ada").unwrap()
}

pub(super) async fn workspace(service: &AgentCfg) -> Workspace {
    let new = NewWorkspace { name: "Studio".into() };
    service.create_workspace(&ada(service), new).await.unwrap()
}

async fn agent(service: &AgentCfg, workspace: WorkspaceId, agent_id: &str, model: Option<&str>) {
    let mut new = NewAgent::new(workspace, agent_id.parse().unwrap(), agent_id);
    new.model = model.map(str::to_owned);
    new.persona_prompt = Some("You write short sentences.".into());
    service.create_agent(&ada(service), new).await.unwrap();
}

async fn set_plan(service: &AgentCfg, workspace: WorkspaceId, plan: Plan) {
    let patch = WorkspacePatch {
        plan: Some(plan),
        ..WorkspacePatch::default()
    };
    let olga = service.trusted_user("olga").unwrap();
    service.update_workspace(&olga, workspace, patch).await.unwrap();
}

/// The credential that the next call takes.
async fn next(service: &AgentCfg, workspace: WorkspaceId, provider: Provider) -> Result<String, crate::Error> {
    let model = if provider == Provider::OPENAI {
        "gpt-5.5"
    } else {
        "claude-haiku-5-5"
    };
    let request = ModelRequest::new(provider, "v1/responses").model(model);
    let call = service
        .resolve_model_call(&ada(service), Some(workspace), "writer", &request)
        .await?;
    Ok(call.first.credential.expose().to_owned())
}

/// A store whose commits fail after a number of successes.
struct Failing {
    inner: Arc<dyn Store>,
    /// How many commits still succeed.
    left: AtomicUsize,
    /// Whether the first failing commit takes effect nevertheless.
    applies: bool,
}

impl Failing {
    fn after(inner: &Arc<dyn Store>, commits: usize, applies: bool) -> Arc<dyn Store> {
        Arc::new(Self {
            inner: Arc::clone(inner),
            left: AtomicUsize::new(commits),
            applies,
        })
    }
}

#[async_trait]
impl Store for Failing {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.inner)
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.inner.get(keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        self.inner.scan(scan).await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        let left = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match left {
            Ok(_) => self.inner.commit(batch).await,
            Err(_) if self.applies => {
                self.inner.commit(batch).await?;
                Err(StoreError::OutcomeUnknown("killed".into()).into())
            }
            Err(_) => Err(StoreError::Unavailable("killed".into()).into()),
        }
    }
}

/// A store that runs a function once, between a decision and its commit.
struct Meanwhile {
    inner: Arc<dyn Store>,
    happens: tokio::sync::Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
}

impl Meanwhile {
    fn on(inner: &Arc<dyn Store>, happens: impl Future<Output = ()> + Send + 'static) -> Arc<dyn Store> {
        Arc::new(Self {
            inner: Arc::clone(inner),
            happens: tokio::sync::Mutex::new(Some(Box::pin(happens))),
        })
    }
}

#[async_trait]
impl Store for Meanwhile {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.inner)
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.inner.get(keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        self.inner.scan(scan).await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        if let Some(happens) = self.happens.lock().await.take() {
            happens.await;
        }
        self.inner.commit(batch).await
    }
}
