//! The documentation of the API, which needs no network and no script: `/docs` as a page, `/docs.md` as Markdown, and
//! `/llms.txt`, the index that language models read.
//!
//! All of it is made from the OpenAPI document, at the first request for it, and shared from then on. So it is never older
//! than the document. A path prefix works, because links are relative.

mod markdown;
mod page;
mod schema;

use hyper::http::request::Parts;
use hyper::{Response, header::HeaderValue, header::LINK};
use tokio::sync::OnceCell;

use crate::api::endpoints::DOCUMENT;
use crate::api::node::Node;
use crate::http::errors::Failure;
use crate::http::static_file::{StaticFile, check_method, guard};
use crate::http::{Body, Compression};

/// The label of the documentation in metrics.
pub(super) const ROUTE: &str = "/docs";

/// What the page may load: its style sheet alone.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// The paths. They are exact, so that relative links lead to the same places from each of them.
const PATHS: [&str; 4] = ["/docs", "/docs.css", "/docs.md", "/llms.txt"];

/// The colours and fonts of the dashboard, then what the page does with them.
const STYLE: &str = concat!(
    include_str!("../../../dashboard/src/styles/tokens.css"),
    include_str!("style.css")
);

/// The files, in the order of [`PATHS`].
static FILES: OnceCell<[StaticFile; PATHS.len()]> = OnceCell::const_new();

/// Whether the documentation has something at this path.
pub(super) fn has(path: &str) -> bool {
    PATHS.contains(&path)
}

/// The answer, where the path is one of the documentation's.
pub(super) async fn answer(head: &Parts, compression: &Compression) -> Option<Result<Response<Body>, Failure>> {
    let at = PATHS.iter().position(|path| *path == head.uri.path())?;
    Some(respond(at, head, compression).await)
}

async fn respond(at: usize, head: &Parts, compression: &Compression) -> Result<Response<Body>, Failure> {
    check_method(&head.method)?;
    let files = FILES.get_or_try_init(make_files).await?;
    let mut response = files[at].response(&head.headers, compression);
    let fields = response.headers_mut();
    guard(fields, POLICY);
    fields.insert(LINK, HeaderValue::from_static("<openapi.json>; rel=\"service-desc\""));
    Ok(response)
}

/// Makes all files, on a thread for blocking work: it takes a few hundredths of a second.
async fn make_files() -> Result<[StaticFile; PATHS.len()], Failure> {
    let made = tokio::task::spawn_blocking(|| {
        let document: Node = serde_json::from_str(DOCUMENT).map_err(Failure::internal)?;
        let reference = markdown::reference(&document);
        Ok([
            StaticFile::of_text("text/html; charset=utf-8", page::page(&reference))?,
            StaticFile::of_text("text/css; charset=utf-8", STYLE.to_owned())?,
            StaticFile::of_text("text/markdown; charset=utf-8", reference)?,
            StaticFile::of_text("text/plain; charset=utf-8", markdown::index(&document))?,
        ])
    });
    made.await.map_err(Failure::internal)?
}

#[cfg(test)]
mod tests;
