//! The kinds of failures, each with what the caller should do.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::iter::successors;

use crate::model::Tag;
use crate::validate::{Fault, Invalid};

/// What kind of failure an [`Error`] is; each says what the caller should do.
///
/// ```
/// use agentcfg_core::{Error, ErrorKind};
/// fn again_later(error: &Error) -> bool {
///     error.kind() == ErrorKind::Unavailable
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request breaks a rule: change it. (400)
    Invalid,
    /// The credential is missing, wrong, expired or revoked: get a new one. (401)
    Unauthorized,
    /// The credential does not allow this: get the permission from an administrator of the workspace. (403)
    Forbidden,
    /// There is no such resource: check the identifier. (404)
    NotFound,
    /// The record changed since it was read: read it again and decide on the new version. (412)
    Precondition,
    /// The request conflicts with the current state: choose another name or state. (409)
    Conflict,
    /// The position in the change feed is of another epoch, or from the future: read the list again. (410)
    Gone,
    /// The change is too large to store at once: make it in parts. Nothing changed. (413)
    TooLarge,
    /// A budget does not pay for a model call: raise its limit, or wait until it begins again. (402)
    BudgetExceeded,
    /// The limit of the plan is reached: remove an agent or change the plan. (422)
    PlanLimit,
    /// The caller holds as many long answers as it may: read those first, and try again. (429)
    TooManyRequests,
    /// Storage or a service behind it does not answer: nothing changed, try again later. (503)
    Unavailable,
    /// A change may or may not have been made: read before trying again. (503)
    OutcomeUnknown,
    /// The deployment was not given what this needs: ask its operator, trying again does not help. (503)
    NotConfigured,
    /// A fault of this service: report it. (500)
    Internal,
}

impl ErrorKind {
    /// The status code of an HTTP response that reports a failure of this kind.
    ///
    /// ```
    /// use agentcfg_core::ErrorKind;
    /// assert_eq!(ErrorKind::PlanLimit.http_status(), 422);
    /// ```
    pub const fn http_status(self) -> u16 {
        match self {
            Self::Invalid => 400,
            Self::Unauthorized => 401,
            Self::BudgetExceeded => 402,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::Gone => 410,
            Self::Precondition => 412,
            Self::TooLarge => 413,
            Self::PlanLimit => 422,
            Self::TooManyRequests => 429,
            Self::Internal => 500,
            Self::Unavailable | Self::OutcomeUnknown | Self::NotConfigured => 503,
        }
    }
}

/// A failure: its kind, a message for people, and a cause for the log.
///
/// `Display` shows the message alone, which is safe to send to a client; the cause is reached by
/// [`std::error::Error::source`].
///
/// ```
/// use agentcfg_core::{Error, ErrorKind};
/// let error = Error::new(ErrorKind::NotFound, "agent \"writer\" not found");
/// assert_eq!(error.to_string(), "agent \"writer\" not found");
/// ```
pub struct Error {
    kind: ErrorKind,
    message: Cow<'static, str>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// A failure of this kind with a message for people.
    ///
    /// ```
    /// use agentcfg_core::{Error, ErrorKind};
    /// let error = Error::new(ErrorKind::Conflict, format!("the name {:?} is taken", "writer"));
    /// assert_eq!(error.kind(), ErrorKind::Conflict);
    /// ```
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// Adds the cause, which is for the log.
    ///
    /// ```
    /// use agentcfg_core::{Error, ErrorKind};
    /// let cause = std::io::Error::other("disk full");
    /// let error = Error::new(ErrorKind::Unavailable, "storage is unavailable").because(cause);
    /// assert_eq!(error.to_string(), "storage is unavailable");
    /// assert_eq!(format!("{error:?}"), "Unavailable: storage is unavailable (disk full)");
    /// ```
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The failure of a condition on a record that has another version now: its tag, if the caller may read the record.
    pub(crate) fn stale(current: Option<Tag>) -> Self {
        match current {
            Some(current) => {
                let message = format!("the record has changed, its tag is {current} now: read it again");
                Self::new(ErrorKind::Precondition, message).because(Stale(current))
            }
            None => Self::new(ErrorKind::Precondition, "the record has changed"),
        }
    }

