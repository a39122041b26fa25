//! The content of a reply, as JSON, before its encoding is chosen.

use agentcfg_core::service::{AgentList, StatusList};
use bytes::Bytes;
use http_body_util::Full;

use crate::http::body::Body;

/// Lists from this length on are sent in the pieces that they have, so that none is copied.
const LONG_LIST: usize = 64 << 10;

/// The content of a reply, as JSON.
#[derive(Debug)]
pub(crate) enum Content {
    /// What was written for this request.
    Made(Bytes),
    /// A list that other responses share.
    List(AgentList),
    /// Statuses that other responses share.
    Statuses(StatusList),
    /// A text that never changes.
    Document(&'static str),
}

impl Content {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Made(body) => body.len(),
            Self::List(list) => list.json_len(),
            Self::Statuses(list) => list.json_len(),
            Self::Document(text) => text.len(),
        }
    }

    pub(super) fn into_body(self) -> Body {
        Body::Whole(Full::new(match self {
            Self::List(list) if list.json_len() >= LONG_LIST => return Body::Pieces(list.json_parts().into_iter()),
            Self::Statuses(list) if list.json_len() >= LONG_LIST => {
                return Body::Pieces(list.json_parts().into_iter());
            }
            Self::List(list) => list.json(),
            Self::Statuses(list) => list.json(),
            Self::Made(body) => body,
            Self::Document(text) => Bytes::from_static(text.as_bytes()),
        }))
    }
}
