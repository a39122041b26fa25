//! What a webhook may be, and who may do what with it.

use agentcfg_tests::harness::{Server, Studio};
use serde_json::json;

use super::*;

#[test]
fn a_webhook_reads_back_as_it_was_created() {
    let studio = Studio::open();
    let fields = json!({
        "url": "https://hooks.example.com/a?b=c%20d",
        "types": ["member.*", "agent.updated", "agent.updated"],
        "description": "",
        "ordered": true,
    });
    let created = create_request(&studio, &fields).send().expect(201).json();
    let secret = created["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_") && secret.len() == 50);
    let mut listed = created.clone();
    listed.as_object_mut().unwrap().remove("secret");
    assert_eq!(list(&studio), json!([listed]));
    for (field, value) in fields.as_object().unwrap() {
        assert_eq!(&created[field], value, "{field}");
    }
    let keys: Vec<_> = listed.as_object().unwrap().keys().map(String::as_str).collect();
    let all = [
        "cursor",
        "created_at",
        "description",
        "disabled_reason",
        "enabled",
        "id",
        "ordered",
        "types",
        "updated_at",
        "url",
        "workspace_id",
    ];
    assert_eq!(keys.len(), all.len());
    assert!(all.iter().all(|key| keys.contains(key)), "{keys:?}");
    let plain = create_request(&studio, &json!({"url": "https://hooks.example.com/"}))
        .send()
        .expect(201)
        .json();
    assert_eq!(plain["types"], json!(["agent.*", "agents.*", "label.*"]));
    assert_eq!(
        (&plain["description"], &plain["ordered"]),
        (&Value::Null, &json!(false))
    );
    assert_eq!(
        (&plain["enabled"], &plain["disabled_reason"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(plain["created_at"], plain["updated_at"]);
    let actions: Vec<_> = studio
        .audit()
        .into_iter()
        .take(2)
        .map(|entry| entry["action"].clone())
        .collect();
    assert_eq!(actions, ["webhook.created", "webhook.created"]);
    assert!(!studio.audit()[0].to_string().contains("whsec_"));
    let deleted = on(&studio, "DELETE", "", &plain).send().expect(200).json();
    assert_eq!(deleted, json!({"success": true}));
    on(&studio, "DELETE", "", &plain).send().expect(404);
    on(&studio, "GET", "/deliveries", &plain).send().expect(404);
    assert_eq!(list(&studio), json!([listed]));
}

#[test]
fn bad_fields_are_named_with_their_rule() {
    let studio = Studio::open();
    let refuse = |fields: Value, said: &[&str]| {
        create_request(&studio, &fields).send().refused(400, said);
    };
    let url = "https://hooks.example.com/";
    refuse(json!({}), &["url is required"]);
    refuse(
        json!({"url": 7, "types": "agent.*", "ordered": "no"}),
        &["url must be a string", "types must be", "ordered must be"],
    );
    refuse(json!({"url": url, "types": []}), &["types must have 1 to 100"]);
    refuse(
        json!({"url": url, "types": ["agent.*", "agent.exploded"]}),
        &["types[1]"],
    );
    refuse(json!({"url": url, "types": null}), &["types must not be null"]);
    refuse(
        json!({"url": url, "description": "x".repeat(501)}),
        &["description must be at most 500 characters, got 501"],
    );
    refuse(json!({"url": url, "secret": "whsec_x"}), &["secret is read-only"]);
    refuse(json!({"url": url, "retries": 3}), &["retries is not a known field"]);
    refuse(
        json!({"url": format!("{url}{}", "a".repeat(2048))}),
        &["url must be at most 2048 characters"],
    );
    for bad in [
        "",
        "hooks.example.com",
        "http://hooks.example.com/",
        "https://hooks.example.com:8443/",
        "https://10.0.0.1/",
        "https://[::1]/",
        "https://169.254.169.254/",
        "https://user:pass@hooks.example.com/",
        "https://0x7f.1/",
        "https://2130706433/",
        "https://hooks.example.com/#x",
        "ftp://hooks.example.com/",
        "https://h\u{f6}oks.example/",
        "https://hooks.example.com/\u{0}",
        "https://[::ffff:8.8.8.8]/",
    ] {
        refuse(json!({"url": bad}), &["url must"]);
    }
    let webhook = create_request(&studio, &json!({"url": url})).send().expect(201).json();
    for body in [
        json!({"url": "http://hooks.example.com/"}),
        json!({"enabled": null}),
        json!({"cursor": webhook["cursor"]}),
        json!({"workspace_id": studio.id}),
    ] {
        on(&studio, "PATCH", "", &webhook).json(&body).send().expect(400);
    }
    for after in [
        json!("now"),
        json!("x"),
        json!(7),
        Value::Null,
        json!(webhook["cursor"].as_str().unwrap().to_uppercase()),
    ] {
        on(&studio, "POST", "/replay", &webhook)
            .json(&json!({"after": after}))
            .send()
            .refused(400, &["after"]);
    }
    studio
        .server
        .get("/api/webhooks")
        .bearer(&studio.owner)
        .send()
        .refused(400, &["workspace_id"]);
    for id in ["", "x", "0192f0b25d117c0e8a3b54b0f1a2c3d4"] {
        let target = format!("/api/webhooks/deliveries?webhook_id={id}");
        studio
            .server
            .get(target)
            .bearer(&studio.owner)
            .send()
            .refused(400, &["webhook_id"]);
    }
}

#[test]
fn a_patch_of_nothing_records_nothing() {
    let studio = Studio::open();
    let webhook = create_request(&studio, &json!({"url": "https://hooks.example.com/"}))
        .send()
        .expect(201)
        .json();
    let before = studio.audit().len();
    on(&studio, "PATCH", "", &webhook).json(&json!({})).send().expect(200);
    on(&studio, "PATCH", "", &webhook)
        .json(&json!({"enabled": true}))
        .send()
        .expect(200);
    assert_eq!(studio.audit().len(), before);
}

#[test]
fn a_workspace_has_at_most_twenty() {
    let studio = Studio::open();
    let create = || create_request(&studio, &json!({"url": "https://hooks.example.com/"})).send();
    for _ in 0..20 {
        create().expect(201);
    }
    create().refused(422, &["at most 20 webhooks"]);
}

#[test]
fn a_name_with_a_private_address_gets_no_connection() {
    let receiver = Receiver::start();
    let server = Server::start();
    let studio = Studio::on(&server);
    // It resolves to the receiver's address, and the port is the only one that is allowed.
    let webhook = create_request(&studio, &json!({"url": "https://localhost/"}))
        .send()
        .expect(201)
        .json();
    let attempt = on(&studio, "POST", "/test", &webhook).send().expect(200).json();
    assert_eq!((&attempt["status"], &attempt["response"]), (&Value::Null, &Value::Null));
    assert_eq!(attempt["error"], "the host has an address that is not public, or none");
    assert_eq!(receiver.messages().len(), 0);
}

#[test]
fn keys_of_scope_admin_manage_webhooks() {
    let studio = Studio::open();
    let webhook = create_request(&studio, &json!({"url": "https://hooks.example.com/"}))
        .send()
        .expect(201)
        .json();
    let target = format!("/api/webhooks?workspace_id={}", studio.id);
    let one = format!("/api/webhooks?webhook_id={}", webhook["id"].as_str().unwrap());
    for (scope, status) in [("read", 403), ("write", 403), ("admin", 200)] {
        let key = studio.key(scope).key;
        studio.server.get(&target).bearer(&key).send().expect(status);
        let request = studio.server.patch(&one).bearer(&key).json(&json!({"ordered": true}));
        request.send().expect(status);
    }
    let alien = studio.sibling().key("admin").key;
    studio
        .server
        .patch(&one)
        .bearer(&alien)
        .json(&json!({}))
        .send()
        .expect(404);
    studio.server.delete(&one).bearer(studio.outsider()).send().expect(404);
    studio
        .server
        .delete(&one)
        .bearer(studio.member("member"))
        .send()
        .expect(403);
}

#[test]
fn a_test_and_a_rotation_take_no_field() {
    let receiver = Receiver::start();
    let server = server_for(&[&receiver]);
    let studio = Studio::on(&server);
    let webhook = create(&studio, &receiver, &json!({}));
    for path in ["/test", "/rotate-secret"] {
        on(&studio, "POST", path, &webhook).send().expect(200);
        on(&studio, "POST", path, &webhook).json(&json!({})).send().expect(200);
        let request = || on(&studio, "POST", path, &webhook);
        request()
            .json(&json!({"a": 1}))
            .send()
            .refused(400, &["a is not a known field"]);
        request().json(&json!([])).send().refused(400, &["body"]);
        request()
            .header("Content-Type", "text/plain")
            .bytes("{}")
            .send()
            .expect(415);
    }
    assert_eq!(receiver.wait_for(2).len(), 2, "the refused requests have sent nothing");
}
