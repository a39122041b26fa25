//! A model provider that answers each call with the credential that it came with.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use agentcfg_tests::harness::{Request, Response, Studio};
use serde_json::json;

/// The provider of this process. It ends with the process.
pub struct Provider {
    address: SocketAddr,
    calls: Arc<AtomicUsize>,
}

impl Provider {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counted = Arc::clone(&counted);
                // A connection that breaks is one of a killed server.
                thread::spawn(move || serve(stream, &counted));
            }
        });
        Self { address, calls }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The number of calls that arrived.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

fn serve(stream: TcpStream, calls: &AtomicUsize) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    loop {
        let (mut credential, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            match name.to_ascii_lowercase().as_str() {
                "authorization" => credential = value.trim().trim_start_matches("Bearer ").to_owned(),
                "content-length" => length = value.trim().parse().unwrap_or(0),
                _ => {}
            }
        }
        reader.by_ref().take(length).read_to_end(&mut Vec::new())?;
        calls.fetch_add(1, Ordering::SeqCst);
        let body = json!({"credential": credential}).to_string();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ";
        writer.write_all(format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes())?;
    }
}

/// A model call of this agent, with a credential of the workspace.
pub fn call(studio: &Studio<'_>, agent: &str, credential: &str) -> Request {
    let path = "/api/agents/model-calls/openai/v1/chat/completions";
    let target = format!("{path}?workspace_id={}&agent_id={agent}", studio.id);
    let body = json!({"model": "gpt-5.5", "messages": [{"role": "user", "content": "Hello"}]});
    studio.server.post(target).bearer(credential).json(&body)
}

/// The credential that the provider got.
pub fn credential(answer: &Response) -> String {
    answer.json()["credential"].as_str().unwrap().to_owned()
}

/// A request that saves or, without one, deletes the provider key of the workspace.
pub fn save(studio: &Studio<'_>, key: Option<&str>) -> Request {
    let target = format!("/api/provider-keys?workspace_id={}&provider=openai", studio.id);
    let request = match key {
        Some(key) => studio.server.put(target).json(&json!({"api_key": key})),
        None => studio.server.delete(target),
    };
    request.bearer(&studio.owner)
}
