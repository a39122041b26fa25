//! Changes of many megabytes. Members of some releases cannot read an entry of more than 10 MiB from their logs again,
//! and could not be restarted after one.

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::server::{Answer, Server, token};

/// A text of a prompt's language: words in an order that does not repeat.
fn words(length: usize, state: &mut u64) -> String {
    const WORDS: [&str; 48] = [
        "the", "of", "and", "a", "to", "in", "is", "you", "that", "it", "he", "was", "for", "on", "are", "as", "with",
        "his", "they", "at", "be", "this", "have", "from", "or", "one", "had", "by", "word", "but", "not", "what",
        "all", "were", "we", "when", "your", "can", "said", "there", "use", "an", "each", "which", "she", "do", "how",
        "their",
    ];
    let mut text = String::with_capacity(length + 8);
    while text.len() < length {
        text.push_str(WORDS[(next(state) >> 33) as usize % WORDS.len()]);
        text.push(' ');
    }
    text.truncate(length);
    text
}

/// A text that compresses little: six random bits in each byte.
fn noise(length: usize, state: &mut u64) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..length)
        .map(|_| char::from(DIGITS[(next(state) >> 58) as usize]))
        .collect()
}

fn next(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state
}

fn agents(count: usize, text: fn(usize, &mut u64) -> String, mut state: u64) -> Value {
    let agent = |number| {
        json!({
            "agent_id": format!("agent-{number}"), "display_name": "Agent",
            "persona_prompt": text(5000, &mut state), "description": text(2000, &mut state),
        })
    };
    json!({ "agents": (0..count).map(agent).collect::<Vec<_>>() })
}

async fn apply(server: &Server, workspace: &str, body: Value) -> Answer {
    let path = format!("/api/agents/apply?workspace_id={workspace}");
    server.api(&token("ada")).post(&path, body).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_restart_after_the_largest_apply() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let server = Server::with(&cluster.database(), &[("default_plan", "enterprise")]);
    let ada = server.api(&token("ada"));
    let workspace = ada.workspace().await;
    let first = agents(1000, words, 1);
    assert!(first.to_string().len() > 7_000_000);
    apply(&server, &workspace, first).await.expect(200);
    let body = agents(1000, words, 2);
    apply(&server, &workspace, body.clone()).await.expect(200);
    for member in 0..3 {
        cluster.kill(member);
        cluster.start_member(member);
        cluster.wait_until_ready();
    }
    let listed = ada.list(&workspace).await.expect(200);
    let (listed, wanted) = (listed.as_array().unwrap(), body["agents"].as_array().unwrap());
    assert_eq!(listed.len(), 1000);
    for (found, wanted) in listed.iter().zip(wanted) {
        for field in ["agent_id", "persona_prompt", "description"] {
            assert_eq!(found[field], wanted[field]);
        }
    }
    let path = format!("/api/agents/version?workspace_id={workspace}&agent_id=agent-999&version=2");
    let version = ada.get(&path).await.expect(200);
    assert_eq!(version["config"]["persona_prompt"], wanted[999]["persona_prompt"]);
    let log = ada
        .get(&format!("/api/audit-log?workspace_id={workspace}&limit=1"))
        .await;
    let entry = &log.expect(200)[0];
    assert_eq!(entry["action"], "agents.applied");
    assert_eq!(
        entry["changes"]["agents/agent-7/persona_prompt"]["to"],
        wanted[7]["persona_prompt"]
    );
    let again = apply(&server, &workspace, body).await.expect(200);
    let results = again["results"].as_array().unwrap();
    assert_eq!(results.len(), 1000);
    assert!(results.iter().all(|result| result["action"] == "none"), "{again}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_apply_that_no_log_entry_holds_changes_nothing_and_says_why() {
    // It would take the whole change, and could not be restarted then.
    let settings = ["--max-txn-ops=10000", "--max-request-bytes=67108864"];
    let Some(cluster) = Cluster::of(1, &settings) else {
        return;
    };
    let server = Server::with(&cluster.database(), &[("default_plan", "enterprise")]);
    let ada = server.api(&token("ada"));
    let workspace = ada.workspace().await;
    let body = agents(1000, noise, 1);
    let refused = apply(&server, &workspace, body.clone()).await.expect(413);
    let text = refused["error"].as_str().unwrap();
    assert!(
        text.contains("too large") && text.contains("make it in parts"),
        "{text}"
    );
    assert_eq!(ada.list(&workspace).await.expect(200), json!([]));
    let parts = body["agents"].as_array().unwrap();
    for part in parts.chunks(250) {
        apply(&server, &workspace, json!({ "agents": part })).await.expect(200);
    }
    cluster.kill(0);
    cluster.start_member(0);
    cluster.wait_until_ready();
    assert_eq!(ada.list(&workspace).await.expect(200).as_array().unwrap().len(), 1000);
}
