//! This server, in the test's process.

use std::net::SocketAddr;

use agentcfg_server::process::{Config, Secret, Server, SessionProvider};
use bytes::Bytes;
use hyper::{Request, Response};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::http;
use crate::provider::CLIENT;

pub struct Service {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
    data: tempfile::TempDir,
}

/// Settings for tokens verified with public keys.
pub fn jwks(issuer: &str) -> Config {
    Config {
        session_provider: SessionProvider::Jwks,
        oidc_issuer: Some(issuer.to_owned()),
        oidc_audience: Some("agentcfg".to_owned()),
        ..Config::default()
    }
}

/// Settings for tokens validated by introspection.
pub fn introspection(base: &str) -> Config {
    Config {
        session_provider: SessionProvider::Introspection,
        introspection_url: Some(format!("{base}/token/introspection").parse().unwrap()),
        introspection_client_id: Some(CLIENT.0.to_owned()),
        introspection_client_secret: Some(Secret::new(CLIENT.1)),
        ..Config::default()
    }
}

/// Settings for tokens validated at the user-info endpoint.
pub fn user_info(base: &str) -> Config {
    Config {
        session_provider: SessionProvider::Introspection,
        userinfo_url: Some(format!("{base}/me").parse().unwrap()),
        userinfo_apikey: Some(Secret::new("anon")),
        ..Config::default()
    }
}

impl Service {
    pub async fn start(config: Config) -> Self {
        let data = tempfile::tempdir().unwrap();
        let config = Config {
            data: data.path().join("data"),
            session_rate_limit: 100_000,
            ..config
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server::open(config).await.unwrap();
        let (ready, is_ready) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(async move {
            let ready = |address| ready.send(address).unwrap();
            let stopped = async { _ = stopped.await };
            assert!(server.run(listener, ready, stopped).await.unwrap().is_complete());
        });
        Self {
            address: is_ready.await.unwrap(),
            stop,
            running,
            data,
        }
    }

    pub async fn get(&self, path: &str) -> Response<Bytes> {
        http::get(&format!("http://{}{path}", self.address)).await
    }

    /// The response of the API to a request with this token.
    pub async fn ask(&self, token: &str) -> Response<Bytes> {
        let url = format!("http://{}/api/workspaces", self.address);
        http::send(Request::get(url).header("authorization", format!("Bearer {token}")), "").await
    }

    pub async fn status(&self, token: &str) -> u16 {
        self.ask(token).await.status().as_u16()
    }

    /// Whether a file of the data directory contains these bytes.
    pub fn data_contains(&self, needle: &[u8]) -> bool {
        let files = std::fs::read_dir(self.data.path().join("data")).unwrap();
        let mut contents = files.filter_map(|file| std::fs::read(file.unwrap().path()).ok());
        contents.any(|content| content.windows(needle.len()).any(|window| window == needle))
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The response to the sign-in of a browser with a token.
    pub async fn sign_in(&self, token: &str) -> Response<Bytes> {
        let request = Request::post(self.url("/api/sessions")).header("authorization", format!("Bearer {token}"));
        http::send(request, "").await
    }

    /// Signs a browser in with a token, and returns its cookie.
    pub async fn cookie(&self, token: &str) -> String {
        let set = self.sign_in(token).await;
        assert_eq!(set.status(), 204, "{set:?}");
        let field = set.headers()["set-cookie"].to_str().unwrap();
        field.split(';').next().unwrap().to_owned()
    }

    /// Who the API says is behind a cookie.
    pub async fn whoami(&self, cookie: &str) -> Response<Bytes> {
        http::send(Request::get(self.url("/api/whoami")).header("cookie", cookie), "").await
    }

    /// The response to a request with a session token.
    pub async fn call(&self, method: &str, path: &str, token: &str, body: serde_json::Value) -> Response<Bytes> {
        let request = Request::builder()
            .method(method)
            .uri(self.url(path))
            .header("authorization", format!("Bearer {token}"));
        match body.is_null() {
            true => http::send(request, "").await,
            false => http::send(request.header("content-type", "application/json"), body.to_string()).await,
        }
    }

    /// What the API answers to a session token.
    pub async fn json(&self, path: &str, token: &str) -> serde_json::Value {
        let response = self.call("GET", path, token, serde_json::Value::Null).await;
        assert_eq!(response.status(), 200, "{response:?}");
        http::json(&response)
    }

    /// The identifier of a new workspace.
    pub async fn workspace(&self, token: &str) -> String {
        let made = self
            .call("POST", "/api/workspaces", token, serde_json::json!({"name": "Studio"}))
            .await;
        assert_eq!(made.status(), 201, "{made:?}");
        http::json(&made)["id"].as_str().unwrap().to_owned()
    }

    /// Creates a workspace and returns its members.
    pub async fn members_of_a_new_workspace(&self, token: &str) -> serde_json::Value {
        let url = format!("http://{}/api/workspaces", self.address);
        let bearer = format!("Bearer {token}");
        let request = Request::post(&url)
            .header("authorization", &bearer)
            .header("content-type", "application/json");
        let made = http::send(request, r#"{"name": "Studio"}"#).await;
        assert_eq!(made.status(), 201, "{made:?}");
        let id = http::json(&made)["id"].as_str().unwrap().to_owned();
        let request = Request::get(format!("{url}/members?workspace_id={id}")).header("authorization", &bearer);
        let members = http::send(request, "").await;
        assert_eq!(members.status(), 200, "{members:?}");
        http::json(&members)
    }

    /// Shuts the service down in order.
    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        self.running.await.unwrap();
    }
}

/// Asserts the response to every invalid token.
pub fn assert_unauthorized(response: &Response<Bytes>, what: &str) {
    assert_eq!(response.status(), 401, "{what}: {response:?}");
    assert_eq!(response.headers()["www-authenticate"], "Bearer", "{what}");
    assert_eq!(
        http::json(response),
        serde_json::json!({"error": "invalid credentials"}),
        "{what}"
    );
}

/// Asserts the response while the token cannot be validated.
pub fn assert_unavailable(response: &Response<Bytes>, what: &str) {
    assert_eq!(response.status(), 503, "{what}: {response:?}");
    assert!(response.headers().contains_key("retry-after"), "{what}");
}
