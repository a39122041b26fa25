//! Receives the body of a request, as its endpoint declares it.

use agentcfg_core::routing::Catalogue;
use bytes::Bytes;
use hyper::body::Body as HttpBody;
use hyper::header;
use hyper::http::request::Parts;

use crate::api::call::Content;
use crate::api::endpoint::Definition;
use crate::api::model_calls::Target;
use crate::http::byte_budget::Share;
use crate::http::errors::Failure;
use crate::http::received_body::{check_json, whole_body};

pub(super) async fn read_body<B>(
    endpoint: &Definition,
    (head, catalogue): (&Parts, &Catalogue),
    body: &mut B,
    share: &mut Share<'_>,
) -> Result<Bytes, Failure>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: std::error::Error + 'static,
{
    match &endpoint.content {
        Content::Nothing => Ok(Bytes::new()),
        Content::Json(_) | Content::Rpc => {
            check_json(&head.headers)?;
            whole_body(body, endpoint.max_body, share).await
        }
        Content::OptionalJson(_) => read_optional_json(endpoint, head, body, share).await,
        Content::ModelCall => {
            // At the other paths, providers accept other content types too, such as forms with files.
            let target = Target::of_path(head.uri.path());
            if target
                .and_then(|target| target.format(&head.method, catalogue))
                .is_some()
            {
                check_json(&head.headers)?;
            }
            whole_body(body, endpoint.max_body, share).await
        }
    }
}

/// Receives JSON or an empty body. Only a body with content needs a content type.
pub(super) async fn read_optional_json<B>(
    endpoint: &Definition,
    head: &Parts,
    body: &mut B,
    share: &mut Share<'_>,
) -> Result<Bytes, Failure>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: std::error::Error + 'static,
{
    if head.headers.contains_key(header::CONTENT_TYPE) {
        check_json(&head.headers)?;
    }
    let received = whole_body(body, endpoint.max_body, share).await?;
    if !received.is_empty() {
        check_json(&head.headers)?;
    }
    Ok(received)
}
