//! The commands of operators.

use agentcfg_tests::harness::unique;
use serde_json::json;

use crate::fixture::Desk;

fn operator() -> Desk {
    let mut desk = Desk::open();
    desk.credential = desk.studio.server.operator();
    desk
}

#[test]
fn an_operator_works_in_all_workspaces() {
    let desk = operator();
    let id = desk.studio.id.to_string();
    assert!(desk.ok("operator workspaces").contains(&id));
    let all = desk.json("operator workspaces", 0);
    assert!(all.as_array().unwrap().iter().any(|workspace| workspace["id"] == *id));
    let key = desk.studio.key("read");
    let shown = desk.ok(&format!("operator key {}", key.id));
    assert!(shown.contains(&key.id) && shown.contains(&id), "{shown}");
    assert_eq!(desk.json(&format!("operator key {}", key.id), 0)["workspace_id"], *id);
    assert_eq!(
        desk.ok(&format!("operator revoke-key {}", key.id)),
        format!("revoked {}\n", key.id)
    );
    desk.fails(&format!("operator revoke-key {}", key.id), 4, &["not found"]);
    assert!(desk.ok(&format!("operator key {}", key.id)).contains("revoked"));
    // A key itself is never sent.
    desk.fails(&format!("operator key {}", key.key), 64, &["nothing was sent", &key.id]);
    desk.fails(&format!("operator revoke-key {}", key.key), 64, &["nothing was sent"]);

    let user = unique("eve");
    desk.studio.set_member(&user, "viewer").expect(200);
    let done = desk.json(&format!("operator remove-user {user}"), 0);
    assert_eq!(done, json!({"success": true}));
    assert_eq!(
        desk.ok(&format!("operator remove-user {user} --yes")),
        format!("removed {user}\n")
    );
    desk.fails(
        &format!("operator remove-user {}", desk.studio.user),
        5,
        &["last owner", &id],
    );
    desk.fails(
        &format!("operator remove-user {}", unique("stranger")),
        4,
        &["not found"],
    );
}

#[test]
fn others_may_not() {
    let desk = Desk::open();
    desk.fails("operator workspaces", 3, &["session token"]);
}
