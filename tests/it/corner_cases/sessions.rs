//! Session tokens of the local identity provider.

use std::fs;

use agentcfg_tests::harness::{Run, Server, base64url, forged, hmac_signed, unsigned};
use serde_json::{Value, json};

/// Valid claims with these changes; `null` removes a claim.
fn claims(changes: &Value) -> Value {
    let mut claims = json!({
        "sub": "mallory", "iss": "agentcfg", "aud": "agentcfg", "iat": 1_700_000_000, "exp": 4_000_000_000_i64,
    });
    let fields = claims.as_object_mut().unwrap();
    fields.extend(changes.as_object().cloned().unwrap_or_default());
    fields.retain(|_, value| !value.is_null());
    claims
}

struct Signer(Vec<u8>);

impl Signer {
    /// Signs like the server, with the secret of its data directory.
    fn of(server: &Server) -> Self {
        // The first token creates the secret in the directory.
        server.token("anybody");
        Self(fs::read(server.data().join("session.key")).unwrap())
    }

    fn sign(&self, algorithm: &str, claims: &Value) -> String {
        hmac_signed(&json!({"typ": "JWT", "alg": algorithm}), claims, &self.0)
    }
}

fn status(server: &Server, token: &str) -> u16 {
    server.get("/api/workspaces").bearer(token).send().status
}

#[test]
fn every_claim_of_a_token_is_validated() {
    let server = Server::shared();
    let signer = Signer::of(server);
    let with = |changes: Value| status(server, &signer.sign("HS256", &claims(&changes)));
    assert_eq!(with(json!({})), 200);
    assert_eq!(with(json!({"aud": ["other", "agentcfg"]})), 200);
    for changes in [
        json!({"exp": null}),
        json!({"exp": 1_700_000_000}),
        json!({"exp": "4000000000"}),
        json!({"exp": true}),
        json!({"nbf": 3_900_000_000_i64}),
        json!({"iss": null}),
        json!({"iss": "other"}),
        json!({"aud": null}),
        json!({"aud": "other"}),
        json!({"aud": ["other"]}),
        json!({"aud": []}),
        json!({"sub": null}),
        json!({"sub": ""}),
        json!({"sub": 7}),
        json!({"sub": "x".repeat(201)}),
        json!({"sub": "a\nb"}),
    ] {
        assert_eq!(with(changes.clone()), 401, "{changes}");
    }
}

#[test]
fn a_token_expires_exactly_at_exp() {
    let server = Server::shared();
    let signer = Signer::of(server);
    let now = chrono::DateTime::<chrono::Utc>::from(std::time::SystemTime::now()).timestamp();
    assert_eq!(
        status(server, &signer.sign("HS256", &claims(&json!({"exp": now})))),
        401
    );
    assert_eq!(
        status(server, &signer.sign("HS256", &claims(&json!({"exp": now - 1})))),
        401
    );
    assert_eq!(
        status(server, &signer.sign("HS256", &claims(&json!({"nbf": now + 5})))),
        401
    );
}

#[test]
fn the_server_and_not_the_token_chooses_the_algorithm() {
    let server = Server::shared();
    let signer = Signer::of(server);
    let good = signer.sign("HS256", &claims(&json!({})));
    assert_eq!(status(server, &good), 200);
    for algorithm in ["HS384", "HS512"] {
        assert_eq!(status(server, &signer.sign(algorithm, &claims(&json!({})))), 401);
    }
    assert_eq!(status(server, &unsigned(&good)), 401);
    let body = good.split('.').nth(1).unwrap();
    let signature = good.rsplit('.').next().unwrap();
    for header in [
        r#"{"alg":"None"}"#,
        r#"{"alg":"NONE","typ":"JWT"}"#,
        r#"{"typ":"JWT"}"#,
        "{}",
        r#"{"alg":""}"#,
    ] {
        for signature in ["", signature] {
            assert_eq!(
                status(server, &format!("{}.{body}.{signature}", base64url(header))),
                401,
                "{header}"
            );
        }
    }
}

#[test]
fn a_token_that_was_tampered_with_is_refused() {
    let server = Server::shared();
    let good = server.token("honest");
    let parts: Vec<_> = good.split('.').collect();
    let claims = base64url(claims(&json!({"sub": "somebody-else"})).to_string());
    let cut = &good[..good.len() - 2];
    for bad in [
        format!("{}.{claims}.{}", parts[0], parts[2]),
        format!("{}.{}", parts[0], parts[1]),
        format!("{good}."),
        format!("{good}.{}", parts[2]),
        cut.to_owned(),
        "a.b.c".into(),
        "..".into(),
        forged("honest"),
    ] {
        assert_eq!(status(server, &bad), 401, "{bad}");
    }
    assert_eq!(status(server, &good), 200);
}

#[test]
fn claims_about_roles_and_workspaces_grant_nothing() {
    let studio = agentcfg_tests::harness::Studio::open();
    let signer = Signer::of(studio.server);
    let grand = claims(&json!({"role": "owner", "workspace_id": studio.id, "scope": "admin", "admin": true}));
    let token = signer.sign("HS256", &grand);
    let target = format!("/api/agents/configs?workspace_id={}", studio.id);
    studio.server.get(target).bearer(token).send().expect(403);
}

#[test]
fn a_token_of_another_deployment_is_refused() {
    let other = Server::start();
    assert_eq!(status(Server::shared(), &other.token("traveller")), 401);
    assert_eq!(status(&other, &other.token("traveller")), 200);
}

#[test]
fn deployments_with_one_session_secret_share_their_tokens() {
    let secret = "a secret of more than thirty-two bytes";
    let [first, second] = [(); 2].map(|()| Server::builder().set("session_secret", secret).start());
    let token = Signer(secret.into()).sign("HS256", &claims(&json!({})));
    assert_eq!((status(&first, &token), status(&second, &token)), (200, 200));
    // The secret in the file of the data directory is not the one in use.
    let minted = Run::new(["token", "--user", "from-the-file"]).env("AGENTCFG_DATA", first.data());
    let minted = minted.finish();
    if minted.status.success() {
        // The data directory of a server on a database has not seen it.
        assert_eq!(status(&first, minted.stdout.trim()), 401);
    } else {
        minted.failed_with(&["session_secret"]);
    }
}
