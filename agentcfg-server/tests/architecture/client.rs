//! The endpoints that the client calls, from its source, against the OpenAPI document.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The operations without a method of the client, and why.
const WITHOUT_METHOD: &[(&str, &str)] = &[
    ("POST /api/sessions", "signs a browser in, which holds the cookie"),
    ("DELETE /api/sessions", "signs a browser out"),
    ("POST /api/agents/model-calls/openai/v1/chat/completions", MODEL_CALL),
    ("POST /api/agents/model-calls/openai/v1/responses", MODEL_CALL),
    ("POST /api/agents/model-calls/openai/v1/embeddings", MODEL_CALL),
    ("POST /api/agents/model-calls/anthropic/v1/messages", MODEL_CALL),
    (
        "POST /api/agents/model-calls/anthropic/v1/messages/count_tokens",
        MODEL_CALL,
    ),
    ("POST /api/agents/model-calls/{provider}/{path}", MODEL_CALL),
    ("GET /api/agents/model-calls/{provider}/{path}", MODEL_CALL),
    ("PUT /api/agents/model-calls/{provider}/{path}", MODEL_CALL),
    ("PATCH /api/agents/model-calls/{provider}/{path}", MODEL_CALL),
    ("DELETE /api/agents/model-calls/{provider}/{path}", MODEL_CALL),
    ("POST /mcp", "is called by an assistant"),
    ("GET /openapi.json", "is read by generators"),
];

const MODEL_CALL: &str = "is called with the SDK of the provider";

/// Health checks go through one function, which has the path as its argument.
const PROBES: &str = "self.probe(";

/// `GET /path` of each request that a file makes.
fn requests(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let constant = |name: &str| {
        let (_, value) = text.split_once(&format!("const {name}: &str = \""))?;
        value.split('"').next()
    };
    let argument = |rest: &str| {
        let name = rest.split([')', ',']).next()?.trim().to_owned();
        let path = match name.strip_prefix('"') {
            Some(literal) => literal.trim_end_matches('"').to_owned(),
            None => constant(&name)?.to_owned(),
        };
        path.starts_with('/').then_some(path)
    };
    let calls = text.split("Call::").skip(1).filter_map(|call| {
        let (method, rest) = call.split_once('(')?;
        Some(format!("{} {}", method.to_uppercase(), argument(rest)?))
    });
    let probes = text.split(PROBES).skip(1);
    let probes = probes.filter_map(|rest| Some(format!("GET {}", argument(rest)?)));
    calls.chain(probes).collect()
}

fn operations() -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/api/openapi.json");
    let document: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let of_path = |(path, item): (&String, &serde_json::Value)| {
        let methods = item.as_object().unwrap().iter();
        let methods = methods.filter(|(_, operation)| operation.get("operationId").is_some());
        let named = methods.map(|(method, _)| format!("{} {path}", method.to_uppercase()));
        named.collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}

#[test]
fn each_endpoint_has_a_method_of_the_client() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agentcfg-client/src");
    let mut called = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            called.extend(requests(&fs::read_to_string(path).unwrap()));
        }
    }
    let without: BTreeSet<_> = WITHOUT_METHOD.iter().map(|(name, _)| (*name).to_owned()).collect();
    let expected: BTreeSet<_> = operations().difference(&without).cloned().collect();
    assert_eq!(called, expected, "left: called by the client, right: of the document");
    assert!(without.is_subset(&operations()), "an exception is no operation");
}

#[test]
fn requests_are_found() {
    let text = "const A: &str = \"/a\";\nCall::get(A).query(); Call::post(\n \"/b\"); self.probe(\"/c\"); Call::put(path)\n\
                #[cfg(test)]\nCall::get(\"/t\")";
    assert_eq!(requests(text), ["GET /a", "POST /b", "GET /c"]);
}
