//! Writers that keep running through an outage and record every response.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::server::{Api, Server, token};

/// Creates agents on all servers until it is stopped.
pub struct Load {
    workspace: String,
    stop: Arc<AtomicBool>,
    done: watch::Sender<usize>,
    writers: JoinSet<Outcomes>,
}

/// The outcomes that a writer recorded.
#[derive(Default)]
pub struct Outcomes {
    /// Agents whose creation got 201.
    pub created: Vec<String>,
    /// Agents whose creation got 503, so that the outcome is unknown.
    pub unknown: Vec<String>,
    /// All other responses and errors, which should not occur.
    pub unexpected: Vec<String>,
}

impl Load {
    /// Starts two writers for each server.
    pub async fn start(servers: &[Server]) -> Self {
        let ada = servers[0].api(&token("ada"));
        let workspace = ada.workspace().await;
        servers[0].api(&token("root")).set_plan(&workspace, "enterprise").await;
        let (_, key) = ada.key(&workspace, "write", 1_000_000).await;
        let stop = Arc::new(AtomicBool::new(false));
        let done = watch::Sender::new(0);
        let mut writers = JoinSet::new();
        for writer in 0..servers.len() * 2 {
            let api = servers[writer % servers.len()].api(&key);
            let (workspace, stop, done) = (workspace.clone(), Arc::clone(&stop), done.clone());
            writers.spawn(async move { write(&api, writer, &workspace, &stop, &done).await });
        }
        Self {
            workspace,
            stop,
            done,
            writers,
        }
    }

    /// Waits until this many more creations got 201.
    pub async fn progress(&self, more: usize) {
        let mut done = self.done.subscribe();
        let goal = *done.borrow() + more;
        let reached = done.wait_for(|done| *done >= goal);
        tokio::time::timeout(std::time::Duration::from_secs(60), reached)
            .await
            .expect("the servers go on creating agents")
            .unwrap();
    }

    /// Stops the writers, and compares the stored agents with the recorded outcomes, on every server. Returns the
    /// number of creations that were not acknowledged.
    pub async fn verify(mut self, servers: &[Server]) -> usize {
        self.stop.store(true, Ordering::SeqCst);
        let mut all = Outcomes::default();
        while let Some(outcomes) = self.writers.join_next().await {
            let outcomes = outcomes.unwrap();
            all.created.extend(outcomes.created);
            all.unknown.extend(outcomes.unknown);
            all.unexpected.extend(outcomes.unexpected);
        }
        assert!(all.unexpected.is_empty(), "{:#?}", all.unexpected);
        let ada = token("ada");
        let mut seen = 0;
        for server in servers {
            let listed = server.api(&ada).list(&self.workspace).await.expect(200);
            let listed: std::collections::BTreeSet<&str> = listed
                .as_array()
                .unwrap()
                .iter()
                .map(|agent| agent["agent_id"].as_str().unwrap())
                .collect();
            let lost: Vec<_> = all
                .created
                .iter()
                .filter(|agent| !listed.contains(agent.as_str()))
                .collect();
            assert!(lost.is_empty(), "answered with 201 and lost: {lost:?}");
            seen = listed.len();
            assert!(seen <= all.created.len() + all.unknown.len());
        }
        // The log has exactly one entry for each agent.
        let path = format!("/api/audit-log?workspace_id={}&limit=1000", self.workspace);
        let mut offset = 0;
        let mut entries = 0;
        loop {
            let page = servers[0]
                .api(&ada)
                .get(&format!("{path}&offset={offset}"))
                .await
                .expect(200);
            let page = page.as_array().unwrap();
            entries += page.iter().filter(|entry| entry["action"] == "agent.created").count();
            offset += page.len();
            if page.len() < 1000 {
                break;
            }
        }
        assert_eq!(entries, seen, "each agent has its entry in the log");
        println!(
            "{} creations answered with 201, 0 of them lost; {} unanswered or 503, {} of those were made",
            all.created.len(),
            all.unknown.len(),
            seen - all.created.len()
        );
        all.unknown.len()
    }
}

async fn write(api: &Api, writer: usize, workspace: &str, stop: &AtomicBool, done: &watch::Sender<usize>) -> Outcomes {
    let mut outcomes = Outcomes::default();
    let mut number = 0;
    while !stop.load(Ordering::SeqCst) {
        let agent = format!("w{writer}-{number}");
        number += 1;
        let new = serde_json::json!({"workspace_id": workspace, "agent_id": agent, "display_name": agent});
        match api.send("POST", "/api/agents/configs", "", Some(new)).await {
            Ok(answer) if answer.status == 201 => {
                outcomes.created.push(agent);
                done.send_modify(|done| *done += 1);
            }
            Ok(answer) if answer.status == 503 => outcomes.unknown.push(agent),
            Ok(answer) => outcomes
                .unexpected
                .push(format!("{agent}: {} {}", answer.status, answer.body)),
            Err(error) => outcomes.unexpected.push(format!("{agent}: {error}")),
        }
    }
    outcomes
}
