//! Which keys of a set are used, and for which purpose.

use super::*;

fn changed(mut jwk: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        jwk[name] = value.clone();
    }
    jwk
}

fn without(mut jwk: Value, name: &str) -> Value {
    jwk.as_object_mut().unwrap().remove(name);
    jwk
}

#[tokio::test]
async fn a_key_is_used_when_everything_it_says_fits() {
    for pair in all_three() {
        let jwk = pair.jwk("1");
        let token = pair.token("1");
        for fits in [
            jwk.clone(),
            without(jwk.clone(), "alg"),
            changed(jwk.clone(), json!({"use": "sig"})),
            changed(jwk.clone(), json!({"key_ops": ["verify"]})),
            changed(jwk.clone(), json!({"x5t": "AA", "unheard": {"of": 1}})),
        ] {
            let set = key_set(&[fits]);
            assert!(judge(&set, &token).await.is_ok(), "{set}");
        }
        for misfit in [
            changed(jwk.clone(), json!({"use": "enc"})),
            changed(jwk.clone(), json!({"use": 1})),
            changed(jwk.clone(), json!({"use": null})),
            changed(jwk.clone(), json!({"key_ops": ["sign"]})),
            changed(jwk.clone(), json!({"key_ops": "verify"})),
            changed(jwk.clone(), json!({"alg": "HS256"})),
            changed(jwk.clone(), json!({"alg": "RS512"})),
            changed(jwk.clone(), json!({"key_ops": null})),
            changed(jwk.clone(), json!({"alg": 1})),
            changed(jwk.clone(), json!({"alg": null})),
            changed(jwk.clone(), json!({"alg": "unheard of"})),
            changed(jwk.clone(), json!({"kty": "oct"})),
            changed(jwk.clone(), json!({"kty": "XYZ"})),
            changed(jwk.clone(), json!({"kid": 1})),
            changed(jwk.clone(), json!({"kid": null})),
            changed(jwk.clone(), json!({"d": "AQ"})),
            without(jwk.clone(), "kty"),
            json!("key"),
            json!(null),
        ] {
            let set = key_set(std::slice::from_ref(&misfit));
            assert!(judge(&set, &token).await.is_err(), "{set}");
            // Beside a good key it does no harm.
            assert!(judge(&key_set(&[misfit, jwk.clone()]), &token).await.is_ok());
        }
    }
}

#[tokio::test]
async fn a_secret_in_the_set_opens_nothing() {
    let secret = b"0123456789abcdef0123456789abcdef";
    let oct =
        json!({"kty": "oct", "kid": "s", "alg": "HS256", "use": "sig", "k": Base64UrlUnpadded::encode_string(secret)});
    let forger = Pair {
        key: secret.to_vec(),
        algorithm: Algorithm::HS256,
    };
    let set = key_set(&[oct.clone(), rsa().jwk("1")]);
    assert!(is_invalid(&judge(&set, &forger.token("s")).await));
    assert!(judge(&set, &rsa().token("1")).await.is_ok());
    // With nothing else in it, no token can be verified.
    let sessions = Provider::new(&key_set(&[oct])).sessions();
    assert!(is_unavailable(&sessions.verify(&rsa().token("1"), at(0)).await));
    assert!(sessions.ready().is_err());
}

