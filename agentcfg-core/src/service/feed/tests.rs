mod remote;
#[cfg(feature = "stream")]
mod stream;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::Value;

use super::super::AgentList;
use crate::clock::ManualClock;
use crate::model::*;
use crate::service::{AgentCfg, Caller, Settings, Watch};
use crate::store::{MemoryStore, Store};
use crate::{Error, ErrorKind};

/// A service with a clock that only the test moves, and a workspace of `ada`.
struct Stage {
    clock: Arc<ManualClock>,
    service: AgentCfg,
    ada: Caller,
    studio: WorkspaceId,
}

impl Stage {
    async fn open() -> Self {
        Self::on(MemoryStore::new()).await
    }

    async fn on(store: impl Store) -> Self {
        let clock = Arc::new(ManualClock::at("2026-11-20T09:30:00Z".parse().unwrap()));
        let service = AgentCfg::builder(store)
            .clock(clock.clone())
            .settings(Settings {
                default_plan: Plan::Enterprise,
                ..Settings::default()
            })
            .unwrap()
            .build();
        let ada = service.trusted_user("ada").unwrap();
        let new = NewWorkspace { name: "Studio".into() };
        let studio = service.create_workspace(&ada, new).await.unwrap().id;
        Self {
            clock,
            service,
            ada,
            studio,
        }
    }

    async fn create(&self, agent_id: &str) {
        let new = NewAgent::new(self.studio, agent_id.parse().unwrap(), agent_id);
        self.service.create_agent(&self.ada, new).await.unwrap();
    }

    async fn list(&self, state: AgentState) -> AgentList {
        let filter = AgentFilter {
            state,
            ..AgentFilter::default()
        };
        self.service
            .list_agents(&self.ada, self.studio, &filter)
            .await
            .unwrap()
            .value
    }

    /// All events after a cursor, read in pages of this many.
    async fn events(&self, caller: &Caller, after: impl Into<After>, limit: usize) -> Vec<ChangeEvent> {
        let (mut after, mut events) = (after.into(), Vec::new());
        loop {
            let page = self.service.changes(caller, self.studio, after, limit).await.unwrap();
            assert!(page.events.len() <= limit);
            events.extend(page.events);
            if !page.has_more {
                return events;
            }
            after = page.cursor.into();
        }
    }

    async fn member(&self, user: &str, role: Role) -> Caller {
        let user_id: UserId = user.parse().unwrap();
        self.service
            .set_member(&self.ada, self.studio, &user_id, role)
            .await
            .unwrap();
        self.service.trusted_user(user).unwrap()
    }

    async fn watch(&self, caller: &Caller) -> Watch {
        self.service.watch(caller, self.studio, After::Now).await.unwrap()
    }
}

