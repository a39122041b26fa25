//! The bodies of everything but agents.

use super::{WORKSPACE, fault, text};
use crate::model::{NewApiKey, NewWorkspace, Patch, RoleChange, StatusReport, WorkspacePatch};
use crate::validate::{Invalid, Valid};

fn check<T>(read: impl Fn(&[u8]) -> Result<T, Invalid>, table: &[(&str, &str)]) {
    for (body, message) in table {
        assert_eq!(fault(read(body.as_bytes())), *message, "{body}");
    }
}

#[test]
fn status_reports() {
    check(
        StatusReport::from_json,
        &[
            (r#"{"status":"idle"}"#, ""),
            (
                r#"{"status":"offline","current_task_id":null,"current_task_title":null}"#,
                "",
            ),
            (
                r#"{"status":"working","current_task_id":"t","current_task_title":"T"}"#,
                "",
            ),
            (
                r#"{"status":"working"}"#,
                "current_task_id is required when status is working; \
                 current_task_title is required when status is working",
            ),
            (
                r#"{"status":"working","current_task_id":null,"current_task_title":"T"}"#,
                "current_task_id is required when status is working",
            ),
            (
                r#"{"status":"working","current_task_id":1,"current_task_title":"T"}"#,
                "current_task_id must be a string, got a number",
            ),
            (
                r#"{"status":"idle","current_task_id":"t"}"#,
                "current_task_id must be absent when status is idle",
            ),
            (
                r#"{"status":"offline","current_task_title":"T"}"#,
                "current_task_title must be absent when status is offline",
            ),
            (
                r#"{"status":"working","current_task_id":"","current_task_title":"\u0000"}"#,
                "current_task_id must be 1 to 100 characters, got 0; \
                 current_task_title must not contain a NUL character",
            ),
            (r#"{"status":"busy"}"#, "status must be one of idle, working, offline"),
            (r#"{"status":null}"#, "status must not be null"),
            (
                r#"{"current_task_title":"","agent_id":"a","x":1}"#,
                "status is required; current_task_title must be 1 to 200 characters, got 0; agent_id is read-only; \
                 x is not a known field",
            ),
        ],
    );
    for (id, title, message) in [
        (100, 200, ""),
        (101, 200, "current_task_id must be at most 100 characters, got 101"),
        (100, 201, "current_task_title must be at most 200 characters, got 201"),
    ] {
        let (id, title) = (text("😀", id), text("😀", title));
        let body = format!("{{\"status\":\"working\",\"current_task_id\":{id},\"current_task_title\":{title}}}");
        assert_eq!(fault(StatusReport::from_json(body.as_bytes())), message);
    }
}

#[test]
fn workspaces() {
    check(
        NewWorkspace::from_json,
        &[
            (r#"{"name":"Studio"}"#, ""),
            ("{}", "name is required"),
            (r#"{"name":null}"#, "name must not be null"),
            (r#"{"name":""}"#, "name must be 1 to 100 characters, got 0"),
            (r#"{"name":" \t"}"#, "name must not be blank"),
            (r#"{"name":"a\u0000"}"#, "name must not contain a NUL character"),
            (r#"{"name":"a","name":"a"}"#, "name must not appear more than once"),
            (r#"{"name":"a","plan":"pro"}"#, "plan is not a known field"),
            (r#"{"name":"a","id":"x"}"#, "id is read-only"),
        ],
    );
    for (length, message) in [(100, ""), (101, "name must be at most 100 characters, got 101")] {
        let body = format!("{{\"name\":{}}}", text("é", length));
        assert_eq!(fault(NewWorkspace::from_json(body.as_bytes())), message);
        assert_eq!(fault(WorkspacePatch::from_json(body.as_bytes())), message);
    }
    check(
        WorkspacePatch::from_json,
        &[
            ("{}", ""),
            (r#"{"name":"a","plan":"enterprise"}"#, ""),
            (r#"{"plan":"gold"}"#, "plan must be one of free, pro, team, enterprise"),
            (r#"{"plan":null}"#, "plan must not be null"),
            (
                r#"{"name":null,"created_at":1}"#,
                "name must not be null; created_at is read-only",
            ),
        ],
    );
}

#[test]
fn roles() {
    check(
        RoleChange::from_json,
        &[
            (r#"{"role":"viewer"}"#, ""),
            (r#"{"role":"owner"}"#, ""),
            ("{}", "role is required"),
            (
                r#"{"role":"Owner"}"#,
                "role must be one of viewer, member, admin, owner",
            ),
            (r#"{"role":null}"#, "role must not be null"),
            (r#"{"role":"viewer","user_id":"a"}"#, "user_id is read-only"),
        ],
    );
}

fn key(more: &str) -> Result<Valid<NewApiKey>, Invalid> {
    let comma = if more.is_empty() { "" } else { "," };
    let required = format!(r#""workspace_id":"{WORKSPACE}","name":"ci","environment":"production","scope":"read""#);
    NewApiKey::from_json(format!("{{{required}{comma}{more}}}").as_bytes())
}

#[test]
fn api_keys() {
    check(
        NewApiKey::from_json,
        &[(
            "{}",
            "workspace_id is required; name is required; environment is required; scope is required",
        )],
    );
    let bare = key("").unwrap();
    assert_eq!((bare.expires_at, bare.rate_limit), (None, None));
    assert_eq!(key(r#""expires_at":null,"rate_limit":null"#).unwrap(), bare);
    for (more, message) in [
        (r#""name":"x""#, "name must not appear more than once"),
        (
            r#""expires_at":"tomorrow""#,
            "expires_at must be an RFC 3339 timestamp such as 2026-11-20T09:30:00Z",
        ),
        (
            r#""expires_at":1700000000"#,
            "expires_at must be a string, got a number",
        ),
        (r#""key":"svc_""#, "key is read-only"),
        (r#""hash":"x""#, "hash is not a known field"),
    ] {
        assert_eq!(fault(key(more)), message, "{more}");
    }
    let expires = key(r#""expires_at":"2030-01-01T00:00:00.5+02:00""#).unwrap().expires_at;
    assert_eq!(expires.unwrap().to_string(), "2029-12-31T22:00:00.500Z");
}

#[test]
fn rate_limits_are_integers_within_bounds() {
    let bounds = "rate_limit must be an integer from 1 to 1000000";
    for (number, limit) in [("1", 1), ("1000000", 1_000_000), ("1e2", 100), ("100.0", 100)] {
        assert_eq!(
            key(&format!("\"rate_limit\":{number}")).unwrap().rate_limit,
            Some(limit)
        );
    }
    for number in [
        "0",
        "1000001",
        "4294967295",
        "4294967296",
        "4294967297",
        "18446744073709551615",
        "-1",
        "-9223372036854775808",
        "18446744073709551616",
        "1.5",
        "-1.5",
        "0.5",
        "1e300",
        "-1e300",
        "1e400",
        "-1e400",
    ] {
        assert_eq!(fault(key(&format!("\"rate_limit\":{number}"))), bounds, "{number}");
    }
    assert_eq!(
        fault(key("\"rate_limit\":\"100\"")),
        "rate_limit must be an integer, got a string"
    );
}

#[test]
fn a_patch_from_an_option_clears_or_sets() {
    assert_eq!(Patch::<u8>::from(None), Patch::Null);
    assert_eq!(Patch::from(Some(1)), Patch::Set(1));
}
