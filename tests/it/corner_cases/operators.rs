//! What operators do in all workspaces.

use agentcfg_client::model::{Role, TargetType, UserId};
use agentcfg_tests::harness::{Studio, unique};
use serde_json::json;

#[tokio::test]
async fn an_operator_finds_and_revokes_a_key_and_removes_a_user() {
    let studio = Studio::open();
    let operator = studio.server.client(&studio.server.operator());
    let all = operator.list_all_workspaces().await.unwrap();
    let own = studio.client().list_workspaces().await.unwrap().remove(0).workspace;
    assert!(all.contains(&own));

    let key = studio.key("write");
    let found = operator.find_api_key(key.id.as_str()).await.unwrap();
    assert_eq!((found.workspace_id, found.revoked_at), (studio.id, None));
    operator.revoke_any_api_key(key.id.as_str()).await.unwrap();
    let refused = studio.server.get("/api/workspaces").bearer(&key.key).send();
    assert_eq!(refused.status, 401);
    assert!(
        operator
            .revoke_any_api_key(key.id.as_str())
            .await
            .unwrap_err()
            .is_not_found()
    );
    for bad in ["unknown", "4fQ8mZr2LkV7xN0bTy6W"] {
        assert!(operator.find_api_key(bad).await.unwrap_err().is_not_found());
    }

    let user: UserId = unique("eve").parse().unwrap();
    let token = studio.server.token(&user);
    studio.client().set_member(studio.id, &user, Role::Admin).await.unwrap();
    let cookie = studio.server.post("/api/sessions").bearer(&token).send().expect(204);
    let cookie = cookie
        .header("set-cookie")
        .unwrap()
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let agents = format!("/api/agents/configs?workspace_id={}", studio.id);
    let with_cookie = || studio.server.get(&agents).header("cookie", &cookie).send().status;
    let with_token = || studio.server.get(&agents).bearer(&token).send().status;
    assert_eq!((with_cookie(), with_token()), (200, 200));
    operator.remove_user(&user).await.unwrap();
    assert_eq!((with_cookie(), with_token()), (401, 403));
    let new = studio
        .server
        .post("/api/workspaces")
        .bearer(&token)
        .json(&json!({"name": "Mine"}))
        .send();
    assert_eq!(new.status, 403);
    operator.remove_user(&user).await.unwrap();

    let log = studio.audit();
    let by_operator: Vec<_> = log
        .iter()
        .filter(|entry| entry["actor"]["type"] == "operator")
        .collect();
    let of = |kind: TargetType, id: &str| {
        by_operator
            .iter()
            .filter(|entry| entry["target"] == json!({"type": kind.to_string(), "id": id}))
            .count()
    };
    assert_eq!((of(TargetType::ApiKey, &key.id), of(TargetType::Member, &user)), (1, 1));

    studio
        .client()
        .set_member(studio.id, &user, Role::Viewer)
        .await
        .unwrap();
    assert_eq!((with_cookie(), with_token()), (401, 200));
}

#[test]
fn a_removal_that_cannot_be_names_the_reason() {
    let studio = Studio::open();
    let operator = studio.server.operator();
    let remove = |user: &str| {
        let target = format!("/api/operator/users?user_id={user}");
        studio.server.delete(target).bearer(&operator).send()
    };
    let id = studio.id.to_string();
    remove(&studio.user).refused(409, &["last owner", &id, "\"Studio\""]);
    remove(&unique("stranger")).refused(404, &["user", "not found"]);
    remove("group:staff").refused(400, &["user_id"]);
    remove("").refused(400, &["user_id"]);
    let without = studio.server.delete("/api/operator/users").bearer(&operator).send();
    without.refused(400, &["user_id"]);
    let without = studio.server.get("/api/operator/api-keys").bearer(&operator).send();
    without.refused(400, &["key_id"]);
}
