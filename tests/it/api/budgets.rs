//! Budgets: who may read and set them, what is refused, and what the audit log says.

use agentcfg_tests::harness::{Response, Studio};
use serde_json::{Value, json};

fn ask(studio: &Studio, key: &str, method: &str, query: &str) -> agentcfg_tests::harness::Request {
    let target = format!("/api/budgets?workspace_id={}{query}", studio.id);
    studio.server.request(method, target).bearer(key)
}

fn set(studio: &Studio, key: &str, query: &str, limit: &Value) -> Response {
    ask(studio, key, "PUT", query).json(limit).send()
}

fn key(studio: &Studio, fields: &Value) -> String {
    studio.key_with(fields).key
}

#[test]
fn budgets_are_set_changed_listed_and_removed() {
    let studio = Studio::open();
    let owner = &studio.owner;
    for (query, limit, shown) in [
        (
            "&scope=user&scope_id=ada&period=day",
            json!({"limit_usd": "1.50"}),
            "1.5",
        ),
        (
            "&scope=agent&scope_id=writer&period=total",
            json!({"limit_usd": 2, "action": "warn"}),
            "2",
        ),
        (
            "&scope=workspace&period=month",
            json!({"limit_usd": 0.000000001}),
            "0.000000001",
        ),
        (
            "&scope=workspace&period=day",
            json!({"limit_usd": "1000000000", "action": null}),
            "1000000000",
        ),
        ("&scope=key&scope_id=unknown&period=day", json!({"limit_usd": "0"}), "0"),
    ] {
        let budget = set(&studio, owner, query, &limit).expect(200).json();
        assert_eq!(budget["limit_usd"], shown, "{query}");
        assert_eq!(budget["spent_usd"], "0", "{query}");
        let resets = budget["resets_at"].as_str();
        assert_eq!(resets.is_some(), !query.ends_with("total"), "{query}");
        assert!(resets.is_none_or(|at| at.ends_with("T00:00:00.000Z")), "{query}");
    }
    let listed = ask(&studio, owner, "GET", "").send().expect(200).json();
    let shown: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|budget| {
            let text = |name: &str| budget[name].as_str().unwrap_or("-").to_owned();
            ["scope", "scope_id", "period", "action"].map(text).join(" ")
        })
        .collect();
    assert_eq!(
        shown,
        [
            "workspace - day refuse",
            "workspace - month refuse",
            "agent writer total warn",
            "key unknown day refuse",
            "user ada day refuse",
        ]
    );
    // Without an action a change means `refuse`; the identifier and the creation stay.
    let query = "&scope=agent&scope_id=writer&period=total";
    let changed = set(&studio, owner, query, &json!({"limit_usd": "2"}))
        .expect(200)
        .json();
    let before = &listed[2];
    assert_eq!(changed["action"], "refuse");
    assert_eq!(
        (&changed["id"], &changed["created_at"]),
        (&before["id"], &before["created_at"])
    );
    assert_ne!(changed["updated_at"], before["updated_at"]);

    let removed = ask(&studio, owner, "DELETE", query).send().expect(200).json();
    assert_eq!(removed, json!({"success": true}));
    ask(&studio, owner, "DELETE", query).send().refused(
        404,
        &["there is no budget of the agent \"writer\" with the period total"],
    );
    let log = studio
        .server
        .get(format!("/api/audit-log?workspace_id={}&action=budget.*", studio.id));
    let log = log.bearer(owner).send().expect(200).json();
    let actions: Vec<_> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    assert_eq!(
        actions,
        [
            "budget.removed",
            "budget.set",
            "budget.set",
            "budget.set",
            "budget.set",
            "budget.set",
            "budget.set"
        ]
    );
    assert_eq!(log[0]["target"], json!({"type": "budget", "id": before["id"]}));
    assert_eq!(log[1]["changes"]["action"], json!({"from": "warn", "to": "refuse"}));
    // A new budget is shown by its own fields alone.
    let first = log.as_array().unwrap().last().unwrap();
    let fields: Vec<_> = first["changes"].as_object().unwrap().keys().collect();
    assert!(fields.iter().all(|field| before.get(*field).is_some()), "{fields:?}");
}

