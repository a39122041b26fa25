//! Tokens that must not pass.

use proptest::prelude::*;

use super::*;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

/// The provider's keys: `RS256`, `ES256` and `EdDSA`, each with its name for an id.
fn set() -> String {
    key_set(&all_three().map(|pair| pair.jwk(&pair.name())))
}

async fn assert_refused(token: &str, what: &str) {
    let answer = judge(&set(), token).await;
    assert!(is_invalid(&answer), "{what}: {answer:?}");
}

#[tokio::test]
async fn good_tokens_of_each_algorithm_pass() {
    for pair in all_three() {
        let session = judge(&set(), &pair.token(&pair.name())).await.unwrap();
        assert_eq!(session.user_id, "ada");
        for typ in ["JWT", "at+jwt", "application/at+jwt", "jwt"] {
            let header = json!({"alg": pair.name(), "kid": pair.name(), "typ": typ, "x5t": "ignored"});
            let token = pair.sign_text(&header.to_string(), &claims().to_string());
            assert!(judge(&set(), &token).await.is_ok(), "{typ}");
        }
    }
}

#[tokio::test]
async fn no_signature_is_no_signature() {
    for alg in ["none", "None", "NONE", "nOnE", ""] {
        let header = encode(json!({"alg": alg, "kid": "RS256"}).to_string());
        let claims = encode(claims().to_string());
        assert_refused(&format!("{header}.{claims}."), alg).await;
        assert_refused(&format!("{header}.{claims}.AAAA"), alg).await;
    }
}

#[tokio::test]
async fn a_public_key_is_no_secret() {
    for pair in all_three() {
        let jwk = pair.jwk(&pair.name());
        let part = |name: &str| jwk[name].as_str().map(str::to_owned);
        let mut secrets = vec![jwk.to_string().into_bytes()];
        for text in ["n", "x", "y"].into_iter().filter_map(part) {
            secrets.push(Base64UrlUnpadded::decode_vec(&text).unwrap());
            secrets.push(text.into_bytes());
        }
        // The text of the file, which fools a verifier that takes any key for any algorithm.
        secrets.push(include_bytes!("keys/rsa-a.pub.pem").to_vec());
        for secret in secrets {
            for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
                let key = secret.clone();
                let forger = Pair { key, algorithm };
                assert_refused(&forger.token(&pair.name()), "signed with a public key").await;
            }
        }
    }
}

#[tokio::test]
async fn the_key_decides_the_algorithm() {
    // RS384, RS512, PS256 and ES384 with the right key are refused, and so is one algorithm for the
    // key of another.
    for algorithm in [Algorithm::RS384, Algorithm::RS512, Algorithm::PS256, Algorithm::PS512] {
        let pair = Pair { algorithm, ..rsa() };
        assert_refused(&pair.token("RS256"), "another algorithm of RSA").await;
        let header = json!({"alg": "RS256", "kid": "RS256"}).to_string();
        assert_refused(&pair.sign_text(&header, &claims().to_string()), "a false name").await;
    }
    for pair in all_three() {
        for name in ["RS256", "ES256", "EdDSA"]
            .into_iter()
            .filter(|name| *name != pair.name())
        {
            assert_refused(&pair.token(name), "the key of another algorithm").await;
            let header = json!({"alg": name, "kid": pair.name()}).to_string();
            assert_refused(&pair.sign_text(&header, &claims().to_string()), "a false name").await;
        }
    }
}

#[tokio::test]
async fn a_key_that_the_token_brings_is_not_used() {
    let forger = other_rsa();
    let jwk = forger.jwk("RS256");
    for (kid, extra) in [
        ("RS256", json!({"jwk": jwk})),
        ("evil", json!({"jwk": jwk})),
        ("evil", json!({"jku": "https://evil.example/keys"})),
        ("RS256", json!({"x5u": "https://evil.example/cert"})),
        ("RS256", json!({"x5c": ["MIIB"]})),
        ("../../dev/null", json!({})),
        ("RS256", json!({})),
        ("", json!({})),
    ] {
        let mut header = json!({"alg": "RS256", "kid": kid});
        header
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        assert_refused(&forger.sign_text(&header.to_string(), &claims().to_string()), kid).await;
    }
    // A good token may carry them; they change nothing.
    let header = json!({"alg": "RS256", "kid": "RS256", "jwk": jwk, "jku": "https://evil.example/keys"});
    let token = rsa().sign_text(&header.to_string(), &claims().to_string());
    assert!(judge(&set(), &token).await.is_ok());
}

#[tokio::test]
async fn headers_that_cannot_be_understood_are_refused() {
    let good = claims().to_string();
    for header in [
        r#"{"alg":"RS256","kid":"RS256","crit":["exp"],"exp":1}"#,
        r#"{"alg":"RS256","kid":"RS256","crit":[]}"#,
        r#"{"alg":"RS256","kid":"RS256","b64":false,"crit":["b64"]}"#,
        r#"{"alg":"RS256","alg":"RS256","kid":"RS256"}"#,
        r#"{"alg":"RS256","kid":"RS256","kid":"RS256"}"#,
        r#"{"alg":"RS256","kid":7}"#,
        r#"{"alg":"RS256","kid":null}"#,
        r#"{"alg":["RS256"],"kid":"RS256"}"#,
        r#"{"alg":"rs256","kid":"RS256"}"#,
        r#"{"kid":"RS256"}"#,
        r#"{"alg":"RS256","kid":"RS256","typ":"logout+jwt"}"#,
        r#"{"alg":"RS256","kid":"RS256","typ":"secevent+jwt"}"#,
        r#"{"alg":"RS256","kid":"RS256","typ":null}"#,
        r#"["RS256"]"#,
        "",
        "{",
    ] {
        assert_refused(&rsa().sign_text(header, &good), header).await;
    }
}

