//! Forged tokens, and tokens that a provider should never have signed.

use agentcfg_tests::harness::hmac_signed;
use base64ct::{Base64UrlUnpadded, Encoding};
use serde_json::{Value, json};

use crate::http;
use crate::jwks::claims_of;
use crate::provider::Provider;
use crate::service::{Service, assert_unauthorized, jwks};

fn encode(text: impl AsRef<[u8]>) -> String {
    Base64UrlUnpadded::encode_string(text.as_ref())
}

#[tokio::test]
async fn forged_tokens_are_refused() {
    let Some(provider) = Provider::start("a").await else {
        return;
    };
    let service = Service::start(jwks(&provider.issuer)).await;
    let good = provider.sign_in("ada", Some("urn:agentcfg:RS256")).await.access_token;
    assert_eq!(service.status(&good).await, 200);
    let claims = claims_of(&good);
    let [header, payload, signature] = good.split('.').collect::<Vec<_>>()[..] else {
        panic!("{good}")
    };
    let refuse = async |token: &str, what: &str| assert_unauthorized(&service.ask(token).await, what);

    // No signature.
    for alg in ["none", "None", "NONE"] {
        let bare = format!("{}.{payload}.", encode(json!({"alg": alg}).to_string()));
        refuse(&bare, alg).await;
        refuse(&format!("{bare}{signature}"), alg).await;
    }
    // The provider's public key as an HMAC secret.
    let set = http::json(&http::get(&provider.url("/jwks")).await);
    for jwk in set["keys"].as_array().unwrap() {
        let header = json!({"alg": "HS256", "kid": jwk["kid"]});
        let hs256 = |secret: &[u8]| hmac_signed(&header, &serde_json::from_str(&claims).unwrap(), secret);
        refuse(&hs256(jwk.to_string().as_bytes()), "HS256 with the JWK").await;
        for part in ["n", "x", "y"].into_iter().filter_map(|name| jwk[name].as_str()) {
            refuse(&hs256(part.as_bytes()), "HS256 with a part as text").await;
            let number = Base64UrlUnpadded::decode_vec(part).unwrap();
            refuse(&hs256(&number), "HS256 with a part").await;
        }
    }
    // The forger's own key, in the header or at a URL in the header.
    let forger = Provider::start("a").await.unwrap();
    let own = http::json(&http::get(&forger.url("/jwks")).await)["keys"][0].clone();
    for header in [
        json!({"alg": "RS256", "kid": "a-RS256"}),
        json!({"alg": "RS256", "kid": "foreign"}),
        json!({"alg": "RS256"}),
        json!({"alg": "RS256", "jwk": own}),
        json!({"alg": "RS256", "kid": "a-RS256", "jwk": own}),
        json!({"alg": "RS256", "kid": "foreign", "jku": forger.url("/jwks")}),
        json!({"alg": "RS256", "kid": "foreign", "x5u": forger.url("/jwks")}),
    ] {
        refuse(
            &forger.sign("RS256", &header.to_string(), &claims).await,
            &header.to_string(),
        )
        .await;
    }
    assert_eq!(
        forger.hits("/jwks").await,
        1,
        "only the test looked at the forger's keys"
    );

    // Tokens that were changed after signing, or are encoded in another way.
    let flipped = format!(
        "{}{}",
        if signature.starts_with('A') { 'B' } else { 'A' },
        &signature[1..]
    );
    let admin = encode(claims.replace("\"ada\"", "\"eve\""));
    // 256 bytes leave four unused bits in the last character, which must be zero.
    let last = signature.chars().last().unwrap();
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let next = alphabet.chars().nth(alphabet.find(last).unwrap() + 1).unwrap();
    let loose = format!("{}{next}", &signature[..signature.len() - 1]);
    for token in [
        format!("{header}.{payload}.{flipped}"),
        format!("{header}.{admin}.{signature}"),
        format!("{header}.{payload}.{loose}"),
        format!("{header}.{payload}.{signature}=="),
        format!("{header}={}.{payload}.{signature}", ""),
        format!("{header}.{payload}"),
        format!("{header}.{payload}."),
        format!("{header}.{payload}.{signature}.{signature}.{signature}"),
        format!("{header}..{payload}.{signature}"),
        format!(".{payload}.{signature}"),
    ] {
        refuse(&token, &token).await;
    }

    // Tokens with the provider's own signature and contents that must be refused.
    let header = json!({"alg": "RS256", "kid": "a-RS256", "typ": "at+jwt"}).to_string();
    let value: Value = serde_json::from_str(&claims).unwrap();
    let with = |name: &str, to: Value| {
        let mut claims = value.clone();
        claims[name] = to;
        claims.to_string()
    };
    let without = |name: &str| {
        let mut claims = value.clone();
        claims.as_object_mut().unwrap().remove(name);
        claims.to_string()
    };
    let twice = |member: &str| claims.replacen('{', &format!("{{{member},"), 1);
    let (now, exp) = (value["iat"].as_i64().unwrap(), value["exp"].as_i64().unwrap());
    for signed in [
        with("exp", exp.to_string().into()),
        with("exp", Value::Null),
        with("exp", json!(1e300)),
        with("exp", json!(now - 11)),
        without("exp"),
        with("nbf", json!(now + 3000)),
        with("nbf", json!("0")),
        with("aud", json!("other")),
        with("aud", json!([])),
        without("aud"),
        with("iss", json!(format!("{}/", provider.issuer))),
        with("iss", json!("https://evil.example")),
        with("iss", json!([provider.issuer])),
        without("iss"),
        with("sub", json!(7)),
        with("sub", json!("")),
        without("sub"),
        twice(r#""sub":"eve""#),
        twice(&format!(r#""exp":{exp}"#)),
        twice(r#""client_id":"web""#),
        claims.replacen(&format!("\"exp\":{exp}"), "\"exp\":NaN", 1),
        format!("[{claims}]"),
    ] {
        assert_ne!(signed, claims);
        refuse(&provider.sign("RS256", &header, &signed).await, &signed).await;
    }
    for header in [
        r#"{"alg":"RS256","kid":"a-RS256","crit":["exp"]}"#,
        r#"{"alg":"RS256","alg":"RS256","kid":"a-RS256"}"#,
        r#"{"alg":"RS256","kid":"a-RS256","typ":"logout+jwt"}"#,
        r#"{"alg":"RS512","kid":"a-RS256"}"#,
        r#"{"alg":"PS256","kid":"a-RS256"}"#,
        r#"{"alg":"ES256","kid":"a-RS256"}"#,
        r#"{"alg":"RS256","kid":"a-ES256"}"#,
        r#"{"alg":"RS256","kid":7}"#,
    ] {
        refuse(&provider.sign("RS256", header, &claims).await, header).await;
    }

    // Claims within the allowed clock skew, and a token without a key id.
    for fine in [
        with("exp", json!(now + 600)),
        with("nbf", json!(now + 2)),
        with("aud", json!(["x", "agentcfg"])),
    ] {
        let token = provider.sign("RS256", &header, &fine).await;
        assert_eq!(service.status(&token).await, 200, "{fine}");
    }
    let nameless = provider.sign("RS256", r#"{"alg":"RS256"}"#, &claims).await;
    assert_eq!(service.status(&nameless).await, 200);
    assert_eq!(service.status(&good).await, 200);
}
