//! Revisions, credentials and faults of the protocol.

use agentcfg_tests::harness::{Server, Studio};
use serde_json::{Value, json};

use super::{MODERN, legacy, modern, result, with_meta};

#[test]
fn the_stateless_revision_needs_no_handshake() {
    let studio = Studio::open();
    let key = studio.key("read").key;
    let found = result(modern(studio.server, &key, "server/discover", &json!({})).send());
    assert_eq!(
        found["supportedVersions"],
        json!(["2026-07-28", "2025-11-25", "2025-06-18"])
    );
    assert_eq!(found["resultType"], "complete");
    assert_eq!(found["cacheScope"], "private");
    assert!(
        found["ttlMs"].is_u64() && found["capabilities"]["tools"].is_object(),
        "{found}"
    );
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "agentcfg");
    let list = result(modern(studio.server, &key, "tools/list", &json!({})).send());
    assert_eq!(list["resultType"], "complete");
}

#[test]
fn older_clients_shake_hands_and_get_no_session() {
    let studio = Studio::open();
    let (server, key) = (studio.server, studio.key("read").key);
    for (asked, answered) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
    ] {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": client});
        let response = legacy(server, &key, "initialize", &params).send();
        assert_eq!(response.header("mcp-session-id"), None);
        let shaken = result(response);
        assert_eq!(shaken["protocolVersion"], answered);
        assert_eq!(shaken["serverInfo"]["name"], "agentcfg");
        assert!(shaken.get("resultType").is_none());
    }
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let accepted = server.post("/mcp").bearer(&key).json(&ready).send().expect(202);
    assert!(accepted.body.is_empty());
    assert_eq!(result(legacy(server, &key, "ping", &json!({})).send()), json!({}));
    let list = legacy(server, &key, "tools/list", &json!({})).header("MCP-Protocol-Version", "2025-06-18");
    assert!(result(list.send()).get("resultType").is_none());
}

#[test]
fn faults_of_the_protocol_are_json_rpc_errors() {
    let studio = Studio::open();
    let (server, key) = (studio.server, studio.key("read").key);
    let send = |body: &str| server.post("/mcp").bearer(&key).text(body).send();
    for (body, code) in [
        ("{", -32700),
        ("[]", -32600),
        ("{}", -32600),
        (r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#, -32600),
    ] {
        let refused = send(body).expect(400).json();
        assert_eq!(refused["error"]["code"], code, "{refused}");
        assert!(refused.get("id").is_none() || refused["id"].is_null());
    }
    let unknown = legacy(server, &key, "tools/other", &json!({}))
        .send()
        .expect(200)
        .json();
    assert_eq!((&unknown["error"]["code"], &unknown["id"]), (&json!(-32601), &json!(7)));
    let unknown = modern(server, &key, "tools/other", &json!({}))
        .send()
        .expect(404)
        .json();
    assert_eq!(unknown["error"]["code"], -32601);
    for method in ["ping", "initialize"] {
        modern(server, &key, method, &json!({})).send().expect(404);
    }
    let unknown = modern(server, &key, "tools/call", &json!({"name": "delete_everything"}))
        .send()
        .expect(200)
        .json();
    assert_eq!(unknown["error"]["code"], -32602);
    server.post("/mcp").bearer(&key).bytes("{}").send().expect(415);
}

#[test]
fn the_header_fields_must_agree_with_the_message() {
    let studio = Studio::open();
    let (server, key) = (studio.server, studio.key("read").key);
    let params = with_meta(&json!({"name": "list_agents"}));
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let send = |fields: &[(&str, &str)]| {
        let request = server.post("/mcp").bearer(&key).json(&message);
        fields
            .iter()
            .fold(request, |request, (name, value)| request.header(name, *value))
            .send()
    };
    let (version, method, name) = (
        ("MCP-Protocol-Version", MODERN),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "list_agents"),
    );
    send(&[version, method, name]).expect(200);
    send(&[version, method, ("Mcp-Name", "=?base64?bGlzdF9hZ2VudHM=?=")]).expect(200);
    for fields in [
        vec![],
        vec![method, name],
        vec![version, name],
        vec![version, method],
        vec![("MCP-Protocol-Version", "2025-11-25"), method, name],
        vec![version, ("Mcp-Method", "tools/list"), name],
        vec![version, method, ("Mcp-Name", "get_agent")],
    ] {
        let refused = send(&fields).expect(400).json();
        assert_eq!(
            (&refused["error"]["code"], &refused["id"]),
            (&json!(-32020), &json!(7)),
            "{refused}"
        );
    }
    let later = json!({"_meta": {super::VERSION: "2099-01-01", super::CAPABILITIES: {}}});
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": later});
    let refused = server
        .post("/mcp")
        .bearer(&key)
        .json(&message)
        .header("MCP-Protocol-Version", "2099-01-01");
    let refused = refused.header("Mcp-Method", "tools/list").send().expect(400).json();
    assert_eq!(refused["error"]["code"], -32022);
    assert_eq!(refused["error"]["data"]["requested"], "2099-01-01");
    let bare =
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": {super::VERSION: MODERN}}});
    let refused = server
        .post("/mcp")
        .bearer(&key)
        .json(&bare)
        .header("MCP-Protocol-Version", MODERN);
    assert_eq!(
        refused.header("Mcp-Method", "tools/list").send().expect(400).json()["error"]["code"],
        -32602
    );
}

#[test]
fn only_bearers_are_credentials() {
    let studio = Studio::open();
    let server = studio.server;
    let cookie = crate::browser::sign_in(server, &studio.owner);
    let ping = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"});
    let alone = server
        .post("/mcp")
        .json(&ping)
        .header("Cookie", &cookie)
        .header("Sec-Fetch-Site", "same-origin");
    assert!(alone.send().expect(403).error().contains("cookies"));
    server.post("/mcp").json(&ping).send().expect(401);
    server.post("/mcp").bearer("bad").json(&ping).send().expect(401).error();
    let beside = legacy(server, &studio.owner, "ping", &json!({})).header("Cookie", &cookie);
    assert_eq!(result(beside.send()), json!({}));
    for method in ["GET", "DELETE", "PUT"] {
        let refused = server.request(method, "/mcp").bearer(&studio.owner).send().expect(405);
        assert_eq!(refused.need("allow"), "POST");
    }
}

#[test]
fn pages_of_other_origins_are_refused() {
    let server = Server::builder().set("cors_origins", "https://app.example.com").start();
    let studio = Studio::on(&server);
    let ping = |origin: &str| {
        legacy(&server, &studio.owner, "ping", &json!({}))
            .header("Origin", origin)
            .send()
    };
    for foreign in [
        "https://evil.example",
        "null",
        "http://localhost:1",
        "https://app.example.com.evil.example",
    ] {
        assert!(ping(foreign).expect(403).error().contains("origin"));
    }
    ping(&server.url()).expect(200);
    let allowed = ping("https://app.example.com").expect(200);
    assert_eq!(allowed.need("access-control-allow-origin"), "https://app.example.com");
}

#[test]
fn one_request_is_one_count() {
    let studio = Studio::open();
    let key = studio.key_with(&json!({"scope": "admin", "rate_limit": 3})).key;
    let send = || modern(studio.server, &key, "tools/call", &json!({"name": "list_agents"})).send();
    for left in [2, 1, 0] {
        assert_eq!(send().expect(200).number("x-ratelimit-remaining"), left);
    }
    let over: Value = send().expect(429).json();
    assert!(over["error"].is_string(), "{over}");
}
