//! Concurrent reads of a list: one scan serves all of them (single-flight), and no response is older than its request.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agentcfg_core::model::{
    AgentFilter, AgentPatch, LabelFilter, LabelTarget, NewAgent, Plan, Scope, Tagged, WorkspaceId,
};
use agentcfg_core::service::AgentList;
use agentcfg_core::{AgentCfg, Caller, Error, ErrorKind};
use bytes::Bytes;
use tokio::task::{JoinHandle, yield_now};

use super::support::{ANY, GatedStore, Shared, World, kind};

type Listed = Result<Tagged<AgentList>, Error>;

/// A workspace with two agents, on a store whose scans wait for the test.
struct Setting {
    world: World,
    gated: Arc<GatedStore>,
    service: AgentCfg,
    /// A caller whose requests read only the revision before they read the list.
    caller: Caller,
    workspace: WorkspaceId,
}

impl Setting {
    async fn new() -> Self {
        Self::with_cache(64 << 20).await
    }

    /// With a list cache of this size.
    async fn with_cache(bytes: u64) -> Self {
        let world = World::new();
        let workspace = world.workspace("ada").await;
        world.agent(workspace, "ada", "writer").await;
        world.agent(workspace, "ada", "editor").await;
        let (_, caller) = world.key_caller(workspace, "ada", Scope::Write).await;
        let gated = GatedStore::new(&world.store);
        let service = AgentCfg::builder(Arc::clone(&gated))
            .clock(Arc::clone(&world.clock) as _)
            .list_cache_bytes(bytes)
            .build();
        Self {
            world,
            gated,
            service,
            caller,
            workspace,
        }
    }

    /// Requests the list in a separate task.
    fn ask(&self) -> JoinHandle<Listed> {
        self.ask_from(0)
    }

    fn ask_from(&self, offset: u64) -> JoinHandle<Listed> {
        let (service, caller, workspace) = (self.service.clone(), self.caller.clone(), self.workspace);
        let filter = AgentFilter::default().offset(offset);
        tokio::spawn(async move { service.list_agents(&caller, workspace, &filter).await })
    }

    /// Starts this many requests, and waits until each has read the revision and waits for the list.
    async fn gather(&self, count: usize) -> Vec<JoinHandle<Listed>> {
        let before = self.gated.gets();
        let asked = (0..count).map(|_| self.ask()).collect();
        while self.gated.gets() < before + count {
            yield_now().await;
        }
        yield_now().await;
        asked
    }

