//! Random operations whose lists are all remembered, and compared with the lists of the past.
//!
//! It uses the public interface alone, so that the tests of other stores compile it too.

use std::hash::{DefaultHasher, Hash, Hasher};

use agentcfg_core::clock::{Clock, ManualClock};
use agentcfg_core::model::{
    AgentFilter, AgentPatch, AgentState, AsOf, LabelTarget, NewAgent, NewWorkspace, Parameters, Patch, Precondition,
    Promotion, Role, Rollback, Timestamp, VersionSelector, WorkspaceId,
};
use agentcfg_core::{AgentCfg, Caller, Error, ErrorKind};

use crate::random_numbers::Numbers;

const AGENTS: [&str; 7] = ["a", "a-b", "a_b", "ab", "b", "writer", "z"];
const FIELDS: u64 = 5;

fn one_of<T: Copy>(numbers: &mut Numbers, all: &[T]) -> T {
    all[numbers.below(all.len() as u64) as usize]
}

/// What was answered at a revision.
struct Seen {
    at: Timestamp,
    /// The hashes of the lists of active agents and of all agents.
    lists: [u64; 2],
    /// The number of the version of each agent, 0 for one that was not there.
    versions: [u64; AGENTS.len()],
}

struct Run<'a> {
    service: &'a AgentCfg,
    clock: &'a ManualClock,
    ada: Caller,
    workspace: WorkspaceId,
    /// What was seen at each revision; the first is revision 1.
    seen: Vec<Seen>,
}

/// Makes random operations, remembers each list, and compares the past with what was seen: after every `round`
/// operations at some moments, and in the end at `samples` moments, or at all of them.
pub async fn compare(
    service: &AgentCfg,
    clock: &ManualClock,
    seed: u64,
    operations: usize,
    round: usize,
    samples: Option<u64>,
) {
    let mut numbers = Numbers::from_seed(seed);
    let ada = service.trusted_user("ada").unwrap();
    let name = NewWorkspace::new("Past");
    let workspace = service.create_workspace(&ada, name).await.unwrap().id;
    let mut run = Run {
        service,
        clock,
        ada,
        workspace,
        seen: Vec::new(),
    };
    run.look().await;
    for operation in 0..operations {
        // Times differ, so that a time names one list.
        clock.advance_millis(2);
        match run.operate(&mut numbers).await {
            Ok(()) => {}
            Err(error) => assert!(
                matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::PlanLimit
                ),
                "{error}"
            ),
        }
        run.look().await;
        if operation % round == round - 1 {
            for _ in 0..3 {
                run.compare_at(numbers.below(run.seen.len() as u64)).await;
            }
        }
    }
    match samples {
        Some(samples) => {
            for _ in 0..samples {
                run.compare_at(numbers.below(run.seen.len() as u64)).await;
            }
        }
        None => {
            for index in 0..run.seen.len() as u64 {
                run.compare_at(index).await;
            }
        }
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

impl Run<'_> {
    async fn operate(&self, numbers: &mut Numbers) -> Result<(), Error> {
        let (service, ada, workspace) = (self.service, &self.ada, self.workspace);
        let agent_id = one_of(numbers, &AGENTS);
        let text = format!("{}", numbers.below(4));
        let any = &Precondition::None;
        match numbers.below(20) {
            0..3 => {
                let new = NewAgent::new(workspace, agent_id.parse().unwrap(), text);
                service.create_agent(ada, new).await?;
            }
            3..10 => {
                let mut patch = AgentPatch::default();
                match numbers.below(FIELDS) {
                    0 => patch.display_name = Some(text),
                    1 => patch.role = Patch::Set(text),
                    2 => patch.persona_prompt = Patch::Null,
                    3 => patch.parameters = Some(Parameters::from([("x".into(), numbers.below(3).into())])),
                    _ => {}
                }
                service.update_agent(ada, Some(workspace), agent_id, patch, any).await?;
            }
            10..12 => drop(service.delete_agent(ada, Some(workspace), agent_id, any).await?),
            12..14 => drop(service.restore_agent(ada, Some(workspace), agent_id, any).await?),
            14..16 => {
                let to = Rollback::to_version(1 + numbers.below(5));
                service.roll_back_agent(ada, Some(workspace), agent_id, to, any).await?;
            }
            16 => {
                let target = LabelTarget::new(1 + numbers.below(3));
                service
                    .set_label(ada, Some(workspace), agent_id, "production", target)
                    .await?;
            }
            17 => {
                let to = Promotion::new("latest".parse().unwrap(), "staging".parse().unwrap());
                service.promote_labels(ada, workspace, to, false).await?;
            }
            18 => {
                let role = one_of(numbers, &[Role::Viewer, Role::Member]);
                service
                    .set_member(ada, workspace, &"bob".parse().unwrap(), role)
                    .await?;
            }
            _ => drop(
                service
                    .remove_label(ada, Some(workspace), agent_id, "production")
                    .await?,
            ),
        }
        Ok(())
    }

    async fn list(&self, state: AgentState, as_of: Option<AsOf>) -> u64 {
        let filter = AgentFilter::default().state(state).as_of(as_of);
        let list = self
            .service
            .list_agents(&self.ada, self.workspace, &filter)
            .await
            .unwrap();
        hash(&list.value.json())
    }

    async fn version(&self, agent_id: &str, selector: VersionSelector<'_>) -> u64 {
        let found = self
            .service
            .get_version(&self.ada, Some(self.workspace), agent_id, selector)
            .await;
        match found {
            Ok(found) => found.version,
            Err(error) if error.kind() == ErrorKind::NotFound => 0,
            Err(error) => panic!("{error}"),
        }
    }

    /// Remembers the present, if the revision is a new one.
    async fn look(&mut self) {
        let log = self.service.audit_log(&self.ada, self.workspace, 0, 1).await.unwrap();
        let revision = log[0].revision;
        let lists = [
            self.list(AgentState::Active, None).await,
            self.list(AgentState::All, None).await,
        ];
        if revision == self.seen.len() as u64 {
            assert_eq!(self.seen.last().unwrap().lists, lists, "a change without an entry");
            return;
        }
        assert_eq!(revision, self.seen.len() as u64 + 1);
        let mut versions = [0; AGENTS.len()];
        for (version, agent_id) in versions.iter_mut().zip(AGENTS) {
            *version = self.version(agent_id, VersionSelector::Current).await;
        }
        let at = self.clock.now();
        self.seen.push(Seen { at, lists, versions });
    }

    async fn compare_at(&self, index: u64) {
        let seen = &self.seen[index as usize];
        let revision = index + 1;
        for as_of in [
            AsOf::Revision(revision),
            AsOf::At(seen.at),
            AsOf::At(seen.at.plus_millis(1)),
        ] {
            let lists = [
                self.list(AgentState::Active, Some(as_of)).await,
                self.list(AgentState::All, Some(as_of)).await,
            ];
            assert_eq!(lists, seen.lists, "{as_of:?} of {}", self.seen.len());
        }
        for (version, agent_id) in seen.versions.into_iter().zip(AGENTS) {
            for selector in [VersionSelector::Revision(revision), VersionSelector::At(seen.at)] {
                assert_eq!(
                    self.version(agent_id, selector).await,
                    version,
                    "{agent_id} {selector:?}"
                );
            }
        }
    }
}
