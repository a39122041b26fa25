//! Successful answers: their status, header fields and schema follow from their type.

use std::marker::PhantomData;

use agentcfg_core::model::{Agent, ReleasedAgent, StatusChange, VersionedAgent};
use serde::Serialize;

use crate::api::schema::{Example, Schema};
use crate::http::errors::Failure;
use crate::http::response::Reply;

/// The successful answer of an endpoint.
pub trait Answer {
    /// The description.
    const DOC: AnswerDoc;

    /// Writes the answer.
    ///
    /// # Errors
    ///
    /// 500 when the value cannot be written as JSON, which no value of the API does.
    fn into_reply(self) -> Result<Reply, Failure>;
}

/// The description of a successful answer.
#[derive(Debug, Clone, Copy)]
pub struct AnswerDoc {
    /// The status.
    pub status: u16,
    /// The body.
    pub shown: AnswerBody,
    /// Whether the answer has an entity tag.
    pub is_tagged: bool,
    /// Whether the answer names the version of an agent in the header field `Agent-Version`.
    pub is_versioned: bool,
    /// Whether 304 without a body is sent instead when `If-None-Match` names this version.
    pub is_conditional: bool,
    /// Whether the answer has a position in the change feed.
    pub has_cursor: bool,
    /// Whether it says since when it is known, in `History-Since`.
    pub is_history: bool,
    /// Whether the answer to a `GET` can be long enough to be compressed.
    pub may_be_long: bool,
}

/// The body of an answer.
#[derive(Debug, Clone, Copy)]
pub enum AnswerBody {
    /// A value of this type.
    Value(Schema),
    /// An array of values of this type.
    List(Schema),
    /// An array of values of this type, or a stream of them.
    Events(Schema),
    /// A value of this JSON Schema, which may be a component of this name.
    Fixed(Option<&'static str>, &'static str),
    /// A stream of values of this type, each a line of its own.
    Lines(Schema),
    /// Nothing: the answer has no body.
    Nothing,
    /// Any body that a model provider answers.
    Relayed,
}

impl AnswerDoc {
    pub(super) const fn ok(shown: AnswerBody) -> Self {
        Self {
            status: 200,
            shown,
            is_tagged: false,
            is_versioned: false,
            is_conditional: false,
            has_cursor: false,
            is_history: false,
            may_be_long: false,
        }
    }
}

/// 200 with a value as JSON.
#[derive(Debug)]
pub struct Json<T>(pub T);

impl<T: Serialize + Example> Answer for Json<T> {
    const DOC: AnswerDoc = AnswerDoc::ok(AnswerBody::Value(Schema::of_answer::<T>()));

    fn into_reply(self) -> Result<Reply, Failure> {
        Reply::json(&self.0)
    }
}

/// 200 with a value that has a secret in plaintext, which no cache may keep.
#[derive(Debug)]
pub struct Disclosed<T>(pub T);

impl<T: Serialize + Example> Answer for Disclosed<T> {
    const DOC: AnswerDoc = Json::<T>::DOC;

    fn into_reply(self) -> Result<Reply, Failure> {
        Ok(Reply::json(&self.0)?.plain().uncached())
    }
}

/// 200 with an array as JSON.
#[derive(Debug)]
pub struct List<T>(pub Vec<T>);

impl<T: Serialize + Example> Answer for List<T> {
    const DOC: AnswerDoc = AnswerDoc {
        may_be_long: true,
        ..AnswerDoc::ok(AnswerBody::List(Schema::of_answer::<T>()))
    };

    fn into_reply(self) -> Result<Reply, Failure> {
        Reply::json(&self.0)
    }
}

/// 200 with an agent, the entity tag of its record and the number of its version.
#[derive(Debug)]
pub struct AgentRecord(pub VersionedAgent);

impl Answer for AgentRecord {
    const DOC: AnswerDoc = AnswerDoc {
        is_tagged: true,
        is_versioned: true,
        ..Json::<Agent>::DOC
    };

    fn into_reply(self) -> Result<Reply, Failure> {
        let agent = self.0;
        Ok(Reply::json(&agent.value)?
            .tagged(agent.tag)
            .of_version(Some(agent.version)))
    }
}

