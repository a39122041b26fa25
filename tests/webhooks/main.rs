//! Webhooks through the real binary: a local receiver gets the messages, and the reference implementation of Standard
//! Webhooks verifies them.

// Tests watch real processes in real time.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod answers;
mod bodies;
mod client;
mod crash;
mod documented_receivers;
mod receiver;
mod signatures;

use agentcfg_tests::harness::{Request, Response, Server, Studio};
use serde_json::{Value, json};

use self::receiver::Receiver;

/// A server that may send to this receiver.
fn server_for(receivers: &[&Receiver]) -> Server {
    let hosts: Vec<String> = receivers
        .iter()
        .map(|receiver| receiver.address().to_string())
        .collect();
    Server::builder()
        .set("webhook_allowed_hosts", hosts.join(","))
        .set("session_rate_limit", "1000000")
        .start()
}

fn create_request(studio: &Studio<'_>, fields: &Value) -> Request {
    let mut body = json!({"workspace_id": studio.id});
    let more = fields.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    studio.server.post("/api/webhooks").bearer(&studio.owner).json(&body)
}

fn create(studio: &Studio<'_>, receiver: &Receiver, fields: &Value) -> Value {
    let mut all = json!({"url": receiver.url("/hook")});
    let more = fields.as_object().unwrap().clone();
    all.as_object_mut().unwrap().extend(more);
    create_request(studio, &all).send().expect(201).json()
}

/// A request on one webhook.
fn on(studio: &Studio<'_>, method: &str, path: &str, webhook: &Value) -> Request {
    let id = webhook["id"].as_str().unwrap();
    let target = format!("/api/webhooks{path}?webhook_id={id}");
    studio.server.request(method, target).bearer(&studio.owner)
}

fn list(studio: &Studio<'_>) -> Value {
    let target = format!("/api/webhooks?workspace_id={}", studio.id);
    studio
        .server
        .get(target)
        .bearer(&studio.owner)
        .send()
        .expect(200)
        .json()
}

fn deliveries(studio: &Studio<'_>, webhook: &Value) -> Vec<Value> {
    let answer: Response = on(studio, "GET", "/deliveries", webhook).send().expect(200);
    answer.json().as_array().unwrap().clone()
}
