//! Checks of the layers of the crate, of the core and of the client on their source. `ARCHITECTURE.md` describes them.

#![allow(clippy::unwrap_used)]

mod client;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use source::{File, Module, Source};

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

/// The top folders and files of the core, from the top down: each may use those in the rows below, and in the last row also
/// those beside it.
const CORE: &[&[&str]] = &[
    &["service"],
    &["rate_limit", "routing", "session", "token", "vault"],
    &["store", "webhook"],
    &["clock", "error", "tls"],
    &["address", "body", "json", "model", "rules", "secret", "validate"],
];

/// The folders of the core whose files must not use each other in a circle. Its lowest layer is one vocabulary.
const CORE_WITHOUT_CIRCLES: [&[&str]; 6] = [
    &["rate_limit"],
    &["routing"],
    &["session"],
    &["token"],
    &["vault"],
    &["webhook"],
];

/// Where status codes are named besides `http/errors.rs`, and which. Those that identity providers answer with are read,
/// not chosen.
const STATUS_CODES: &[(&str, &[&str])] = &[
    ("http/response.rs", &["OK", "CREATED", "NOT_MODIFIED"]),
    ("http/response/whole.rs", &["NO_CONTENT"]),
    ("http/cors.rs", &["NO_CONTENT"]),
    ("api/app/exchange.rs", &["NOT_MODIFIED"]),
    ("api/mcp/message.rs", &["OK", "ACCEPTED", "BAD_REQUEST", "NOT_FOUND"]),
    ("http/static_file.rs", &["NOT_MODIFIED"]),
    ("api/ui/sign_in.rs", &["SEE_OTHER"]),
    (
        "identity/introspection.rs",
        &["OK", "BAD_REQUEST", "UNAUTHORIZED", "FORBIDDEN"],
    ),
    ("identity/discovery.rs", &["OK"]),
];

fn crate_source() -> Source {
    Source::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

fn core_source() -> Source {
    Source::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../agentcfg-core/src"))
}

fn sample(files: &[(&str, &str)]) -> Source {
    Source::of(
        files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned())),
    )
}

/// What a layer of this crate may use.
fn below(layer: &str) -> Option<Vec<&'static str>> {
    let (_, allowed) = LAYERS.iter().find(|(name, _)| *name == layer)?;
    Some(allowed.to_vec())
}

/// What a layer of the core may use.
fn below_in_core(layer: &str) -> Option<Vec<&'static str>> {
    let row = CORE.iter().position(|row| row.contains(&layer))?;
    let first = (row + 1).min(CORE.len() - 1);
    Some(CORE[first..].concat())
}

/// Uses that go up or sideways, where `below` tells what a layer may use.
fn wrong_directions(source: &Source, below: impl Fn(&str) -> Option<Vec<&'static str>>) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in source.files.iter().filter(|file| !is_root(file)) {
        let Some(allowed) = below(&file.module[0]) else {
            wrong.push(format!("{} is in no layer", file.path));
            continue;
        };
        for used in source.uses(file) {
            if used[0] != file.module[0] && !allowed.contains(&used[0].as_str()) {
                wrong.push(format!("{} uses {}", file.path, used.join("::")));
            }
        }
    }
    wrong
}

fn is_root(file: &File) -> bool {
    matches!(file.path.as_str(), "lib.rs" | "main.rs")
}

/// A circle among the modules below `folder`, where those that lie `depth` below the root count as one.
fn circle(source: &Source, folder: &[&str], depth: usize) -> Option<String> {
    let cut = |module: &Module| module[..module.len().min(depth)].to_vec();
    let below = |module: &Module| module.len() >= folder.len() && module.iter().zip(folder).all(|(a, b)| a == b);
    let mut graph: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for file in source.files.iter().filter(|file| !is_root(file) && below(&file.module)) {
        let node = cut(&file.module);
        let uses = source.uses(file).into_iter().filter(below).map(|used| cut(&used));
        let uses: Vec<_> = uses.filter(|used| *used != node).collect();
        graph.entry(node).or_default().extend(uses);
    }
    // What uses nothing that is left is in no circle, and neither is what nothing uses. What remains in the end is, or lies
    // between two circles.
    loop {
        let before = graph.len();
        let left: BTreeSet<Module> = graph.keys().cloned().collect();
        graph.retain(|_, uses| uses.iter().any(|used| left.contains(used)));
        let used: BTreeSet<Module> = graph.values().flatten().cloned().collect();
        graph.retain(|node, _| used.contains(node));
        if graph.len() == before {
            break;
        }
    }
    let shown = |(node, uses): (&Module, &BTreeSet<Module>)| {
        let uses: Vec<String> = uses
            .iter()
            .filter(|used| graph.contains_key(*used))
            .map(|used| used.join("::"))
            .collect();
        format!("{} uses {}", node.join("::"), uses.join(", "))
    };
    (!graph.is_empty()).then(|| graph.iter().map(shown).collect::<Vec<_>>().join("; "))
}

/// Status codes that are named where they should not be.
fn status_codes(source: &Source) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in source.files.iter().filter(|file| file.path != "http/errors.rs") {
        let allowed = STATUS_CODES.iter().find(|(path, _)| *path == file.path);
        for named in file
            .tokens
            .windows(3)
            .filter(|named| named[0] == "StatusCode" && named[1] == "::")
        {
            if allowed.is_none_or(|(_, codes)| !codes.contains(&named[2].as_str())) {
                wrong.push(format!("{} names StatusCode::{}", file.path, named[2]));
            }
        }
    }
    wrong
}

