//! Clients that do random things on random servers, and record what they see.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use agentcfg_tests::harness::Dice;

use serde_json::json;
use tokio::task::JoinSet;

use super::history::{Action, Outcome, Recorder, Seen};
use crate::server::{Answer, Api};

/// The longest time that a request may take: a commit in doubt takes 20 s, and may follow waits for a connection.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What the clients of a run work on.
pub struct Scene {
    /// The servers of the moment.
    pub servers: RwLock<Vec<SocketAddr>>,
    /// A session token of the owner.
    pub owner: String,
    /// An API key of the open workspace.
    pub key: String,
    pub open: String,
    pub limited: String,
    pub registers: usize,
    pub recorder: Recorder,
    pub stop: AtomicBool,
}

struct Client {
    scene: Arc<Scene>,
    number: usize,
    dice: Dice,
    made: usize,
}

/// Starts the clients. They stop after their request when [`Scene::stop`] is set.
pub fn start(scene: &Arc<Scene>, count: usize, dice: &mut Dice) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    for number in 0..count {
        let mut client = Client {
            scene: Arc::clone(scene),
            number,
            dice: dice.split(0),
            made: 0,
        };
        clients.spawn(async move {
            while !client.scene.stop.load(Ordering::SeqCst) {
                client.step().await;
            }
        });
    }
    clients
}

impl Client {
    async fn step(&mut self) {
        match self.dice.below(20) {
            0..3 => self.create().await,
            3..7 => self.claim().await,
            7..9 => self.count().await,
            9 => self.key().await,
            10..13 => drop(self.read().await),
            _ => self.write().await,
        }
    }

    /// A server of the moment.
    fn api(&mut self, credential: &str) -> Api {
        let servers = self.scene.servers.read().unwrap();
        Api {
            address: servers[self.dice.below(servers.len())],
            credential: credential.to_owned(),
        }
    }

    fn name(&mut self, prefix: &str) -> String {
        self.made += 1;
        format!("{prefix}-{}-{}", self.number, self.made)
    }

    /// Sends a request and records it. A status of success shows what `seen` reads in the answer.
    async fn ask(&self, api: &Api, action: Action, request: Request<'_>, seen: impl Fn(&Answer) -> Seen) -> Outcome {
        let begin = self.scene.recorder.begin();
        let sent = api.send(request.method, &request.path, &request.head, request.body);
        let outcome = match tokio::time::timeout(TIMEOUT, sent).await {
            Err(_) => Outcome::Hung,
            Ok(Err(_)) => Outcome::Unknown,
            Ok(Ok(answer)) => match answer.status {
                200 | 201 => Outcome::Done(seen(&answer)),
                503 if answer.body["error"]
                    .as_str()
                    .is_some_and(|text| text.contains("may have been made")) =>
                {
                    Outcome::Unknown
                }
                status => Outcome::Refused(status),
            },
        };
        self.scene.recorder.end(begin, action, outcome.clone());
        outcome
    }

    /// Creates an agent, again after an attempt whose outcome is not known.
    async fn create(&mut self) {
        let agent = self.name("agent");
        let (workspace, key) = (self.scene.open.clone(), self.scene.key.clone());
        for _ in 0..3 {
            let api = self.api(&key);
            let action = Action::Create { agent: agent.clone() };
            let outcome = self
                .ask(&api, action, creation(&workspace, &agent), |_| Seen::default())
                .await;
            if outcome != Outcome::Unknown {
                return;
            }
        }
    }

    /// Takes a place of the limited workspace, and most times gives it back.
    async fn claim(&mut self) {
        let agent = self.name("claim");
        let (workspace, owner) = (self.scene.limited.clone(), self.scene.owner.clone());
        let api = self.api(&owner);
        let action = Action::Claim { agent: agent.clone() };
        let outcome = self
            .ask(&api, action, creation(&workspace, &agent), |_| Seen::default())
            .await;
        if !matches!(outcome, Outcome::Done(_) | Outcome::Unknown) || self.dice.below(10) == 0 {
            return;
        }
        let request = Request::new("DELETE", format!("{}&agent_id={agent}", configs(&workspace)));
        for _ in 0..5 {
            let api = self.api(&owner);
            let action = Action::Release { agent: agent.clone() };
            let outcome = self.ask(&api, action, request.clone(), |_| Seen::default()).await;
            if matches!(outcome, Outcome::Done(_) | Outcome::Refused(404)) {
                return;
            }
        }
    }

