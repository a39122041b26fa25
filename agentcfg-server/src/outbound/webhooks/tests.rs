//! Where messages go, and where they never go.

use std::collections::HashMap;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;

use super::super::public_only::Resolved;
use super::*;

/// A network with names that the test gives. It counts connections, and makes each to one listener.
#[derive(Default)]
struct Fake {
    names: HashMap<&'static str, Vec<IpAddr>>,
    listener: Option<SocketAddr>,
    connected: Mutex<Vec<SocketAddr>>,
    resolved: AtomicUsize,
}

impl Network for Fake {
    fn resolve(&self, name: String, _: Option<OwnedSemaphorePermit>) -> Resolved {
        self.resolved.fetch_add(1, Ordering::Relaxed);
        let found = self.names.get(name.as_str()).cloned();
        Box::pin(async move { found.ok_or_else(|| io::ErrorKind::NotFound.into()) })
    }

    fn connect(&self, address: SocketAddr) -> Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>> {
        self.connected.lock().unwrap().push(address);
        let listener = self.listener;
        Box::pin(async move {
            match listener {
                Some(listener) => TcpStream::connect(listener).await,
                None => Err(io::ErrorKind::ConnectionRefused.into()),
            }
        })
    }
}

fn message(url: &str) -> Outgoing {
    Outgoing {
        url: url.into(),
        id: "hook.epoch.7".into(),
        timestamp: 1_614_265_330,
        signature: "v1,abc v1,def".into(),
        body: r#"{"type":"agent.updated"}"#.into(),
    }
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// Names as an attacker's name server would answer them.
fn hostile_names() -> HashMap<&'static str, Vec<IpAddr>> {
    [
        ("localhost", &["127.0.0.1", "::1"][..]),
        ("loopback.example", &["127.0.0.1"]),
        ("loopback6.example", &["::1"]),
        ("unspecified.example", &["0.0.0.0"]),
        ("unspecified6.example", &["::"]),
        ("ten.example", &["10.0.0.5"]),
        ("private172.example", &["172.16.0.1"]),
        ("private192.example", &["192.168.1.1"]),
        ("metadata.example", &["169.254.169.254"]),
        ("metadata-ecs.example", &["169.254.170.2"]),
        ("metadata-alibaba.example", &["100.100.100.200"]),
        ("metadata-azure.example", &["168.63.129.16"]),
        ("metadata-oracle.example", &["192.0.0.192"]),
        ("metadata6.example", &["fd00:ec2::254"]),
        ("cgnat.example", &["100.64.0.1"]),
        ("unique-local.example", &["fd12:3456::1"]),
        ("link-local6.example", &["fe80::1"]),
        ("mapped.example", &["::ffff:127.0.0.1"]),
        ("mapped-public.example", &["::ffff:93.184.215.14"]),
        ("compatible.example", &["::7f00:1"]),
        ("translated.example", &["64:ff9b::7f00:1"]),
        ("translated-local.example", &["64:ff9b:1::a00:1"]),
        ("six-to-four.example", &["2002:7f00:1::1"]),
        ("teredo.example", &["2001:0:53aa:64c::1"]),
        ("documentation.example", &["203.0.113.9"]),
        ("documentation6.example", &["2001:db8::9"]),
        ("benchmark.example", &["198.18.0.1"]),
        ("multicast.example", &["224.0.0.1"]),
        ("multicast6.example", &["ff02::1"]),
        ("broadcast.example", &["255.255.255.255"]),
        ("reserved.example", &["240.0.0.1"]),
        ("mixed.example", &["93.184.215.14", "10.0.0.5"]),
        (
            "mixed-last.example",
            &[
                "93.184.215.14",
                "93.184.215.15",
                "93.184.215.16",
                "93.184.215.17",
                "::1",
            ],
        ),
        ("public.example", &["93.184.215.14"]),
        ("empty.example", &[]),
    ]
    .map(|(name, texts)| (name, addresses(texts)))
    .into()
}