#[derive(Debug, Clone)]
enum Step {
    Create(u8),
    Change(u8, Box<AgentPatch>),
    Delete(u8),
    Restore(u8),
    RollBack(u8),
    Apply(Vec<u8>, bool),
    Promote,
    Member,
    List,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let agent = 0..4_u8;
    let patch = (
        proptest::option::of("[a-z]{0,3}"),
        proptest::option::of(proptest::option::of("[a-zé\\n\"]{0,9}")),
        proptest::option::of(-3.0..3.0_f64),
    )
        .prop_map(|(name, persona, number)| AgentPatch {
            display_name: name.map(|name| format!("x{name}")),
            persona_prompt: match persona {
                None => Patch::Absent,
                Some(None) => Patch::Null,
                Some(Some(text)) => Patch::Set(text),
            },
            parameters: number.map(|number| {
                let number = serde_json::Number::from_f64(number).unwrap();
                serde_json::from_value(serde_json::json!({ "tone": number, "form": 70 })).unwrap()
            }),
            ..AgentPatch::default()
        });
    let step = prop_oneof![
        3 => agent.clone().prop_map(Step::Create),
        5 => (agent.clone(), patch).prop_map(|(agent, patch)| Step::Change(agent, Box::new(patch))),
        2 => agent.clone().prop_map(Step::Delete),
        2 => agent.clone().prop_map(Step::Restore),
        2 => agent.clone().prop_map(Step::RollBack),
        3 => (proptest::collection::vec(agent, 0..4), any::<bool>()).prop_map(|(agents, prune)| Step::Apply(agents, prune)),
        1 => Just(Step::Promote),
        1 => Just(Step::Member),
        2 => Just(Step::List),
    ];
    proptest::collection::vec(step, 1..40)
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(test)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_changes_after_a_list_lead_to_the_list_now(steps in steps(), limit in 1..9_usize) {
        run(async {
            let stage = Stage::open().await;
            let mut lists: Vec<AgentList> = vec![stage.list(AgentState::All).await];
            for step in steps {
                stage.clock.advance_millis(7);
                let (service, ada, studio) = (&stage.service, &stage.ada, Some(stage.studio));
                let none = Precondition::None;
                let name = |agent: u8| format!("agent-{agent}");
                // A step that the state does not allow is refused, which must leave no trace in the feed.
                match step {
                    Step::Create(agent) => {
                        let new = NewAgent::new(stage.studio, name(agent).parse().unwrap(), "New");
                        let _ = service.create_agent(ada, new).await;
                    }
                    Step::Change(agent, patch) => {
                        let _ = service.update_agent(ada, studio, name(agent).as_str(), *patch, &none).await;
                    }
                    Step::Delete(agent) => {
                        let _ = service.delete_agent(ada, studio, name(agent).as_str(), &none).await;
                    }
                    Step::Restore(agent) => {
                        let _ = service.restore_agent(ada, studio, name(agent).as_str(), &none).await;
                    }
                    Step::RollBack(agent) => {
                        let first = Rollback::to_version(1);
                        let _ = service.roll_back_agent(ada, studio, name(agent).as_str(), first, &none).await;
                    }
                    Step::Apply(agents, prune) => {
                        let specs = agents.iter().map(|agent| AgentSpec::new(name(*agent).parse().unwrap(), "Set"));
                        let body = ApplyAgents {
                            set: Some("docs".parse().unwrap()),
                            prune,
                            ..ApplyAgents::of(specs.collect())
                        };
                        let _ = service.apply_agents(ada, stage.studio, body, false).await;
                    }
                    Step::Promote => {
                        let promotion = Promotion::new("latest".parse().unwrap(), "live".parse().unwrap());
                        let _ = service.promote_labels(ada, stage.studio, promotion, false).await;
                    }
                    Step::Member => drop(stage.member("bob", Role::Viewer).await),
                    Step::List => lists.push(stage.list(AgentState::All).await),
                }
            }
            let now: Value = serde_json::from_slice(&stage.list(AgentState::Active).await.json()).unwrap();
            for list in lists {
                let mut mirror = AgentMirror::new(list.cursor(), list.agents().unwrap().to_vec());
                let mut revision = list.cursor().revision();
                for event in stage.events(&stage.ada, list.cursor(), limit).await {
                    revision += 1;
                    assert_eq!((event.revision, event.cursor.revision()), (revision, revision), "no gap");
                    mirror.apply(&event).unwrap();
                }
                assert_eq!(serde_json::to_value(mirror.agents()).unwrap(), now);
            }
            // The creation of an agent has all that its record has, so a mirror can begin with nothing.
            let start = Cursor::new(lists_epoch(&stage).await, stage.studio, 0);
            let mut mirror = AgentMirror::new(start, Vec::new());
            for event in stage.events(&stage.ada, After::Start, limit).await {
                mirror.apply(&event).unwrap();
            }
            assert_eq!(serde_json::to_value(mirror.agents()).unwrap(), now);
        });
    }
}

async fn lists_epoch(stage: &Stage) -> Epoch {
    stage.list(AgentState::Active).await.cursor().epoch()
}

