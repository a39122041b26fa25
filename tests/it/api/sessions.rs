//! Authentication: session tokens.

use agentcfg_client::model::Role;
use agentcfg_tests::harness::{Run, Server, Studio, eventually};
use serde_json::Value;

fn claims(token: &str) -> Value {
    // The library refuses to read unverified claims, so this decodes them itself.
    let part = token.split('.').nth(1).unwrap();
    let value = |byte: u8| {
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        alphabet.iter().position(|known| *known == byte).unwrap() as u32
    };
    let mut bytes = Vec::new();
    for group in part.as_bytes().chunks(4) {
        let bits = group.iter().fold(0, |bits, byte| bits << 6 | value(*byte)) << (6 * (4 - group.len()));
        bytes.extend(&bits.to_be_bytes()[1..group.len()]);
    }
    serde_json::from_slice(&bytes).unwrap()
}

#[tokio::test]
async fn a_session_token_is_sent_as_bearer_like_an_api_key() {
    let studio = Studio::open();
    let with_session = studio.server.client(&studio.owner).list_workspaces().await.unwrap();
    let with_key = studio
        .server
        .client(&studio.key("read").key)
        .list_workspaces()
        .await
        .unwrap();
    assert_eq!((with_session.len(), with_key.len()), (1, 1));
    assert_eq!(with_session[0].workspace.id, with_key[0].workspace.id);
    assert_eq!((with_session[0].role, with_key[0].role), (Some(Role::Owner), None));
}

#[test]
fn a_session_token_lives_for_an_hour() {
    let server = Server::shared();
    let run = Run::new(
        ["token", "--user", "hour", "--data"]
            .map(std::ffi::OsStr::new)
            .into_iter()
            .chain([server.data().as_os_str()]),
    );
    let token = run.finish().succeeded();
    let claims = claims(token.trim());
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 3600);
    assert_eq!(claims["sub"], "hour");
}

#[test]
fn an_expired_session_token_is_refused() {
    let server = Server::shared();
    let token = server.fresh_token("brief", 1);
    eventually("the token expires", || {
        server.get("/api/workspaces").bearer(&token).send().status == 401
    });
}

#[test]
fn every_request_is_checked_against_membership_and_role() {
    let studio = Studio::open();
    let user = agentcfg_tests::harness::unique("changing");
    let token = studio.server.token(&user);
    let target = format!("/api/workspaces/members?workspace_id={}", studio.id);
    let status = || studio.server.get(&target).bearer(&token).send().status;
    assert_eq!(status(), 403);
    studio.set_member(&user, "member").expect(200);
    assert_eq!(status(), 200, "the token is the same, the membership is new");
    studio.set_member(&user, "viewer").expect(200);
    assert_eq!(status(), 403, "a viewer reads no members");
    let removal = format!("{target}&user_id={user}");
    studio.server.delete(removal).bearer(&studio.owner).send().expect(200);
    assert_eq!(status(), 403);
}
