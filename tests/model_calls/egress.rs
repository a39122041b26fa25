//! The way out: a proxy of the deployment, and its certificate authorities.

use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use agentcfg_tests::harness::{Run, Server};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::fixture::{Stage, stage, stage_with};
use crate::upstream::Reply;

/// A forward proxy that notes the first line and the credentials of each request.
pub struct Proxy {
    address: std::net::SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let notes = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&notes)));
            }
        });
        Self { address, seen }
    }

    pub fn url(&self) -> String {
        format!("http://user:secret@{}", self.address)
    }

    pub fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

async fn serve(stream: TcpStream, seen: Arc<Mutex<Vec<String>>>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        if line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_owned());
    }
    let credentials = head.iter().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("proxy-authorization")
            .then(|| value.to_owned())
    });
    let mut words = head[0].split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let noted = format!("{method} {target} {}", credentials.unwrap_or_default());
    seen.lock().unwrap().push(noted);
    let (authority, rest) = match target.strip_prefix("http://") {
        Some(url) => url.split_once('/').unwrap(),
        None => (target, ""),
    };
    let mut server = TcpStream::connect(authority).await?;
    if method == "CONNECT" {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    } else {
        let fields = head[1..]
            .iter()
            .filter(|line| !line.to_lowercase().starts_with("proxy-"));
        let fields: String = fields.map(|line| format!("{line}\r\n")).collect();
        let forwarded = format!("{method} /{rest} HTTP/1.1\r\n{fields}\r\n");
        server.write_all(forwarded.as_bytes()).await?;
    }
    copy_bidirectional(&mut stream, &mut server).await?;
    Ok(())
}

async fn call(stage: &Stage) -> crate::calls::Whole {
    let call = stage.call("openai/v1/responses").json(&json!({"input": "x"}));
    call.send().await.whole().await
}

/// What the proxy is sent of its user.
pub const CREDENTIALS: &str = "Basic dXNlcjpzZWNyZXQ=";

#[tokio::test(flavor = "multi_thread")]
async fn calls_go_through_the_proxy_of_the_deployment() {
    let proxy = Proxy::start().await;
    let (url, other) = (proxy.url(), stage().await);
    let provider = other.upstream.url();
    let through = |except: &'static str| {
        let (url, provider) = (url.clone(), provider.clone());
        stage_with(move |builder| {
            let builder = builder.set("openai_base_url", provider).set("outbound_proxy", url);
            builder.set("no_proxy", except)
        })
    };
    let stage = through("").await;
    call(&stage).await.expect(200);
    let seen = other.upstream.seen().await;
    assert_eq!(
        (&*seen.target, seen.header("proxy-authorization")),
        ("/v1/responses", None)
    );
    let target = format!("POST {provider}/v1/responses {CREDENTIALS}");
    assert_eq!(proxy.seen(), [target]);
    // The refusal of the proxy itself is no answer of the provider.
    let refusal = hyper::Response::builder().status(407).body(Default::default()).unwrap();
    other.upstream.next(Reply::Response(refusal));
    let call_of = |stage: &Stage| stage.call("openai/v1/responses").json(&json!({"input": "x"}));
    let refused = call_of(&stage).refused(502, &["openai cannot be reached"]).await;
    assert_eq!(refused.header("x-should-retry"), Some("true"));
    let direct = through("127.0.0.0/8").await;
    call(&direct).await.expect(200);
    assert_eq!(proxy.seen(), [""; 0]);
    assert!(!stage.server.stderr().contains("secret@"), "{}", stage.server.stderr());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_call_goes_through_a_tunnel_and_trusts_the_authorities_of_the_deployment() {
    let proxy = Proxy::start().await;
    // Another server stands for a provider with a certificate of a private authority.
    let file = |name: &str| {
        format!(
            "{}/../agentcfg-server/src/outbound/tls/{name}",
            env!("CARGO_MANIFEST_DIR")
        )
    };
    // A key must be readable by its owner alone.
    let own = tempfile::tempdir().unwrap();
    let key = own.path().join("key.pem");
    std::fs::copy(file("localhost.key"), &key).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let provider = Server::builder()
        .set("tls_cert", file("localhost.pem"))
        .set("tls_key", &key)
        .start();
    let url = format!("https://localhost:{}", provider.address().port());
    let untrusted = {
        let url = url.clone();
        stage_with(move |builder| builder.set("openai_base_url", url)).await
    };
    assert_eq!(call(&untrusted).await.status, 502, "its authority is not public");
    for through in [false, true] {
        let (url, ca, via) = (url.clone(), file("ca.pem"), proxy.url());
        let stage = stage_with(move |builder| {
            let builder = builder.set("openai_base_url", url).set("outbound_ca_file", ca);
            if through {
                builder.set("outbound_proxy", via)
            } else {
                builder
            }
        });
        let answer = call(&stage.await).await;
        assert_eq!((answer.status, answer.header("agent-model")), (404, Some("gpt-5.5")));
        let port = provider.address().port();
        let tunnel = format!("CONNECT localhost:{port} {CREDENTIALS}");
        assert_eq!(proxy.seen(), if through { vec![tunnel] } else { Vec::new() });
    }
}

#[test]
fn what_cannot_be_used_refuses_the_start() {
    for (setting, value, words) in [
        ("outbound_proxy", "socks5://user:canary@p:1", "must be a proxy such as"),
        ("outbound_ca_file", "/nowhere/ca.pem", "/nowhere/ca.pem: No such file"),
        ("outbound_ca_file", "/etc/hostname", "no certificate"),
    ] {
        let name = format!("AGENTCFG_{}", setting.to_ascii_uppercase());
        let data = tempfile::tempdir().unwrap();
        let run = Run::new(["serve"]).in_dir(data.path()).env(&name, value);
        let error = run.finish().failed_with(&[words]);
        assert!(!error.contains("canary"), "{error}");
    }
}