#[tokio::test]
async fn the_events_of_an_agent_hold_its_identity_and_times_and_the_audit_log_does_not() {
    let stage = Stage::open().await;
    stage.create("writer").await;
    stage.clock.advance_millis(5);
    let patch = AgentPatch::default();
    let writer = stage
        .service
        .update_agent(&stage.ada, Some(stage.studio), "writer", patch, &Precondition::None)
        .await
        .unwrap()
        .value;
    let events = stage.events(&stage.ada, After::Start, 100).await;
    let created = &events[1];
    assert_eq!((created.kind, created.revision), (Action::AgentCreated, 2));
    assert_eq!(created.changes["id"].to, serde_json::to_value(writer.id).unwrap());
    assert_eq!(
        created.changes["created_at"].to,
        serde_json::to_value(writer.created_at).unwrap()
    );
    assert!(created.changes["is_active"].from.is_null());
    assert!(!created.changes.contains_key("role"), "null on creation");
    let updated: Vec<&String> = events[2].changes.keys().collect();
    assert_eq!(updated, ["updated_at"], "an empty patch moves the time alone");
    let audit = stage.service.audit_log(&stage.ada, stage.studio, 0, 2).await.unwrap();
    assert!(audit[0].changes.is_empty());
    assert!(!audit[1].changes.contains_key("id"));
    assert_eq!(audit[1].id, created.id, "the event is the audit entry");
}

#[tokio::test]
async fn without_the_audit_log_only_agents_are_shown_and_the_cursor_moves_all_the_same() {
    let stage = Stage::open().await;
    let vera = stage.member("vera", Role::Viewer).await;
    stage.create("writer").await;
    for user in 0..40 {
        stage.member(&format!("user-{user}"), Role::Viewer).await;
    }
    stage.create("editor").await;
    stage.member("zoe", Role::Viewer).await;
    let all = stage
        .service
        .changes(&stage.ada, stage.studio, After::Start, 1000)
        .await
        .unwrap();
    let shown = stage
        .service
        .changes(&vera, stage.studio, After::Start, 1000)
        .await
        .unwrap();
    assert_eq!((all.events.len(), all.cursor.revision()), (45, 45));
    let kinds: Vec<Action> = shown.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [Action::AgentCreated, Action::AgentCreated]);
    assert_eq!(shown.cursor, all.cursor);
    assert_eq!(stage.events(&vera, After::Start, 1).await.len(), 2);
}

#[tokio::test]
async fn a_page_ends_after_8_mib_with_at_least_one_event() {
    let stage = Stage::open().await;
    let persona = "é".repeat(5000);
    for number in 0..900 {
        let mut new = NewAgent::new(stage.studio, format!("agent-{number}").parse().unwrap(), "x");
        new.persona_prompt = Some(persona.clone());
        stage.service.create_agent(&stage.ada, new).await.unwrap();
    }
    let page = stage
        .service
        .changes(&stage.ada, stage.studio, After::Start, 1000)
        .await
        .unwrap();
    let length = serde_json::to_vec(&page.events).unwrap().len();
    assert!(page.has_more && length <= 8 << 20 && length > 7 << 20, "{length}");
    assert_eq!(stage.events(&stage.ada, After::Start, 1000).await.len(), 901);
}

