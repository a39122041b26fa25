//! From the OpenAPI document to the documentation.

mod markdown;
mod page;
mod schema;
mod spaced_json;
mod tests;

use serde_json::Value;

/// The colours and fonts of the dashboard, then what the page does with them.
const STYLE: &str = concat!(
    include_str!("../../../dashboard/src/styles/tokens.css"),
    include_str!("docs/style.css")
);

/// The files by their names in `api/docs`.
pub(super) fn files(document: &Value) -> [(&'static str, String); 4] {
    let reference = markdown::reference(document);
    [
        ("docs.html", page::page(&reference)),
        ("docs.css", STYLE.to_owned()),
        ("docs.md", reference),
        ("llms.txt", markdown::index(document)),
    ]
}
