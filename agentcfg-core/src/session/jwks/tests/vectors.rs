//! Signatures that others made: the examples of RFC 7515 and RFC 8037, and one of OpenSSL with a key of 8192 bits.

use super::*;

/// Whether this key accepts the signature, and refuses it with another message and with a bit changed.
fn verifies(jwk: Value, message: &str, signature: &str) -> bool {
    let mut jwk = jwk;
    jwk["kid"] = "1".into();
    let set = KeySet::parse(key_set(&[jwk]).as_bytes()).unwrap();
    let signature = Base64UrlUnpadded::decode_vec(signature).unwrap();
    let mut changed = signature.clone();
    changed[10] ^= 1;
    let key = set.only();
    assert!(!key.has_signed(format!("{message}.").as_bytes(), &signature));
    assert!(!key.has_signed(message.as_bytes(), &changed));
    assert!(!key.has_signed(message.as_bytes(), &signature[1..]));
    assert!(!key.has_signed(message.as_bytes(), &[]));
    key.has_signed(message.as_bytes(), &signature)
}

/// The claims of the examples in appendix A of RFC 7515.
const CLAIMS: &str = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";

#[test]
fn rs256() {
    let n = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMs\
             D1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdV\
             MTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
    let signature = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZ\
                     cAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-e\
                     OkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
    let message = format!("eyJhbGciOiJSUzI1NiJ9.{CLAIMS}");
    assert!(verifies(
        json!({"kty": "RSA", "n": n, "e": "AQAB"}),
        &message,
        signature
    ));
}

#[test]
fn rs256_with_the_longest_key() {
    let given: Value = serde_json::from_str(include_str!("keys/rsa-8192.json")).unwrap();
    let jwk = json!({"kty": "RSA", "n": given["n"], "e": given["e"]});
    assert!(verifies(
        jwk,
        given["message"].as_str().unwrap(),
        given["signature"].as_str().unwrap()
    ));
}

#[test]
fn es256() {
    let jwk = json!({
        "kty": "EC", "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    });
    let signature = "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    assert!(verifies(jwk, &format!("eyJhbGciOiJFUzI1NiJ9.{CLAIMS}"), signature));
}

#[test]
fn eddsa() {
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    let message = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
    let signature = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    assert!(verifies(jwk, message, signature));
}