#[tokio::test]
async fn a_cursor_is_of_its_workspace_and_epoch_and_not_from_the_future() {
    let stage = Stage::open().await;
    let (epoch, studio) = (lists_epoch(&stage).await, stage.studio);
    let other = Stage::open().await;
    let kind = async |after: Cursor| {
        let refused = stage.service.changes(&stage.ada, studio, after, 1).await;
        refused.map_err(|error| error.kind()).err()
    };
    assert_eq!(kind(Cursor::new(epoch, studio, 1)).await, None);
    assert_eq!(kind(Cursor::new(epoch, studio, 2)).await, Some(ErrorKind::Gone));
    assert_eq!(kind(Cursor::new(epoch, studio, u64::MAX)).await, Some(ErrorKind::Gone));
    assert_eq!(
        kind(Cursor::new("00000000".parse().unwrap(), studio, 0)).await,
        Some(ErrorKind::Gone)
    );
    assert_eq!(
        kind(Cursor::new(epoch, other.studio, 0)).await,
        Some(ErrorKind::Invalid)
    );
    // The caller is refused before the cursor is read.
    let eve = stage.service.trusted_user("eve").unwrap();
    let refused = stage
        .service
        .changes(&eve, studio, Cursor::new(epoch, studio, 9), 1)
        .await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Forbidden);
}

fn ended(read: Result<crate::service::Update, Error>) -> ErrorKind {
    read.expect_err("the watch has ended").kind()
}

#[tokio::test]
async fn a_watch_ends_with_its_authority_and_shows_nothing_that_came_after() {
    let stage = Stage::open().await;
    let (service, studio) = (&stage.service, stage.studio);
    let key = |expires_at: Option<Timestamp>| {
        NewApiKey::new(studio, "key", Environment::Production, Scope::Read).expires_at(expires_at)
    };
    let revoked = service.create_api_key(&stage.ada, key(None)).await.unwrap();
    let mut by_key = stage.watch(&service.authenticate(&revoked.key).await.unwrap()).await;
    let soon = stage.service.now().plus_millis(1000);
    let expiring = service.create_api_key(&stage.ada, key(Some(soon))).await.unwrap();
    let mut by_expiring = stage.watch(&service.authenticate(&expiring.key).await.unwrap()).await;
    assert_eq!(by_expiring.expires_in(), Some(Duration::from_secs(1)));
    let replaced = service.create_api_key(&stage.ada, key(None)).await.unwrap();
    let mut by_replaced = stage.watch(&service.authenticate(&replaced.key).await.unwrap()).await;
    assert_eq!(by_replaced.expires_in(), None);
    let mut removed = stage.watch(&stage.member("rita", Role::Member).await).await;
    let mut lowered = stage.watch(&stage.member("lola", Role::Admin).await).await;
    let mut raised = stage.watch(&stage.member("rob", Role::Viewer).await).await;
    let rotation = RotateApiKey { overlap_seconds: 1 };
    let rotated = service.rotate_api_key(&stage.ada, replaced.record.id.as_str(), rotation);
    rotated.await.unwrap();
    for watch in [
        &mut by_key,
        &mut by_expiring,
        &mut by_replaced,
        &mut removed,
        &mut lowered,
        &mut raised,
    ] {
        watch.read().await.unwrap();
    }
    let second = Some(Duration::from_secs(1));
    assert_eq!(
        by_replaced.expires_in(),
        second,
        "the read has found the end that the rotation set"
    );
    service
        .revoke_api_key(&stage.ada, revoked.record.id.as_str())
        .await
        .unwrap();
    let rita: UserId = "rita".parse().unwrap();
    service.remove_member(&stage.ada, studio, &rita).await.unwrap();
    stage.member("lola", Role::Member).await;
    stage.member("rob", Role::Admin).await;
    stage.create("late").await;
    stage.clock.advance_millis(1000);
    assert_eq!(ended(by_key.read().await), ErrorKind::Unauthorized);
    assert_eq!(ended(by_expiring.read().await), ErrorKind::Unauthorized);
    assert_eq!(ended(by_replaced.read().await), ErrorKind::Unauthorized);
    assert_eq!(ended(removed.read().await), ErrorKind::Forbidden);
    assert_eq!(ended(lowered.read().await), ErrorKind::Forbidden);
    let seen = raised.read().await.unwrap().changes;
    assert_eq!(seen.last().unwrap().decode().unwrap().target.id, "late");
    assert!(
        seen.iter().any(|event| event.kind() == Action::MemberSet),
        "an admin sees all"
    );
}

