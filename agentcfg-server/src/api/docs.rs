//! The documentation of the API, which needs no network and no script: `/docs` as a page, `/docs.md` as Markdown, and
//! `/llms.txt`, the index that language models read.
//!
//! All of it is made from the OpenAPI document by the test that writes that (`api/openapi`), and kept as files. A path
//! prefix works, because links are relative.

use std::sync::LazyLock;

use hyper::http::request::Parts;
use hyper::{Response, header::HeaderValue, header::LINK};

use crate::http::errors::Failure;
use crate::http::static_file::{StaticFile, check_method, embedded, guard};
use crate::http::{Body, Compression};

/// The label of the documentation in metrics.
pub(super) const ROUTE: &str = "/docs";

/// What the page may load: its style sheet alone.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// The paths. They are exact, so that relative links lead to the same places from each of them.
const PATHS: [&str; 4] = ["/docs", "/docs.css", "/docs.md", "/llms.txt"];

/// The files, in the order of [`PATHS`].
static FILES: LazyLock<[StaticFile; PATHS.len()]> = LazyLock::new(|| {
    [
        embedded!("text/html; charset=utf-8", "/src/api/docs/docs.html"),
        embedded!("text/css; charset=utf-8", "/src/api/docs/docs.css"),
        embedded!("text/markdown; charset=utf-8", "/src/api/docs/docs.md"),
        embedded!("text/plain; charset=utf-8", "/src/api/docs/llms.txt"),
    ]
});

/// Whether the documentation has something at this path.
pub(super) fn has(path: &str) -> bool {
    PATHS.contains(&path)
}

/// The answer, where the path is one of the documentation's.
pub(super) fn answer(head: &Parts, compression: &Compression) -> Option<Result<Response<Body>, Failure>> {
    let at = PATHS.iter().position(|path| *path == head.uri.path())?;
    Some(respond(&FILES[at], head, compression))
}

fn respond(file: &StaticFile, head: &Parts, compression: &Compression) -> Result<Response<Body>, Failure> {
    check_method(&head.method)?;
    let mut response = file.response(&head.headers, compression);
    let fields = response.headers_mut();
    guard(fields, POLICY);
    fields.insert(LINK, HeaderValue::from_static("<openapi.json>; rel=\"service-desc\""));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_file_have_the_same_content() {
        for (path, file) in PATHS.iter().zip(FILES.iter()) {
            assert!(
                file.unpacked() == file.plain(),
                "{path} differs from its compressed form"
            );
        }
    }
}