/// 201 instead of 200.
#[derive(Debug)]
pub struct Created<A>(pub A);

impl<A: Answer> Answer for Created<A> {
    const DOC: AnswerDoc = AnswerDoc { status: 201, ..A::DOC };

    fn into_reply(self) -> Result<Reply, Failure> {
        Ok(self.0.into_reply()?.created())
    }
}

/// What an endpoint answers in a reply of this kind, which is its description.
pub trait Kind {
    /// The description.
    const DOC: AnswerDoc;
}

/// A reply of a kind whose values are not written as a whole from one type.
#[derive(Debug)]
pub struct Written<K> {
    reply: Reply,
    kind: PhantomData<fn() -> K>,
}

impl<K> From<Reply> for Written<K> {
    fn from(reply: Reply) -> Self {
        Self {
            reply,
            kind: PhantomData,
        }
    }
}

impl<K: Kind> Answer for Written<K> {
    const DOC: AnswerDoc = K::DOC;

    fn into_reply(self) -> Result<Reply, Failure> {
        Ok(self.reply)
    }
}

/// 204 with a cookie.
#[derive(Debug)]
pub struct SetCookie;

impl Kind for SetCookie {
    const DOC: AnswerDoc = AnswerDoc {
        status: 204,
        ..AnswerDoc::ok(AnswerBody::Nothing)
    };
}

/// Events of the change feed, as an array or as a stream, with the position to read on from.
#[derive(Debug)]
pub struct Changes<T>(PhantomData<T>);

impl<T: Example> Kind for Changes<T> {
    const DOC: AnswerDoc = AnswerDoc {
        has_cursor: true,
        ..AnswerDoc::ok(AnswerBody::Events(Schema::of_answer::<T>()))
    };
}

/// 200 with a stream of values as JSON, each a line of its own.
#[derive(Debug)]
pub struct Lines<T>(PhantomData<T>);

impl<T: Example> Kind for Lines<T> {
    const DOC: AnswerDoc = AnswerDoc::ok(AnswerBody::Lines(Schema::of_answer::<T>()));
}

/// 200 with an array as JSON that may be too long to be made in memory for each request: it is streamed, or requests
/// share it.
#[derive(Debug)]
pub struct LongList<T>(PhantomData<T>);

impl<T: Serialize + Example> Kind for LongList<T> {
    const DOC: AnswerDoc = List::<T>::DOC;
}

/// 200 with the changes of the live status, and since when they are known.
#[derive(Debug)]
pub struct StatusHistory;

impl Kind for StatusHistory {
    const DOC: AnswerDoc = AnswerDoc {
        is_history: true,
        ..List::<StatusChange>::DOC
    };
}

/// 200 with an array of agents that requests share, with its entity tag.
#[derive(Debug)]
pub struct Agents;

impl Kind for Agents {
    const DOC: AnswerDoc = AnswerDoc {
        is_tagged: true,
        is_versioned: true,
        is_conditional: true,
        has_cursor: true,
        ..LongList::<Agent>::DOC
    };
}

/// 200 with an array of released versions that requests share, with its entity tag.
#[derive(Debug)]
pub struct Releases;

impl Kind for Releases {
    const DOC: AnswerDoc = AnswerDoc {
        is_tagged: true,
        is_conditional: true,
        has_cursor: true,
        ..LongList::<ReleasedAgent>::DOC
    };
}

/// What a model provider answered, with the version of the agent that it was called for.
#[derive(Debug)]
pub struct Relayed;

impl Kind for Relayed {
    const DOC: AnswerDoc = AnswerDoc {
        is_versioned: true,
        ..AnswerDoc::ok(AnswerBody::Relayed)
    };
}

/// The OpenAPI document.
#[derive(Debug)]
pub struct Document;

impl Kind for Document {
    const DOC: AnswerDoc = AnswerDoc {
        may_be_long: true,
        ..AnswerDoc::ok(AnswerBody::Fixed(
            None,
            r#"{
                "type": "object",
                "description": "An OpenAPI 3.1 document.",
                "properties": {
                    "openapi": {
                        "type": "string",
                        "description": "Version of the OpenAPI specification.",
                        "pattern": "^3\\.1\\."
                    }
                },
                "required": ["openapi"]
            }"#,
        ))
    };
}