/// Whether a watch has something to read.
fn is_awake(watch: &mut Watch) -> bool {
    let changed = pin!(watch.changed());
    changed.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[tokio::test]
async fn the_end_of_a_browser_session_wakes_its_watch() {
    let stage = Stage::open().await;
    let service = &stage.service;
    let sign_in = async || {
        let login = service.make_login_code(stage.ada.user_id().unwrap()).await.unwrap();
        service.redeem_login_code(&login.code).await.unwrap().cookie
    };
    let (cookie, other) = (sign_in().await, sign_in().await);
    let caller = service.authenticate_browser_session(&cookie).await.unwrap();
    let mut watch = stage.watch(&caller).await;
    let mut of_trusted = stage.watch(&stage.ada).await;
    watch.read().await.unwrap();
    of_trusted.read().await.unwrap();
    for (session, wakes) in [(&other, false), (&cookie, true)] {
        let ending = service.authenticate_browser_session(session).await.unwrap();
        service.close_browser_session(&ending).await.unwrap();
        assert_eq!(is_awake(&mut watch), wakes);
    }
    assert!(!is_awake(&mut of_trusted), "she came without a cookie");
    assert!(service.authenticate_browser_session(&cookie).await.is_err());
}

async fn report(stage: &Stage, report: StatusReport) {
    let service = &stage.service;
    service
        .report_status(&stage.ada, Some(stage.studio), "writer", report)
        .await
        .unwrap();
}

/// The statuses that a read shows: of which agent, what, and whether it has reported.
async fn shown(watch: &mut Watch) -> Vec<(String, LiveStatus, bool)> {
    let statuses = watch.read().await.unwrap().statuses;
    let shown = statuses
        .iter()
        .map(|event| (event.agent_id.to_string(), event.status, event.reported_at.is_some()));
    shown.collect()
}

#[tokio::test]
async fn statuses_are_shown_at_first_and_when_they_change_also_by_growing_old() {
    let stage = Stage::open().await;
    stage.create("writer").await;
    stage.create("editor").await;
    let writer = |status, reported| ("writer".to_owned(), status, reported);
    let mut watch = stage.watch(&stage.ada).await.with_statuses();
    let mut other = stage.watch(&stage.ada).await.with_statuses();
    let editor = ("editor".to_owned(), LiveStatus::Offline, false);
    assert_eq!(shown(&mut watch).await, [writer(LiveStatus::Offline, false), editor]);
    assert_eq!(shown(&mut watch).await, []);
    report(&stage, StatusReport::idle()).await;
    watch.changed().await;
    assert_eq!(shown(&mut watch).await, [writer(LiveStatus::Idle, true)]);
    // A report that moves its time alone is shown after 10 seconds.
    stage.clock.advance_millis(9_000);
    report(&stage, StatusReport::idle()).await;
    assert_eq!(shown(&mut watch).await, []);
    stage.clock.advance_millis(1_000);
    assert_eq!(shown(&mut watch).await, [writer(LiveStatus::Idle, true)]);
    report(&stage, StatusReport::working("T-7", "Notes")).await;
    assert_eq!(
        shown(&mut watch).await,
        [writer(LiveStatus::Working, true)],
        "a change is shown at once"
    );
    stage.clock.advance_millis(119_999);
    assert_eq!(shown(&mut watch).await, []);
    stage.clock.advance_millis(1);
    assert_eq!(shown(&mut watch).await, [writer(LiveStatus::Offline, true)]);
    assert_eq!(shown(&mut other).await.len(), 2, "a reader's first read shows all");
    stage.create("late").await;
    assert_eq!(shown(&mut watch).await.len(), 1);
    stage
        .service
        .delete_agent(&stage.ada, Some(stage.studio), "late", &Precondition::None)
        .await
        .unwrap();
    assert_eq!(shown(&mut watch).await, []);
}
