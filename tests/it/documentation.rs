//! The documentation that the server has in itself: `/docs`, `/docs.css`, `/docs.md` and `/llms.txt`.

use std::process::Command;

use agentcfg_tests::harness::{Server, Studio, not_run};

const FILES: [(&str, &str); 4] = [
    ("/docs", "text/html; charset=utf-8"),
    ("/docs.css", "text/css; charset=utf-8"),
    ("/docs.md", "text/markdown; charset=utf-8"),
    ("/llms.txt", "text/plain; charset=utf-8"),
];

#[test]
fn files_are_typed_compressed_and_validated() {
    let server = Server::shared();
    for (path, media_type) in FILES {
        let plain = server.get(path).send().expect(200);
        assert_eq!(plain.need("content-type"), media_type);
        assert_eq!(plain.header("content-encoding"), None);
        assert_eq!(plain.header("x-ratelimit-limit"), None, "no credential is read");
        let packed = server.get(path).header("Accept-Encoding", "gzip").send().expect(200);
        assert_eq!(packed.need("content-encoding"), "gzip");
        assert_eq!(packed.plain_body(), plain.body);
        let head = server.request("HEAD", path).send().expect(200);
        assert_eq!(head.number("content-length"), i64::try_from(plain.body.len()).unwrap());
        assert_eq!(head.body, b"");
        for tag in [plain.etag(), packed.etag()] {
            server.get(path).header("If-None-Match", tag).send().expect(304);
        }
        for seen in [&plain, &packed, &head] {
            let policy = seen.need("content-security-policy");
            assert!(policy.starts_with("default-src 'none'; style-src 'self';"), "{policy}");
            assert!(!policy.contains("unsafe") && !policy.contains("script"), "{policy}");
            assert_eq!(seen.need("x-content-type-options"), "nosniff");
            assert_eq!(seen.need("referrer-policy"), "no-referrer");
        }
    }
}

#[test]
fn other_methods_and_paths_are_refused() {
    let server = Server::shared();
    for (path, _) in FILES {
        let refused = server.post(path).send().expect(405);
        assert_eq!(refused.need("allow"), "GET, HEAD");
        assert!(
            refused.error().contains("POST is not allowed here"),
            "{}",
            refused.error()
        );
    }
    for path in [
        "/docs/",
        "/docs/agents",
        "//docs",
        "/docs.html",
        "/doc",
        "/llms",
        "/docs%2emd",
        "/ui/docs.css",
    ] {
        server.get(path).send().expect(404);
    }
    server.get("/docs?x=y").send().expect(200);
}

#[test]
fn the_page_has_all_operations_of_the_description() {
    let server = Server::shared();
    let description = server.get("/openapi.json").send().expect(200).json();
    let page = String::from_utf8(server.get("/docs").send().expect(200).body).unwrap();
    let text = String::from_utf8(server.get("/docs.md").send().expect(200).body).unwrap();
    let index = String::from_utf8(server.get("/llms.txt").send().expect(200).body).unwrap();
    assert!(index.starts_with("# agentcfg\n\n> "), "{index}");
    let mut operations = 0;
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let Some(summary) = operation["summary"].as_str() else {
                continue;
            };
            let place = format!("{} {path}", method.to_uppercase());
            assert!(text.contains(&format!("### {summary}\n\n`{place}`\n")), "{place}");
            assert!(page.contains(&format!("<code>{place}</code>")), "{place}");
            operations += 1;
        }
    }
    assert!(operations > 40, "{operations}");
    for tag in description["tags"].as_array().unwrap() {
        let name = tag["name"].as_str().unwrap();
        assert!(page.contains(&format!(">{name}</h2>")), "{name}");
        assert!(index.contains(&format!("- [{name}](docs.md#")), "{name}");
    }
}

/// Lines that are not answered with 200: they create something, or name what a new workspace does not have.
const OTHERS: [(&str, &str); 30] = [
    ("POST /api/sessions", "204"),
    ("DELETE /api/sessions", "204"),
    ("DELETE /api/workspaces", "400"),
    ("DELETE /api/api-keys", "404"),
    ("POST /api/api-keys/rotate", "404"),
    ("PATCH /api/webhooks", "404"),
    ("DELETE /api/webhooks", "404"),
    ("POST /api/webhooks/test", "404"),
    ("POST /api/webhooks/replay", "404"),
    ("POST /api/webhooks/rotate-secret", "404"),
    ("GET /api/webhooks/deliveries", "404"),
    ("POST /api/agents/model-calls/openai/v1/chat/completions", "503"),
    ("POST /api/agents/model-calls/openai/v1/responses", "503"),
    ("POST /api/agents/model-calls/openai/v1/embeddings", "503"),
    ("POST /api/agents/model-calls/anthropic/v1/messages", "400"),
    ("POST /api/agents/model-calls/anthropic/v1/messages/count_tokens", "503"),
    ("POST /api/agents/model-calls/{provider}/{path}", "503"),
    ("GET /api/agents/model-calls/{provider}/{path}", "403"),
    ("PUT /api/agents/model-calls/{provider}/{path}", "403"),
    ("PATCH /api/agents/model-calls/{provider}/{path}", "403"),
    ("DELETE /api/agents/model-calls/{provider}/{path}", "403"),
    ("POST /api/provider-keys/test", "404"),
    ("POST /api/workspaces", "201"),
    ("POST /api/agents/configs", "201"),
    ("POST /api/api-keys", "201"),
    ("POST /api/webhooks", "201"),
    ("GET /api/operator/workspaces", NO_OPERATOR),
    ("GET /api/operator/api-keys", NO_OPERATOR),
    ("DELETE /api/operator/api-keys", NO_OPERATOR),
    ("DELETE /api/operator/users", NO_OPERATOR),
];

/// The owner of the workspace is no operator.
const NO_OPERATOR: &str = "403";

/// The lines work in the order in which they are written, from the creation of an agent on.
#[test]
fn each_line_to_try_is_a_request_that_the_server_takes() {
    if Command::new("curl").arg("--version").output().is_err() {
        return not_run("curl is missing");
    }
    let studio = Studio::open();
    let key = studio.key("admin").key;
    let text = String::from_utf8(studio.server.get("/docs.md").send().expect(200).body).unwrap();
    // The line that signs in keeps its cookie in a file.
    let files = tempfile::tempdir().unwrap();
    let mut lines = 0;
    for section in text.split("\n### ").skip(1) {
        let Some((_, line)) = section.split_once("```sh\ncurl ") else {
            continue;
        };
        let (line, _) = line.split_once("\n```").unwrap();
        let place = section.split('`').nth(1).unwrap();
        let output = Command::new("bash")
            .arg("-c")
            .arg(format!("curl -s -o /dev/null -w '%{{http_code}}' {line}"))
            .current_dir(files.path())
            .env("SERVER_URL", studio.server.url())
            .env("API_KEY", &key)
            .env("SESSION_TOKEN", &studio.owner)
            .env("WORKSPACE_ID", studio.id.to_string())
            .output()
            .unwrap();
        let status = String::from_utf8(output.stdout).unwrap();
        let expected = OTHERS.iter().find(|(other, _)| *other == place);
        let expected = expected.map_or("200", |(_, status)| *status);
        assert_eq!(status, expected, "{place}: {line}");
        lines += 1;
    }
    assert!(lines > 50, "{lines}");
}
