//! Long prompts and definitions: the history keeps them once, and its readers see them whole.

use std::collections::BTreeMap;

use agentcfg_core::Settings;
use agentcfg_core::model::{
    After, Agent, AgentConfig, AgentFilter, AgentPatch, ApplyAgents, AsOf, AuditFilter, Definition, ExportLine,
    LabelTarget, NewAgent, Patch, Rollback, VersionSelector, WorkspaceId,
};
use agentcfg_core::store::{Kind, Partition, Scan};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::{ANY, World};

const AGENT: &str = "writer";

/// A prompt of about five thousand bytes, with this word in one of its sentences.
fn prompt(sentence: usize, word: &str) -> String {
    let line = |number: usize| match number == sentence {
        true => format!("Rule {number}: {word}, and say so.\n"),
        false => format!("Rule {number}: answer in \"one\" sentence; süß, 短い 😀.\n"),
    };
    (0..100).map(line).collect()
}

fn definition(word: &str) -> Definition {
    let tool =
        |number: usize| json!({"name": format!("tool-{number}"), "description": format!("Does {word}."), "packed": 1});
    let tools: Vec<_> = (0..40).map(tool).collect();
    Definition::from_json(&serde_json::to_vec(&json!({ "tools": tools })).unwrap()).unwrap()
}

#[derive(Debug, Clone)]
enum Step {
    Patch(AgentPatch),
    Apply(AgentPatch),
    Rollback(u64),
    DeleteAndRestore,
}

fn patches() -> impl Strategy<Value = AgentPatch> {
    let word = "[a-z😀]{1,12}";
    prop_oneof![
        4 => (0..100_usize, word).prop_map(|(place, word)| AgentPatch::default().persona_prompt(prompt(place, &word))),
        1 => "[a-z.\\\\\n]{1000,3000}".prop_map(|text| AgentPatch::default().persona_prompt(text)),
        1 => Just(AgentPatch::default().persona_prompt(Patch::Null)),
        1 => Just(AgentPatch::default().persona_prompt("Short.")),
        2 => word.prop_map(|word| AgentPatch::default().definition(definition(&word))),
        1 => Just(AgentPatch::default().definition(Patch::Null)),
        1 => word.prop_map(|word| AgentPatch::default().role(word)),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => patches().prop_map(Step::Patch),
        1 => patches().prop_map(Step::Apply),
        1 => (1..9_u64).prop_map(Step::Rollback),
        1 => Just(Step::DeleteAndRestore),
    ]
}

struct History {
    world: World,
    workspace: WorkspaceId,
}

impl History {
    async fn new() -> Self {
        let world = World::with(|settings: &mut Settings| settings.max_persona_prompt = 20_000);
        let workspace = world.workspace("ada").await;
        let new = NewAgent::new(workspace, AGENT.parse().unwrap(), "Writer").persona_prompt(prompt(0, "begin"));
        world.service.create_agent(&world.user("ada"), new).await.unwrap();
        Self { world, workspace }
    }

    async fn agent(&self) -> (Agent, u64) {
        let (service, ada) = (&self.world.service, self.world.user("ada"));
        let found = service.get_agent(&ada, self.workspace, AGENT).await.unwrap();
        (found.value, found.version)
    }

    async fn take(&self, step: Step) {
        let (service, ada, workspace) = (&self.world.service, self.world.user("ada"), Some(self.workspace));
        let (agent, version) = self.agent().await;
        match step {
            Step::Patch(patch) => {
                service.update_agent(&ada, workspace, AGENT, patch, ANY).await.unwrap();
            }
            Step::Apply(patch) => {
                let mut fields = serde_json::to_value(agent.config()).unwrap();
                for (field, value) in serde_json::to_value(&patch).unwrap().as_object().unwrap() {
                    fields[field] = value.clone();
                }
                fields["agent_id"] = json!(AGENT);
                let another = json!({"agent_id": "another", "display_name": "A", "persona_prompt": prompt(3, "too")});
                let body = serde_json::to_vec(&json!({ "agents": [fields, another] })).unwrap();
                let body = ApplyAgents::from_json(&body).unwrap();
                service.apply_agents(&ada, self.workspace, body, false).await.unwrap();
            }
            Step::Rollback(to) => {
                let to = Rollback::to_version(to.min(version));
                service.roll_back_agent(&ada, workspace, AGENT, to, ANY).await.unwrap();
            }
            Step::DeleteAndRestore => {
                service.delete_agent(&ada, workspace, AGENT, ANY).await.unwrap();
                service.restore_agent(&ada, workspace, AGENT, ANY).await.unwrap();
            }
        }
    }

    /// The records of a kind in the store, as texts.
    async fn stored(&self, kind: Kind) -> Vec<String> {
        let scan = Scan::all(Partition::Workspace(self.workspace), kind);
        let found = self.world.store.scan(&scan).await.unwrap().entries;
        let text = |record: &agentcfg_core::store::Record| String::from_utf8(record.value.to_vec()).unwrap();
        found.iter().map(|(_, record)| text(record)).collect()
    }

