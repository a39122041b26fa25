//! An oracle of moments: readers and writers work on one workspace through one or several instances of the service, and
//! then the log tells of each answer whether it is the state of one revision that was current while it was made, and of
//! each decision whether it follows from the state before its entry.

// A run is bounded in real time.
#![allow(clippy::disallowed_methods)]

mod history;
mod planted;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use agentcfg_core::model::{
    Agent, AgentFilter, AgentId, AgentPatch, AgentSpec, AgentState, ApplyAgents, AsOf, AuditFilter, LabelFilter,
    LabelRestore, LabelTarget, NewWorkspace, Plan, Precondition, Promotion, Rollback, SetName, WorkspaceId,
};
use agentcfg_core::store::{Batch, Check, CommitError, Key, Store, Write};
use agentcfg_core::{AgentCfg, Caller, Error, ErrorKind, Settings};
use agentcfg_tests::harness::{Dice, setting};
use tokio::task::JoinSet;

use self::history::{Answer, Form, History, Listed, listed};
pub use self::planted::Planted;

/// More agents than fit in one piece of a read.
const AGENTS: usize = 300;
/// These are promoted by name.
const NAMED: usize = 3;
/// Of these the smaller apply of the set names none, so that it deactivates them.
const PRUNED: usize = 20;
/// The pause of a writer of single agents, so that the log is not theirs alone.
const PAUSE: Duration = Duration::from_millis(2);
/// No run of the short form may take longer, whatever is planted.
const TIMEOUT: Duration = Duration::from_secs(240);

/// How much of everything a run does at least.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    promotions: usize,
    applies: usize,
    answers: usize,
}

impl Size {
    /// The short form; `CASES` multiplies it.
    pub fn short() -> Self {
        Self::least() * (2 * setting("CASES", 1))
    }

    /// Enough to find what is planted.
    pub fn least() -> Self {
        Self {
            promotions: 15,
            applies: 6,
            answers: 30,
        }
    }
}

impl std::ops::Mul<usize> for Size {
    type Output = Self;

    fn mul(self, times: usize) -> Self {
        Self {
            promotions: self.promotions * times,
            applies: self.applies * times,
            answers: self.answers * times,
        }
    }
}

/// What was done until now.
#[derive(Debug, Default)]
struct Done {
    promotions: AtomicUsize,
    applies: AtomicUsize,
    rollbacks: AtomicUsize,
    restorations: AtomicUsize,
    edits: AtomicUsize,
    answers: AtomicUsize,
    is_over: AtomicBool,
}

impl Done {
    fn has(&self, size: Size) -> bool {
        let at_least = |number: &AtomicUsize, least| number.load(Ordering::SeqCst) >= least;
        at_least(&self.promotions, size.promotions)
            && at_least(&self.applies, size.applies)
            && at_least(&self.answers, size.answers)
            && at_least(&self.restorations, 1)
    }
}

/// One client of the workspace, at one instance of the service.
#[derive(Clone)]
struct Client {
    service: AgentCfg,
    ada: Caller,
    workspace: WorkspaceId,
    done: Arc<Done>,
}

/// The service on a store, as the oracle needs it.
pub fn service(store: Arc<dyn Store>) -> AgentCfg {
    let settings = Settings::default().default_plan(Plan::Enterprise);
    AgentCfg::builder(store).settings(settings).unwrap().build()
}

