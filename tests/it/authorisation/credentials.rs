//! One credential of each kind.

use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_tests::harness::{Studio, eventually, forged, unsigned};
use serde_json::json;

/// A credential with the name that the table gives it.
pub(super) struct Credential {
    pub(super) name: &'static str,
    /// `None` sends no credential.
    pub(super) text: Option<String>,
}

/// All kinds, in the order of the table's columns. Members and keys belong to `own`, except for the foreign key.
pub(super) fn credentials(own: &Studio<'_>, foreign: &Studio<'_>) -> Vec<Credential> {
    let ends = SystemClock.now().plus_millis(1000).to_string();
    let many = json!({"rate_limit": 1_000_000});
    let key = |scope: &str| own.key_with(&json!({"scope": scope, "rate_limit": 1_000_000})).key;
    let expired_key = own.key_with(&json!({"expires_at": ends})).key;
    let expired_session = own.server.fresh_token(&own.user, 1);
    let revoked = own.key("admin");
    own.revoke(&revoked);
    let all = [
        ("nothing", None),
        ("garbage", Some("garbage".to_owned())),
        ("read", Some(key("read"))),
        ("write", Some(key("write"))),
        ("adminkey", Some(key("admin"))),
        ("alien", Some(foreign.key_with(&many).key)),
        ("revoked", Some(revoked.key)),
        ("oldkey", Some(expired_key.clone())),
        ("viewer", Some(own.member("viewer"))),
        ("member", Some(own.member("member"))),
        ("admin", Some(own.member("admin"))),
        ("owner", Some(own.owner.clone())),
        ("outsider", Some(own.outsider())),
        ("expired", Some(expired_session.clone())),
        ("forged", Some(forged(&own.user))),
        ("unsigned", Some(unsigned(&own.owner))),
    ];
    for (what, credential) in [("key", expired_key), ("session", expired_session)] {
        eventually(&format!("the {what} expires"), || {
            own.server.get("/api/workspaces").bearer(&credential).send().status == 401
        });
    }
    all.into_iter().map(|(name, text)| Credential { name, text }).collect()
}
