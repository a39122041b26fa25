//! Session tokens that every server must refuse.

use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_core::session::{LocalSessions, SESSION_SECONDS};

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