#[tokio::test]
async fn no_trick_makes_a_connection() {
    let network = Arc::new(Fake {
        names: hostile_names(),
        ..Fake::default()
    });
    let exceptions = ["allowed.example:8080".parse().unwrap()];
    let transport = WebhookTransport::on(Arc::clone(&network) as _, &exceptions, &Options::default()).unwrap();
    let names = hostile_names();
    let by_name = names
        .keys()
        .filter(|name| **name != "public.example")
        .map(|name| format!("https://{name}/hook"));
    let literal = [
        "https://127.0.0.1/",
        "https://127.255.255.254/",
        "https://127.1/",
        "https://127.0.1/",
        "https://0/",
        "https://0.0.0.0/",
        "https://2130706433/",
        "https://017700000001/",
        "https://0177.0.0.1/",
        "https://0x7f.0.0.1/",
        "https://0x7f000001/",
        "https://0x7F.1/",
        "https://127.0.0.1./",
        "https://localhost./",
        "https://[::1]/",
        "https://[0:0:0:0:0:0:0:1]/",
        "https://[::]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:7f00:1]/",
        "https://[::127.0.0.1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[2002:7f00:1::]/",
        "https://[fe80::1%25eth0]/",
        "https://[fd00:ec2::254]/",
        "https://169.254.169.254/latest/meta-data/",
        "https://10.0.0.1/",
        "https://192.168.0.1/",
        "https://%31%32%37.0.0.1/",
        "https://127。0。0。1/",
        "https://①②⑦.⓪.⓪.①/",
        "https://public.example@127.0.0.1/",
        "https://127.0.0.1@public.example/",
        "https://public.example:443@127.0.0.1/",
        "https://public.example\\@127.0.0.1/",
        "https://public.example#@127.0.0.1/",
        "https://public.example:22/",
        "https://public.example:80/",
        "https://public.example:8443/",
        "http://public.example/",
        "http://public.example:443/",
        "http://127.0.0.1:80/",
        "http://allowed.example/",
        "http://allowed.example:8081/",
        "https://x.allowed.example:8080/",
        "https:127.0.0.1/",
        "//127.0.0.1/",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:70/",
        "unix:/run/docker.sock",
        "data:text/plain,x",
        "",
    ]
    .map(str::to_owned);
    let tricks: Vec<String> = by_name.chain(literal).collect();
    assert!(tricks.len() >= 80);
    for trick in &tricks {
        let answer = transport.post(message(trick)).await;
        let error = answer
            .error
            .clone()
            .unwrap_or_else(|| panic!("{trick} was answered: {answer:?}"));
        assert_eq!(*network.connected.lock().unwrap(), [], "{trick}: {error}");
        let shown = error.contains("127.0.0.1") || error.contains("10.0.0.5") || error.contains("169.254");
        assert!(!shown, "the error names an address: {error}");
    }
    // The same network can be reached where it is fine.
    for (url, address) in [
        ("https://public.example/", "93.184.215.14:443"),
        ("https://93.184.215.15/", "93.184.215.15:443"),
    ] {
        transport.post(message(url)).await;
        assert_eq!(
            network.connected.lock().unwrap().pop(),
            Some(address.parse().unwrap()),
            "{url}"
        );
    }
}

#[tokio::test]
async fn the_checked_address_is_the_one_that_is_connected_to() {
    /// A name that is public when it is asked first, and private from then on.
    struct Rebinding(Fake);

    impl Network for Rebinding {
        fn resolve(&self, name: String, permit: Option<OwnedSemaphorePermit>) -> Resolved {
            let private = self.0.resolved.load(Ordering::Relaxed) > 0;
            let answered = self.0.resolve(name, permit);
            Box::pin(async move {
                let _ = answered.await;
                Ok(addresses(&[if private { "127.0.0.1" } else { "93.184.215.14" }]))
            })
        }

        fn connect(&self, address: SocketAddr) -> Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>> {
            self.0.connect(address)
        }
    }

    let network = Arc::new(Rebinding(Fake::default()));
    let transport = WebhookTransport::on(Arc::clone(&network) as _, &[], &Options::default()).unwrap();
    transport.post(message("https://rebinding.example/")).await;
    assert_eq!(network.0.resolved.load(Ordering::Relaxed), 1);
    assert_eq!(
        *network.0.connected.lock().unwrap(),
        ["93.184.215.14:443".parse().unwrap()]
    );
    let second = transport.post(message("https://rebinding.example/")).await;
    assert_eq!(
        second.error.as_deref(),
        Some("the host has an address that is not public, or none")
    );
    assert_eq!(network.0.connected.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_exception_may_be_private() {
    let names = [("allowed.example", addresses(&["10.0.0.5"]))].into();
    let network = Arc::new(Fake {
        names,
        ..Fake::default()
    });
    let exceptions = ["allowed.example:8080", "10.0.0.6"].map(|text| text.parse().unwrap());
    let transport = WebhookTransport::on(Arc::clone(&network) as _, &exceptions, &Options::default()).unwrap();
    for url in ["http://allowed.example:8080/", "http://10.0.0.6/", "https://10.0.0.6/"] {
        transport.post(message(url)).await;
    }
    let connected = network.connected.lock().unwrap().clone();
    let expected = ["10.0.0.5:8080", "10.0.0.6:80", "10.0.0.6:443"].map(|text| text.parse().unwrap());
    assert_eq!(connected, expected);
}

/// Answers each connection with a text, and returns what was sent.
async fn answering(text: &'static [u8], then_wait: bool) -> (WebhookTransport, Arc<Fake>, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let names = [("hooks.example", addresses(&["10.0.0.5"]))].into();
    let network = Arc::new(Fake {
        names,
        listener: Some(listener.local_addr().unwrap()),
        ..Fake::default()
    });
    let received = Arc::new(Mutex::new(Vec::new()));
    let requests = Arc::clone(&received);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let requests = Arc::clone(&requests);
            tokio::spawn(async move {
                let mut buffer = vec![0; 8192];
                let mut read = 0;
                while !buffer[..read].ends_with(br#"{"type":"agent.updated"}"#) {
                    match stream.read(&mut buffer[read..]).await {
                        Ok(0) | Err(_) => return,
                        Ok(more) => read += more,
                    }
                }
                let request = String::from_utf8_lossy(&buffer[..read]).into_owned();
                requests.lock().unwrap().push(request);
                let _ = stream.write_all(text).await;
                if then_wait {
                    std::future::pending::<()>().await;
                }
            });
        }
    });
    let exceptions = ["hooks.example".parse().unwrap()];
    let mut transport = WebhookTransport::on(Arc::clone(&network) as _, &exceptions, &Options::default()).unwrap();
    transport.timeout = Duration::from_millis(300);
    (transport, network, received)
}

