//! Members of a workspace.

use agentcfg_client::model::Role;
use agentcfg_tests::harness::{Request, Studio, unique};
use serde_json::{Value, json};

fn on_member(studio: &Studio<'_>, method: &str, user: &str, token: &str) -> Request {
    let target = format!("/api/workspaces/members?workspace_id={}&user_id={user}", studio.id);
    studio.server.request(method, target).bearer(token)
}

fn set(studio: &Studio<'_>, user: &str, role: &str, token: &str) -> u16 {
    on_member(studio, "PUT", user, token)
        .json(&json!({"role": role}))
        .send()
        .status
}

#[tokio::test]
async fn members_have_a_user_a_role_and_a_date_and_come_in_the_order_of_joining() {
    let studio = Studio::open();
    let client = studio.client();
    for (user, role) in [("zoe", Role::Viewer), ("ada", Role::Admin)] {
        let member = client
            .set_member(studio.id, &user.parse().unwrap(), role)
            .await
            .unwrap();
        assert_eq!((&*member.user_id, member.role), (user, role));
    }
    let members = client.list_members(studio.id).await.unwrap();
    // Members who joined within the same millisecond have no defined order.
    assert!(members.is_sorted_by_key(|member| member.created_at), "{members:?}");
    assert_eq!(members.len(), 3);
    assert_eq!(members[0].user_id, studio.user);
    let target = format!("/api/workspaces/members?workspace_id={}", studio.id);
    let raw = studio.server.get(target).bearer(&studio.owner).send().json();
    let fields: Vec<_> = raw[0].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["user_id", "role", "created_at"]);
}

#[test]
fn a_member_need_not_have_signed_in_and_may_have_any_printable_name() {
    let studio = Studio::open();
    let longest = "%F0%9F%A6%80".repeat(200);
    for user in [
        "never-seen",
        "auth0%7C1234",
        "a%40b.example",
        "%20",
        "..%2F..%2Fx",
        &longest,
    ] {
        assert_eq!(set(&studio, user, "viewer", &studio.owner), 200, "{user}");
    }
    for user in ["", "%00", "a%0Ab", "%7F", "%C2%85", &"x".repeat(201)] {
        assert_eq!(set(&studio, user, "viewer", &studio.owner), 400, "{user}");
    }
}

#[test]
fn a_role_is_one_of_four() {
    let studio = Studio::open();
    for role in ["viewer", "member", "admin", "owner"] {
        studio.set_member("u", role).expect(200);
    }
    for body in [
        json!({}),
        json!({"role": "king"}),
        json!({"role": null}),
        json!({"role": "Owner"}),
    ] {
        on_member(&studio, "PUT", "u", &studio.owner)
            .json(&body)
            .send()
            .refused(400, &["role"]);
    }
}

#[test]
fn the_same_role_again_changes_and_records_nothing() {
    let studio = Studio::open();
    let first = studio.set_member("u", "member").expect(200).json();
    let entries = studio.audit().len();
    assert_eq!(studio.set_member("u", "member").expect(200).json(), first);
    assert_eq!(studio.audit().len(), entries);
    let changed = studio.set_member("u", "admin").expect(200).json();
    assert_eq!(changed["created_at"], first["created_at"]);
    assert_eq!(studio.audit().len(), entries + 1);
}

#[test]
fn only_an_owner_grants_or_withdraws_the_role_owner() {
    let studio = Studio::open();
    let admin = studio.member("admin");
    let second = unique("second");
    assert_eq!(set(&studio, "u", "owner", &admin), 403);
    assert_eq!(set(&studio, &second, "owner", &studio.owner), 200);
    assert_eq!(set(&studio, &second, "member", &admin), 403);
    on_member(&studio, "DELETE", &second, &admin).send().expect(403);
    assert_eq!(set(&studio, "u", "admin", &admin), 200);
    on_member(&studio, "DELETE", "u", &admin).send().expect(200);
    assert_eq!(set(&studio, &second, "member", &studio.owner), 200);
}

#[test]
fn the_last_owner_cannot_be_removed_or_demoted() {
    let studio = Studio::open();
    studio.set_member(&studio.user, "admin").refused(409, &["last owner"]);
    on_member(&studio, "DELETE", &studio.user, &studio.owner)
        .send()
        .refused(409, &["last owner"]);
    let second = unique("second");
    studio.set_member(&second, "owner").expect(200);
    on_member(&studio, "DELETE", &studio.user, &studio.owner)
        .send()
        .expect(200);
    let token = studio.server.token(&second);
    on_member(&studio, "DELETE", &second, &token).send().expect(409);
}

#[test]
fn a_member_may_leave() {
    let studio = Studio::open();
    for role in ["viewer", "member", "admin"] {
        let user = unique(role);
        studio.set_member(&user, role).expect(200);
        let token = studio.server.token(&user);
        let other = unique("other");
        studio.set_member(&other, "viewer").expect(200);
        if role != "admin" {
            on_member(&studio, "DELETE", &other, &token).send().expect(403);
        }
        let gone = on_member(&studio, "DELETE", &user, &token).send().expect(200).json();
        assert_eq!(gone, json!({"success": true}));
        on_member(&studio, "DELETE", &user, &token).send().expect(403);
    }
}

#[test]
fn removing_an_unknown_member_is_404() {
    let studio = Studio::open();
    on_member(&studio, "DELETE", "nobody", &studio.owner)
        .send()
        .refused(404, &["nobody"]);
    on_member(&studio, "DELETE", "", &studio.owner).send().expect(400);
}

#[test]
fn a_change_of_role_takes_effect_with_the_next_request() {
    let studio = Studio::open();
    let user = unique("rising");
    let token = studio.server.token(&user);
    let create = |id: &str| {
        let request = studio.server.post("/api/agents/configs").bearer(&token);
        request.json(&studio.agent(id, &Value::Null)).send().status
    };
    for (role, status) in [
        ("viewer", 403),
        ("member", 201),
        ("viewer", 403),
        ("admin", 201),
        ("owner", 201),
    ] {
        studio.set_member(&user, role).expect(200);
        assert_eq!(create(&unique("a").replace('-', "_")), status, "{role}");
    }
}