/// Works on a workspace through these instances, and returns what the log contradicts.
pub async fn violations(name: &str, services: &[AgentCfg], size: Size) -> Vec<String> {
    let ada = services[0].trusted_user("ada").unwrap();
    let new = NewWorkspace::new("Studio");
    let workspace = services[0].create_workspace(&ada, new).await.unwrap().id;
    let done = Arc::new(Done::default());
    let clients: Vec<Client> = services
        .iter()
        .map(|service| Client {
            ada: service.trusted_user("ada").unwrap(),
            service: service.clone(),
            workspace,
            done: Arc::clone(&done),
        })
        .collect();
    clients[0].apply(AGENTS, "first", false).await;
    for number in 0..AGENTS {
        clients[0].move_label(number, "next", 1).await;
    }
    let (begun, timeout) = (Instant::now(), TIMEOUT * setting("CASES", 1));
    let mut dice = Dice::new(setting("SEED", 1));
    let mut writers: JoinSet<()> = JoinSet::new();
    let mut readers: JoinSet<Vec<Answer>> = JoinSet::new();
    for (number, client) in clients.iter().enumerate() {
        writers.spawn(client.clone().applies(number));
        writers.spawn(client.clone().promotes(dice.split(number)));
        writers.spawn(client.clone().edits(dice.split(10 + number)));
        writers.spawn(client.clone().rolls_back(dice.split(20 + number)));
        writers.spawn(client.clone().restores(dice.split(40 + number)));
        for reader in 0..2 {
            readers.spawn(client.clone().reads(dice.split(30 + 2 * number + reader)));
        }
    }
    while !done.has(size) && begun.elapsed() < timeout {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    done.is_over.store(true, Ordering::SeqCst);
    writers.join_all().await;
    let answers: Vec<Answer> = readers.join_all().await.into_iter().flatten().collect();
    let log = clients[0].log().await;
    println!(
        "FIGURES moments on {name}: {:.0?}, {} entries, {done:?}",
        begun.elapsed(),
        log.len()
    );
    let mut history = History::default();
    for entry in &log {
        history.take(entry);
    }
    history.judge(&answers);
    if !done.has(size) {
        history.violations.push(format!("not done in {timeout:?}: {done:?}"));
    }
    history.violations
}

/// Lets writers of one store append without rest while another store holds the log: each of its decisions is made soon.
pub async fn a_hold_lets_others_wait(holder: Arc<dyn Store>, writer: Arc<dyn Store>) {
    let log = WorkspaceId::new(uuid::Uuid::from_u128(1));
    let entry = move || Write::Append {
        log,
        value: b"{}".to_vec(),
    };
    let append = move |store: Arc<dyn Store>| async move {
        let writes = vec![entry()];
        store.commit(Batch { checks: vec![], writes }).await.unwrap();
    };
    append(Arc::clone(&writer)).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let mut writers = JoinSet::new();
    for _ in 0..4 {
        let (writer, is_over) = (Arc::clone(&writer), Arc::clone(&is_over));
        writers.spawn(async move {
            while !is_over.load(Ordering::SeqCst) {
                append(Arc::clone(&writer)).await;
            }
        });
    }
    let head = Key::log_head(log);
    for _ in 0..10 {
        let hold = holder.hold(log).await.unwrap().expect("this store gives holds");
        let mut lost = 0;
        loop {
            let mut found = None;
            for _ in 0..20 {
                let read = holder
                    .get(std::slice::from_ref(&head))
                    .await
                    .unwrap()
                    .remove(0)
                    .unwrap();
                found = found.or(Some(read));
            }
            let batch = Batch {
                checks: vec![Check::Version(head.clone(), found.unwrap().version)],
                writes: vec![entry()],
            };
            match holder.commit_held(&hold, batch).await {
                Ok(_) => break,
                Err(CommitError::Conflict(_)) if lost < 3 => lost += 1,
                Err(error) => panic!("{error} after {lost} lost races"),
            }
        }
    }
    is_over.store(true, Ordering::SeqCst);
    writers.join_all().await;
}

fn agent(number: usize) -> AgentId {
    format!("agent-{number:03}").parse().unwrap()
}

fn count(number: &AtomicUsize) -> usize {
    number.fetch_add(1, Ordering::SeqCst)
}

/// What a client may be answered because of others.
fn expect<T>(result: Result<T, Error>, kinds: &[ErrorKind]) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) if kinds.contains(&error.kind()) => None,
        Err(error) => panic!("{error:?}"),
    }
}

impl Client {
    fn is_over(&self) -> bool {
        self.done.is_over.load(Ordering::SeqCst)
    }