#[tokio::test]
async fn a_message_arrives_with_its_headers() {
    let (transport, _, received) = answering(
        b"HTTP/1.1 202 Accepted\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nok",
        false,
    )
    .await;
    let answer = transport.post(message("http://hooks.example/a/b?c=%20d")).await;
    let expected = DeliveryAnswer::default().status(202).retry_after("7").response("ok");
    assert_eq!(answer, expected);
    let request = received.lock().unwrap()[0].clone();
    assert!(request.starts_with("POST /a/b?c=%20d HTTP/1.1\r\n"), "{request}");
    for line in [
        "content-type: application/json",
        "host: hooks.example",
        "webhook-id: hook.epoch.7",
        "webhook-timestamp: 1614265330",
        "webhook-signature: v1,abc v1,def",
        concat!("user-agent: agentcfg-webhooks/", env!("CARGO_PKG_VERSION")),
    ] {
        assert!(request.lines().any(|found| found == line), "{line} is not in {request}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let redirect = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://hooks.example/b\r\nContent-Length: 0\r\n\r\n";
    let (transport, network, received) = answering(redirect, false).await;
    let answer = transport.post(message("http://hooks.example/a")).await;
    assert_eq!((answer.status, answer.is_success()), (Some(307), false));
    assert_eq!(received.lock().unwrap().len(), 1);
    assert_eq!(network.connected.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_receiver_that_does_not_answer_in_time_has_failed() {
    for text in [&b""[..], b"HTTP/1.1 20", b"HTTP/1.1 200 OK\r\nX: "] {
        let (transport, ..) = answering(text, true).await;
        let answer = transport.post(message("http://hooks.example/")).await;
        assert_eq!(
            (answer.status, answer.error.as_deref()),
            (None, Some("no answer within 0 s"))
        );
    }
    assert_eq!(WebhookTransport::new(&[]).unwrap().timeout.as_secs(), 15);
}

#[tokio::test]
async fn an_answer_that_breaks_off_or_is_malformed() {
    let (transport, ..) = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nbegin", false).await;
    let answer = transport.post(message("http://hooks.example/")).await;
    assert_eq!((answer.status, answer.response.as_deref()), (Some(200), Some("begin")));
    for text in [&b"SSH-2.0-OpenSSH_9.2\r\n"[..], b"\0\0\0", b"HTTP/1.1 2000 x\r\n\r\n"] {
        let (transport, ..) = answering(text, false).await;
        let answer = transport.post(message("http://hooks.example/")).await;
        assert!(answer.status.is_none() && answer.error.is_some(), "{answer:?}");
    }
}

#[tokio::test]
async fn a_receiver_that_does_not_end_its_answer_has_taken_the_message() {
    let (transport, ..) = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nbegin", true).await;
    let answer = transport.post(message("http://hooks.example/")).await;
    assert_eq!((answer.status, answer.response.as_deref()), (Some(200), Some("begin")));
    assert!(answer.is_success());
}

#[tokio::test]
async fn the_first_kibibyte_of_an_answer_is_kept() {
    let body = "é".repeat(40_000);
    let text = format!("HTTP/1.1 500 Oops\r\nContent-Length: {}\r\n\r\nx{body}", body.len() + 1);
    let (transport, ..) = answering(Box::leak(text.into_bytes().into_boxed_slice()), false).await;
    let answer = transport.post(message("http://hooks.example/")).await;
    let kept = answer.response.unwrap();
    assert_eq!(answer.status, Some(500));
    assert!((1020..=1027).contains(&kept.len()), "{}", kept.len());
    let (transport, ..) = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\xff\0a", false).await;
    let answer = transport.post(message("http://hooks.example/")).await;
    assert_eq!(answer.response.as_deref(), Some("\u{fffd}\0a"));
}

#[tokio::test]
async fn a_url_of_every_allowed_character_can_be_sent_to() {
    let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let (transport, ..) = answering(ok, false).await;
    let all: String = (33..127u8).map(char::from).collect();
    for character in all.chars() {
        let url = format!("http://hooks.example/a{character}b?c{character}d");
        let is_valid = url.parse::<agentcfg_core::model::WebhookUrl>().is_ok();
        if is_valid {
            let answer = transport.post(message(&url)).await;
            assert_eq!(answer.status, Some(200), "{url}: {answer:?}");
        }
    }
}
