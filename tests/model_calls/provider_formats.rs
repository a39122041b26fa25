//! Responses in the providers' own formats, complete enough for the official SDKs.

use bytes::Bytes;
use hyper::Response;
use serde_json::{Value, json};

use crate::upstream::Seen;

/// The text that every model generates.
pub const WORDS: [&str; 3] = ["The ", "notes are ", "ready."];

/// The response to a request: complete, or as its events.
pub fn answer(seen: &Seen) -> Response<Vec<Bytes>> {
    let path = seen.target.split('?').next().unwrap_or_default();
    let body: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
    let model = body["model"].as_str().unwrap_or("none");
    let streams = body["stream"] == true;
    let pieces = match (path, streams) {
        ("/v1/chat/completions", false) => vec![whole(&chat(model))],
        ("/v1/chat/completions", true) => chat_events(model),
        ("/v1/responses", false) => vec![whole(&response(model))],
        ("/v1/responses", true) => response_events(model),
        ("/v1/messages", false) => vec![whole(&message(model))],
        ("/v1/messages", true) => message_events(model),
        ("/v1/embeddings", _) => vec![whole(&json!({
            "object": "list", "model": model, "usage": {"prompt_tokens": 1, "total_tokens": 1},
            "data": [{"object": "embedding", "index": 0, "embedding": [0.25, -0.5]}],
        }))],
        ("/v1/files", _) => vec![whole(&json!({
            "id": "file-1", "object": "file", "bytes": 4, "created_at": 1, "filename": "a.jsonl", "purpose": "batch",
        }))],
        _ => vec![whole(&json!({"echo": path}))],
    };
    let content_type = if streams {
        "text/event-stream"
    } else {
        "application/json"
    };
    let (id, provider_id) = if path == "/v1/messages" {
        ("request-id", "req_anthropic")
    } else {
        ("x-request-id", "req_openai")
    };
    Response::builder()
        .header("content-type", content_type)
        .header(id, provider_id)
        .header("x-ratelimit-remaining-requests", "59")
        .body(pieces)
        .unwrap()
}

fn whole(value: &Value) -> Bytes {
    value.to_string().into()
}

/// An unnamed event, as in chat completions.
pub fn data(value: &Value) -> Bytes {
    format!("data: {value}\n\n").into()
}

/// An event named after its type.
pub fn event(value: &Value) -> Bytes {
    let name = value["type"].as_str().unwrap();
    format!("event: {name}\ndata: {value}\n\n").into()
}

fn text() -> String {
    WORDS.concat()
}

fn chat(model: &str) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model,
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text()}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4},
    })
}

fn chat_events(model: &str) -> Vec<Bytes> {
    let mut events: Vec<_> = WORDS.iter().map(|word| chat_event(model, word)).collect();
    events.push(chat_end(model));
    events
}

/// One word of a chat completion.
pub fn chat_event(model: &str, word: &str) -> Bytes {
    data(&json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model,
        "choices": [{"index": 0, "finish_reason": null, "delta": {"role": "assistant", "content": word}}],
    }))
}

/// The last event of a chat completion.
pub fn chat_end(model: &str) -> Bytes {
    let last = data(&json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model,
        "choices": [{"index": 0, "finish_reason": "stop", "delta": {}}],
    }));
    [&last[..], b"data: [DONE]\n\n"].concat().into()
}

fn response(model: &str) -> Value {
    json!({
        "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": model,
        "output": [{
            "type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": text(), "annotations": []}],
        }],
        "usage": {"input_tokens": 1, "output_tokens": 3, "total_tokens": 4},
    })
}

fn response_events(model: &str) -> Vec<Bytes> {
    let begun = json!({"id": "resp_1", "object": "response", "created_at": 1, "status": "in_progress", "model": model, "output": []});
    let mut events = vec![event(
        &json!({"type": "response.created", "sequence_number": 0, "response": begun}),
    )];
    for (number, word) in (1..).zip(WORDS) {
        events.push(event(&json!({
            "type": "response.output_text.delta", "sequence_number": number, "item_id": "msg_1",
            "output_index": 0, "content_index": 0, "delta": word,
        })));
    }
    events.push(event(
        &json!({"type": "response.completed", "sequence_number": 9, "response": response(model)}),
    ));
    events
}

fn message(model: &str) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": model,
        "content": [{"type": "text", "text": text()}],
        "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 1, "output_tokens": 3},
    })
}

fn message_events(model: &str) -> Vec<Bytes> {
    let mut events = vec![message_start(model)];
    events.extend(WORDS.iter().map(|word| message_event(word)));
    events.push(message_end());
    events
}

/// The first events of a message.
pub fn message_start(model: &str) -> Bytes {
    let mut begun = message(model);
    begun["content"] = json!([]);
    begun["stop_reason"] = Value::Null;
    let start = event(&json!({"type": "message_start", "message": begun}));
    let block =
        event(&json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}));
    [start, block].concat().into()
}

/// One word of a message.
pub fn message_event(word: &str) -> Bytes {
    event(&json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}))
}

/// The last events of a message.
pub fn message_end() -> Bytes {
    let block = event(&json!({"type": "content_block_stop", "index": 0}));
    let delta = event(&json!({
        "type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 3},
    }));
    let stop = event(&json!({"type": "message_stop"}));
    [block, delta, stop].concat().into()
}
