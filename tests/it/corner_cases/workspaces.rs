//! Workspaces and their plans.

use agentcfg_client::model::{NewWorkspace, Plan, Role, WorkspacePatch};
use agentcfg_tests::harness::{Server, Studio, unique};
use serde_json::{Value, json};

const ABSENT: &str = "018f2d7c-0000-7000-8000-000000000001";

#[tokio::test]
async fn the_creator_of_a_workspace_is_its_owner() {
    let server = Server::shared();
    let client = server.client(&server.token(&unique("founder")));
    assert_eq!(client.list_workspaces().await.unwrap(), []);
    let made = client.create_workspace(&NewWorkspace::new("Studio")).await.unwrap();
    assert_eq!(
        (&*made.name, made.plan, made.created_at),
        ("Studio", Plan::Enterprise, made.updated_at)
    );
    let views = client.list_workspaces().await.unwrap();
    assert_eq!(views.len(), 1);
    assert_eq!((&views[0].workspace, views[0].role), (&made, Some(Role::Owner)));
    let members = client.list_members(made.id).await.unwrap();
    assert_eq!(members.len(), 1);
}

#[test]
fn a_user_owns_as_many_workspaces_as_the_setting_says() {
    let server = Server::builder()
        .set("max_workspaces_per_user", "3")
        .set("operators", "root")
        .start();
    let create = |user: &str| {
        let request = server.post("/api/workspaces").bearer(server.token(user));
        request.json(&json!({"name": "Studio"})).send()
    };
    // At once, so that all of them count the same workspaces.
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let tasks: Vec<_> = (0..12).map(|_| scope.spawn(|| create("ada").status)).collect();
        tasks.into_iter().map(|task| task.join().unwrap()).collect()
    });
    let of = |status| answers.iter().filter(|answer| **answer == status).count();
    assert_eq!((of(201), of(422)), (3, 9), "{answers:?}");
    create("ada").refused(422, &["at most 3 workspaces"]);
    create("bob").expect(201);
    for _ in 0..5 {
        create("root").expect(201);
    }
}

#[test]
fn a_workspace_has_five_fields_and_a_listed_one_the_role_too() {
    let studio = Studio::open();
    let fields = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let request = studio
        .server
        .post("/api/workspaces")
        .bearer(studio.outsider())
        .json(&json!({"name": "x"}));
    assert_eq!(
        fields(&request.send().expect(201).json()),
        ["id", "name", "plan", "created_at", "updated_at"]
    );
    let list = studio.server.get("/api/workspaces").bearer(&studio.owner).send().json();
    assert_eq!(
        fields(&list[0]),
        ["id", "name", "plan", "created_at", "updated_at", "role"]
    );
    let list = studio
        .server
        .get("/api/workspaces")
        .bearer(studio.key("read").key)
        .send()
        .json();
    assert_eq!(fields(&list[0]), ["id", "name", "plan", "created_at", "updated_at"]);
    assert_eq!(list.as_array().unwrap().len(), 1);
}

#[test]
fn a_workspaces_name_has_one_to_a_hundred_characters_and_is_not_blank() {
    let studio = Studio::open();
    let target = format!("/api/workspaces?workspace_id={}", studio.id);
    let longest = "🦀".repeat(100);
    for (name, status) in [
        (json!("x"), 201),
        (json!(longest), 201),
        (json!("🦀".repeat(101)), 400),
        (json!(""), 400),
        (json!(" \u{2003}"), 400),
        (json!(null), 400),
        (json!(7), 400),
    ] {
        let body = json!({"name": name});
        studio
            .server
            .post("/api/workspaces")
            .bearer(&studio.owner)
            .json(&body)
            .send()
            .expect(status);
        let status = if status == 201 { 200 } else { status };
        studio
            .server
            .patch(&target)
            .bearer(&studio.owner)
            .json(&body)
            .send()
            .expect(status);
    }
    studio
        .server
        .post("/api/workspaces")
        .bearer(&studio.owner)
        .json(&json!({}))
        .send()
        .refused(400, &["name"]);
}