/// Storage engines that are named outside of `process/backend`.
fn engines(source: &Source) -> Vec<String> {
    let mut wrong = Vec::new();
    let is_outside = |file: &&File| !file.path.starts_with("process/backend");
    for file in source.files.iter().filter(is_outside) {
        for token in &file.tokens {
            let word = token.to_lowercase();
            // The names of settings begin with `etcd_`.
            let is_etcd = word == "etcd" || word.starts_with("etcds") || word.starts_with("etcdo");
            if word.contains("redb") || word.contains("postgres") || is_etcd {
                wrong.push(format!("{} names {token}", file.path));
            }
        }
    }
    wrong
}

#[test]
fn imports_point_down() {
    assert_eq!(wrong_directions(&crate_source(), below), Vec::<String>::new());
}

#[test]
fn imports_of_the_core_point_down() {
    assert_eq!(wrong_directions(&core_source(), below_in_core), Vec::<String>::new());
    let source = sample(&[("error.rs", "use crate::store::StoreError;"), ("store/mod.rs", "")]);
    assert_eq!(wrong_directions(&source, below_in_core), ["error.rs uses store"]);
    let source = sample(&[("store/a.rs", "use crate::webhook::W;"), ("webhook/mod.rs", "")]);
    assert_eq!(wrong_directions(&source, below_in_core), ["store/a.rs uses webhook"]);
}

#[test]
fn nothing_is_used_in_a_circle() {
    assert_eq!(circle(&crate_source(), &[], usize::MAX), None);
}

#[test]
fn nothing_in_the_core_is_used_in_a_circle() {
    let core = core_source();
    let circles = CORE_WITHOUT_CIRCLES.map(|folder| circle(&core, folder, usize::MAX));
    // Each engine counts as one.
    let store = circle(&core, &["store"], 2);
    // Every file of the service uses the handle, which has the state of all.
    let service = circle(&core.without("service/mod.rs"), &["service"], usize::MAX);
    let found: Vec<String> = circles.into_iter().chain([service, store]).flatten().collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn nothing_in_the_client_and_its_command_is_used_in_a_circle() {
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agentcfg-client/src");
    for root in [client.clone(), client.join("bin/agentcfg")] {
        let source = Source::read(&root);
        assert!(source.files.len() > 10, "{}", root.display());
        assert_eq!(circle(&source, &[], usize::MAX), None);
    }
}

#[test]
fn status_codes_of_failures_are_chosen_in_one_file() {
    assert_eq!(status_codes(&crate_source()), Vec::<String>::new());
}

#[test]
fn engines_are_named_in_one_place() {
    assert_eq!(engines(&crate_source()), Vec::<String>::new());
}

#[test]
fn a_use_that_points_up_is_seen() {
    for text in [
        "use crate::api::App;",
        "use crate::{\n    api::{\n        App,\n    },\n};",
        "use super::super::api::App;",
        "fn f() { crate::api::App::new() }",
        "use crate::App;",
    ] {
        let root = ("lib.rs", "mod api; mod http; pub use api::App;");
        let source = sample(&[
            root,
            ("http/mod.rs", ""),
            ("http/query.rs", text),
            ("api/mod.rs", "pub struct App;"),
        ]);
        assert_eq!(wrong_directions(&source, below), ["http/query.rs uses api"], "{text}");
    }
    let quiet = "//! crate::api\n/* crate::api */ const A: &str = \"crate::api\";\n#[cfg(test)]\n#[allow(dead_code)]\nmod tests { use crate::api::App; }";
    let source = sample(&[("http/query.rs", quiet), ("api/mod.rs", "")]);
    assert_eq!(wrong_directions(&source, below), Vec::<String>::new());
}

#[test]
fn a_circle_is_seen() {
    let circles = [
        ("use super::b::B;", "use super::a::A;", ""),
        ("use crate::http::B;", "use crate::http::a::A;", "pub use b::B;"),
        ("use super::Limit;", "", "struct Limit; fn f() { a::g() }"),
    ];
    for (a, b, root) in circles {
        let source = sample(&[("http/mod.rs", root), ("http/a.rs", a), ("http/b.rs", b)]);
        assert!(circle(&source, &["http"], usize::MAX).is_some(), "{a} {b} {root}");
        assert_eq!(circle(&source, &[], 1), None);
    }
    let straight = sample(&[
        ("http/mod.rs", "pub use a::A;"),
        ("http/a.rs", ""),
        ("http/b.rs", "use super::A;"),
    ]);
    assert_eq!(circle(&straight, &["http"], usize::MAX), None);
    let folders = sample(&[
        ("http/mod.rs", ""),
        ("http/a.rs", "use crate::listen::B;"),
        ("listen/mod.rs", "use crate::http::a::A;"),
    ]);
    assert!(circle(&folders, &[], 1).is_some());
    let parent = sample(&[
        ("api/mod.rs", ""),
        ("api/feed/mod.rs", "struct Limit; fn f() { a::g() }"),
        ("api/feed/a.rs", "use super::Limit;"),
    ]);
    assert!(circle(&parent, &[], usize::MAX).is_some());
    assert_eq!(circle(&parent, &["api"], 2), None);
}

#[test]
fn a_status_code_and_an_engine_elsewhere_are_seen() {
    let source = sample(&[
        (
            "api/app/exchange.rs",
            "StatusCode::NOT_MODIFIED; hyper::StatusCode::NOT_FOUND",
        ),
        (
            "process/config/mod.rs",
            "use agentcfg_core::store::{MemoryStore,\n redb::RedbStore}; const U: &str = \"postgres://\";",
        ),
    ]);
    assert_eq!(
        status_codes(&source),
        ["api/app/exchange.rs names StatusCode::NOT_FOUND"]
    );
    assert_eq!(
        engines(&source),
        [
            "process/config/mod.rs names redb",
            "process/config/mod.rs names RedbStore"
        ]
    );
}
