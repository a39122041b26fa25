//! Entity tags: conditional reads and conditional writes.

use agentcfg_client::AgentFilter;
use agentcfg_client::model::{AgentPatch, NewAgent, Precondition};
use agentcfg_tests::harness::Studio;
use serde_json::{Value, json};

#[test]
fn tags_are_strong_and_change_with_each_write() {
    let studio = Studio::open();
    let mut tags = vec![
        studio.create("a", &Value::Null).etag(),
        studio.change("a", &json!({})).etag(),
    ];
    tags.push(studio.change("a", &json!({})).etag());
    studio.remove("a").expect(200);
    tags.push(studio.restore("a").etag());
    for tag in &tags {
        assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 2, "{tag}");
    }
    let different: std::collections::HashSet<_> = tags.iter().collect();
    assert_eq!(different.len(), tags.len());
}

#[test]
fn the_list_has_a_tag_that_changes_with_each_change_in_its_workspace_only() {
    let studio = Studio::open();
    let sibling = studio.sibling();
    let mut seen = vec![studio.list().etag()];
    let mut moved = |studio: &Studio<'_>, what: &str| {
        let tag = studio.list().etag();
        assert!(!seen.contains(&tag), "{what}");
        seen.push(tag);
    };
    studio.create("a", &Value::Null).expect(201);
    moved(&studio, "create");
    studio.change("a", &json!({})).expect(200);
    moved(&studio, "change");
    studio.remove("a").expect(200);
    moved(&studio, "delete");
    studio.restore("a").expect(200);
    moved(&studio, "restore");
    let tag = studio.list().etag();
    sibling.create("a", &Value::Null).expect(201);
    assert_eq!(studio.list().etag(), tag);
}

#[test]
fn the_list_of_one_bears_the_tag_of_the_record() {
    let studio = Studio::open();
    let tag = studio.create("a", &Value::Null).etag();
    studio.create("b", &Value::Null).expect(201);
    assert_eq!(studio.list_request("&agent_id=a").send().etag(), tag);
    let changed = studio.change("b", &json!({})).etag();
    assert_eq!(
        studio.list_request("&agent_id=a").send().etag(),
        tag,
        "a change to another agent does not count"
    );
    assert_eq!(studio.list_request("&agent_id=b").send().etag(), changed);
}

#[test]
fn if_none_match_with_the_current_tag_is_304_without_a_body() {
    let studio = Studio::open();
    studio.create("a", &Value::Null).expect(201);
    let tag = studio.list().etag();
    for condition in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".into()] {
        for method in ["GET", "HEAD"] {
            let target = format!("/api/agents/configs?workspace_id={}", studio.id);
            let request = studio.server.request(method, target).bearer(&studio.owner);
            let answer = request.header("If-None-Match", &condition).send().expect(304);
            assert_eq!(answer.etag(), tag);
            answer.need("x-ratelimit-remaining");
        }
    }
    studio
        .list_request("")
        .header("If-None-Match", "\"x\"")
        .send()
        .expect(200);
    studio.create("b", &Value::Null).expect(201);
    studio.list_request("").header("If-None-Match", tag).send().expect(200);
}

#[test]
fn a_known_tag_does_not_grant_access_to_a_foreign_workspace() {
    let studio = Studio::open();
    let tag = studio.list().etag();
    let target = format!("/api/agents/configs?workspace_id={}", studio.id);
    let request = studio.server.get(target).header("If-None-Match", tag);
    request.send().expect(401);
    request.bearer(studio.outsider()).send().expect(403);
}

#[tokio::test]
async fn an_unchanged_list_is_not_sent_again_to_the_client() {
    let studio = Studio::open();
    let client = studio.client();
    client
        .create_agent(&NewAgent::new(studio.id, "a".parse().unwrap(), "A"))
        .await
        .unwrap();
    let all = AgentFilter::default();
    let known = client.list_agents(studio.id, &all).await.unwrap();
    assert_eq!(
        client.list_agents_if_changed(studio.id, &all, known.tag).await.unwrap(),
        None
    );
    client
        .create_agent(&NewAgent::new(studio.id, "b".parse().unwrap(), "B"))
        .await
        .unwrap();
    let fresh = client
        .list_agents_if_changed(studio.id, &all, known.tag)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(fresh.value.len(), 2);
}

