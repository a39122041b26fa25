//! `POST /api/api-keys/rotate`.

use agentcfg_tests::harness::{Key, Response, Studio, eventually};
use serde_json::{Value, json};

fn rotate(studio: &Studio<'_>, key: &Key, body: Option<&str>) -> Response {
    let request = studio
        .server
        .post(format!("/api/api-keys/rotate?key_id={}", key.id))
        .bearer(&studio.owner);
    match body {
        Some(body) => request.text(body).send(),
        None => request.send(),
    }
}

fn works(studio: &Studio<'_>, key: &str) -> bool {
    studio.server.get("/api/whoami").bearer(key).send().status == 200
}

#[test]
fn the_new_key_takes_the_place_of_the_old_one() {
    let studio = Studio::open();
    let attributes = json!({"name": "ci", "environment": "production", "scope": "write", "rate_limit": 250});
    let old = studio.key_with(&attributes);
    assert!(works(&studio, &old.key));
    let new = rotate(&studio, &old, None).expect(201).json();
    for (field, value) in attributes.as_object().unwrap() {
        assert_eq!(&new[field], value);
    }
    assert_eq!((&new["expires_at"], &new["revoked_at"]), (&Value::Null, &Value::Null));
    assert_ne!(new["id"], old.id.as_str());
    let key = new["key"].as_str().unwrap();
    assert!(key.starts_with("svc_live_") && works(&studio, key));
    assert!(!works(&studio, &old.key), "without an overlap the old key ends at once");

    let log = studio.audit();
    let entry = &log[0];
    assert_eq!(entry["action"], "api_key.rotated");
    assert_eq!(entry["target"], json!({"type": "api_key", "id": old.id}));
    assert_eq!(entry["changes"]["replaced_by"], json!({"from": null, "to": new["id"]}));
    assert!(!entry.to_string().contains("svc_") && !entry.to_string().contains("argon2"));
    let listed = studio
        .server
        .get(format!("/api/api-keys?workspace_id={}", studio.id))
        .bearer(&studio.owner);
    let listed = listed.send().expect(200).json();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert!(listed[0].get("replaced_by").is_none());
    rotate(&studio, &old, None).expect(409);
}

#[test]
fn both_keys_work_during_the_overlap() {
    let studio = Studio::open();
    let old = studio.key("admin");
    assert!(works(&studio, &old.key));
    let new = rotate(&studio, &old, Some(r#"{"overlap_seconds": 2}"#))
        .expect(201)
        .json();
    assert!(works(&studio, &old.key) && works(&studio, new["key"].as_str().unwrap()));
    // A change by the old key still commits.
    let body = json!({"workspace_id": studio.id, "agent_id": "late", "display_name": "Late"});
    studio
        .server
        .post("/api/agents/configs")
        .bearer(&old.key)
        .json(&body)
        .send()
        .expect(201);
    eventually("the overlap ends", || !works(&studio, &old.key));
    assert!(works(&studio, new["key"].as_str().unwrap()));
}

#[test]
fn a_lifetime_starts_again_and_the_old_key_is_never_prolonged() {
    let studio = Studio::open();
    let end = "2099-01-31T18:00:00.000Z";
    let old = studio.key_with(&json!({"expires_at": end}));
    let new = rotate(&studio, &old, Some(r#"{"overlap_seconds": 2592000}"#))
        .expect(201)
        .json();
    assert!(new["expires_at"].as_str().unwrap() >= end);
    let short = studio.key("read");
    rotate(&studio, &short, Some(r#"{"overlap_seconds": 60}"#)).expect(201);
    rotate(&studio, &short, Some(r#"{"overlap_seconds": 2592000}"#)).expect(201);
    let listed = studio
        .server
        .get(format!("/api/api-keys?workspace_id={}", studio.id))
        .bearer(&studio.owner);
    let listed = listed.send().expect(200).json();
    let ends = |id: &str| {
        let found = listed.as_array().unwrap().iter().find(|key| key["id"] == id);
        found.unwrap()["expires_at"].as_str().unwrap().to_owned()
    };
    let new_end = ends(new["id"].as_str().unwrap());
    assert!(ends(&old.id) < new_end && ends(&short.id) < ends(&old.id));
}

#[test]
fn bad_requests_are_refused() {
    let studio = Studio::open();
    let key = studio.key("read");
    for (body, fault) in [
        (
            r#"{"overlap_seconds": -1}"#,
            "overlap_seconds must be an integer from 0 to 2592000",
        ),
        (
            r#"{"overlap_seconds": 2592001}"#,
            "overlap_seconds must be an integer from 0 to 2592000",
        ),
        (
            r#"{"overlap_seconds": 1.5}"#,
            "overlap_seconds must be an integer from 0 to 2592000",
        ),
        (r#"{"overlap_seconds": null}"#, "overlap_seconds must not be null"),
        (r#"{"overlap": 1}"#, "overlap is not a known field"),
    ] {
        let refused = rotate(&studio, &key, Some(body)).expect(400);
        assert_eq!(refused.error(), fault);
    }
    let server = studio.server;
    server
        .post("/api/api-keys/rotate")
        .bearer(&studio.owner)
        .send()
        .expect(400);
    let unknown = server.post("/api/api-keys/rotate?key_id=unknown").bearer(&studio.owner);
    unknown.send().expect(404);
    assert!(works(&studio, &key.key));
    studio.revoke(&key);
    rotate(&studio, &key, None).expect(409);
}