#[tokio::test]
async fn only_an_owner_renames_a_workspace() {
    let studio = Studio::open();
    let patch = WorkspacePatch::default().name("Atelier");
    let before = studio.client().list_workspaces().await.unwrap().remove(0).workspace;
    for role in ["viewer", "member", "admin"] {
        let error = studio
            .server
            .client(&studio.member(role))
            .update_workspace(studio.id, &patch)
            .await
            .unwrap_err();
        assert!(error.is_forbidden(), "{role}: {error:?}");
    }
    let after = studio.client().update_workspace(studio.id, &patch).await.unwrap();
    assert_eq!(
        (&*after.name, after.plan, after.created_at),
        ("Atelier", before.plan, before.created_at)
    );
    assert!(after.updated_at > before.updated_at);
}

#[tokio::test]
async fn only_an_operator_changes_a_plan_and_needs_no_membership_for_it() {
    let studio = Studio::on_plan("free");
    let plan = |plan| WorkspacePatch::default().plan(plan);
    let error = studio
        .client()
        .update_workspace(studio.id, &plan(Plan::Pro))
        .await
        .unwrap_err();
    assert!(
        error.is_forbidden() && error.message().contains("operator"),
        "{error:?}"
    );
    let operator = studio.server.client(&studio.server.operator());
    for next in [Plan::Team, Plan::Pro, Plan::Enterprise, Plan::Free] {
        assert_eq!(
            operator.update_workspace(studio.id, &plan(next)).await.unwrap().plan,
            next
        );
    }
    let both = WorkspacePatch::default().name("x").plan(Plan::Pro);
    assert!(
        operator
            .update_workspace(studio.id, &both)
            .await
            .unwrap_err()
            .is_forbidden()
    );
    let name = WorkspacePatch::default().name("x");
    assert!(
        operator
            .update_workspace(studio.id, &name)
            .await
            .unwrap_err()
            .is_forbidden()
    );
    let absent = ABSENT.parse().unwrap();
    assert!(
        operator
            .update_workspace(absent, &plan(Plan::Pro))
            .await
            .unwrap_err()
            .is_not_found()
    );
}

#[test]
fn a_plan_is_one_of_four() {
    let studio = Studio::open();
    let target = format!("/api/workspaces?workspace_id={}", studio.id);
    let request = studio.server.patch(target).bearer(studio.server.operator());
    for plan in [json!("platinum"), json!("Free"), json!(""), json!(null), json!(1)] {
        request
            .clone()
            .json(&json!({"plan": plan}))
            .send()
            .refused(400, &["plan"]);
    }
}

#[test]
fn workspaces_are_listed_in_the_order_of_their_creation() {
    let studio = Studio::open();
    let ids: Vec<_> = (0..4).map(|_| studio.sibling().id.to_string()).collect();
    let list = studio.server.get("/api/workspaces").bearer(&studio.owner).send().json();
    let listed: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .skip(1)
        .map(|view| view["id"].as_str().unwrap())
        .collect();
    assert_eq!(listed, ids);
}

#[test]
fn an_api_key_can_neither_create_nor_update_workspaces() {
    let studio = Studio::open();
    let key = studio.key("admin").key;
    studio
        .server
        .post("/api/workspaces")
        .bearer(&key)
        .json(&json!({"name": "x"}))
        .send()
        .expect(403);
    let target = format!("/api/workspaces?workspace_id={}", studio.id);
    studio
        .server
        .patch(target)
        .bearer(&key)
        .json(&json!({"name": "x"}))
        .send()
        .expect(403);
}

#[test]
fn the_plans_allow_three_twenty_five_and_a_hundred_agents_unless_configured() {
    let studio = Studio::on_plan("free");
    let mut active = 0;
    for (plan, limit) in [("free", 3), ("pro", 25), ("team", 100)] {
        studio.set_plan(plan);
        while active < limit {
            studio.create(&format!("a{active}"), &Value::Null).expect(201);
            active += 1;
        }
        studio
            .create("over", &Value::Null)
            .refused(422, &[plan, &limit.to_string()]);
    }
    studio.set_plan("enterprise");
    studio.create("over", &Value::Null).expect(201);
}

#[test]
fn limits_and_the_default_plan_are_configurable_and_zero_is_unlimited() {
    let builder = Server::builder()
        .set("default_plan", "pro")
        .set("plan_limit_pro", "1")
        .set("operators", "operator");
    let server = builder.set("plan_limit_free", "0").start();
    let studio = Studio::on(&server);
    studio.create("a", &Value::Null).expect(201);
    studio.create("b", &Value::Null).refused(422, &["pro", "1"]);
    studio.set_plan("free");
    for id in ["b", "c", "d", "e"] {
        studio.create(id, &Value::Null).expect(201);
    }
}
