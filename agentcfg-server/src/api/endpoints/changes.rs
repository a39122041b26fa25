//! The change feed.

use std::time::Duration;

use agentcfg_core::model::{After, ChangeEvent, Label, Permission};
use agentcfg_core::service::{ChangePage, SerializedEvent, Watch};
use agentcfg_core::validate::Invalid;
use serde_json::value::RawValue;

use super::tags::CHANGES;
use crate::api::answer::{Changes, Written};
use crate::api::call::parameters::{
    AcceptEvents, AfterPosition, ChangeLimit, ChangeWait, FollowedLabel, LastEventId, WithStatus, WorkspaceId,
};
use crate::api::call::{Call, Parameter};
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Values};
use crate::api::feed::Opening;
use crate::api::route::{Needs, Route};
use crate::http::errors::Failure;
use crate::http::response::Reply;

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[Definition::of::<Read>()];

/// `GET /api/changes`
pub struct Read;

impl Endpoint for Read {
    const ROUTE: Route = Route::get("/api/changes", Needs::Permission(Permission::AgentsRead));

    const DOC: Doc = Doc::new(
        "readChanges",
        CHANGES,
        "Read or follow the changes",
        "Returns the changes in a workspace after a position, in their order. `Change-Cursor` of the list of agents is the \
         position at which the list was read, and the one here the position to read on from: a list and then the changes \
         after its cursor miss nothing and repeat nothing. Applied in order to that list, the `changes` give the list \
         now. Without `audit_log:read` only the events of agents and their labels are shown.\n\n\
         With `Accept: text/event-stream` the same comes as server-sent events. `change` is one event, with its cursor as \
         `id`. `bookmark` has the position at the beginning and every 15 seconds. `status`, on request, is one entry of the \
         live status with `reported_at`: all entries at first, then each that changed. With `label` an event that does nothing \
         but move this label has `released`: the versions that it points at from then on, with their content, at most \
         128 KiB of them. `gone` is the last event when the \
         list must be read again, `end` otherwise; both say why in `error`. A stream ends when its credential does, when the \
         role is lowered, at a shutdown of the server, and after 8 to 12 minutes.\n\n\
         410 means that the position is of another epoch of the store, or from the future: read the list again. 429 also \
         means that the caller has 10 streams, or the server as many as it may have.",
    )
    .answer(
        "The events in the order of their revisions, or a stream of them.",
        &[
            Example(
                "events",
                r#"[{"version": null}]"#,
            ),
            Example("none", r#"[]"#),
        ],
    )
    .failures(&[410]);

    type Input = (
        WorkspaceId,
        AfterPosition,
        LastEventId,
        ChangeLimit,
        ChangeWait,
        WithStatus,
        FollowedLabel,
        AcceptEvents,
    );
    type Body = ();
    type Answer = Written<Changes<ChangeEvent>>;

    async fn run(
        call: &Call<'_>,
        (workspace, after, last_event, limit, wait, with_status, label, as_events): Values<'_, Self>,
        (): (),
    ) -> Result<Self::Answer, Failure> {
        let after = match (last_event, after) {
            (Some(cursor), _) => After::Cursor(cursor),
            (None, Some(after)) => after,
            (None, None) => {
                let rule = "is required: a cursor, now or start; or send Last-Event-ID";
                return Err(Failure::parameter(AfterPosition::DOC.name, rule));
            }
        };
        if let After::Cursor(cursor) = after
            && cursor.workspace() != workspace
        {
            let parameter = match last_event {
                Some(_) => LastEventId::DOC,
                None => AfterPosition::DOC,
            };
            return Err(Invalid::new(parameter.named(), "is a cursor of another workspace").into());
        }
        let label = label.map(Label::try_from).transpose()?;
        if as_events {
            let mut watch = call.service.watch(call.caller, workspace, after).await?;
            if with_status {
                watch = watch.with_statuses();
            }
            if let Some(label) = label {
                watch = watch.with_released(label)?;
            }
            return stream(call, watch);
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let page = call
            .service
            .serialized_changes(call.caller, workspace, after, limit)
            .await?;
        if !page.events.is_empty() || wait == 0 {
            return written(&page);
        }
        let page = Box::pin(wait_for(call, page, limit, Duration::from_secs(wait))).await?;
        written(&page)
    }
}

/// A page of events as JSON, each as the log has it: the members of a definition stay in their order.
fn written(page: &ChangePage<SerializedEvent>) -> Result<Written<Changes<ChangeEvent>>, Failure> {
    let events = page.events.iter().map(|event| serde_json::from_str(event.json()));
    let events: Vec<&RawValue> = events.collect::<Result<_, _>>().map_err(Failure::internal)?;
    let reply = Reply::json(&events)?.uncached();
    Ok(reply.with_cursor(Some(page.cursor)).into())
}

fn stream(call: &Call<'_>, watch: Watch) -> Result<Written<Changes<ChangeEvent>>, Failure> {
    let cursor = watch.cursor();
    let opening = Opening {
        service: call.service,
        caller: call.caller,
        session: call.session(),
        streams: call.streams,
        answers: call.answers,
        observer: call.observer,
        disconnect: call.disconnect,
    };
    Ok(Reply::events(opening.open(watch)?, cursor).into())
}

/// Waits for an event that the caller may see. A shutdown ends the wait.
async fn wait_for(
    call: &Call<'_>,
    page: ChangePage<SerializedEvent>,
    limit: usize,
    wait: Duration,
) -> Result<ChangePage<SerializedEvent>, Failure> {
    let workspace = page.cursor.workspace();
    let mut closing = call.streams.closing();
    let events = call
        .service
        .serialized_changes_within(call.caller, workspace, page.cursor, limit, wait);
    let waited = tokio::select! {
        waited = events => waited?,
        _ = closing.wait_for(|closing| *closing) => return Ok(page),
    };
    if let Some(session) = call.session() {
        // The session can have ended while the request waited.
        session.verify(call.service).await?;
    }
    Ok(waited)
}
