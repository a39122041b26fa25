//! Successful answers: their status, header fields and schema follow from their type.

use agentcfg_core::model::{Agent, Cursor, VersionedAgent};
use agentcfg_core::service::{ChangePage, StatusList};
use hyper::Response;
use hyper::header::HeaderValue;
use serde::Serialize;

use crate::api::feed::EventStream;
use crate::api::model_calls::Relay;
use crate::api::schema::{Example, Schema};
use crate::http::errors::Failure;
use crate::http::pulled::{Next, Pulled};
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
    pub shown: Shown,
    /// Whether the answer has an entity tag.
    pub is_tagged: bool,
    /// Whether the answer names the version of an agent in the header field `Agent-Version`.
    pub is_versioned: bool,
    /// Whether 304 without a body is sent instead when `If-None-Match` names this version.
    pub is_conditional: bool,
    /// Whether the answer has a position in the change feed.
    pub has_cursor: bool,
    /// Whether the answer to a `GET` can be long enough to be compressed.
    pub may_be_long: bool,
}

/// The body of an answer.
#[derive(Debug, Clone, Copy)]
pub enum Shown {
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
    pub(super) const fn ok(shown: Shown) -> Self {
        Self {
            status: 200,
            shown,
            is_tagged: false,
            is_versioned: false,
            is_conditional: false,
            has_cursor: false,
            may_be_long: false,
        }
    }
}

/// 200 with a value as JSON.
#[derive(Debug)]
pub struct Json<T>(pub T);

impl<T: Serialize + Example> Answer for Json<T> {
    const DOC: AnswerDoc = AnswerDoc::ok(Shown::Value(Schema::of_answer::<T>()));

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
        ..AnswerDoc::ok(Shown::List(Schema::of_answer::<T>()))
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
        let VersionedAgent { value, tag, version } = self.0;
        Ok(Reply::json(&value)?.tagged(tag).of_version(Some(version)))
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

/// 204 with a cookie.
#[derive(Debug)]
pub struct SetCookie(pub HeaderValue);

impl Answer for SetCookie {
    const DOC: AnswerDoc = AnswerDoc {
        status: 204,
        ..AnswerDoc::ok(Shown::Nothing)
    };

    fn into_reply(self) -> Result<Reply, Failure> {
        Ok(Reply::cookie(self.0))
    }
}

/// Events of the change feed, as an array or as a stream, with the position to read on from.
#[derive(Debug)]
pub struct Changes<T> {
    reply: Reply,
    of: std::marker::PhantomData<fn() -> T>,
}

impl<T> Changes<T> {
    /// A page of events as JSON.
    ///
    /// # Errors
    ///
    /// As [`Answer::into_reply`].
    pub fn page(page: &ChangePage) -> Result<Self, Failure> {
        let reply = Reply::json(&page.events)?.plain().uncached();
        Ok(Self::of(reply.with_cursor(page.cursor.to_string().into())))
    }

    /// A stream that begins at this position.
    pub fn stream(stream: EventStream, cursor: Cursor) -> Self {
        Self::of(Reply::events(stream, &cursor.to_string()))
    }

    fn of(reply: Reply) -> Self {
        Self {
            reply,
            of: std::marker::PhantomData,
        }
    }
}

impl<T: Example> Answer for Changes<T> {
    const DOC: AnswerDoc = AnswerDoc {
        has_cursor: true,
        ..AnswerDoc::ok(Shown::Events(Schema::of_answer::<T>()))
    };

    fn into_reply(self) -> Result<Reply, Failure> {
        Ok(self.reply)
    }
}

/// 200 with a stream of values as JSON, each a line of its own.
#[derive(Debug)]
pub struct Lines<T> {
    reply: Reply,
    of: std::marker::PhantomData<fn() -> T>,
}

impl<T> Lines<T> {
    /// Lines from a source that makes one piece after another.
    pub fn pulled<S: Send + 'static>(source: S, next: fn(S) -> Next<S>) -> Self {
        Self {
            reply: Reply::lines(Pulled::new(source, next)),
            of: std::marker::PhantomData,
        }
    }
}

impl<T: Example> Answer for Lines<T> {
    const DOC: AnswerDoc = AnswerDoc::ok(Shown::Lines(Schema::of_answer::<T>()));

    fn into_reply(self) -> Result<Reply, Failure> {
        Ok(self.reply)
    }
}

/// 200 with an array as JSON that may be too long to be made in memory for each request: it is streamed, or requests
/// share it.
#[derive(Debug)]
pub struct LongList<T> {
    reply: Reply,
    of: std::marker::PhantomData<fn() -> T>,
}

impl<T> LongList<T> {
    /// An array whose text is complete.
    pub fn whole(array: Vec<u8>) -> Self {
        Self::of(Reply::made(array))
    }

    /// The statuses, as a text that requests share.
    pub fn statuses(list: StatusList) -> Self {
        Self::of(Reply::statuses(list))
    }

    /// An array from a source that makes one piece of text after another.
    pub fn pulled<S: Send + 'static>(source: S, next: fn(S) -> Next<S>) -> Self {
        Self::of(Reply::streamed_json(Pulled::new(source, next)))
    }

    fn of(reply: Reply) -> Self {
        Self {
            reply,
            of: std::marker::PhantomData,
        }
    }
}

impl<T: Serialize + Example> Answer for LongList<T> {
    const DOC: AnswerDoc = List::<T>::DOC;

    fn into_reply(self) -> Result<Reply, Failure> {
        Ok(self.reply)
    }
}

/// What a model provider answered to a call with this version of an agent.
#[derive(Debug)]
pub struct Relayed(pub Response<Relay>, pub u64);

impl Answer for Relayed {
    const DOC: AnswerDoc = AnswerDoc {
        is_versioned: true,
        ..AnswerDoc::ok(Shown::Relayed)
    };

    fn into_reply(self) -> Result<Reply, Failure> {
        Ok(Reply::relayed(self.0).of_version(Some(self.1)))
    }
}

/// The OpenAPI document.
#[derive(Debug)]
pub struct Document(pub &'static str);

impl Answer for Document {
    const DOC: AnswerDoc = AnswerDoc {
        may_be_long: true,
        ..AnswerDoc::ok(Shown::Fixed(
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

    fn into_reply(self) -> Result<Reply, Failure> {
        Ok(Reply::document(self.0))
    }
}
