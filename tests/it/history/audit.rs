//! The filters of the audit log.

use agentcfg_tests::harness::Studio;
use serde_json::{Value, json};

fn revisions(studio: &Studio<'_>, more: &str) -> Vec<u64> {
    let target = format!("/api/audit-log?workspace_id={}{more}", studio.id);
    let log = studio
        .server
        .get(target)
        .bearer(&studio.owner)
        .send()
        .expect(200)
        .json();
    log.as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["revision"].as_u64().unwrap())
        .collect()
}

#[test]
fn entries_are_selected_by_each_filter() {
    let studio = Studio::open();
    studio.create("a", &Value::Null).expect(201);
    studio.create("b", &Value::Null).expect(201);
    let key = studio.key("write");
    let target = "/api/agents/configs?agent_id=a";
    studio
        .server
        .patch(target)
        .bearer(&key.key)
        .json(&json!({"role": "x"}))
        .send()
        .expect(200);
    studio.remove("b").expect(200);
    // 1 workspace.created, 2 workspace.updated by the operator, 3 and 4 agents, 5 the key, 6 the change by it, 7
    // deactivated
    assert_eq!(revisions(&studio, ""), [7, 6, 5, 4, 3, 2, 1]);
    for (filter, expected) in [
        (format!("&actor={}", key.id), &[6][..]),
        ("&actor=operator".into(), &[2]),
        (format!("&actor={}", studio.user), &[7, 5, 4, 3, 1]),
        ("&action=agent.created".into(), &[4, 3]),
        ("&action=agent.*".into(), &[7, 6, 4, 3]),
        ("&action=agent.*&target_id=a".into(), &[6, 3]),
        ("&action=agent".into(), &[]),
        ("&action=*".into(), &[]),
        ("&action=task.created".into(), &[]),
        ("&target_type=agent".into(), &[7, 6, 4, 3]),
        ("&target_type=api_key".into(), &[5]),
        ("&target_type=task".into(), &[]),
        ("&target_id=b".into(), &[7, 4]),
        ("&target_type=member&target_id=b".into(), &[]),
        ("&before=4".into(), &[3, 2, 1]),
        ("&before=1".into(), &[]),
        ("&before=99&limit=2".into(), &[7, 6]),
        ("&before=6&offset=1&limit=2".into(), &[4, 3]),
        ("&target_type=agent&offset=1&limit=2".into(), &[6, 4]),
        ("&target_type=agent&offset=9".into(), &[]),
        ("&since=2099-01-01T00:00:00Z".into(), &[]),
        ("&until=2001-01-01T00:00:00Z".into(), &[]),
        ("&since=2001-01-01T00:00:00Z&limit=1".into(), &[7]),
    ] {
        assert_eq!(revisions(&studio, &filter), expected, "{filter}");
    }
    let log = studio.audit();
    let times: Vec<&str> = log.iter().map(|entry| entry["created_at"].as_str().unwrap()).collect();
    let select = |keep: &dyn Fn(&str) -> bool| -> Vec<u64> {
        let kept = log.iter().zip(&times).filter(|(_, time)| keep(time));
        kept.map(|(entry, _)| entry["revision"].as_u64().unwrap()).collect()
    };
    for time in &times {
        assert_eq!(
            revisions(&studio, &format!("&since={time}")),
            select(&|at| at >= *time),
            "since {time}"
        );
        assert_eq!(
            revisions(&studio, &format!("&until={time}")),
            select(&|at| at < *time),
            "until {time}"
        );
    }
    let target = |more: &str| format!("/api/audit-log?workspace_id={}{more}", studio.id);
    for (more, said) in [
        ("&since=now", "since must be an RFC 3339"),
        ("&until=", "until must be an RFC 3339"),
        ("&before=0", "before must be 1"),
        ("&before=-1", "before must be a whole number"),
    ] {
        studio
            .server
            .get(target(more))
            .bearer(&studio.owner)
            .send()
            .refused(400, &[said]);
    }
}

#[test]
fn a_long_log_is_filtered_over_many_pages() {
    let studio = Studio::open();
    studio.create("a", &Value::Null).expect(201);
    for number in 0..400 {
        studio.change("a", &json!({"role": number.to_string()})).expect(200);
    }
    studio.remove("a").expect(200);
    let last = studio.audit()[0]["revision"].as_u64().unwrap();
    assert_eq!(revisions(&studio, "&action=agent.created"), [3]);
    assert_eq!(revisions(&studio, "&action=agent.deactivated"), [last]);
    let updated = revisions(&studio, "&action=agent.updated&limit=1000");
    assert_eq!(updated, (4..last).rev().collect::<Vec<_>>());
    assert_eq!(
        revisions(&studio, "&action=agent.updated&offset=300&limit=2"),
        [last - 301, last - 302]
    );
}

#[test]
fn a_long_page_is_streamed() {
    let studio = Studio::open();
    let persona = "x".repeat(5000);
    for round in 0..3 {
        let agents: Vec<Value> = (0..300)
            .map(|number| {
                json!({"agent_id": format!("agent-{number}"), "display_name": "A", "persona_prompt": format!("{round}{}", &persona[1..])})
            })
            .collect();
        let target = format!("/api/agents/apply?workspace_id={}", studio.id);
        let apply = studio.server.post(target).bearer(&studio.owner);
        apply.json(&json!({ "agents": agents })).send().expect(200);
    }
    let page = |more: &str| {
        let target = format!("/api/audit-log?workspace_id={}{more}", studio.id);
        studio.server.get(target).bearer(&studio.owner).send().expect(200)
    };
    let long = page("");
    assert_eq!(long.header("transfer-encoding"), Some("chunked"));
    assert_eq!(long.need("content-type"), "application/json");
    let long = long.json();
    let entries = long.as_array().unwrap();
    assert_eq!(entries.len(), 5);
    // The same entries one by one, and a short page with its length.
    for (offset, entry) in entries.iter().enumerate() {
        assert_eq!(page(&format!("&limit=1&offset={offset}")).json()[0], *entry);
    }
    let short = page("&offset=3");
    assert_eq!(short.json().as_array().unwrap()[..], entries[3..]);
    assert!(short.header("content-length").is_some());
}
