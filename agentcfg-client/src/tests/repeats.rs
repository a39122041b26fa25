//! Retries over real connections.

use std::time::Duration;

use agentcfg_core::model::{AgentPatch, Precondition, Role, StatusReport};

use super::server::{Reply, Server, advance_clock, answer, hang_up};
use super::{AGENT, builder, client, workspace, writer};
use crate::{AgentFilter, Client, RetryPolicy, Timeouts};

const STATUS: &str =
    r#"{"agent_id":"writer","display_name":"Writer","status":"idle","current_task_id":null,"current_task_title":null}"#;

#[tokio::test]
async fn a_read_is_retried_after_a_lost_connection_and_after_503() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n[".to_owned();
    let server = Server::start([hang_up(), Reply::Last(cut), answer(200, "", "[]")]).await;
    assert_eq!(client(&server).list_workspaces().await.unwrap(), []);
    let unavailable = || answer(503, "retry-after: 0\r\n", r#"{"error":"storage is unavailable"}"#);
    let server = Server::start([unavailable(), unavailable(), answer(200, "", "[]")]).await;
    assert_eq!(client(&server).list_workspaces().await.unwrap(), []);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_change_with_an_unknown_outcome_is_not_retried() {
    let (patch, any) = (AgentPatch::default(), Precondition::None);
    for reply in [
        hang_up,
        || Reply::Last("HTTP/1.1 201 Created\r\ncontent-length: 50\r\n\r\n{".to_owned()),
        || {
            answer(
                503,
                "retry-after: 0\r\n",
                r#"{"error":"the change may have been made"}"#,
            )
        },
    ] {
        let server = Server::start((0..5).map(|_| reply())).await;
        let client = client(&server);
        for error in [
            client.create_agent(&writer()).await.unwrap_err(),
            client.update_agent(None, "writer", &patch, &any).await.unwrap_err(),
            client.delete_agent(None, "writer", &any).await.unwrap_err(),
            client.restore_agent(None, "writer", &any).await.unwrap_err(),
            client
                .set_member(workspace(), &"grace".parse().unwrap(), Role::Member)
                .await
                .unwrap_err(),
        ] {
            assert!(
                error.may_have_been_applied() && !error.is_connect() && !error.is_timeout(),
                "{error:?}"
            );
        }
        assert_eq!(server.requests().len(), 5);
    }
}

#[tokio::test]
async fn a_change_is_not_retried_on_a_reused_connection() {
    let server = Server::start([answer(200, "", "[]"), hang_up()]).await;
    let client = client(&server);
    client.list_workspaces().await.unwrap();
    let error = client.create_agent(&writer()).await.unwrap_err();
    assert!(error.may_have_been_applied(), "{error:?}");
    assert_eq!((server.requests().len(), server.connections()), (2, 1));
}

#[tokio::test]
async fn a_status_report_is_retried() {
    let server = Server::start([hang_up(), answer(200, "", STATUS)]).await;
    let entry = client(&server)
        .report_status(None, "writer", &StatusReport::idle())
        .await;
    assert_eq!(entry.unwrap().display_name, "Writer");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_change_is_retried_after_an_answer_that_promises_that_nothing_changed() {
    let full = answer(429, "retry-after: 0\r\n", r#"{"error":"rate limit exceeded"}"#);
    let head = "x-request-id: r-1\r\nretry-after: 0\r\n";
    let unavailable = answer(503, head, r#"{"error":"storage is unavailable"}"#);
    for promise in [full, unavailable] {
        let server = Server::start([promise, answer(201, "etag: \"k3j9x0ab-a1\"\r\n", AGENT)]).await;
        let agent = client(&server).create_agent(&writer()).await.unwrap();
        assert_eq!(
            (agent.value.agent_id.as_str(), agent.tag.to_string()),
            ("writer", "k3j9x0ab-a1".to_owned())
        );
        assert_eq!(server.requests().len(), 2);
    }
}

#[tokio::test]
async fn a_503_without_retry_after_or_of_a_proxy_does_not_promise_that_nothing_changed() {
    let unknown = answer(
        503,
        "x-request-id: r-1\r\n",
        r#"{"error":"the change may have been made"}"#,
    );
    let page = answer(503, "x-request-id: r-1\r\nretry-after: 0\r\n", "<h1>Sorry</h1>");
    for reply in [unknown, page] {
        let server = Server::start([reply]).await;
        let error = client(&server).create_agent(&writer()).await.unwrap_err();
        assert!(error.is_unavailable() && error.may_have_been_applied(), "{error:?}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_retry_after_beyond_the_total_timeout_fails_at_once() {
    let full = answer(429, "retry-after: 3600\r\n", r#"{"error":"rate limit exceeded"}"#);
    let server = Server::start([full]).await;
    let error = client(&server).create_agent(&writer()).await.unwrap_err();
    assert!(error.is_rate_limited() && !error.may_have_been_applied());
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));
}

#[tokio::test]
async fn a_refused_connection_is_a_connect_error() {
    // The listener is dropped, so nothing listens on its port.
    let gone = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let client = Client::builder(format!("http://{gone}"))
        .retry(RetryPolicy::NEVER)
        .build()
        .unwrap();
    let error = client.create_agent(&writer()).await.unwrap_err();
    assert!(
        error.is_connect() && !error.is_timeout() && !error.may_have_been_applied(),
        "{error:?}"
    );
    assert_eq!(
        (error.status(), error.to_string().as_str()),
        (None, "no connection could be made")
    );
}

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn an_attempt_ends_with_its_timeout() {
    let timeouts = Timeouts::default().attempt(MINUTE).total(HOUR);
    let stall = || Reply::Stall(MINUTE);
    let server = Server::start([stall(), answer(200, "", "[]"), stall()]).await;
    let client = builder(&server).timeouts(timeouts).build().unwrap();
    assert_eq!(client.list_workspaces().await.unwrap(), []);
    let error = client.create_agent(&writer()).await.unwrap_err();
    assert!(
        error.is_timeout() && error.may_have_been_applied() && !error.is_connect(),
        "{error:?}"
    );
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn the_total_timeout_ends_a_running_attempt() {
    let timeouts = Timeouts::default().attempt(HOUR).total(MINUTE);
    let server = Server::start([Reply::Stall(MINUTE)]).await;
    let client = builder(&server).timeouts(timeouts).build().unwrap();
    let error = client
        .list_agents(workspace(), &AgentFilter::default())
        .await
        .unwrap_err();
    assert!(error.is_timeout() && !error.may_have_been_applied(), "{error:?}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_hanging_tls_handshake_is_a_connect_timeout() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let timeouts = Timeouts::default().connect(MINUTE).attempt(HOUR).total(HOUR);
    let once = Client::builder(url).timeouts(timeouts).retry(RetryPolicy::NEVER);
    let client = once.build().unwrap();
    let silent = async {
        let (stream, _) = listener.accept().await.unwrap();
        advance_clock(MINUTE).await;
        stream
    };
    let new = writer();
    let (created, _stream) = tokio::join!(client.create_agent(&new), silent);
    let error = created.unwrap_err();
    assert!(
        error.is_connect() && error.is_timeout() && !error.may_have_been_applied(),
        "{error:?}"
    );
}