    /// Compares what each reader of the history sees with the contents that were read at the time, by version.
    async fn check(&self, versions: &BTreeMap<u64, AgentConfig>, revisions: &BTreeMap<u64, u64>) {
        let (service, ada, workspace) = (&self.world.service, self.world.user("ada"), self.workspace);
        for (number, config) in versions {
            let selector = VersionSelector::Version(*number);
            let version = service
                .get_version(&ada, Some(workspace), AGENT, selector)
                .await
                .unwrap();
            assert_eq!(version.config, *config, "version {number}");
        }
        for (revision, number) in revisions {
            let filter = AgentFilter::default().agent_id(Some(AGENT.parse().unwrap()));
            let filter = filter.as_of(AsOf::Revision(*revision));
            let list = service.list_agents(&ada, workspace, &filter).await.unwrap();
            assert_eq!(
                list.value.agents().unwrap()[0].config(),
                versions[number],
                "revision {revision}"
            );
        }
        // Each entry has the values of the field before and after.
        let entries = service
            .search_audit_log(&ada, workspace, &AuditFilter::default().limit(1000))
            .await
            .unwrap();
        let page = service.changes(&ada, workspace, After::Start, 1000).await.unwrap();
        let fields = [("persona_prompt", AGENT), ("definition", AGENT)];
        for (field, agent) in fields {
            let (mut of_log, mut of_feed) = (Vec::new(), Vec::new());
            let paths = [field.to_owned(), format!("agents/{agent}/{field}")];
            for entry in entries.iter().rev() {
                of_log.extend(paths.iter().filter_map(|path| entry.changes.get(path)).cloned());
            }
            for event in &page.events {
                of_feed.extend(paths.iter().filter_map(|path| event.changes.get(path)).cloned());
            }
            let values = versions
                .values()
                .map(|config| serde_json::to_value(config).unwrap()[field].clone());
            let mut expected = Vec::new();
            let mut before = Value::Null;
            for value in values {
                if value != before {
                    expected.push(json!({"from": before, "to": value}));
                }
                before = value;
            }
            let told = |changes: Vec<_>| serde_json::to_value(changes).unwrap();
            let expected = Value::from(expected);
            assert_eq!(told(of_log), expected, "{field} in the log");
            assert_eq!(told(of_feed), expected, "{field} in the feed");
        }
        self.check_export(versions).await;
    }

    async fn check_export(&self, versions: &BTreeMap<u64, AgentConfig>) {
        let (service, ada) = (&self.world.service, self.world.user("ada"));
        let mut export = service.export_workspace(&ada, self.workspace).await.unwrap();
        let (mut exported, mut entries) = (BTreeMap::new(), 0);
        while let Some(piece) = export.next().await.unwrap() {
            for line in std::str::from_utf8(&piece).unwrap().lines() {
                match serde_json::from_str(line).unwrap() {
                    ExportLine::Version(version) if version.agent_id == AGENT => {
                        exported.insert(version.version, version.config);
                    }
                    ExportLine::Audit(_) => entries += 1,
                    _ => {}
                }
            }
        }
        assert_eq!(exported, *versions);
        assert_eq!(entries, self.stored(Kind::LogEntry).await.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn readers_of_the_history_see_each_text_whole(all in proptest::collection::vec(steps(), 1..24)) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
            let history = History::new().await;
            let (mut versions, mut revisions) = (BTreeMap::new(), BTreeMap::new());
            let note = async |versions: &mut BTreeMap<_, _>, revisions: &mut BTreeMap<_, _>| {
                let (agent, version) = history.agent().await;
                versions.insert(version, agent.config());
                revisions.insert(history.stored(Kind::LogEntry).await.len() as u64, version);
            };
            note(&mut versions, &mut revisions).await;
            for step in all {
                history.take(step).await;
                note(&mut versions, &mut revisions).await;
            }
            history.check(&versions, &revisions).await;
        });
    }
}

#[tokio::test]
async fn a_changed_word_of_a_long_prompt_costs_little() {
    let history = History::new().await;
    let bytes = async || {
        let (versions, entries) = (
            history.stored(Kind::AgentVersion).await,
            history.stored(Kind::LogEntry).await,
        );
        versions.iter().chain(&entries).map(String::len).sum::<usize>()
    };
    let before = bytes().await;
    let count = 64;
    for number in 0..count {
        let patch = AgentPatch::default().persona_prompt(prompt(number, "be brief"));
        history.take(Step::Patch(patch)).await;
    }
    let each = (bytes().await - before) / count;
    let whole = prompt(0, "begin").len();
    assert!(
        whole > 5000 && each < whole / 3,
        "{each} bytes for each change of {whole}"
    );
}

#[tokio::test]
async fn a_release_and_a_diff_show_long_texts() {
    let history = History::new().await;
    let (service, ada, workspace) = (&history.world.service, history.world.user("ada"), history.workspace);
    for number in 1..12 {
        history
            .take(Step::Patch(
                AgentPatch::default().persona_prompt(prompt(number, "be brief")),
            ))
            .await;
    }
    service
        .set_label(&ada, Some(workspace), AGENT, "production", LabelTarget::new(7))
        .await
        .unwrap();
    let released = service.released(&ada, workspace, "production", None).await.unwrap();
    let released = released.value.decode().unwrap();
    assert_eq!(released[0].config.persona_prompt, Some(prompt(6, "be brief")));
    let diff = service
        .diff_versions(&ada, Some(workspace), AGENT, 7, VersionSelector::Current)
        .await
        .unwrap();
    let changed = &diff.changes["persona_prompt"];
    assert_eq!(
        (&changed.from, &changed.to),
        (&json!(prompt(6, "be brief")), &json!(prompt(11, "be brief")))
    );
}
