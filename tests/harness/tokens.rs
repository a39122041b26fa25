//! Session tokens, above all those that every server must refuse.

use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_core::session::{LocalSessions, SESSION_SECONDS};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::{Sha256, Sha384, Sha512};

use super::base64url;

/// A valid token but for the secret that signed it.
pub fn forged(user: &str) -> String {
    let token = LocalSessions::new(&[42; 32])
        .expect("a long secret")
        .issue(user, SESSION_SECONDS, SystemClock.now());
    token.expect("a token can be issued")
}

/// A token with `alg: none` and the claims of a valid one.
pub fn unsigned(real: &str) -> String {
    let claims = real.split('.').nth(1).expect("a token has three parts");
    format!("{}.{claims}.", base64url(r#"{"typ":"JWT","alg":"none"}"#))
}

/// A token with this header and these claims, signed with HMAC and SHA-256, or with SHA-384 or SHA-512 where the header
/// says so.
pub fn hmac_signed(header: &Value, claims: &Value, secret: &[u8]) -> String {
    fn sign<M: Mac + KeyInit>(secret: &[u8], message: &str) -> Vec<u8> {
        let mac = <M as KeyInit>::new_from_slice(secret).expect("a key can have any length");
        mac.chain_update(message).finalize().into_bytes().to_vec()
    }
    let message = format!("{}.{}", base64url(header.to_string()), base64url(claims.to_string()));
    let signature = match header["alg"].as_str() {
        Some("HS384") => sign::<Hmac<Sha384>>(secret, &message),
        Some("HS512") => sign::<Hmac<Sha512>>(secret, &message),
        _ => sign::<Hmac<Sha256>>(secret, &message),
    };
    format!("{message}.{}", base64url(signature))
}
