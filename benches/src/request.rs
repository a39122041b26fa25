//! The requests under measurement, and single requests for the setup.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// The fields that are equal in all created agents.
const COMMON_FIELDS: &str = concat!(
    r##""model":"claude-sonnet-4","color":"#7c3aed","capabilities":["search","summarise"],"##,
    r##""parameters":{"rigour":90,"warmth":70},"##,
    r##""persona_prompt":"You read carefully, you cite what you found, and you say what you do not know."}"##
);

/// The request that lists a workspace's agents.
pub fn list(workspace: &str, key: &str) -> String {
    get(&list_path(workspace), key)
}

/// A request without a body.
pub fn get(path: &str, key: &str) -> String {
    message("GET", path, key, "", "")
}

/// The request that creates an agent.
pub fn create(workspace: &str, key: &str, agent_id: &str) -> String {
    post("/api/agents/configs", key, &agent(workspace, agent_id))
}

/// A request with a body of JSON.
pub fn post(path: &str, key: &str, body: &str) -> String {
    message("POST", path, key, "", body)
}

/// The path of a workspace's list.
pub fn list_path(workspace: &str) -> String {
    format!("/api/agents/configs?workspace_id={workspace}")
}

/// The body that creates an agent of a realistic size.
pub fn agent(workspace: &str, agent_id: &str) -> String {
    format!(
        r##"{{"workspace_id":"{workspace}","agent_id":"{agent_id}","display_name":"Agent","role":"Researcher",{COMMON_FIELDS}"##
    )
}

/// Sends one request on its own connection; returns the whole response.
pub fn send(address: SocketAddr, method: &str, path: &str, credential: &str, body: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(message(method, path, credential, "connection: close\r\n", body).as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The JSON body of a response.
pub fn body(answer: &str) -> Option<serde_json::Value> {
    serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
}

/// A text field of the JSON body of a response.
pub fn field(answer: &str, name: &str) -> Option<String> {
    body(answer)?.get(name)?.as_str().map(str::to_owned)
}

fn message(method: &str, path: &str, credential: &str, fields: &str, body: &str) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {credential}\r\n{fields}");
    if !body.is_empty() {
        text += &format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    }
    text + "\r\n" + body
}