    /// Applies the first agents as a set.
    async fn apply(&self, agents: usize, role: &str, prune: bool) {
        let spec = |number| AgentSpec::new(agent(number), "Agent").role(role);
        let body = ApplyAgents::of((0..agents).map(spec).collect());
        let body = body.set("all".parse::<SetName>().unwrap()).prune(prune);
        let applied = self.service.apply_agents(&self.ada, self.workspace, body, false);
        applied.await.unwrap();
    }

    async fn move_label(&self, number: usize, label: &str, version: u64) {
        let (to, id, target) = (Some(self.workspace), agent(number), LabelTarget::new(version));
        let moved = self.service.set_label(&self.ada, to, &id, label, target);
        moved.await.unwrap();
    }

    /// All agents, and then fewer, so that the others are deactivated.
    async fn applies(self, instance: usize) {
        while !self.is_over() {
            let round = count(&self.done.applies);
            let agents = AGENTS - PRUNED * (round % 2);
            self.apply(agents, &format!("applied-{instance}-{round}"), true).await;
        }
    }

    /// Moves `live` to the current versions, `stable` to where `next` is, and `pinned` of some agents.
    async fn promotes(self, mut dice: Dice) {
        while !self.is_over() {
            let (from, to, agent_ids) = match dice.below(3) {
                0 => ("latest", "live", None),
                1 => ("next", "stable", None),
                _ => ("latest", "pinned", Some((0..NAMED).map(agent).collect())),
            };
            let promotion = Promotion::new(from.parse().unwrap(), to.parse().unwrap()).agent_ids(agent_ids);
            let promoted = self.service.promote_labels(&self.ada, self.workspace, promotion, false);
            // A named agent may be deactivated.
            expect(promoted.await, &[ErrorKind::NotFound]);
            count(&self.done.promotions);
        }
    }

    /// Changes, deactivates and restores agents, and moves the label `next`.
    async fn edits(self, mut dice: Dice) {
        let to = Some(self.workspace);
        let mine = [ErrorKind::NotFound, ErrorKind::Conflict];
        while !self.is_over() {
            tokio::time::sleep(PAUSE).await;
            let edit = count(&self.done.edits);
            let number = match dice.once_in(2) {
                true => dice.below(NAMED),
                false => AGENTS - 1 - dice.below(2 * PRUNED),
            };
            let (service, ada, id) = (&self.service, &self.ada, agent(number));
            match dice.below(6) {
                0 => drop(expect(
                    service.delete_agent(ada, to, &id, &Precondition::None).await,
                    &mine,
                )),
                1 | 2 => drop(expect(
                    service.restore_agent(ada, to, &id, &Precondition::None).await,
                    &mine,
                )),
                3 => {
                    let patch = AgentPatch::default().role(format!("edit-{edit}"));
                    let edited = service.update_agent(ada, to, &id, patch, &Precondition::None).await;
                    expect(edited, &mine);
                }
                4 => drop(expect(service.remove_label(ada, to, &id, "next").await, &mine)),
                _ => {
                    let versions = service.get_version(ada, to, &id, "latest").await.unwrap().version;
                    self.move_label(number, "next", 1 + dice.below(versions as usize) as u64)
                        .await;
                }
            }
        }
    }

    async fn rolls_back(self, mut dice: Dice) {
        while !self.is_over() {
            tokio::time::sleep(PAUSE).await;
            let id = agent(match dice.once_in(2) {
                true => dice.below(NAMED),
                false => AGENTS - 1 - dice.below(2 * PRUNED),
            });
            let to = Rollback::to_label("next".parse().unwrap());
            let workspace = Some(self.workspace);
            let rolled_back = self
                .service
                .roll_back_agent(&self.ada, workspace, &id, to, &Precondition::None)
                .await;
            if expect(rolled_back, &[ErrorKind::NotFound]).is_some() {
                count(&self.done.rollbacks);
            }
        }
    }

