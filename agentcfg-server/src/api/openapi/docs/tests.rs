//! The documentation has all of the API, and nothing that a page may not load.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::*;
use crate::api::docs::has;
use crate::api::endpoints;
use crate::api::endpoints::DOCUMENT;

static REFERENCE: LazyLock<String> = LazyLock::new(|| markdown::reference(&document()));

fn document() -> Value {
    serde_json::from_str(DOCUMENT).unwrap()
}

/// The texts between two marks.
fn between<'a>(text: &'a str, begin: &str, end: char) -> Vec<&'a str> {
    let parts = text.split(begin).skip(1);
    parts.map(|part| part.split(end).next().unwrap()).collect()
}

#[test]
fn each_operation_has_a_section_with_its_parameters_and_a_line_to_try() {
    let sections: Vec<_> = REFERENCE.split("\n### ").collect();
    for endpoint in endpoints::all() {
        let section = sections
            .iter()
            .find(|section| section.starts_with(&format!("{}\n", endpoint.doc.summary)));
        let section = section.unwrap_or_else(|| panic!("{} is missing", endpoint.doc.id));
        let (method, path) = (endpoint.route.method, endpoint.route.path);
        assert!(section.contains(&format!("`{method} {path}`")), "{section}");
        for parameter in endpoint.parameters {
            assert!(section.contains(&format!("\n| `{}` |", parameter.name)), "{section}");
        }
        let line = section.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
        assert!(
            line.starts_with("curl ") && !line.contains('{') || line.contains("--json"),
            "{line}"
        );
        assert!(line.contains(path.split('{').next().unwrap()), "{line}");
    }
}

#[test]
fn the_line_that_signs_out_sends_the_cookie_of_the_one_that_signs_in() {
    for line in [
        r#"curl "$SERVER_URL/api/sessions" \
  -H "Authorization: Bearer $SESSION_TOKEN" \
  -c cookies.txt \
  --json "#,
        r#"curl -X DELETE "$SERVER_URL/api/sessions" \
  -b cookies.txt -H "Sec-Fetch-Site: same-origin"
```"#,
    ] {
        assert!(REFERENCE.contains(line), "{line}");
    }
}

#[test]
fn fields_of_bodies_have_their_limits() {
    for row in [
        "| `display_name` | yes | string | 1–100 characters |",
        "| `agent_id` | yes | [AgentId](#agentid) | 1–50 characters; `^[a-z0-9_-]+$` |",
        "| `capabilities` | no | [Capabilities](#capabilities) | at most 100 items; 1–100 characters each |",
        "| `limit` | query | no | integer | 1–1000; default `100` |",
        "| `rate_limit` | no | integer or null | 1–1000000 |",
    ] {
        assert!(REFERENCE.contains(row), "{row}");
    }
}

#[test]
fn headings_have_places_of_their_own_and_links_lead_to_them() {
    let page = page::page(&REFERENCE);
    let ids = between(&page, " id=\"", '"');
    let places: BTreeSet<_> = ids.iter().copied().collect();
    assert_eq!(places.len(), ids.len(), "a place is there twice");
    let targets = between(&page, "href=\"#", '"');
    assert!(targets.len() > 100);
    for target in targets {
        assert!(places.contains(target), "{target}");
    }
    let index = markdown::index(&document());
    for target in between(&index, "](", ')') {
        let (file, place) = target.split_once('#').unwrap_or((target, "content"));
        assert!(
            has(&format!("/{file}")) || ["openapi.json", "mcp"].contains(&file),
            "{target}"
        );
        assert!(places.contains(place), "{target}");
    }
}

/// No part of the page is loaded from another server, no link leaves a path prefix, and the policy refuses nothing.
#[test]
fn the_page_needs_nothing_else() {
    let page = page::page(&REFERENCE);
    for refused in [
        "<script",
        "style=",
        "<style",
        "onclick=",
        "javascript:",
        "src=",
        "href=\"/",
        "href=\"http",
    ] {
        assert!(!page.contains(refused), "{refused}");
    }
    assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
}

#[test]
fn what_looks_like_markup_is_text() {
    let page = page::page("# a\n\nA <b>b</b> and <script>alert(1)</script>\n\n<script>alert(2)</script>\n");
    assert!(!page.contains("<script"), "{page}");
    assert!(page.contains("&lt;b&gt;b&lt;/b&gt;"), "{page}");
}
