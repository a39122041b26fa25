//! The files of the dashboard.

use agentcfg_tests::harness::{Response, Server};

/// The fields that each page and file has.
#[track_caller]
fn is_guarded(response: &Response) {
    let policy = response.need("content-security-policy");
    assert!(
        !policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"),
        "{policy}"
    );
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert_eq!(response.need("x-content-type-options"), "nosniff");
    assert_eq!(response.need("referrer-policy"), "no-referrer");
    assert_eq!(response.need("cache-control"), "no-cache");
}

#[test]
fn the_page_is_at_the_root_and_at_each_screen() {
    let server = Server::shared();
    let page = server.get("/").send().expect(200);
    is_guarded(&page);
    assert_eq!(page.need("content-type"), "text/html; charset=utf-8");
    assert!(page.body.starts_with(b"<!doctype html>"));
    for screen in ["/?x=y", "/ui/", "/ui/agents", "/ui/agents/writer?tab=history"] {
        let same = server.get(screen).send().expect(200);
        assert_eq!(same.body, page.body, "{screen}");
        is_guarded(&same);
    }
    let head = server.request("HEAD", "/").send().expect(200);
    assert_eq!(head.number("content-length"), i64::try_from(page.body.len()).unwrap());
}

#[test]
fn files_are_typed_compressed_and_validated() {
    let server = Server::shared();
    for (path, media_type) in [
        ("/ui/app.js", "text/javascript; charset=utf-8"),
        ("/ui/chunk.js", "text/javascript; charset=utf-8"),
        ("/ui/agents/later.js", "text/javascript; charset=utf-8"),
        ("/ui/app.css", "text/css; charset=utf-8"),
        ("/ui/icon.svg", "image/svg+xml"),
        ("/snippets.json", "application/json"),
        ("/app.js", "text/javascript; charset=utf-8"),
    ] {
        let plain = server.get(path).send().expect(200);
        is_guarded(&plain);
        assert_eq!(plain.need("content-type"), media_type);
        assert_eq!(plain.header("content-encoding"), None);
        let packed = server
            .get(path)
            .header("Accept-Encoding", "gzip, br")
            .send()
            .expect(200);
        assert_eq!(packed.need("content-encoding"), "gzip");
        assert_eq!(packed.need("vary"), "Accept-Encoding");
        assert_eq!(packed.plain_body(), plain.body);
        assert_ne!(packed.etag(), plain.etag());
        for tag in [
            plain.etag(),
            packed.etag(),
            format!("W/{}", plain.etag()),
            "*".to_owned(),
        ] {
            let known = server.get(path).header("If-None-Match", tag).send().expect(304);
            is_guarded(&known);
        }
        server.get(path).header("If-None-Match", "\"other\"").send().expect(200);
    }
}

#[test]
fn other_paths_and_methods_are_refused() {
    let server = Server::shared();
    for path in [
        "/ui/other.js",
        "/ui/../healthz",
        "/ui//x",
        "/ui/%2e%2e",
        "/uix",
        "/other.js",
        "/ui/a/",
    ] {
        server.get(path).send().expect(404);
    }
    for path in ["/", "/ui/agents", "/ui/app.js"] {
        let refused = server.post(path).send().expect(405);
        assert_eq!(refused.need("allow"), "GET, HEAD");
    }
}

#[test]
fn the_dashboard_can_be_turned_off() {
    let server = Server::builder().set("dashboard", "false").start();
    for path in ["/", "/ui/", "/ui/app.js", "/app.js", "/ui/sign-in", "/ui/callback"] {
        server.get(path).send().expect(404);
    }
    server.get("/healthz").send().expect(200);
}