    /// Puts the label `next` back to where it was some revisions ago.
    async fn restores(self, mut dice: Dice) {
        while !self.is_over() {
            tokio::time::sleep(10 * PAUSE).await;
            let head = self.revision().await;
            let revision = head - dice.below(100.min(head as usize)) as u64;
            let ada = self.ada.with_message(Some(revision.to_string().parse().unwrap()));
            let restore = LabelRestore::new("next".parse().unwrap(), revision);
            let restored = self.service.restore_label(&ada, self.workspace, restore, false);
            if !restored.await.unwrap().is_empty() {
                count(&self.done.restorations);
            }
        }
    }

    async fn reads(self, mut dice: Dice) -> Vec<Answer> {
        let mut answers = Vec::new();
        while !self.is_over() {
            let first = self.revision().await;
            let (form, hash, exact) = self.answer(&mut dice, first).await;
            let last = self.revision().await;
            answers.push(Answer {
                form,
                hash,
                // An answer that names its revision is judged by that alone.
                first: exact.unwrap_or(first),
                last: exact.unwrap_or(last),
            });
            count(&self.done.answers);
        }
        answers
    }

    /// Asks for something. Returns its form and hash, and the revision that it names.
    async fn answer(&self, dice: &mut Dice, head: u64) -> (Form, u64, Option<u64>) {
        let (service, ada, workspace) = (&self.service, &self.ada, self.workspace);
        let past = 1 + dice.below(head as usize) as u64;
        match dice.below(6) {
            0 | 1 => {
                let found = service
                    .current_versions(ada, Some(workspace))
                    .await
                    .unwrap()
                    .decode()
                    .unwrap();
                let rows = found.iter().map(|row| {
                    let labels = row.labels.iter().map(|label| label.to_string()).collect::<Vec<_>>();
                    (row.agent_id.to_string(), row.version, labels)
                });
                (Form::Versions, listed(rows), None)
            }
            2 => {
                let found = service
                    .list_labels(ada, workspace, LabelFilter::default())
                    .await
                    .unwrap()
                    .decode()
                    .unwrap();
                let rows = found
                    .iter()
                    .map(|row| (row.agent_id.to_string(), row.label.to_string(), row.version));
                (Form::Labels, listed(rows), None)
            }
            3 => {
                let as_of = dice.once_in(2).then_some(AsOf::Revision(past));
                let filter = AgentFilter::default().state(AgentState::All).as_of(as_of);
                let list = service.list_agents(ada, workspace, &filter).await.unwrap().value;
                let rows = list.decode().unwrap();
                let rows = rows.iter().map(|agent: &Agent| -> Listed {
                    (agent.agent_id.to_string(), agent.is_active, agent.role.clone())
                });
                (Form::Agents, listed(rows), Some(list.revision()))
            }
            4 => {
                let found = service.released(ada, workspace, "next", None).await.unwrap().value;
                let rows = found.decode().unwrap();
                let rows = rows
                    .iter()
                    .map(|row| (row.agent_id.to_string(), row.version, row.config.role.clone()));
                (Form::Released, listed(rows), Some(found.revision()))
            }
            _ => {
                // No client moves a label of this name, so all bearers are in the plan.
                let promotion = Promotion::new("next".parse().unwrap(), "planned".parse().unwrap());
                let planned = service.promote_labels(ada, workspace, promotion, true).await.unwrap();
                let rows = planned.iter().map(|row| (row.agent_id.to_string(), row.version));
                (Form::Planned, listed(rows), None)
            }
        }
    }

    /// The revision of the workspace, which no later answer is older than.
    async fn revision(&self) -> u64 {
        let filter = AgentFilter::default().agent_id(agent(0));
        let list = self
            .service
            .list_agents(&self.ada, self.workspace, &filter)
            .await
            .unwrap();
        list.value.revision()
    }

    /// The whole log, oldest first.
    async fn log(&self) -> Vec<agentcfg_core::model::AuditEntry> {
        let all = AuditFilter::default().limit(u32::MAX);
        let mut log = self
            .service
            .search_audit_log(&self.ada, self.workspace, &all)
            .await
            .unwrap();
        log.reverse();
        log
    }
}
