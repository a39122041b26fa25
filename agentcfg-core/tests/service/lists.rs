//! Lists that many ask for at once: made by one, shared by all, never older than the question.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agentcfg_core::model::{AgentPatch, NewAgent, Plan, Scope, Tagged, WorkspaceId};
use agentcfg_core::service::{AgentFilter, AgentList};
use agentcfg_core::{AgentCfg, Caller, Error, ErrorKind};
use bytes::Bytes;
use tokio::task::{JoinHandle, yield_now};

use super::support::{ANY, Held, World, kind};

type Listed = Result<Tagged<AgentList>, Error>;

/// A workspace with two agents, behind a store whose scans are held.
struct Setting {
    world: World,
    held: Arc<Held>,
    service: AgentCfg,
    /// A caller whose requests read the revision and nothing else before the list.
    caller: Caller,
    workspace: WorkspaceId,
}

impl Setting {
    async fn new() -> Self {
        Self::keeping(64 << 20).await
    }

    /// With room for so many bytes of lists.
    async fn keeping(bytes: u64) -> Self {
        let world = World::new();
        let workspace = world.workspace("ada").await;
        world.agent(workspace, "ada", "writer").await;
        world.agent(workspace, "ada", "editor").await;
        let (_, caller) = world.key_caller(workspace, "ada", Scope::Write).await;
        let held = Held::new(&world.store);
        let service = AgentCfg::builder(Arc::clone(&held))
            .clock(Arc::clone(&world.clock) as _)
            .list_cache_bytes(bytes)
            .build();
        Self {
            world,
            held,
            service,
            caller,
            workspace,
        }
    }

    /// Asks for the list in a task of its own.
    fn ask(&self) -> JoinHandle<Listed> {
        self.ask_from(0)
    }

    fn ask_from(&self, offset: usize) -> JoinHandle<Listed> {
        let (service, caller, workspace) = (self.service.clone(), self.caller.clone(), self.workspace);
        let filter = AgentFilter {
            offset,
            ..AgentFilter::default()
        };
        tokio::spawn(async move { service.list_agents(&caller, workspace, &filter).await })
    }

    /// Has so many ask, and waits until each of them has seen the revision and can only wait.
    async fn gather(&self, count: usize) -> Vec<JoinHandle<Listed>> {
        let before = self.held.gets();
        let asked = (0..count).map(|_| self.ask()).collect();
        while self.held.gets() < before + count {
            yield_now().await;
        }
        yield_now().await;
        asked
    }

    /// Waits until so many scans were begun.
    async fn scans(&self, count: usize) {
        while self.held.scans() < count {
            yield_now().await;
        }
    }

    async fn list(&self) -> AgentList {
        self.ask().await.unwrap().unwrap().value
    }

    async fn change(&self) {
        let ada = self.world.user("ada");
        let patch = AgentPatch::default();
        let changed = self
            .world
            .service
            .update_agent(&ada, Some(self.workspace), "writer", patch, ANY);
        changed.await.unwrap();
    }
}

async fn good(asked: JoinHandle<Listed>) -> Tagged<AgentList> {
    asked.await.unwrap().unwrap()
}

#[tokio::test]
async fn those_who_come_at_once_share_one_list() {
    let setting = Setting::new().await;
    let asked = setting.gather(200).await;
    setting.held.release(1000);
    let mut texts = Vec::new();
    for one in asked {
        texts.push(good(one).await.value.json());
    }
    assert_eq!(setting.held.scans(), 1);
    assert!(texts.iter().all(|text| text.as_ptr() == texts[0].as_ptr()));
    // After a change it is one again.
    setting.change().await;
    for one in setting.gather(200).await {
        assert_ne!(good(one).await.value.json(), texts[0]);
    }
    assert_eq!(setting.held.scans(), 2);
}

#[tokio::test]
async fn nobody_gets_a_list_from_before_the_question() {
    let setting = Setting::new().await;
    setting.held.release(1);
    let old = setting.list().await.json();
    setting.change().await;
    let first = setting.gather(1).await.remove(0);
    setting.scans(2).await;
    // The first one's scan has begun, and may or may not see this change.
    setting.change().await;
    let later = setting.gather(5).await;
    setting.held.release(100);
    let first = good(first).await;
    assert_ne!(first.value.json(), old);
    let current = good(setting.ask()).await;
    for one in later {
        assert_eq!(good(one).await.tag, current.tag);
    }
    assert!(setting.held.scans() <= 3);
}

#[tokio::test]
async fn who_leaves_while_making_the_list_holds_up_nobody() {
    let setting = Setting::new().await;
    let mut asked = setting.gather(3).await;
    setting.scans(1).await;
    // One of those who wait, then the one who makes it.
    for left in asked.drain(..2).rev() {
        left.abort();
        assert!(left.await.unwrap_err().is_cancelled());
    }
    setting.scans(2).await;
    setting.held.release(1);
    good(asked.remove(0)).await;
    assert_eq!(setting.held.scans(), 2);
}