    /// Waits until this many scans have begun.
    async fn scans(&self, count: usize) {
        while self.gated.scans() < count {
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

async fn listed(asked: JoinHandle<Listed>) -> Tagged<AgentList> {
    asked.await.unwrap().unwrap()
}

#[tokio::test]
async fn concurrent_requests_share_one_scan() {
    let setting = Setting::new().await;
    let asked = setting.gather(200).await;
    setting.gated.release(1000);
    let mut texts = Vec::new();
    for one in asked {
        texts.push(listed(one).await.value.json());
    }
    assert_eq!(setting.gated.scans(), 1);
    assert!(texts.iter().all(|text| text.as_ptr() == texts[0].as_ptr()));
    // After a change, all requests share one new scan.
    setting.change().await;
    for one in setting.gather(200).await {
        assert_ne!(listed(one).await.value.json(), texts[0]);
    }
    assert_eq!(setting.gated.scans(), 2);
}

#[tokio::test]
async fn no_response_is_older_than_its_request() {
    let setting = Setting::new().await;
    setting.gated.release(1);
    let old = setting.list().await.json();
    setting.change().await;
    let first = setting.gather(1).await.remove(0);
    setting.scans(2).await;
    // The scan of the first request has begun, and may or may not see this change.
    setting.change().await;
    let later = setting.gather(5).await;
    setting.gated.release(100);
    let first = listed(first).await;
    assert_ne!(first.value.json(), old);
    let current = listed(setting.ask()).await;
    for one in later {
        assert_eq!(listed(one).await.tag, current.tag);
    }
    assert!(setting.gated.scans() <= 3);
}

#[tokio::test]
async fn cancelling_the_leading_request_hands_the_scan_to_another() {
    let setting = Setting::new().await;
    let mut asked = setting.gather(3).await;
    setting.scans(1).await;
    // One that waits for the flight, then the one that leads it.
    for left in asked.drain(..2).rev() {
        left.abort();
        assert!(left.await.unwrap_err().is_cancelled());
    }
    setting.scans(2).await;
    setting.gated.release(1);
    listed(asked.remove(0)).await;
    assert_eq!(setting.gated.scans(), 2);
}

#[tokio::test]
async fn a_failed_scan_fails_only_the_request_that_ran_it() {
    let setting = Setting::new().await;
    let mut asked = setting.gather(10).await;
    setting.scans(1).await;
    setting.gated.fail(1);
    setting.scans(2).await;
    setting.gated.release(1);
    assert_eq!(kind(asked.remove(0).await.unwrap()), ErrorKind::Unavailable);
    for one in asked {
        listed(one).await;
    }
    assert_eq!(setting.gated.scans(), 2);
}

#[tokio::test]
async fn after_repeated_failures_requests_scan_independently() {
    let setting = Setting::new().await;
    let asked = setting.gather(10).await;
    setting.gated.fail(2);
    // After two failures the other eight stop queueing and scan at the same time.
    setting.scans(10).await;
    setting.gated.release(8);
    let mut failures = 0;
    for one in asked {
        failures += usize::from(one.await.unwrap().is_err());
    }
    assert_eq!(failures, 2);
}

#[tokio::test]
async fn a_list_beyond_the_cache_size_is_shared_while_in_use() {
    let setting = Setting::with_cache(100).await;
    setting.gated.release(10);
    let first = setting.list().await;
    let again = setting.list().await;
    assert_eq!(first.json().as_ptr(), again.json().as_ptr());
    assert_eq!(setting.gated.scans(), 1);
    drop((first, again));
    setting.list().await;
    assert_eq!(setting.gated.scans(), 2);
}

#[tokio::test]
async fn labels_and_current_versions_are_read_once_for_each_revision() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (service, ada) = (&world.service, world.user("ada"));
    for agent_id in ["writer", "editor"] {
        world.agent(workspace, "ada", agent_id).await;
        let first = LabelTarget::new(1);
        let set = service.set_label(&ada, Some(workspace), agent_id, "live", first);
        set.await.unwrap();
    }
    let texts = async || {
        let all = service.list_labels(&ada, workspace, LabelFilter::default()).await;
        let live = LabelFilter::default().label("live");
        let live = service.list_labels(&ada, workspace, live).await;
        let versions = service.current_versions(&ada, Some(workspace)).await;
        [all.unwrap().json(), live.unwrap().json(), versions.unwrap().json()]
    };
    let before = texts().await;
    assert_eq!(
        texts().await.map(|text| text.as_ptr()),
        before.each_ref().map(|text| text.as_ptr())
    );
    assert_eq!(before[0], before[1]);

    let change = AgentPatch::default().display_name(Some("Second".into()));
    service
        .update_agent(&ada, Some(workspace), "editor", change, ANY)
        .await
        .unwrap();
    let second = service.set_label(&ada, Some(workspace), "editor", "beta", LabelTarget::new(2));
    second.await.unwrap();
    let [all, live, versions] = texts().await.map(|text| String::from_utf8(text.to_vec()).unwrap());
    let place = |text: &str, part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in {text}"));
    // By agent and label; versions in the order of the agents' creation.
    let rows = ["\"beta\",\"version\":2", "\"live\"", "\"writer\""];
    assert!(rows.map(|row| place(&all, row)).is_sorted(), "{all}");
    assert!(!live.contains("beta"), "{live}");
    assert!(
        place(&versions, "\"writer\"") < place(&versions, "\"editor\",\"version\":2"),
        "{versions}"
    );
    assert!(versions.contains(r#""labels":["beta"]"#), "{versions}");

    service
        .delete_agent(&ada, Some(workspace), "editor", ANY)
        .await
        .unwrap();
    let [all, _, versions] = texts().await.map(|text| String::from_utf8(text.to_vec()).unwrap());
    assert!(
        all.contains("editor") && !versions.contains("editor"),
        "{all} {versions}"
    );
}

#[tokio::test]
async fn holding_only_the_text_keeps_a_large_list_shared() {
    let setting = Setting::with_cache(100).await;
    setting.world.set_plan(setting.workspace, Plan::Enterprise).await;
    for i in 0..8 {
        let long = NewAgent::new(setting.workspace, format!("long-{i}").parse().unwrap(), "Long")
            .persona_prompt("\u{10ffff}".repeat(5000));
        let ada = setting.world.user("ada");
        setting.world.service.create_agent(&ada, long).await.unwrap();
    }
    setting.gated.release(10);
    let body = setting.list().await.json();
    let parts = listed(setting.ask_from(1)).await.value.json_parts();
    assert_eq!(setting.list().await.json().as_ptr(), body.as_ptr());
    drop(body);
    assert!(parts[1].len() > 100_000);
    setting.list().await;
    assert_eq!(setting.gated.scans(), 1);
    drop(parts);
    setting.list().await;
    assert_eq!(setting.gated.scans(), 2);
}

#[tokio::test]
async fn an_encoded_form_is_made_once_and_cached() {
    let setting = Setting::new().await;
    setting.gated.release(10);
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
    // An encoding that fails does not affect the next request for it.
    setting.change().await;
    let list = setting.list().await;
    assert_eq!(list.encoded(|_| async { Err::<Bytes, _>("no") }).await, Err("no"));
    encode(list).await;
    assert_eq!(made.load(Ordering::SeqCst), 2);
    assert_eq!(setting.gated.scans(), 2);
}

#[tokio::test]
async fn decoded_agents_are_shared_between_requests() {
    let setting = Setting::new().await;
    setting.gated.release(10);
    let (one, two) = (setting.list().await, setting.list().await);
    assert_eq!(one.agents().unwrap().as_ptr(), two.agents().unwrap().as_ptr());
    assert_eq!(one.agents().unwrap()[0].agent_id, "writer");
    assert_eq!((one.len(), one.is_empty()), (2, false));
    assert_eq!(setting.gated.scans(), 1);
}

#[test]
fn a_long_list_is_encoded_away_from_the_async_workers() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    runtime.block_on(async {
        let setting = Setting::new().await;
        setting.gated.release(10);
        let short = setting.list().await;
        assert_eq!(short.len(), 2);
        setting.world.set_plan(setting.workspace, Plan::Enterprise).await;
        for i in 0..16 {
            let long = NewAgent::new(setting.workspace, format!("long-{i}").parse().unwrap(), "Long")
                .persona_prompt("\u{10ffff}".repeat(5000));
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
        assert_eq!(listed(long).await.value.len(), 18);
        assert!(busy.await.unwrap());
    });
}

#[tokio::test]
async fn a_list_that_was_decided_on_entry_is_never_older_than_the_entry() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    world.agent(workspace, "ada", "writer").await;
    let key = world.key(workspace, "ada", Scope::Read).await.key;
    let clock = Arc::clone(&world.clock) as _;
    let service = AgentCfg::builder(Shared(Arc::clone(&world.store))).clock(clock).build();
    service.authenticate(&key).await.unwrap();
    for number in 0..2 {
        let caller = service.enter(&key).await.unwrap().caller;
        let listed = service
            .list_agents(&caller, workspace, &AgentFilter::default())
            .await
            .unwrap();
        assert_eq!(listed.value.len(), 1 + number);
        world.agent(workspace, "ada", &format!("editor-{number}")).await;
    }
}