    async fn count(&mut self) {
        let owner = self.scene.owner.clone();
        let api = self.api(&owner);
        let request = Request::new("GET", configs(&self.scene.limited));
        let count = |answer: &Answer| Seen {
            count: answer.body.as_array().map_or(usize::MAX, Vec::len),
            ..Seen::default()
        };
        self.ask(&api, Action::Count, request, count).await;
    }

    /// Makes a key, uses it on several servers while it is revoked, and afterwards.
    async fn key(&mut self) {
        let owner = self.scene.owner.clone();
        let api = self.api(&owner);
        let new = json!({"workspace_id": self.scene.open, "name": "nemesis", "environment": "production", "scope": "write", "rate_limit": 1_000_000});
        let Ok(made) = api.send("POST", "/api/api-keys", "", Some(new)).await else {
            return;
        };
        let text = |name: &str| made.body[name].as_str().map(str::to_owned);
        let (Some(id), Some(key)) = (text("id"), text("key")) else {
            return;
        };
        for _ in 0..2 {
            self.use_key(&id, &key).await;
        }
        let request = Request::new("DELETE", format!("/api/api-keys?key_id={id}"));
        for _ in 0..5 {
            let api = self.api(&owner);
            let action = Action::Revoke { key: id.clone() };
            let revoke = self.ask(&api, action, request.clone(), |_| Seen::default());
            let outcome = revoke.await;
            self.use_key(&id, &key).await;
            if matches!(outcome, Outcome::Done(_) | Outcome::Refused(404)) {
                break;
            }
        }
        for _ in 0..3 {
            self.use_key(&id, &key).await;
        }
    }

    async fn use_key(&mut self, id: &str, key: &str) {
        let api = self.api(key);
        let request = match self.dice.below(2) {
            0 => Request::new("GET", configs(&self.scene.open)),
            _ => Request::new("GET", format!("/api/agents/status?workspace_id={}", self.scene.open)),
        };
        let action = Action::Use { key: id.to_owned() };
        self.ask(&api, action, request, |_| Seen::default()).await;
    }

    /// Reads a register: its name, its version and its tag.
    async fn read(&mut self) -> Option<(String, u64, String)> {
        let register = format!("register-{}", self.dice.below(self.scene.registers));
        let key = self.scene.key.clone();
        let api = self.api(&key);
        let request = Request::new("GET", format!("{}&agent_id={register}", configs(&self.scene.open)));
        let action = Action::Read {
            register: register.clone(),
        };
        let tag = std::sync::Mutex::new(None);
        let read = |answer: &Answer| {
            *tag.lock().unwrap() = answer.header("etag").map(str::to_owned);
            shown(answer, &answer.body[0])
        };
        match self.ask(&api, action, request, read).await {
            Outcome::Done(seen) => Some((register, seen.version, tag.into_inner().unwrap()?)),
            _ => None,
        }
    }

    /// Reads a register and replaces its value on the condition that it is unchanged.
    async fn write(&mut self) {
        let Some((register, basis, tag)) = self.read().await else {
            return;
        };
        let value = self.name("value");
        let key = self.scene.key.clone();
        let api = self.api(&key);
        let request = Request {
            head: format!("if-match: {tag}\r\n"),
            body: Some(json!({ "display_name": value })),
            ..Request::new("PATCH", format!("{}&agent_id={register}", configs(&self.scene.open)))
        };
        let action = Action::Write { register, value, basis };
        self.ask(&api, action, request, |answer| shown(answer, &answer.body))
            .await;
    }
}

#[derive(Clone)]
struct Request<'a> {
    method: &'a str,
    path: String,
    head: String,
    body: Option<serde_json::Value>,
}

impl<'a> Request<'a> {
    fn new(method: &'a str, path: String) -> Self {
        Self {
            method,
            path,
            head: String::new(),
            body: None,
        }
    }
}

fn configs(workspace: &str) -> String {
    format!("/api/agents/configs?workspace_id={workspace}")
}

fn creation(workspace: &str, agent: &str) -> Request<'static> {
    Request {
        body: Some(json!({"workspace_id": workspace, "agent_id": agent, "display_name": agent})),
        ..Request::new("POST", "/api/agents/configs".to_owned())
    }
}

/// The version and the value of a register in an answer.
fn shown(answer: &Answer, record: &serde_json::Value) -> Seen {
    Seen {
        version: answer
            .header("agent-version")
            .and_then(|text| text.parse().ok())
            .unwrap_or(0),
        value: record["display_name"].as_str().unwrap_or_default().to_owned(),
        count: 0,
    }
}