#[tokio::test]
async fn a_failure_is_one_requests_own() {
    let setting = Setting::new().await;
    let mut asked = setting.gather(10).await;
    setting.scans(1).await;
    setting.held.fail(1);
    setting.scans(2).await;
    setting.held.release(1);
    assert_eq!(kind(asked.remove(0).await.unwrap()), ErrorKind::Unavailable);
    for one in asked {
        good(one).await;
    }
    assert_eq!(setting.held.scans(), 2);
}

#[tokio::test]
async fn where_every_attempt_fails_nobody_waits_for_all_the_others() {
    let setting = Setting::new().await;
    let asked = setting.gather(10).await;
    setting.held.fail(2);
    // Two have failed, so the other eight try at the same time.
    setting.scans(10).await;
    setting.held.release(8);
    let mut failures = 0;
    for one in asked {
        failures += usize::from(one.await.unwrap().is_err());
    }
    assert_eq!(failures, 2);
}

#[tokio::test]
async fn a_list_that_is_too_large_to_be_kept_is_shared_while_anybody_has_it() {
    let setting = Setting::keeping(100).await;
    setting.held.release(10);
    let first = setting.list().await;
    let again = setting.list().await;
    assert_eq!(first.json().as_ptr(), again.json().as_ptr());
    assert_eq!(setting.held.scans(), 1);
    drop((first, again));
    setting.list().await;
    assert_eq!(setting.held.scans(), 2);
}

#[tokio::test]
async fn the_text_alone_keeps_a_large_list_shared() {
    let setting = Setting::keeping(100).await;
    setting.world.set_plan(setting.workspace, Plan::Enterprise).await;
    for i in 0..8 {
        let long = NewAgent {
            persona_prompt: Some("\u{10ffff}".repeat(5000)),
            ..NewAgent::new(setting.workspace, format!("long-{i}"), "Long")
        };
        let ada = setting.world.user("ada");
        setting.world.service.create_agent(&ada, long).await.unwrap();
    }
    setting.held.release(10);
    let body = setting.list().await.json();
    let parts = good(setting.ask_from(1)).await.value.json_parts();
    assert_eq!(setting.list().await.json().as_ptr(), body.as_ptr());
    drop(body);
    assert!(parts[1].len() > 100_000);
    setting.list().await;
    assert_eq!(setting.held.scans(), 1);
    drop(parts);
    setting.list().await;
    assert_eq!(setting.held.scans(), 2);
}

#[tokio::test]
async fn another_form_is_made_once_and_kept() {
    let setting = Setting::new().await;
    setting.held.release(10);
    let made = Arc::new(AtomicUsize::new(0));
    let encode = |list: AgentList| {
        let made = Arc::clone(&made);
        async move {
            let making = |parts: Vec<Bytes>| async move {
                made.fetch_add(1, Ordering::SeqCst);
                yield_now().await;
                Ok::<_, Infallible>(Bytes::from(parts.concat().len().to_string()))
            };
            list.encoded(making).await.unwrap()
        }
    };
    let list = setting.list().await;
    let (one, two) = tokio::join!(encode(list.clone()), encode(list.clone()));
    assert_eq!(one, list.json_len().to_string());
    assert_eq!(one.as_ptr(), two.as_ptr());
    drop(list);
    let three = encode(setting.list().await).await;
    assert_eq!((one.as_ptr(), made.load(Ordering::SeqCst)), (three.as_ptr(), 1));
    // Who fails or leaves does not spoil it for the next one.
    setting.change().await;
    let list = setting.list().await;
    assert_eq!(list.encoded(|_| async { Err::<Bytes, _>("no") }).await, Err("no"));
    encode(list).await;
    assert_eq!(made.load(Ordering::SeqCst), 2);
    assert_eq!(setting.held.scans(), 2);
}

#[tokio::test]
async fn decoded_agents_are_the_same_for_all() {
    let setting = Setting::new().await;
    setting.held.release(10);
    let (one, two) = (setting.list().await, setting.list().await);
    assert_eq!(one.agents().unwrap().as_ptr(), two.agents().unwrap().as_ptr());
    assert_eq!(one.agents().unwrap()[0].agent_id, "writer");
    assert_eq!((one.len(), one.is_empty()), (2, false));
    assert_eq!(setting.held.scans(), 1);
}

#[test]
fn a_long_list_is_encoded_away_from_the_async_workers() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    runtime.block_on(async {
        let setting = Setting::new().await;
        setting.held.release(10);
        let short = setting.list().await;
        assert_eq!(short.len(), 2);
        setting.world.set_plan(setting.workspace, Plan::Enterprise).await;
        for i in 0..16 {
            let long = NewAgent {
                persona_prompt: Some("\u{10ffff}".repeat(5000)),
                ..NewAgent::new(setting.workspace, format!("long-{i}"), "Long")
            };
            let ada = setting.world.user("ada");
            setting.world.service.create_agent(&ada, long).await.unwrap();
        }
        // The only thread of the blocking pool is busy.
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || gate.recv().is_err());
        let long = setting.ask();
        setting.scans(2).await;
        for _ in 0..100 {
            yield_now().await;
        }
        assert!(!long.is_finished());
        drop(open);
        assert_eq!(good(long).await.value.len(), 18);
        assert!(busy.await.unwrap());
    });
}
