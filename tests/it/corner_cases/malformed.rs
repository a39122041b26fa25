//! Malformed HTTP.

use agentcfg_tests::harness::{Server, Studio, Wire};
use serde_json::Value;

#[test]
fn malformed_bytes_get_400_or_a_close_and_do_not_affect_others() {
    let server = Server::shared();
    for bytes in [
        &b"\r\n\r\n\r\n"[..],
        b"garbage\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /healthz\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nbad header\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nX: \0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\xff\xfe\xfd\r\n\r\n",
    ] {
        let mut wire = Wire::connect(server.address());
        if let Some(answer) = wire.send(bytes).finish().receive("GET") {
            assert!(
                (400..500).contains(&answer.status) && !answer.error().is_empty(),
                "{bytes:?}: {answer:?}"
            );
            answer.need("x-request-id");
            assert_eq!(answer.need("x-content-type-options"), "nosniff");
        }
    }
    server.get("/healthz").send().expect(200);
}

#[test]
fn contradictory_body_lengths_are_refused() {
    let server = Server::shared();
    for lengths in [
        "Content-Length: 2\r\nContent-Length: 3\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: two\r\n",
        "Content-Length: 99999999999999999999999\r\n",
        "Transfer-Encoding: gzip\r\n",
    ] {
        let head = format!("POST /api/workspaces HTTP/1.1\r\nHost: x\r\n{lengths}\r\n{{}}");
        let answer = Wire::connect(server.address())
            .send(head)
            .finish()
            .receive("POST")
            .unwrap();
        assert!((400..500).contains(&answer.status), "{lengths}: {answer:?}");
    }
}

#[test]
fn a_body_that_breaks_off_changes_nothing() {
    let studio = Studio::open();
    let body = studio.agent("half", &Value::Null).to_string();
    let request = studio
        .server
        .post("/api/agents/configs")
        .bearer(&studio.owner)
        .text(body);
    let bytes = request.to_bytes();
    let mut wire = Wire::connect(studio.server.address());
    let answer = wire.send(&bytes[..bytes.len() - 5]).finish().receive("POST");
    assert!(answer.is_none_or(|answer| answer.status == 400));
    assert_eq!(studio.agent_ids(), [""; 0]);
}

#[test]
fn a_body_may_come_in_chunks_and_pieces() {
    let studio = Studio::open();
    let body = studio.agent("chunked", &Value::Null).to_string();
    let head = format!(
        "POST /api/agents/configs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\n\r\n",
        studio.owner
    );
    let mut wire = Wire::connect(studio.server.address());
    wire.send(head);
    for piece in body.as_bytes().chunks(7) {
        wire.send(format!("{:x}\r\n", piece.len())).send(piece).send("\r\n");
    }
    assert_eq!(wire.send("0\r\n\r\n").receive("POST").unwrap().status, 201);
    assert_eq!(studio.agent_ids(), ["chunked"]);
}

#[test]
fn a_line_of_a_chunked_body_ends_in_crlf() {
    let studio = Studio::open();
    for (agent, line, end) in [
        ("size", "SIZE\n", "0\r\n\r\n"),
        ("extension", "SIZE;x\nyy\r\n", "0\r\n\r\n"),
        ("last-size", "SIZE\r\n", "0\n\r\n"),
        ("trailer", "SIZE\r\n", "0\r\nx: y\n\r\n"),
    ] {
        let body = studio.agent(agent, &Value::Null).to_string();
        let line = line.replace("SIZE", &format!("{:x}", body.len()));
        let head = format!(
            "POST /api/agents/configs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
            studio.owner
        );
        // A proxy in front may see a further request here, or none.
        let hidden = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
        let mut wire = Wire::connect(studio.server.address());
        wire.send(format!("{head}{line}{body}\r\n{end}{hidden}"));
        assert_eq!(wire.receive("POST").unwrap().status, 400, "{agent}");
        assert!(wire.is_closed(), "{agent}");
    }
    assert_eq!(studio.agent_ids(), [""; 0]);
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let server = Server::shared();
    let targets = ["/healthz", "/nowhere", "/readyz", "/api/workspaces"];
    let mut wire = Wire::connect(server.address());
    let requests: Vec<_> = targets
        .iter()
        .map(|target| server.get(*target).header("X-Request-Id", *target))
        .collect();
    wire.send(
        requests
            .iter()
            .flat_map(|request| request.to_bytes())
            .collect::<Vec<_>>(),
    );
    for (request, target) in requests.iter().zip(targets) {
        assert_eq!(request.receive_on(&mut wire).need("x-request-id"), target);
    }
}

#[test]
fn expect_100_continue_is_answered_after_authentication() {
    let studio = Studio::open();
    let body = studio.agent("patient", &Value::Null).to_string();
    let head = |credential: &str| {
        format!(
            "POST /api/agents/configs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {credential}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
            body.len()
        )
    };
    let mut wire = Wire::connect(studio.server.address());
    assert_eq!(wire.send(head(&studio.owner)).receive("POST").unwrap().status, 100);
    assert_eq!(wire.send(&body).receive("POST").unwrap().status, 201);
    let mut wire = Wire::connect(studio.server.address());
    assert_eq!(wire.send(head("nobody")).receive("POST").unwrap().status, 401);
    assert!(
        wire.is_closed(),
        "the body that was not sent must not be taken for a request"
    );
}

#[test]
fn http_1_0_is_answered_and_the_connection_closed() {
    let mut wire = Wire::connect(Server::shared().address());
    let answer = wire.send("GET /healthz HTTP/1.0\r\n\r\n").receive("GET").unwrap();
    assert_eq!(answer.status, 200);
    assert!(wire.is_closed());
}
