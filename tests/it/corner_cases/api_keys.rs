//! API keys: their text, their record, their management.

use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_tests::harness::{Studio, eventually, unique};
use serde_json::{Value, json};

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// CRC-32 (IEEE) bit by bit, independent of the code under test.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

fn checksum(text: &str) -> String {
    let mut rest = crc32(text.as_bytes()) as usize;
    let mut digits = [b'0'; 6];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[rest % 62];
        rest /= 62;
    }
    String::from_utf8(digits.to_vec()).unwrap()
}

fn status_of(studio: &Studio<'_>, key: &str) -> u16 {
    studio.server.get("/api/workspaces").bearer(key).send().status
}

#[test]
fn a_key_is_prefix_identifier_secret_and_checksum() {
    let studio = Studio::open();
    for (environment, prefix) in [("production", "svc_live_"), ("development", "svc_test_")] {
        let key = studio.key_with(&json!({"environment": environment}));
        let rest = key.key.strip_prefix(prefix).unwrap();
        assert_eq!(rest.len(), 20 + 43 + 6);
        assert!(rest.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_eq!(&rest[..20], key.id);
        let (body, sum) = key.key.split_at(key.key.len() - 6);
        assert_eq!(sum, checksum(body));
    }
}

#[test]
fn every_bad_key_gets_the_same_answer() {
    let studio = Studio::open();
    let good = studio.key("read");
    let resealed = |body: String| format!("{body}{}", checksum(&body));
    let body = &good.key[..good.key.len() - 6];
    let revoked = studio.key("read");
    studio.revoke(&revoked);
    let soon = SystemClock.now().plus_millis(1000).to_string();
    let expired = studio.key_with(&json!({"expires_at": soon})).key;
    eventually("the key expires", || status_of(&studio, &expired) == 401);
    let last = if body.ends_with('x') { 'y' } else { 'x' };
    let mut messages = std::collections::HashSet::new();
    for bad in [
        format!("{}{}", good.key, 'x'),
        good.key[..good.key.len() - 1].to_owned(),
        format!("{body}000000"),
        resealed(format!("{}{last}", &body[..body.len() - 1])),
        resealed(body.replacen(&good.id, &"0".repeat(20), 1)),
        resealed(body.replacen("svc_test_", "svc_live_", 1)),
        "svc_".to_owned(),
        "svc_live_".to_owned(),
        revoked.key,
        expired,
    ] {
        messages.insert(
            studio
                .server
                .get("/api/workspaces")
                .bearer(&bad)
                .send()
                .expect(401)
                .error(),
        );
    }
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(status_of(&studio, &good.key), 200);
}

#[test]
fn a_listed_key_has_its_ten_fields_and_nothing_secret() {
    let studio = Studio::open();
    let key = studio.key_with(&json!({"name": "ci", "scope": "write", "environment": "production", "rate_limit": 7}));
    let target = format!("/api/api-keys?workspace_id={}", studio.id);
    let record = studio
        .server
        .get(target)
        .bearer(&studio.owner)
        .send()
        .expect(200)
        .json()[0]
        .clone();
    let expected = json!({
        "id": key.id, "workspace_id": studio.id, "name": "ci", "environment": "production", "scope": "write",
        "rate_limit": 7, "expires_at": null, "created_at": record["created_at"], "last_used_at": null,
        "revoked_at": null,
    });
    assert_eq!(record, expected);
}

#[test]
fn the_attributes_are_validated() {
    let studio = Studio::open();
    for good in [
        json!({"name": "🦀".repeat(100)}),
        json!({"name": " "}),
        json!({"rate_limit": 1}),
        json!({"rate_limit": 1_000_000}),
        json!({"rate_limit": null, "expires_at": null}),
        json!({"expires_at": "2999-12-31T23:59:59+14:00"}),
        json!({"expires_at": "2999-01-01T00:00:00.123456789Z"}),
    ] {
        studio.create_key(&good).expect(201);
    }
    for (bad, field) in [
        (json!({"name": ""}), "name"),
        (json!({"name": "x".repeat(101)}), "name"),
        (json!({"rate_limit": 0}), "rate_limit"),
        (json!({"rate_limit": 1_000_001}), "rate_limit"),
        (json!({"rate_limit": 1.5}), "rate_limit"),
        (json!({"rate_limit": "7"}), "rate_limit"),
        (json!({"expires_at": "2001-01-01T00:00:00Z"}), "expires_at"),
        (json!({"expires_at": "2999-01-01"}), "expires_at"),
        (json!({"expires_at": "2999-13-01T00:00:00Z"}), "expires_at"),
        (json!({"expires_at": "2999-01-01T00:00:00"}), "expires_at"),
        (json!({"expires_at": 32_000_000_000_i64}), "expires_at"),
    ] {
        studio.create_key(&bad).refused(400, &[field]);
    }
    let created = studio
        .create_key(&json!({"expires_at": "2999-01-01T02:00:00.999+02:00"}))
        .json();
    assert_eq!(created["expires_at"], "2999-01-01T00:00:00.999Z");
}

#[test]
fn revoked_and_expired_keys_stay_listed() {
    let studio = Studio::open();
    let revoked = studio.key("read");
    studio.revoke(&revoked);
    let soon = SystemClock.now().plus_millis(500).to_string();
    let expired = studio.key_with(&json!({"expires_at": soon}));
    eventually("the key expires", || status_of(&studio, &expired.key) == 401);
    let target = format!("/api/api-keys?workspace_id={}", studio.id);
    let list = studio.server.get(target).bearer(&studio.owner).send().json();
    assert_eq!(list.as_array().unwrap().len(), 2);
    assert_eq!(
        (&list[0]["id"], &list[1]["id"]),
        (&json!(revoked.id), &json!(expired.id))
    );
    assert!(list[0]["revoked_at"].is_string() && list[1]["revoked_at"].is_null());
}

#[test]
fn revoking_twice_or_an_unknown_key_is_404() {
    let studio = Studio::open();
    let key = studio.key("read");
    let delete = |id: &str, token: &str| {
        studio
            .server
            .delete(format!("/api/api-keys?key_id={id}"))
            .bearer(token)
            .send()
    };
    delete(&key.id, &studio.outsider()).expect(404);
    delete(&key.id, &studio.member("member")).expect(403);
    assert_eq!(
        delete(&key.id, &studio.owner).expect(200).json(),
        json!({"success": true})
    );
    delete(&key.id, &studio.owner).expect(404);
    for unknown in ["nothing", &"0".repeat(20), "%00", "a%2Fb", &key.key] {
        delete(unknown, &studio.owner).expect(404);
    }
    delete("", &studio.owner).refused(400, &["key_id"]);
}

#[test]
fn an_api_key_can_neither_create_nor_revoke_keys() {
    let studio = Studio::open();
    let key = studio.key("admin");
    let body = json!({"workspace_id": studio.id, "name": "x", "environment": "production", "scope": "admin"});
    studio
        .server
        .post("/api/api-keys")
        .bearer(&key.key)
        .json(&body)
        .send()
        .expect(403);
    let target = format!("/api/api-keys?key_id={}", key.id);
    studio.server.delete(target).bearer(&key.key).send().expect(403);
    assert_eq!(status_of(&studio, &key.key), 200);
}

#[test]
fn a_key_stays_valid_after_its_creator_has_left() {
    let studio = Studio::open();
    let admin = unique("admin");
    studio.set_member(&admin, "admin").expect(200);
    let body = json!({"workspace_id": studio.id, "name": "x", "environment": "production", "scope": "read"});
    let request = studio
        .server
        .post("/api/api-keys")
        .bearer(studio.server.token(&admin))
        .json(&body);
    let key = request.send().expect(201).json()["key"].as_str().unwrap().to_owned();
    let target = format!("/api/workspaces/members?workspace_id={}&user_id={admin}", studio.id);
    studio.server.delete(target).bearer(&studio.owner).send().expect(200);
    assert_eq!(status_of(&studio, &key), 200);
}

#[test]
fn a_listed_key_has_its_last_use() {
    let studio = Studio::open();
    let key = studio.key("admin").key;
    let target = format!("/api/api-keys?workspace_id={}", studio.id);
    let used = || studio.server.get(&target).bearer(&studio.owner).send().json()[0]["last_used_at"].clone();
    assert_eq!(used(), Value::Null);
    let before = SystemClock.now();
    assert_eq!(status_of(&studio, &key), 200);
    let at = used().as_str().expect("a use is known at once here").parse().unwrap();
    assert!(before <= at && at <= SystemClock.now());
}

#[test]
fn write_keys_configure_agents_only_if_the_deployment_allows_it() {
    let server = agentcfg_tests::harness::Server::builder()
        .set("write_scope_configures_agents", "false")
        .start();
    let studio = Studio::on(&server);
    let create = |credential: &str, id: &str| {
        let request = server.post("/api/agents/configs").bearer(credential);
        request.json(&studio.agent(id, &Value::Null)).send()
    };
    create(&studio.key("write").key, "a").refused(403, &["an API key of scope write lacks", "agents:configure"]);
    let limited = studio
        .key_with(&json!({"scope": "admin", "permissions": ["agents:read"]}))
        .key;
    create(&limited, "a").refused(403, &["that is limited to some permissions", "agents:configure"]);
    create(&studio.key("admin").key, "b").expect(201);
    create(&studio.member("member"), "c").expect(201);
}
