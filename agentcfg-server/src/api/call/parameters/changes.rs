//! The parameters of the change feed.

use agentcfg_core::model::{After, Cursor, CursorError};
use agentcfg_core::validate::{DEFAULT_LIMIT, Faults};
use hyper::header::HeaderValue;

use super::pages::limit;
use super::readers::{Flag, NumberOrDefault, Text, parameters, refuse};
use super::{flag, text};
use crate::api::call::{Parameter, ParameterDoc, Received, Shape};
use crate::http::errors::Failure;
use crate::http::request::asks_for_events;

parameters! {
    /// The limit of a page of changes.
    ChangeLimit: NumberOrDefault = limit(
        "ChangeLimit",
        Some(DEFAULT_LIMIT),
        "Most events to return. An answer also ends after 8 MiB, with at least one event. A stream has no limit.",
    );

    /// How long an empty answer waits for an event, in seconds.
    ChangeWait: NumberOrDefault = ParameterDoc::query(
        "ChangeWait",
        "wait",
        Shape::Number { minimum: 0, maximum: Some(30), default: Some(0) },
        "How many seconds an answer without events waits for one. An event that the caller may not see does not end the \
         wait.",
    )
    .example("20");

    /// Whether a stream of changes also has live statuses.
    WithStatus: Flag = flag("WithStatus", "status", "Whether a stream also has events of live status.");

    /// The label that a stream of changes follows.
    FollowedLabel: Text = text(
        "FollowedLabel",
        "label",
        "The label whose releases a stream also has: an event that moves it has `released`.",
        "\"production\"",
    );
}

/// The position in the change feed after which to read.
pub struct AfterPosition;

impl Parameter for AfterPosition {
    type Value<'a> = Option<After>;

    const DOC: ParameterDoc = ParameterDoc::query(
        "After",
        "after",
        Shape::Text,
        "The position to read on from: the `Change-Cursor` of an answer, the `cursor` of an event, `now` for what comes from \
         now on, or `start` for all that there is. It is required unless `Last-Event-ID` is sent.",
    )
    .example(r#""k3j9x0ab-0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05-c42""#);

    fn read(request: &Received<'_>, faults: &mut Faults) -> Result<Option<After>, Failure> {
        let Some(text) = request.optional(&Self::DOC).filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        // A browser that reconnects repeats its original address, so the header field takes precedence.
        if last_event_id(request).is_some() {
            return Ok(None);
        }
        let after = text.parse();
        Ok(after
            .inspect_err(|_| {
                let rule = "must be a cursor that this service has given out, now or start";
                refuse(&Self::DOC, rule, faults);
            })
            .ok())
    }
}

/// The position of the last event that a client of server-sent events has received.
pub struct LastEventId;

impl Parameter for LastEventId {
    type Value<'a> = Option<Cursor>;

    const DOC: ParameterDoc = ParameterDoc::header(
        "LastEventId",
        "Last-Event-ID",
        Shape::Text,
        "The `id` of the last event that was received, as clients of server-sent events send it when they connect again. It \
         is used in place of `after`.",
    )
    .example(r#""k3j9x0ab-0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05-c42""#);

    fn read(request: &Received<'_>, faults: &mut Faults) -> Result<Option<Cursor>, Failure> {
        let Some(field) = last_event_id(request) else {
            return Ok(None);
        };
        let cursor = std::str::from_utf8(field.as_bytes())
            .ok()
            .and_then(|text| text.parse().ok());
        if cursor.is_none() {
            refuse(&Self::DOC, CursorError::NoCursor, faults);
        }
        Ok(cursor)
    }
}

fn last_event_id<'a>(request: &Received<'a>) -> Option<&'a HeaderValue> {
    request.headers.get("last-event-id").filter(|field| !field.is_empty())
}

/// Whether the answer is to be server-sent events.
pub struct AcceptEvents;

impl Parameter for AcceptEvents {
    type Value<'a> = bool;

    const DOC: ParameterDoc = ParameterDoc::header(
        "AcceptEvents",
        "Accept",
        Shape::Text,
        "`text/event-stream` for a stream of server-sent events; JSON otherwise.",
    )
    .example(r#""text/event-stream""#);

    fn read(request: &Received<'_>, _: &mut Faults) -> Result<bool, Failure> {
        Ok(asks_for_events(request.headers))
    }
}
