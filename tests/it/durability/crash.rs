//! `kill -9` under concurrent writes.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use agentcfg_tests::harness::{Request, Server, Studio, Wire, eventually, run};
use serde_json::{Value, json};

const CYCLES: usize = 4;
const WRITERS: usize = 8;
/// The number of acknowledged changes before the kill.
const ACKNOWLEDGED: usize = 120;
const LIMIT: usize = 60;

/// What one writer knows of its agents: the acknowledged actions, and one without a response.
#[derive(Default)]
struct Journal {
    acknowledged: HashMap<String, Vec<&'static str>>,
    unknown: Option<(String, &'static str)>,
}

fn start(data: Option<&std::path::Path>) -> Server {
    let builder = Server::builder()
        .set("default_plan", "pro")
        .set("plan_limit_pro", LIMIT.to_string());
    let builder = builder.set("session_rate_limit", "1000000");
    match data {
        Some(data) => builder.data(data).start(),
        None => builder.start(),
    }
}

/// The next change of an agent after these actions, and the request for it.
fn next(studio: &Studio<'_>, id: &str, done: &[&str]) -> (&'static str, Request) {
    let target = format!("workspace_id={}&agent_id={id}", studio.id);
    let (action, request) = match (done.last().copied(), done.len()) {
        (None, _) => {
            let request = studio
                .server
                .post("/api/agents/configs")
                .json(&studio.agent(id, &Value::Null));
            ("agent.created", request)
        }
        (Some("agent.deactivated"), _) => (
            "agent.restored",
            studio.server.post(format!("/api/agents/configs/restore?{target}")),
        ),
        (_, length) if length % 3 == 2 => (
            "agent.deactivated",
            studio.server.delete(format!("/api/agents/configs?{target}")),
        ),
        (_, length) => {
            let request = studio.server.patch(format!("/api/agents/configs?{target}"));
            (
                "agent.updated",
                request.json(&json!({"role": format!("change {length}")})),
            )
        }
    };
    (action, request.bearer(&studio.owner))
}

/// Writes until the server is gone.
fn write(studio: &Studio<'_>, writer: usize, journal: &mut Journal, acknowledged: &AtomicUsize) {
    let mut wire = Wire::connect(studio.server.address());
    for number in 0.. {
        let id = format!("w{writer}-{}", number % 6);
        let (action, request) = next(studio, &id, journal.acknowledged.get(&id).map_or(&[], Vec::as_slice));
        match wire.send(request.to_bytes()).receive("POST") {
            Some(answer) if answer.status < 300 => {
                journal.acknowledged.entry(id).or_default().push(action);
                acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            Some(answer) => panic!("{answer:?}"),
            None => {
                journal.unknown = Some((id, action));
                return;
            }
        }
    }
}

/// The actions on each agent, in order, from the whole audit log.
fn actions_in_log(studio: &Studio<'_>) -> HashMap<String, Vec<String>> {
    let mut entries = Vec::new();
    loop {
        let target = format!(
            "/api/audit-log?workspace_id={}&limit=1000&offset={}",
            studio.id,
            entries.len()
        );
        let page = studio
            .server
            .get(target)
            .bearer(&studio.owner)
            .send()
            .expect(200)
            .json();
        let page = page.as_array().unwrap().clone();
        if page.is_empty() {
            break;
        }
        entries.extend(page);
    }
    let ids: HashSet<_> = entries.iter().map(|entry| entry["id"].to_string()).collect();
    assert_eq!(ids.len(), entries.len(), "every entry has a unique id");
    let mut actions_in_log: HashMap<String, Vec<String>> = HashMap::new();
    for entry in entries.iter().rev().filter(|entry| entry["target"]["type"] == "agent") {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        actions_in_log
            .entry(text(&entry["target"]["id"]))
            .or_default()
            .push(text(&entry["action"]));
    }
    actions_in_log
}

/// Compares the records after a crash with the changes acknowledged before it, and notes the
/// outcome of the unknown ones.
fn compare(studio: &Studio<'_>, journals: &mut [Journal]) {
    let actions_in_log = actions_in_log(studio);
    for journal in journals.iter_mut() {
        if let Some((id, action)) = journal.unknown.take() {
            let known = journal.acknowledged.entry(id.clone()).or_default();
            if actions_in_log.get(&id).map_or(0, Vec::len) > known.len() {
                known.push(action);
            }
        }
        journal.acknowledged.retain(|_, actions| !actions.is_empty());
    }
    let known: HashMap<_, Vec<String>> = journals
        .iter()
        .flat_map(|journal| &journal.acknowledged)
        .map(|(id, actions)| (id.clone(), actions.iter().map(ToString::to_string).collect()))
        .collect();
    assert_eq!(
        actions_in_log, known,
        "the log is what was acknowledged, without a gap and in order"
    );
    let mut active: Vec<_> = known
        .iter()
        .filter(|(_, actions)| actions.last().unwrap() != "agent.deactivated")
        .collect();
    active.sort();
    let mut listed = studio.agent_ids();
    listed.sort();
    assert_eq!(listed, active.iter().map(|(id, _)| id.to_string()).collect::<Vec<_>>());
    let list = studio.list().json();
    let ids: HashSet<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| agent["id"].to_string())
        .collect();
    assert_eq!(ids.len(), listed.len(), "every record has a unique id");
    for agent in list.as_array().unwrap() {
        let actions = &known[agent["agent_id"].as_str().unwrap()];
        let last = actions.iter().rposition(|action| action == "agent.updated");
        assert_eq!(
            agent["role"],
            last.map_or(Value::Null, |at| json!(format!("change {at}"))),
            "{agent}"
        );
    }
}

#[test]
fn a_killed_server_has_lost_nothing_that_it_acknowledged() {
    let mut server = start(None);
    let founder = Studio::on(&server);
    let (id, user, owner) = (founder.id, founder.user.clone(), founder.owner.clone());
    let mut journals: Vec<_> = (0..WRITERS).map(|_| Journal::default()).collect();
    // The guard of the first server owns the directory, so the servers are kept.
    let mut ended = Vec::new();
    let data = server.data().to_owned();
    for _ in 0..CYCLES {
        let studio = Studio {
            server: &server,
            id,
            user: user.clone(),
            owner: owner.clone(),
        };
        let acknowledged = AtomicUsize::new(0);
        thread::scope(|scope| {
            for (writer, journal) in journals.iter_mut().enumerate() {
                let (studio, acknowledged) = (&studio, &acknowledged);
                scope.spawn(move || write(studio, writer, journal, acknowledged));
            }
            eventually("enough changes are acknowledged", || {
                acknowledged.load(Ordering::Relaxed) >= ACKNOWLEDGED
            });
            server.kill();
        });
        ended.push(std::mem::replace(&mut server, start(Some(&data))));
        let studio = Studio {
            server: &server,
            id,
            user: user.clone(),
            owner: owner.clone(),
        };
        compare(&studio, &mut journals);
    }
    let studio = Studio {
        server: &server,
        id,
        user,
        owner,
    };
    let active = studio.agent_ids().len();
    let more = (0..LIMIT).take_while(|number| studio.create(&format!("more-{number}"), &Value::Null).status == 201);
    assert_eq!(more.count(), LIMIT - active, "the plan's limit is exact");
    studio.create("over", &Value::Null).expect(422);
    server.stop();
    run(["check", "--data", data.to_str().unwrap()]).succeeded();
}
