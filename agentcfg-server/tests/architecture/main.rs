//! Checks of the layers of the crate, of the core and of the client on their source. `ARCHITECTURE.md` describes them.

#![allow(clippy::unwrap_used)]

mod client;
mod source;

use std::collections::{BTreeMap, BTreeSet};

use source::{Module, Source};

/// The top folders and files, each with those that it may use. `main.rs` is outside: it uses the crate as others do.
const LAYERS: &[(&str, &[&str])] = &[
    ("process", &["api", "http", "identity", "listen", "outbound", "secret"]),
    ("api", &["http", "outbound"]),
    ("identity", &["outbound", "secret"]),
    ("listen", &["http", "hyper_internals"]),
    ("http", &[]),
    ("outbound", &["hyper_internals"]),
    ("secret", &[]),
    ("hyper_internals", &[]),
];

/// The top folders and files of the core, from the top down: each may use those in the rows below, and in the last row
/// also those beside it.
const CORE: &[&[&str]] = &[
    &["service"],
    &["rate_limit", "routing", "session", "token", "vault"],
    &["store", "webhook"],
    &["clock", "error", "tls"],
    &[
        "address", "body", "hex", "json", "model", "rules", "secret", "sync", "validate",
    ],
];

/// Where status codes are named besides `http/errors.rs`, and which. Those that identity providers answer with are
/// read, not chosen.
const STATUS_CODES: &[(&str, &[&str])] = &[
    ("http/response.rs", &["OK", "CREATED", "NOT_MODIFIED"]),
    ("http/response/whole.rs", &["NO_CONTENT"]),
    ("http/cors.rs", &["NO_CONTENT"]),
    ("api/app/exchange.rs", &["NOT_MODIFIED"]),
    ("api/mcp/message.rs", &["OK", "ACCEPTED", "BAD_REQUEST", "NOT_FOUND"]),
    ("http/static_file.rs", &["NOT_MODIFIED"]),
    ("listen/http2/body.rs", &["CONTINUE"]),
    ("api/ui/sign_in.rs", &["SEE_OTHER"]),
    (
        "identity/introspection.rs",
        &["OK", "BAD_REQUEST", "UNAUTHORIZED", "FORBIDDEN"],
    ),
    ("identity/discovery.rs", &["OK"]),
    ("outbound/mod.rs", &["PROXY_AUTHENTICATION_REQUIRED"]),
];

const SERVER: &str = "agentcfg-server/src";
const CORE_FOLDER: &str = "agentcfg-core/src";

fn sample(files: &[(&str, &str)]) -> Source {
    Source::of(files.iter().map(|(path, text)| (path.to_string(), text.to_string())))
}

/// What a layer of the server may use.
fn below(layer: &str) -> Option<Vec<&'static str>> {
    let (_, allowed) = LAYERS.iter().find(|(name, _)| *name == layer)?;
    Some(allowed.to_vec())
}

/// What a layer of the core may use.
fn below_in_core(layer: &str) -> Option<Vec<&'static str>> {
    let row = CORE.iter().position(|row| row.contains(&layer))?;
    Some(CORE[(row + 1).min(CORE.len() - 1)..].concat())
}

/// Uses that go up or sideways, where `below` tells what a layer may use.
fn wrong_directions(source: &Source, below: impl Fn(&str) -> Option<Vec<&'static str>>) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in source
        .files
        .iter()
        .filter(|file| !matches!(&*file.path, "lib.rs" | "main.rs"))
    {
        let layer = &file.module[0];
        let allowed = below(layer).unwrap_or_else(|| panic!("{} is in no layer", file.path));
        let uses = source.uses(file).into_iter();
        let up = uses.filter(|used| used[0] != *layer && !allowed.contains(&&*used[0]));
        wrong.extend(up.map(|used| format!("{} uses {}", file.path, used.join("::"))));
    }
    wrong
}

/// A circle among the modules in `folder`, where those that lie `depth` below the root count as one.
fn circle(source: &Source, folder: &[&str], depth: usize) -> Option<String> {
    let cut = |module: &Module| module[..module.len().min(depth)].to_vec();
    let is_inside = |module: &Module| module.len() >= folder.len() && module.iter().zip(folder).all(|(a, b)| a == b);
    let mut graph: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for file in source
        .files
        .iter()
        .filter(|file| file.path != "lib.rs" && is_inside(&file.module))
    {
        let node = cut(&file.module);
        let uses = source.uses(file).into_iter().filter(is_inside).map(|used| cut(&used));
        let others: Vec<_> = uses.filter(|used| *used != node).collect();
        graph.entry(node).or_default().extend(others);
    }
    // What uses nothing that is left is in no circle. What remains in the end is in one, or leads to one.
    loop {
        let left: BTreeSet<Module> = graph.keys().cloned().collect();
        graph.retain(|_, uses| !uses.is_disjoint(&left));
        if graph.len() == left.len() {
            return (!left.is_empty()).then(|| format!("{graph:?}"));
        }
    }
}