#[tokio::test]
async fn claims_that_are_not_right_are_refused() {
    let text = |changes: &str| {
        let rest = changes.to_owned();
        format!(r#"{{"sub":"ada","iss":"{ISSUER}","aud":"{AUDIENCE}",{rest}}}"#)
    };
    let good = text(&format!(r#""exp":{}"#, START + 100));
    assert!(
        judge(&set(), &rsa().sign_text(r#"{"alg":"RS256","kid":"RS256"}"#, &good))
            .await
            .is_ok()
    );
    let soon = START + 100;
    let mut bad = vec![
        text(r#""exp":"1800000100""#),
        text(r#""exp":NaN"#),
        text(r#""exp":1e999"#),
        text(r#""exp":1e300"#),
        text(r#""exp":null"#),
        text(r#""iat":1"#),
        text(&format!(r#""exp":{}"#, START + 50)),
        text(&format!(r#""exp":{soon},"nbf":{}"#, START + 71)),
        text(&format!(r#""exp":{soon},"nbf":"0""#)),
        text(&format!(r#""exp":{soon},"exp":{soon}"#)),
        text(&format!(r#""exp":{soon},"sub":"ada""#)),
        text(&format!(r#""exp":{soon},"aud":"{AUDIENCE}""#)),
        text(&format!(r#""exp":{soon},"x":1,"x":1"#)),
        text(&format!(r#""exp":{soon},"x":{{"y":1,"y":1}}"#)),
        format!("[{good}]"),
        format!("{good}{good}"),
        String::new(),
    ];
    bad.extend([
        good.replace(ISSUER, "https://id.example.com/"),
        good.replace(ISSUER, "https://evil.example"),
    ]);
    bad.extend([
        good.replace(AUDIENCE, "agentcfg2"),
        good.replace("\"ada\"", "7"),
        good.replace("ada", ""),
    ]);
    bad.push(good.replace(&format!("\"{ISSUER}\""), &format!("[\"{ISSUER}\"]")));
    for claims in bad {
        let token = rsa().sign_text(r#"{"alg":"RS256","kid":"RS256"}"#, &claims);
        assert_refused(&token, &claims).await;
    }
}

#[tokio::test]
async fn the_form_is_exact() {
    let good = rsa().token("RS256");
    let parts: Vec<&str> = good.split('.').collect();
    let [header, claims, signature] = parts[..] else {
        panic!("{good}")
    };
    let standard = |text: &str| text.replace('-', "+").replace('_', "/");
    for bad in [
        String::new(),
        ".".to_owned(),
        "..".to_owned(),
        format!("{header}.{claims}"),
        format!("{header}.{claims}."),
        format!(".{claims}.{signature}"),
        format!("{header}..{signature}"),
        format!("{good}."),
        format!(".{good}"),
        format!("{good}.{signature}.{signature}"),
        format!("{header}=.{claims}.{signature}"),
        format!("{header}.{claims}=.{signature}"),
        format!("{good}="),
        format!("{good}=="),
        format!(" {good}"),
        format!("{good}\n"),
        format!("{header}.{claims}.{}", standard(signature)),
        format!("{header}.{claims}. {signature}"),
    ] {
        if bad != good {
            assert_refused(&bad, &bad).await;
        }
    }
    let long = rsa().sign("RS256", &{
        let mut claims = super::claims();
        claims["x"] = "x".repeat(crate::session::MAX_TOKEN_BYTES).into();
        claims
    });
    assert_refused(&long, "a token without end").await;
}

#[tokio::test]
async fn bits_that_no_byte_needs_must_be_zero() {
    // 64 and 256 bytes leave 4 and 2 bits over in the last character, and a decoder that ignores
    // them lets one signature be written in many ways.
    for pair in all_three() {
        let good = pair.token(&pair.name());
        let last = good.chars().last().unwrap();
        for other in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".chars() {
            if other != last {
                assert_refused(&format!("{}{other}", &good[..good.len() - 1]), "another last character").await;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_changed_token_passes(which in 0..3_usize, place in any::<prop::sample::Index>(), byte in 0x20..0x7f_u8) {
        let pair = &all_three()[which];
        let good = pair.token(&pair.name());
        let mut changed = good.clone().into_bytes();
        let place = place.index(changed.len());
        changed[place] = byte;
        let changed = String::from_utf8(changed).unwrap();
        let answer = runtime().block_on(judge(&set(), &changed));
        prop_assert_eq!(answer.is_ok(), changed == good);
    }

    #[test]
    fn no_text_makes_it_stumble(token in "[ -~]{0,80}", header in ".{0,40}", claims in ".{0,40}") {
        prop_assert!(is_invalid(&runtime().block_on(judge(&set(), &token))));
        let token = format!("{}.{}.AAAA", encode(header), encode(claims));
        prop_assert!(is_invalid(&runtime().block_on(judge(&set(), &token))));
    }
}
