//! The documentation that the server has in itself: `/docs`, `/docs.css`, `/docs.md` and `/llms.txt`.

use agentcfg_tests::harness::Server;

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