    /// The tag that the record has now, when this is the failure of a [`Precondition`](crate::model::Precondition) of a
    /// caller that may read the record.
    ///
    /// ```
    /// use agentcfg_core::{Error, ErrorKind};
    /// // Only the failure of a condition has one.
    /// assert_eq!(Error::new(ErrorKind::NotFound, "agent not found").current_tag(), None);
    /// ```
    pub fn current_tag(&self) -> Option<Tag> {
        let Stale(current) = self.source.as_deref()?.downcast_ref()?;
        Some(*current)
    }

    /// The failure of a call to the model of an agent.
    pub(crate) fn of_model(self, model: Option<&str>) -> Self {
        match (model, &self.source) {
            (Some(model), None) => self.because(AgentsModel(model.to_owned())),
            _ => self,
        }
    }

    /// The agent's model that would have been called, when this is the refusal of a model call that names none itself.
    ///
    /// ```
    /// use agentcfg_core::{Error, ErrorKind};
    /// // Only the refusal of a model call has one.
    /// assert_eq!(Error::new(ErrorKind::NotFound, "agent not found").agents_model(), None);
    /// ```
    pub fn agents_model(&self) -> Option<&str> {
        let AgentsModel(model) = self.source.as_deref()?.downcast_ref()?;
        Some(model)
    }

    /// Which fields break which rules, when the failure is that of a value with faults; empty for every other.
    ///
    /// ```
    /// use agentcfg_core::{Error, model::NewWorkspace};
    /// let error: Error = NewWorkspace::new(" ").validate().unwrap_err().into();
    /// assert_eq!((error.faults()[0].field(), error.faults()[0].rule()), ("name", "must not be blank"));
    /// ```
    pub fn faults(&self) -> &[Fault] {
        let invalid = self
            .source
            .as_deref()
            .and_then(|source| source.downcast_ref::<Invalid>());
        invalid.map(Invalid::faults).unwrap_or_default()
    }

    /// The cause for the log. The faults of a body are left out: the message has them, and the body's text stays out of
    /// the log.
    fn cause(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        self.source.as_deref().filter(|source| !source.is::<Invalid>())
    }

    /// What kind of failure this is.
    ///
    /// ```
    /// use agentcfg_core::{Error, ErrorKind};
    /// let error = Error::new(ErrorKind::PlanLimit, "the plan allows 3 active agents");
    /// match error.kind() {
    ///     ErrorKind::PlanLimit => println!("{error}: delete an agent first"),
    ///     _ => println!("{error}"),
    /// }
    /// ```
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message for people.
    ///
    /// ```
    /// use agentcfg_core::{Error, ErrorKind};
    /// assert_eq!(Error::new(ErrorKind::Forbidden, "you are not a member").message(), "you are not a member");
    /// ```
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// The cause of a failed precondition. It keeps the tag out of [`Error`] itself, so that results stay small.
#[derive(Debug, thiserror::Error)]
#[error("the current tag is {0}")]
struct Stale(Tag);

/// The cause of the refusal of a call to an agent's model, kept as [`Stale`] is.
#[derive(Debug, thiserror::Error)]
#[error("the agent's model is {0}")]
struct AgentsModel(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.message)?;
        match self.cause() {
            Some(source) => write!(f, " ({source})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause().map(|cause| cause as _)
    }
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        Self::new(ErrorKind::Invalid, invalid.to_string()).because(invalid)
    }
}

/// An error and the chain of its causes. The error within an [`io::Error`] is not its source, so it is added.
///
/// ```
/// use agentcfg_core::error::causes;
/// let error = std::io::Error::other("x".parse::<u8>().unwrap_err());
/// assert!(causes(&error).any(|cause| cause.is::<std::num::ParseIntError>()));
/// ```
pub fn causes<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    successors(Some(error), |error| {
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        }
    })
}
