//! Classification of responses.

use agentcfg_core::model::Precondition;

use super::server::{Reply, Server, answer};
use super::{AGENT, builder, client, workspace, writer};
use crate::model::{Action, Tag};
use crate::{AgentFilter, Error, RetryPolicy};

fn html(status: u16, headers: &str) -> Reply {
    Reply::Answer(format!(
        "HTTP/1.1 {status} x\r\ncontent-type: text/html\r\ncontent-length: 14\r\n{headers}\r\n<h1>Oops!</h1>"
    ))
}

#[tokio::test]
async fn each_status_has_its_predicate() {
    type Predicate = fn(&Error) -> bool;
    let table: [(u16, Predicate); 9] = [
        (400, Error::is_invalid),
        (401, Error::is_unauthorized),
        (403, Error::is_forbidden),
        (404, Error::is_not_found),
        (409, Error::is_conflict),
        (412, Error::is_precondition_failed),
        (422, Error::is_plan_limit),
        (429, Error::is_rate_limited),
        (503, Error::is_unavailable),
    ];
    let replies = table.map(|(status, _)| {
        let headers = "x-request-id: r-1\r\nretry-after: 60\r\n";
        answer(status, headers, &format!(r#"{{"error":"it was {status}"}}"#))
    });
    let server = Server::start(replies).await;
    let client = builder(&server).retry(RetryPolicy::NEVER).build().unwrap();
    for (status, predicate) in table {
        let error = client.create_agent(&writer()).await.unwrap_err();
        assert_eq!(error.status(), Some(status));
        assert_eq!(error.message(), format!("it was {status}"));
        assert_eq!(
            error.to_string(),
            format!("it was {status} (status {status}, request r-1)")
        );
        assert_eq!(error.request_id(), Some("r-1"));
        assert!(!error.may_have_been_applied(), "{status}");
        assert!(!error.is_timeout() && !error.is_connect() && !error.is_foreign());
        let yes = table.iter().filter(|(_, predicate)| predicate(&error)).count();
        assert!(predicate(&error) && yes == 1, "{status}");
        assert!(!format!("{error:?}").contains("canary"));
    }
}

#[tokio::test]
async fn a_proxys_page_is_not_decoded_as_a_response_of_the_service() {
    let server = Server::start([html(502, ""), html(200, ""), html(200, ""), html(404, "")]).await;
    let client = client(&server);
    let error = client.create_agent(&writer()).await.unwrap_err();
    assert_eq!(
        error.message(),
        "the answer is 502 Bad Gateway as text/html, which is not from agentcfg"
    );
    assert!(error.status() == Some(502) && error.may_have_been_applied());
    assert!(error.is_foreign() && !error.is_proxy());
    let error = client
        .delete_agent(None, "writer", &Precondition::None)
        .await
        .unwrap_err();
    assert_eq!(error.message(), "the answer is text/html, not the JSON of agentcfg");
    assert!(error.status() == Some(200) && error.may_have_been_applied());
    let error = client.list_workspaces().await.unwrap_err();
    assert!(!error.may_have_been_applied());
    let error = client.list_workspaces().await.unwrap_err();
    assert!(error.is_not_found());
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let server = Server::start([html(307, "location: https://elsewhere.example/\r\n")]).await;
    let error = client(&server).create_agent(&writer()).await.unwrap_err();
    assert_eq!(
        error.message(),
        "the answer is a redirect to https://elsewhere.example/, which is not followed"
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_response_over_the_size_limit_is_refused() {
    let chunks = "8\r\n12345678\r\n".repeat(200);
    let endless = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}");
    let claimed = "HTTP/1.1 200 OK\r\ncontent-length: 999999999999\r\n\r\n[".to_owned();
    let failing = "HTTP/1.1 404 No\r\ncontent-length: 999999999999\r\n\r\n".to_owned() + &"x".repeat(5000);
    let server = Server::start([endless, claimed, failing].map(Reply::Answer)).await;
    let client = builder(&server).max_response_bytes(1000).build().unwrap();
    for _ in 0..2 {
        let error = client.list_workspaces().await.unwrap_err();
        assert_eq!(error.message(), "the answer is longer than the 1000 bytes allowed");
    }
    assert!(client.list_workspaces().await.unwrap_err().is_not_found());
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_response_that_does_not_decode_is_an_error() {
    let server = Server::start([answer(201, "", r#"{"id":7}"#), answer(304, "", "")]).await;
    let client = client(&server);
    let error = client.create_agent(&writer()).await.unwrap_err();
    assert!(
        error
            .message()
            .starts_with("the answer is not what agentcfg promises: "),
        "{error}"
    );
    assert!(error.may_have_been_applied());
    let error = client.list_workspaces().await.unwrap_err();
    assert_eq!(error.status(), Some(304));
}

#[tokio::test]
async fn an_unchanged_list_is_not_sent_again() {
    let body = format!("[{AGENT}]");
    let not_modified = Reply::Answer("HTTP/1.1 304 x\r\netag: \"k3j9x0ab-w4\"\r\n\r\n".to_owned());
    let script = [
        answer(200, "etag: \"k3j9x0ab-w4\"\r\n", &body),
        not_modified,
        answer(200, "", &body),
    ];
    let server = Server::start(script).await;
    let client = client(&server);
    let all = AgentFilter::default();
    let known = client.list_agents(workspace(), &all).await.unwrap();
    assert_eq!((known.value.len(), known.tag), (1, "k3j9x0ab-w4".parse().unwrap()));
    assert_eq!(
        client
            .list_agents_if_changed(workspace(), &all, known.tag)
            .await
            .unwrap(),
        None
    );
    let fresh = client
        .list_agents_if_changed(workspace(), &all, known.tag)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(fresh.value, known.value);
    // A missing header becomes a tag that matches nothing.
    assert_eq!(fresh.tag, Tag::UNKNOWN);
    assert!(server.requests()[1].contains("if-none-match: \"k3j9x0ab-w4\"\r\n"));
}

#[tokio::test]
async fn a_word_of_a_later_release_does_not_fail_a_whole_answer() {
    let entry = |action: &str| {
        format!(
            r#"{{"id":"0192f0a4-10bc-7044-b1d7-9e2c4a6f8b10","workspace_id":"{}","actor":{{"type":"user","id":"ada"}},"action":"{action}","target":{{"type":"agent","id":"a"}},"created_at":"2026-11-20T10:05:41.007Z","changes":{{}},"revision":3,"message":null}}"#,
            workspace()
        )
    };
    let body = format!("[{},{}]", entry("agent.released"), entry("agent.created"));
    let server = Server::start([answer(200, "", &body)]).await;
    let log = client(&server)
        .audit_log(workspace(), &Default::default())
        .await
        .unwrap();
    let actions: Vec<Action> = log.iter().map(|entry| entry.action).collect();
    assert_eq!(actions, [Action::Unknown, Action::AgentCreated]);
}

#[tokio::test]
async fn a_tag_that_a_proxy_changed_matches_no_version() {
    for changed in ["W/\"k3j9x0ab-a9\"", "\"k3j9x0ab-a9-gzip\"", "k3j9x0ab-a9", "\"\"", "\""] {
        let server = Server::start([answer(201, &format!("etag: {changed}\r\n"), AGENT)]).await;
        let created = client(&server).create_agent(&super::writer()).await.unwrap();
        assert_eq!(created.tag, Tag::UNKNOWN, "{changed}");
    }
}

#[tokio::test]
async fn get_agent_returns_the_agent_with_its_tag_or_says_that_there_is_none() {
    let found = answer(200, "etag: \"k3j9x0ab-a9\"\r\n", &format!("[{AGENT}]"));
    let server = Server::start([
        found,
        answer(200, "x-request-id: r-1\r\netag: \"k3j9x0ab-w4\"\r\n", "[]"),
    ])
    .await;
    let client = client(&server);
    let agent = client.get_agent(workspace(), "writer").await.unwrap();
    assert_eq!(agent.tag, "k3j9x0ab-a9".parse().unwrap());
    let error = client.get_agent(workspace(), "writer").await.unwrap_err();
    assert!(error.is_not_found() && !error.may_have_been_applied(), "{error:?}");
    // The status of the list is 200, which would be no status of an error.
    assert_eq!(error.status(), None);
    assert_eq!(error.to_string(), "agent \"writer\" not found (request r-1)");
}

#[tokio::test]
async fn rate_limits_belong_to_a_credential() {
    let rate = |left: u32| {
        format!("x-ratelimit-limit: 100\r\nx-ratelimit-remaining: {left}\r\nx-ratelimit-reset: 1700000000\r\n")
    };
    let script = [
        answer(200, &rate(99), "[]"),
        answer(403, &rate(42), r#"{"error":"no"}"#),
        answer(200, "", "[]"),
    ];
    let server = Server::start(script).await;
    let client = client(&server);
    let other = client.with_session_token("token").unwrap();
    assert_eq!(client.rate_limit(), None);
    client.clone().list_workspaces().await.unwrap();
    let error = other.list_workspaces().await.unwrap_err();
    client.list_workspaces().await.unwrap();
    assert_eq!(client.rate_limit().unwrap().remaining, 99);
    assert_eq!(other.rate_limit().unwrap().remaining, 42);
    assert_eq!(error.rate_limit(), other.rate_limit());
    assert_eq!(other.rate_limit().unwrap().reset.unix_millis(), 1_700_000_000_000);
    // Both clients used one connection.
    assert_eq!(server.connections(), 1);
}