#[test]
fn what_breaks_a_rule_is_refused_by_name() {
    let studio = Studio::open();
    let owner = &studio.owner;
    let limit = json!({"limit_usd": "1"});
    for (query, said) in [
        ("&period=day", "the query parameter scope is required"),
        ("&scope=workspace", "the query parameter period is required"),
        ("&scope=team&period=day", "scope"),
        ("&scope=workspace&period=week", "period"),
        (
            "&scope=workspace&scope_id=a&period=day",
            "scope_id must not be given with the scope workspace",
        ),
        (
            "&scope=agent&period=day",
            "scope_id is required unless the scope is workspace",
        ),
        (
            "&scope=agent&scope_id=&period=day",
            "the query parameter scope_id must be 1 to 200 characters",
        ),
        (
            "&scope=agent&scope_id=a%00b&period=day",
            "the query parameter scope_id must",
        ),
    ] {
        set(&studio, owner, query, &limit).refused(400, &[said]);
        ask(&studio, owner, "DELETE", query).send().refused(400, &[said]);
    }
    let faulty = set(&studio, owner, "&scope=user&scope_id=&period=day", &limit).expect(400);
    assert_eq!(faulty.need("fault-fields"), "scope_id");
    for (limit, said) in [
        (json!({}), "limit_usd is required"),
        (json!({"limit_usd": null}), "limit_usd"),
        (json!({"limit_usd": -1}), "limit_usd must be a decimal number"),
        (json!({"limit_usd": "1e3"}), "limit_usd must be a decimal number"),
        (
            json!({"limit_usd": "0.0000000001"}),
            "limit_usd must have at most 9 decimals",
        ),
        (
            json!({"limit_usd": "1000000000.000000001"}),
            "limit_usd must be at most 1000000000",
        ),
        (json!({"limit_usd": true}), "limit_usd"),
        (json!({"limit_usd": 1, "action": "stop"}), "action"),
        (json!({"limit_usd": 1, "spent_usd": "0"}), "spent_usd"),
        (json!({"limit_usd": 1, "currency": "EUR"}), "currency"),
    ] {
        set(&studio, owner, "&scope=workspace&period=day", &limit).refused(400, &[said]);
    }
    let listed = ask(&studio, owner, "GET", "").send().expect(200).json();
    assert_eq!(listed, json!([]));
}

#[test]
fn setting_a_budget_needs_its_permission_and_the_whole_workspace() {
    let studio = Studio::open();
    studio.create("a", &json!({})).expect(201);
    let (day, limit) = ("&scope=workspace&period=day", json!({"limit_usd": "1"}));
    let admin = key(&studio, &json!({"scope": "admin"}));
    set(&studio, &admin, day, &limit).expect(200);
    for scope in ["read", "write"] {
        let key = key(&studio, &json!({"scope": scope}));
        ask(&studio, &key, "GET", "").send().expect(200);
        set(&studio, &key, day, &limit).refused(403, &["budgets:manage"]);
        ask(&studio, &key, "DELETE", day)
            .send()
            .refused(403, &["budgets:manage"]);
        let settle = format!("/api/budgets/settle?workspace_id={}", studio.id);
        studio
            .server
            .post(settle)
            .bearer(&key)
            .send()
            .refused(403, &["budgets:manage"]);
    }
    let limited = key(&studio, &json!({"scope": "admin", "agents": ["a"]}));
    ask(&studio, &limited, "GET", "")
        .send()
        .refused(403, &["limited to some agents"]);
    set(&studio, &limited, day, &limit).refused(403, &["budgets:manage"]);
    let other = Studio::on(studio.server);
    ask(&studio, &other.owner, "GET", "")
        .send()
        .refused(403, &["not a member"]);
    set(&studio, &other.owner, day, &limit).refused(403, &["not a member"]);
}

#[test]
fn a_workspace_has_at_most_500_budgets() {
    let studio = Studio::open();
    let admin = key(&studio, &json!({"scope": "admin", "rate_limit": 100_000}));
    let limit = json!({"limit_usd": "1"});
    for number in 0..500 {
        let query = format!("&scope=agent&scope_id=agent-{number}&period=day");
        set(&studio, &admin, &query, &limit).expect(200);
    }
    set(&studio, &admin, "&scope=workspace&period=day", &limit).refused(422, &["500 budgets"]);
    // A change of one is possible, and so is another one after a removal.
    set(
        &studio,
        &admin,
        "&scope=agent&scope_id=agent-7&period=day",
        &json!({"limit_usd": "2"}),
    )
    .expect(200);
    ask(&studio, &admin, "DELETE", "&scope=agent&scope_id=agent-7&period=day")
        .send()
        .expect(200);
    set(&studio, &admin, "&scope=workspace&period=day", &limit).expect(200);
}
