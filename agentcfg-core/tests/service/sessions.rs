//! Session tokens: valid ones, and forgeries that must be refused.

use agentcfg_core::ErrorKind;
use agentcfg_core::session::LocalSessions;
use base64ct::{Base64UrlUnpadded, Encoding};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::{Sha256, Sha384, Sha512};

use super::support::{SECRET, START, World, at, failure};

fn base64(bytes: &[u8]) -> String {
    Base64UrlUnpadded::encode_string(bytes)
}

/// Makes the signature of a message with a secret.
type Sign = fn(&[u8], &[u8]) -> Vec<u8>;

const SHA256: Sign = sign::<Hmac<Sha256>>;

fn sign<M: Mac + KeyInit>(secret: &[u8], message: &[u8]) -> Vec<u8> {
    let mac = <M as KeyInit>::new_from_slice(secret).unwrap();
    mac.chain_update(message).finalize().into_bytes().to_vec()
}

/// A token with exactly these JSON texts, signed with this secret.
fn token(header: &str, claims: &str, sign: Sign, secret: &[u8]) -> String {
    let message = format!("{}.{}", base64(header.as_bytes()), base64(claims.as_bytes()));
    let signature = base64(&sign(secret, message.as_bytes()));
    format!("{message}.{signature}")
}

const HS256: &str = r#"{"alg":"HS256","typ":"JWT"}"#;

fn now() -> i64 {
    at(START).unix_millis() / 1000
}

/// Valid claims with one of them replaced, or removed by `null`.
fn claims(name: &str, value: Value) -> String {
    let mut claims = json!({"sub": "ada", "iss": "agentcfg", "aud": "agentcfg", "exp": now() + 60});
    claims[name] = value;
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    claims.to_string()
}

fn signed(claims: &str) -> String {
    token(HS256, claims, SHA256, SECRET)
}

async fn is_good(world: &World, token: &str) -> bool {
    match world.service.authenticate(token).await {
        Ok(caller) => {
            assert_eq!(caller.user_id().unwrap(), "ada");
            true
        }
        Err(error) => {
            let refused = (ErrorKind::Unauthorized, "invalid credentials".to_owned());
            assert_eq!(failure::<()>(Err(error)), refused);
            false
        }
    }
}

#[tokio::test]
async fn a_token_is_valid_until_its_expiry() {
    let world = World::new();
    let sessions = LocalSessions::new(SECRET).unwrap();
    let token = sessions.issue("ada", 3600, at(START)).unwrap();
    assert!(is_good(&world, &token).await);
    world.clock.advance_millis(3_599_999);
    assert!(is_good(&world, &token).await);
    // The token has expired exactly at `exp`, without leeway.
    world.clock.advance_millis(1);
    assert!(!is_good(&world, &token).await);
    for (user, seconds) in [("", 60), ("a\0", 60), ("ada", 0), ("ada", 86_401), ("ada", u32::MAX)] {
        assert!(sessions.issue(user, seconds, at(START)).is_err(), "{user:?} {seconds}");
    }
    sessions.issue("ada", 86_400, at(START)).unwrap();
}

#[tokio::test]
async fn every_claim_is_validated() {
    let world = World::new();
    for (name, value, good) in [
        ("x", json!({"role": "owner"}), true),
        ("exp", json!(now() + 1), true),
        ("exp", json!(now() as f64 + 0.5), true),
        ("exp", json!(now()), false),
        ("exp", json!(now() - 1), false),
        ("exp", json!(0), false),
        ("exp", json!(-1), false),
        ("exp", Value::Null, false),
        ("exp", json!((now() + 60).to_string()), false),
        ("exp", json!(true), false),
        ("exp", json!([now() + 60]), false),
        ("nbf", json!(now()), true),
        ("nbf", json!(now() + 1), false),
        ("nbf", json!("0"), false),
        ("iss", json!("agentcfg "), false),
        ("iss", json!("https://evil.example"), false),
        ("iss", json!(["agentcfg"]), false),
        ("iss", Value::Null, false),
        ("aud", json!(["other", "agentcfg"]), true),
        ("aud", json!(["other"]), false),
        ("aud", json!([]), false),
        ("aud", json!("Agentcfg"), false),
        ("aud", json!({"agentcfg": true}), false),
        ("aud", Value::Null, false),
        ("sub", Value::Null, false),
        ("sub", json!(""), false),
        ("sub", json!(1), false),
        ("sub", json!("ada\0"), false),
        ("sub", json!("ada\n"), false),
        ("sub", json!("a".repeat(201)), false),
    ] {
        let token = signed(&claims(name, value.clone()));
        assert_eq!(is_good(&world, &token).await, good, "{name}: {value}");
    }
    // `null` does not count as a claim, nor does a number that no finite double holds.
    for exp in ["null", "1e400", "-1e400", "NaN"] {
        let text = claims("exp", json!(0)).replace("\"exp\":0", &format!("\"exp\":{exp}"));
        assert!(!is_good(&world, &signed(&text)).await, "exp {exp}");
    }
}

