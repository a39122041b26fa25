//! The identity provider: a Node.js process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use base64ct::{Base64, Encoding};
use hyper::Request;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::http;

/// The client id and the secret of this service at the provider.
pub const CLIENT: (&str, &str) = ("agentcfg api", "s:e&c/r%t+");

/// A running provider; it ends when this value is dropped.
pub struct Provider {
    pub issuer: String,
    pub port: u16,
    process: Child,
}

/// The tokens of a sign-in.
pub struct SignedIn {
    pub access_token: String,
    pub id_token: String,
}

impl Provider {
    /// Starts a provider with the keys of this generation; `None`, with a message, if this machine cannot run one.
    pub async fn start(generation: &str) -> Option<Self> {
        Self::start_behind(0, generation, None).await
    }

    /// Starts a provider on this port, behind a proxy that has the public port.
    pub async fn start_behind(port: u16, generation: &str, public_port: Option<u16>) -> Option<Self> {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("identity/provider");
        if let Some(missing) = missing(&dir) {
            assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{missing}");
            eprintln!("NOT RUN: {missing}");
            return None;
        }
        let mut process = Command::new("node")
            .arg(dir.join("provider.mjs"))
            .args([&port.to_string(), generation])
            .args(public_port.map(|port| port.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let line = lines
            .next_line()
            .await
            .unwrap()
            .expect("the provider ended at its start");
        let ready: Value = serde_json::from_str(&line).unwrap();
        // The provider goes on to write, and would end if its pipe were closed.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Some(Self {
            issuer: ready["issuer"].as_str().unwrap().to_owned(),
            port: u16::try_from(ready["port"].as_u64().unwrap()).unwrap(),
            process,
        })
    }

    pub async fn stop(mut self) {
        self.process.kill().await.unwrap();
    }

    /// The URL of the provider itself, without a proxy.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The number of requests for this path.
    pub async fn hits(&self, path: &str) -> u64 {
        http::json(&http::get(&self.url("/test/hits")).await)[path]
            .as_u64()
            .unwrap_or(0)
    }

    /// Signs a user in: authorization code with PKCE, with redirects and cookies as in a browser. With a resource the
    /// access token is a JWT for it, without one it is opaque.
    pub async fn sign_in(&self, user: &str, resource: Option<&str>) -> SignedIn {
        // The example pair of RFC 7636.
        const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        const REDIRECT: &str = "http://127.0.0.1/signed-in";
        let mut query = format!(
            "client_id=web&response_type=code&scope={}&code_challenge={CHALLENGE}&code_challenge_method=S256\
             &redirect_uri={}&login_hint={}",
            if resource.is_some() { "openid%20api" } else { "openid" },
            http::escape(REDIRECT),
            http::escape(user),
        );
        if let Some(resource) = resource {
            query += &format!("&resource={}", http::escape(resource));
        }
        let code = self.follow(format!("/auth?{query}"), REDIRECT).await;
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("code_verifier", VERIFIER),
            ("redirect_uri", REDIRECT),
        ];
        fields.extend(resource.map(|resource| ("resource", resource)));
        let client = Base64::encode_string(b"web:web-secret");
        let answer = http::json(&http::form(&self.url("/token"), &client, &fields).await);
        let token = |name: &str| answer[name].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        SignedIn {
            access_token: token("access_token"),
            id_token: token("id_token"),
        }
    }

    /// Follows redirects until one leads back to the app, and returns its code.
    async fn follow(&self, path: String, end: &str) -> String {
        let location = self.walk(path, |location| location.starts_with(end)).await;
        let code = location[end.len()..]
            .trim_start_matches('?')
            .split('&')
            .find_map(|pair| pair.strip_prefix("code="));
        code.unwrap_or_else(|| panic!("no code in {location}")).to_owned()
    }

    /// Follows redirects, with cookies as in a browser, until one is the end, and returns it.
    async fn walk(&self, mut path: String, is_end: impl Fn(&str) -> bool) -> String {
        let mut cookies = BTreeMap::new();
        for _ in 0..10 {
            let sent: Vec<String> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let request = Request::get(self.url(&path)).header("cookie", sent.join("; "));
            let response = http::send(request, "").await;
            for cookie in response.headers().get_all("set-cookie") {
                let (name, value) = cookie
                    .to_str()
                    .unwrap()
                    .split(';')
                    .next()
                    .unwrap()
                    .split_once('=')
                    .unwrap();
                cookies.insert(name.to_owned(), value.to_owned());
            }
            let location = response
                .headers()
                .get("location")
                .map(|location| location.to_str().unwrap());
            let location = location.unwrap_or_else(|| panic!("no redirect from {path}: {response:?}"));
            if is_end(location) {
                return location.to_owned();
            }
            // The provider redirects to its own address or to its public one.
            let inside = [self.issuer.clone(), self.url("")];
            let rest = inside.iter().find_map(|base| location.strip_prefix(base.as_str()));
            path = rest.unwrap_or(location).to_owned();
        }
        panic!("redirects without end")
    }

    /// Follows the provider's redirects from this URL until one leads back to the dashboard, and returns that one.
    pub async fn follow_to_callback(&self, url: &str) -> String {
        let path = url.strip_prefix(&self.issuer).unwrap_or_else(|| panic!("{url}"));
        self.walk(path.to_owned(), |location| location.contains("/ui/callback?"))
            .await
    }

    pub async fn revoke(&self, token: &str) {
        let client = Base64::encode_string(b"web:web-secret");
        let response = http::form(&self.url("/token/revocation"), &client, &[("token", token)]).await;
        assert_eq!(response.status(), 200, "{response:?}");
    }

    /// Signs two texts with the provider's key, which no real provider would do.
    pub async fn sign(&self, alg: &str, header: &str, claims: &str) -> String {
        let order = json!({"alg": alg, "header": header, "claims": claims});
        let response = http::send(Request::post(self.url("/test/sign")), order.to_string()).await;
        assert_eq!(response.status(), 200);
        String::from_utf8(response.into_body().to_vec()).unwrap()
    }
}

fn missing(dir: &Path) -> Option<String> {
    let packages: PathBuf = dir.join("node_modules/oidc-provider");
    if !packages.exists() {
        return Some(format!(
            "oidc-provider is missing; run: npm ci --prefix {}",
            dir.display()
        ));
    }
    let node = std::process::Command::new("node").arg("--version").output();
    (!node.is_ok_and(|output| output.status.success())).then(|| "Node.js is missing".to_owned())
}