#[tokio::test]
async fn a_change_of_a_stale_version_is_412_and_changes_nothing() {
    let studio = Studio::open();
    let client = studio.client();
    let first = client
        .create_agent(&NewAgent::new(studio.id, "a".parse().unwrap(), "A"))
        .await
        .unwrap();
    let here = Some(studio.id);
    let seen = Precondition::matches(first.tag);
    let second = client
        .update_agent(here, "a", &AgentPatch::default(), &seen)
        .await
        .unwrap();
    let error = client
        .update_agent(here, "a", &AgentPatch::default(), &seen)
        .await
        .unwrap_err();
    assert!(error.is_precondition_failed(), "{error:?}");
    let error = client.delete_agent(here, "a", &seen).await.unwrap_err();
    assert!(error.is_precondition_failed(), "{error:?}");
    assert_eq!(client.get_agent(studio.id, "a").await.unwrap(), second);
    client
        .delete_agent(here, "a", &Precondition::matches(second.tag))
        .await
        .unwrap();
    let error = client.restore_agent(here, "a", &seen).await.unwrap_err();
    assert!(error.is_precondition_failed(), "{error:?}");
    client.restore_agent(here, "a", &Precondition::Exists).await.unwrap();
}

#[test]
fn a_412_names_the_current_tag_and_says_what_is_wrong_with_the_one_that_was_sent() {
    let studio = Studio::open();
    let stale = studio.create("a", &Value::Null).etag();
    let tag = studio.change("a", &json!({})).etag();
    let weak = format!("W/{tag}");
    let with_star = format!("{stale}, *");
    for (condition, way_out) in [
        (&*stale, "read the agent again"),
        (&with_star, "* must stand alone"),
        (tag.trim_matches('"'), "an entity tag must be in double quotes"),
        (&weak, "an entity tag must be strong here, without W/"),
    ] {
        let request = studio.on_agent("PATCH", "a").header("If-Match", condition);
        let answer = request.json(&json!({})).send().expect(412);
        let message = format!("If-Match does not name the current ETag, which is {tag}: {way_out}");
        assert_eq!(answer.json(), json!({ "error": message }));
        assert_eq!(answer.etag(), tag);
    }
}

#[test]
fn a_412_shows_the_current_tag_to_callers_alone_that_may_read_the_agent() {
    let studio = Studio::open();
    let stale = studio.create("a", &Value::Null).etag();
    let tag = studio.change("a", &json!({"role": "second"})).etag();
    let refused = |permissions: Value, method: &str| {
        let key = studio
            .key_with(&json!({"scope": "admin", "permissions": permissions}))
            .key;
        let target = format!("/api/agents/configs?workspace_id={}&agent_id=a", studio.id);
        let request = studio
            .server
            .request(method, target)
            .bearer(key)
            .header("If-Match", &*stale);
        let request = if method == "PATCH" {
            request.json(&json!({}))
        } else {
            request
        };
        request.send().expect(412)
    };
    for method in ["PATCH", "DELETE"] {
        let reader = refused(json!(["agents:configure", "agents:read"]), method);
        assert_eq!(reader.etag(), tag);
        let other = refused(json!(["agents:configure"]), method);
        assert_eq!(other.header("etag"), None);
        let message = "If-Match does not name the current ETag: read the agent again";
        assert_eq!(other.json(), json!({ "error": message }));
    }
}

#[test]
fn if_match_compares_strongly_and_takes_lists_and_a_star() {
    let studio = Studio::open();
    let mut tag = studio.create("a", &Value::Null).etag();
    let list_tag = studio.list().etag();
    let try_with = |condition: &str| {
        studio
            .on_agent("PATCH", "a")
            .header("If-Match", condition)
            .json(&json!({}))
            .send()
    };
    for stale in [
        format!("W/{tag}"),
        list_tag,
        "\"\"".into(),
        "x".into(),
        tag.replace('"', ""),
        "".into(),
    ] {
        try_with(&stale).expect(412);
    }
    for good in ["*".to_owned(), "\"x\" , TAG".into(), "TAG,\"y\"".into(), "TAG".into()] {
        tag = try_with(&good.replace("TAG", &tag)).expect(200).etag();
    }
}