#[tokio::test]
async fn a_token_with_a_duplicate_claim_is_refused() {
    let world = World::new();
    let good = claims("x", Value::Null);
    assert!(is_good(&world, &signed(&good)).await);
    for twice in [
        r#""sub":"ada""#,
        r#""sub":"eve""#,
        r#""iss":"agentcfg""#,
        r#""aud":"agentcfg""#,
        r#""exp":9999999999"#,
        r#""nbf":0,"nbf":0"#,
        r#""\u0073ub":"ada""#,
    ] {
        let text = good.replacen('{', &format!("{{{twice},"), 1);
        assert!(!is_good(&world, &signed(&text)).await, "{text}");
    }
}

#[tokio::test]
async fn the_service_and_not_the_token_chooses_the_algorithm() {
    let world = World::new();
    let good = claims("x", Value::Null);
    let body = base64(good.as_bytes());
    for algorithm in ["none", "None", "NONE", "hs256", ""] {
        let header = base64(format!(r#"{{"alg":"{algorithm}","typ":"JWT"}}"#).as_bytes());
        assert!(!is_good(&world, &format!("{header}.{body}.")).await);
        // Even with a valid HS256 signature.
        let header = format!(r#"{{"alg":"{algorithm}"}}"#);
        assert!(!is_good(&world, &token(&header, &good, SHA256, SECRET)).await);
    }
    for (name, sign) in [("HS384", sign::<Hmac<Sha384>> as Sign), ("HS512", sign::<Hmac<Sha512>>)] {
        let header = format!(r#"{{"alg":"{name}","typ":"JWT"}}"#);
        assert!(!is_good(&world, &token(&header, &good, sign, SECRET)).await);
        assert!(!is_good(&world, &token(HS256, &good, sign, SECRET)).await);
    }
    for secret in [&[8; 32][..], &[7; 31], &[], b"secret"] {
        assert!(!is_good(&world, &token(HS256, &good, SHA256, secret)).await);
    }
    for header in [
        r#"{"alg":"HS256","crit":["exp"]}"#,
        r#"{"alg":"HS256","crit":["b64"],"b64":false}"#,
        r#"{"typ":"JWT"}"#,
        r#"["HS256"]"#,
        "",
    ] {
        assert!(
            !is_good(&world, &token(header, &good, SHA256, SECRET)).await,
            "{header}"
        );
    }
}

#[tokio::test]
async fn a_malformed_token_is_refused() {
    let world = World::new();
    let good = signed(&claims("x", Value::Null));
    let parts: Vec<&str> = good.split('.').collect();
    let mut flipped = good.clone();
    let last = flipped.pop().unwrap();
    flipped.push(if last == 'A' { 'Q' } else { 'A' });
    for text in [
        "",
        ".",
        "..",
        "...",
        parts[0],
        &format!("{}.{}", parts[0], parts[1]),
        &format!("{}.{}.", parts[0], parts[1]),
        &format!("{good}.{}", parts[2]),
        &format!("{good}="),
        &format!(" {good}"),
        &flipped,
        &format!("{}.{}.{}", parts[1], parts[0], parts[2]),
    ] {
        assert!(!is_good(&world, text).await, "{text}");
    }
    for claims in ["", "null", "[]", "{}", "{", "\u{feff}{}"] {
        assert!(!is_good(&world, &signed(claims)).await, "{claims:?}");
    }
}

#[tokio::test]
async fn without_an_identity_provider_every_token_is_refused() {
    let service = agentcfg_core::AgentCfg::builder(agentcfg_core::store::MemoryStore::new()).build();
    let token = signed(&claims("exp", json!(99_999_999_999_i64)));
    assert_eq!(failure(service.authenticate(&token).await).0, ErrorKind::Unauthorized);
}

#[tokio::test]
async fn a_token_has_each_claim_that_the_settings_require() {
    let world = World::with(|settings| {
        settings.required_claims = ["hd=example.com", "groups=staff"]
            .map(|claim| claim.parse().unwrap())
            .into();
    });
    let session = claims("nbf", Value::Null);
    for (claims, is_let_in) in [
        (json!({"hd": "example.com", "groups": ["staff", "ops"]}), true),
        (json!({"hd": "example.com", "groups": ["ops"]}), false),
        (json!({"hd": "other.example", "groups": ["staff"]}), false),
        (json!({"hd": "example.com"}), false),
        (json!({}), false),
    ] {
        let mut all: Value = serde_json::from_str(&session).unwrap();
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        assert_eq!(is_good(&world, &signed(&all.to_string())).await, is_let_in, "{claims}");
    }
}