#[tokio::test]
async fn numbers_of_the_wrong_size_are_left_out() {
    let modulus = Base64UrlUnpadded::decode_vec(rsa().jwk("1")["n"].as_str().unwrap()).unwrap();
    let short = Base64UrlUnpadded::encode_string(&modulus[..128]);
    let one = Base64UrlUnpadded::encode_string(&[1_u8; 31]);
    for bad in [
        changed(rsa().jwk("1"), json!({"n": short})),
        changed(rsa().jwk("1"), json!({"n": ""})),
        changed(rsa().jwk("1"), json!({"n": "AA=="})),
        changed(rsa().jwk("1"), json!({"n": 5})),
        changed(rsa().jwk("1"), json!({"e": "AAAA"})),
        without(rsa().jwk("1"), "e"),
        changed(ec().jwk("1"), json!({"x": one})),
        changed(ec().jwk("1"), json!({"crv": "P-384"})),
        changed(ec().jwk("1"), json!({"crv": "secp256k1"})),
        changed(ec().jwk("1"), json!({"kty": "OKP"})),
        changed(ed().jwk("1"), json!({"x": one})),
        changed(ed().jwk("1"), json!({"crv": "X25519"})),
    ] {
        assert!(
            KeySet::parse(key_set(std::slice::from_ref(&bad)).as_bytes())
                .unwrap()
                .is_empty(),
            "{bad}"
        );
    }
    // A leading zero byte, as some write it, changes no number.
    let jwk = rsa().jwk("1");
    let mut modulus = vec![0];
    modulus.extend(Base64UrlUnpadded::decode_vec(jwk["n"].as_str().unwrap()).unwrap());
    let padded = changed(jwk, json!({"n": Base64UrlUnpadded::encode_string(&modulus)}));
    assert!(judge(&key_set(&[padded]), &rsa().token("1")).await.is_ok());
    // A point that is not on the curve verifies nothing.
    let off = changed(
        ec().jwk("1"),
        json!({"y": Base64UrlUnpadded::encode_string(&[1_u8; 32])}),
    );
    assert!(is_invalid(&judge(&key_set(&[off]), &ec().token("1")).await));
}

#[test]
fn the_modulus_has_2048_to_8192_bits() {
    for (bits, good) in [
        (1024, false),
        (2047, false),
        (2048, true),
        (4096, true),
        (8192, true),
        (8193, false),
    ] {
        let mut modulus = vec![0xff; usize::div_ceil(bits, 8)];
        modulus[0] >>= (8 - bits % 8) % 8;
        let jwk = changed(rsa().jwk("1"), json!({"n": encode(modulus)}));
        let keys = KeySet::parse(key_set(&[jwk]).as_bytes()).unwrap();
        assert_eq!(!keys.is_empty(), good, "{bits}");
    }
}

#[tokio::test]
async fn keys_may_share_an_id_or_have_none() {
    let set = key_set(&[other_rsa().jwk("1"), rsa().jwk("1"), ec().jwk("1")]);
    for pair in [rsa(), other_rsa(), ec()] {
        assert!(judge(&set, &pair.token("1")).await.is_ok());
    }
    assert!(is_invalid(&judge(&set, &ed().token("1")).await));

    let nameless = key_set(&[without(rsa().jwk(""), "kid"), ec().jwk("1")]);
    let no_kid = |pair: &Pair| pair.sign_text(&json!({"alg": pair.name()}).to_string(), &claims().to_string());
    assert!(judge(&nameless, &no_kid(&rsa())).await.is_ok());
    assert!(judge(&nameless, &rsa().token("any")).await.is_ok());
    assert!(judge(&nameless, &no_kid(&ec())).await.is_ok());
    assert!(
        is_invalid(&judge(&nameless, &rsa().token("1")).await),
        "named, and wrong"
    );
    assert!(is_invalid(&judge(&nameless, &no_kid(&other_rsa())).await));
    assert!(is_invalid(&judge(&nameless, &ec().token("2")).await));
}

#[test]
fn a_text_that_is_no_key_set_is_a_fault() {
    let many = vec![rsa().jwk("1"); 65];
    for text in [
        "",
        "null",
        "[]",
        "{}",
        r#"{"keys": {}}"#,
        r#"{"keys": [], "keys": []}"#,
        r#"{"keys": [{"kty": "RSA", "kty": "EC"}]}"#,
        "<html>",
        &key_set(&many),
    ] {
        assert!(KeySet::parse(text.as_bytes()).is_err(), "{text}");
    }
}
