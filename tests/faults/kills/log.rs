//! The audit log of a workspace.

use agentcfg_tests::harness::{Studio, Wire};
use serde_json::Value;

const PAGE: usize = 1000;

/// The entries after a revision, oldest first. Their revisions have no gap.
pub fn since(studio: &Studio<'_>, revision: u64) -> Vec<Value> {
    let mut entries: Vec<Value> = Vec::new();
    loop {
        let before = match entries.last() {
            Some(oldest) => format!("&before={}", oldest["revision"]),
            None => String::new(),
        };
        let target = format!("/api/audit-log?workspace_id={}&limit={PAGE}{before}", studio.id);
        let request = studio.server.get(target).bearer(&studio.owner);
        let page = request.send().expect(200).json();
        let page = page.as_array().unwrap();
        let wanted = page.iter().filter(|entry| number(entry) > revision);
        entries.extend(wanted.cloned());
        if page.len() < PAGE || page.last().is_none_or(|oldest| number(oldest) <= revision) {
            break;
        }
    }
    entries.reverse();
    let revisions: Vec<_> = entries.iter().map(number).collect();
    let expected: Vec<_> = (revision + 1..).take(entries.len()).collect();
    assert_eq!(revisions, expected, "the log has a gap");
    entries
}

/// The last revision; none if the server is gone.
pub fn try_last(studio: &Studio<'_>) -> Option<u64> {
    let target = format!("/api/audit-log?workspace_id={}&limit=1", studio.id);
    let request = studio.server.get(target).bearer(&studio.owner);
    let mut wire = Wire::try_connect(studio.server.address()).ok()?;
    let answer = wire.send(request.to_bytes()).try_receive("GET").ok()?;
    Some(number(&answer.expect(200).json()[0]))
}

pub fn number(entry: &Value) -> u64 {
    entry["revision"].as_u64().unwrap()
}
