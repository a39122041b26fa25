//! TLS without a proxy, and HTTP/2 over it.

mod client;
mod files;
mod floods;
mod http2;
mod malformed;
mod streams;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use agentcfg_tests::harness::{Builder, Server, scratch, unique};
use serde_json::json;
use tempfile::TempDir;

use self::client::Http2;

/// The authority that has signed [`CERT`].
const AUTHORITY: &str = include_str!("../../../agentcfg-client/src/tests/tls/ca.pem");
/// A certificate for `localhost` and 127.0.0.1, and its key.
const CERT: &str = include_str!("../../../agentcfg-client/src/tests/tls/localhost.pem");
const KEY: &str = include_str!("../../../agentcfg-client/src/tests/tls/localhost.key");

/// A directory with the two files of a certificate.
struct Pair {
    dir: TempDir,
}

impl Pair {
    fn new(cert: &str, key: &str) -> Self {
        let pair = Self { dir: scratch() };
        pair.put("cert.pem", cert);
        pair.put("key.pem", key);
        pair
    }

    fn good() -> Self {
        Self::new(CERT, KEY)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Replaces a file, as programs that renew certificates do.
    fn put(&self, name: &str, text: &str) {
        let draft = self.path("draft");
        fs::write(&draft, text).unwrap();
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o600)).unwrap();
        fs::rename(draft, self.path(name)).unwrap();
    }

    /// A server with this certificate.
    fn server(&self) -> Builder {
        Server::builder()
            .set("tls_cert", self.path("cert.pem"))
            .set("tls_key", self.path("key.pem"))
    }
}

/// The bearer field of a user, and the id of a new workspace.
async fn workspace(server: &Server, http: &Http2, user: &str) -> (String, String) {
    let bearer = format!("Bearer {}", server.token(user));
    let body = json!({"name": unique("Studio")});
    let made = http
        .ask("POST", "/api/workspaces", &[("authorization", &bearer)], Some(&body))
        .await;
    let id = made.expect(201).json()["id"].as_str().unwrap().to_owned();
    (bearer, id)
}
