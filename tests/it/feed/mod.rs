//! The change feed: pages, streams, their beginning and their end.

mod oracle;
mod pages;
mod streams;

use agentcfg_tests::harness::{Events, Request, Response, Studio};

/// A request for changes with this query.
fn changes(studio: &Studio<'_>, credential: &str, query: &str) -> Request {
    let target = format!("/api/changes?workspace_id={}&{query}", studio.id);
    studio.server.get(target).bearer(credential)
}

#[track_caller]
fn read(studio: &Studio<'_>, query: &str) -> Response {
    changes(studio, &studio.owner, query).send().expect(200)
}

#[track_caller]
fn follow(studio: &Studio<'_>, credential: &str, query: &str) -> Events {
    let events = changes(studio, credential, query).follow();
    assert_eq!(events.head.status, 200, "{:?}", events.head);
    events
}

/// The revisions of a page.
fn revisions(page: &Response) -> Vec<u64> {
    let page = page.json();
    let events = page.as_array().unwrap().iter();
    events.map(|event| event["revision"].as_u64().unwrap()).collect()
}
