//! Model calls that are refused, and the order of the checks.

use agentcfg_tests::harness::Studio;
use serde_json::json;

use crate::fixture::{Stage, stage};

const CALLS: &str = "/api/agents/model-calls";

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_could_escape_the_provider_is_404() {
    let stage = stage().await;
    let key = stage.key();
    for path in [
        "",
        "/",
        "/openai",
        "/openai/",
        "/google/v1/responses",
        "/OPENAI/v1/responses",
        "/openai/v1/responses/",
        "/openai//v1/responses",
        "/openai/v1//responses",
        "//openai/v1/responses",
        "/openai/./v1/responses",
        "/openai/v1/../responses",
        "/openai/..",
        "/openai/../../../healthz",
        "/openai/v1/%2e%2e/admin",
        "/openai/v1/%2E%2E/admin",
        "/openai/v1/.%2e/admin",
        "/openai%2fv1/responses",
        "/openai/v1%2f..%2fresponses",
        "/openai/v1%5cresponses",
        "/openai/v1/%252e%252e/admin",
        "/openai/v1/responses%00",
        "/openai/v1/responses%0d%0ahost:evil.example",
        "/openai/v1/responses%3fx",
        "/openai/v1/responses%23",
        "/openai/v1/@a/..",
        "/openai/ft:x/v1",
        "/openai/@evil.example/v1",
        "/openai/%40evil.example",
        "/openai/http://evil.example/",
        "/openai/https:%2f%2fevil.example",
        "/openai/v1/responses;x=y",
        "/openai/v1/{path}",
        "/{provider}/{path}",
    ] {
        let target = format!("{CALLS}{path}?agent_id=writer");
        let answer = stage.server.post(&target).bearer(&key).json(&json!({})).send();
        answer.refused(404, &[]);
        // No route matches such a path, so the credential is not even checked.
        stage.server.post(&target).send().refused(404, &[]);
    }
    let target = format!("{CALLS}/openai/v1/%ff?agent_id=writer");
    let answer = stage.server.post(&target).bearer(&key).json(&json!({})).send();
    answer.refused(400, &["the path must be percent-encoded UTF-8"]);
    // A backslash is invalid in a request line, and an absolute target is reduced to its path.
    for target in ["/openai/v1\\..\\admin", "/openai/v1/\u{7f}"] {
        let head = format!("POST {CALLS}{target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let answer = stage.server.raw(head).expect("an answer");
        assert!(matches!(answer.status, 400 | 404), "{answer:?}");
    }
    assert!(stage.upstream.has_no_unseen_request().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_method_is_405() {
    let stage = stage().await;
    for method in ["HEAD", "OPTIONS", "TRACE", "BREW"] {
        let target = format!("{CALLS}/openai/v1/responses?agent_id=writer");
        let answer = stage.server.request(method, target).send().expect(405);
        assert_eq!(answer.need("allow"), "POST, GET, PUT, PATCH, DELETE");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_run_in_the_documented_order() {
    let stage = stage().await;
    let studio = stage.studio();
    let key = |scope: &str| studio.key_with(&json!({"scope": scope, "rate_limit": 100_000})).key;
    let (read, write) = (key("read"), key("write"));
    let (viewer, outsider) = (studio.member("viewer"), studio.outsider());
    let post = |query: &str, path: &str| stage.server.post(format!("{CALLS}/{path}{query}"));
    let responses = "openai/v1/responses";
    let broken = |request: agentcfg_tests::harness::Request| request.text("{");

    // The credential and then the scope are checked before the body is read.
    broken(post("", responses)).send().refused(401, &[]);
    broken(post("", responses).bearer("svc_live_x"))
        .send()
        .refused(401, &[]);
    broken(post("", responses).bearer(&read))
        .send()
        .refused(403, &["models:invoke"]);
    // Then the query and the body.
    post("", responses)
        .bearer(&write)
        .json(&json!({}))
        .send()
        .refused(400, &["agent_id"]);
    post("?agent_id=", responses)
        .bearer(&write)
        .json(&json!({}))
        .send()
        .refused(400, &["agent_id"]);
    let twice = post("?agent_id=writer&agent_id=poet", responses).bearer(&write);
    twice.json(&json!({})).send().refused(400, &["agent_id", "once"]);
    let of_nobody = post("?agent_id=nobody&workspace_id=x", responses).bearer(&write);
    of_nobody.json(&json!({})).send().refused(400, &["workspace_id"]);
    broken(post("?agent_id=nobody", responses).bearer(&write))
        .send()
        .refused(400, &["JSON"]);
    let list = post("?agent_id=nobody", responses).bearer(&write).text("[]");
    list.send().refused(400, &["object"]);
    let text = post("?agent_id=nobody", responses)
        .bearer(&write)
        .header("content-type", "text/plain");
    text.bytes("{}").send().refused(415, &["application/json"]);
    post("?agent_id=nobody", responses)
        .bearer(&write)
        .bytes("{}")
        .send()
        .refused(415, &[]);
    let zipped = post("?agent_id=nobody", responses)
        .bearer(&write)
        .header("content-encoding", "gzip");
    zipped.json(&json!({})).send().refused(415, &["Content-Encoding"]);
    // Then the workspace and the role.
    let query = format!("?agent_id=nobody&workspace_id={}", studio.id);
    let foreign = format!("?agent_id=nobody&workspace_id={}", Studio::on(&stage.server).id);
    for (query, credential) in [
        (&query, &viewer),
        (&query, &outsider),
        (&foreign, &studio.owner),
        (&foreign, &write),
    ] {
        post(query, responses)
            .bearer(credential)
            .json(&json!({}))
            .send()
            .refused(403, &[]);
    }
    // Then the existence of the agent, before the model that it would call.
    for agent in ["nobody", "No%20Body"] {
        let unknown = post(&format!("?agent_id={agent}"), responses).bearer(&write);
        unknown.json(&json!({"model": "gpt-7"})).send().refused(404, &[]);
    }
    studio.remove("poet").expect(200);
    post("?agent_id=poet", "anthropic/v1/messages")
        .bearer(&write)
        .json(&json!({}))
        .send()
        .refused(404, &[]);
    assert!(stage.upstream.has_no_unseen_request().await);
    let known = post("?agent_id=writer", responses).bearer(&write);
    assert_eq!(known.json(&json!({})).send().expect(200).json()["model"], "gpt-5.5");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_workspace_is_inferred_as_for_a_patch() {
    let stage = stage().await;
    let studio = stage.studio();
    let send = |query: &str| {
        let target = format!("{CALLS}/openai/v1/responses?agent_id=writer{query}");
        stage.server.post(target).bearer(&studio.owner).json(&json!({})).send()
    };
    send("").expect(200);
    let sibling = studio.sibling();
    send("").refused(400, &["workspace_id"]);
    send(&format!("&workspace_id={}", studio.id)).expect(200);
    send(&format!("&workspace_id={}", sibling.id)).refused(404, &[]);
    assert!(!stage.upstream.seen().await.target.contains("workspace_id"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_counts_once_in_the_rate_window_and_changes_nothing() {
    let stage = stage().await;
    let studio = stage.studio();
    let before = studio.audit();
    let key = studio.key_with(&json!({"scope": "write", "rate_limit": 3})).key;
    for left in [2, 1, 0] {
        let answer = call(&stage, &key).send().await.whole().await.expect(200);
        assert_eq!(answer.header("x-ratelimit-remaining"), Some(&*left.to_string()));
    }
    let answer = call(&stage, &key).refused(429, &["3 requests"]).await;
    assert!(answer.header("retry-after").is_some());
    // The only log entry is that of the key.
    assert_eq!(studio.audit().len(), before.len() + 1);
}

fn call(stage: &Stage, key: &str) -> crate::calls::Call {
    stage.call_with("openai/v1/responses", key).json(&json!({}))
}

#[tokio::test(flavor = "multi_thread")]
async fn managed_credentials_pay_for_their_paths_alone() {
    let stage = stage().await;
    let studio = stage.studio();
    for path in ["openai/v1/files", "anthropic/v1/messages/batches"] {
        let call = stage.call_with(path, &studio.owner).json(&json!({}));
        call.refused(403, &["own key", path.split_once('/').unwrap().1]).await;
    }
    assert!(stage.upstream.has_no_unseen_request().await);
}