/// Status codes that are named where they should not be.
fn status_codes(source: &Source) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in source.files.iter().filter(|file| file.path != "http/errors.rs") {
        let allowed = STATUS_CODES.iter().find(|(path, _)| *path == file.path);
        for pair in file
            .tokens
            .windows(3)
            .filter(|words| words[..2] == ["StatusCode", "::"])
        {
            if allowed.is_none_or(|(_, codes)| !codes.contains(&&*pair[2])) {
                wrong.push(format!("{} names StatusCode::{}", file.path, pair[2]));
            }
        }
    }
    wrong
}

#[test]
fn imports_point_down() {
    assert_eq!(wrong_directions(&Source::read(SERVER), below), Vec::<String>::new());
}

#[test]
fn imports_of_the_core_point_down() {
    assert_eq!(
        wrong_directions(&Source::read(CORE_FOLDER), below_in_core),
        Vec::<String>::new()
    );
    let source = sample(&[("error.rs", "use crate::store::StoreError;"), ("store/mod.rs", "")]);
    assert_eq!(wrong_directions(&source, below_in_core), ["error.rs uses store"]);
    let source = sample(&[("store/a.rs", "use crate::webhook::W;"), ("webhook/mod.rs", "")]);
    assert_eq!(wrong_directions(&source, below_in_core), ["store/a.rs uses webhook"]);
}

#[test]
fn nothing_is_used_in_a_circle() {
    for folder in [
        SERVER,
        "stores/postgres/src",
        "stores/etcd/src",
        "agentcfg-client/src",
        "agentcfg-cli/src",
    ] {
        assert_eq!(circle(&Source::read(folder), &[], usize::MAX), None, "{folder}");
    }
    let mut core = Source::read(CORE_FOLDER);
    // Every file of the service uses the handle, which has the state of all.
    core.files.retain(|file| file.path != "service/mod.rs");
    assert_eq!(circle(&core, &[], usize::MAX), None);
}

#[test]
fn status_codes_of_failures_are_chosen_in_one_file() {
    assert_eq!(status_codes(&Source::read(SERVER)), Vec::<String>::new());
    let text = "fn f() { StatusCode::NOT_MODIFIED; hyper::StatusCode::NOT_FOUND }";
    let found = status_codes(&sample(&[("api/app/exchange.rs", text)]));
    assert_eq!(found, ["api/app/exchange.rs names StatusCode::NOT_FOUND"]);
}

#[test]
fn a_use_that_points_up_is_seen() {
    for text in [
        "use crate::{\n    api::{\n        App,\n    },\n};",
        "use super::super::api::App;",
        "fn f() { crate::api::App::new() }",
        "use crate::App;",
    ] {
        let root = ("lib.rs", "mod api; mod http; pub use api::App;");
        let source = sample(&[root, ("http/query.rs", text), ("api/mod.rs", "pub struct App;")]);
        assert_eq!(wrong_directions(&source, below), ["http/query.rs uses api"], "{text}");
    }
    let quiet = "//! crate::api\n/* crate::api */ const A: &str = \"crate::api\";\n#[cfg(test)]\nmod tests { use crate::api::App; }";
    let source = sample(&[("http/query.rs", quiet), ("api/mod.rs", "")]);
    assert_eq!(wrong_directions(&source, below), Vec::<String>::new());
}

#[test]
fn a_circle_is_seen() {
    for (a, b, root) in [
        ("use super::b::B;", "use super::a::A;", ""),
        ("use crate::http::B;", "use crate::http::a::A;", "pub use b::B;"),
        ("use super::Limit;", "", "struct Limit; fn f() { a::g() }"),
    ] {
        let source = sample(&[("http/mod.rs", root), ("http/a.rs", a), ("http/b.rs", b)]);
        assert!(circle(&source, &["http"], usize::MAX).is_some(), "{a} {b} {root}");
        assert_eq!(circle(&source, &[], 1), None);
    }
    let straight = [
        ("http/mod.rs", "pub use a::A;"),
        ("http/a.rs", ""),
        ("http/b.rs", "use super::A;"),
    ];
    assert_eq!(circle(&sample(&straight), &["http"], usize::MAX), None);
}
