//! The trait of all bodies.

use super::Limits;
use crate::body::Body;
use crate::validate::{Invalid, Valid, read_within};

/// A body of the API, which JSON is read into: each type with a `from_json`. Code that is generic over bodies, such as
/// an extractor of a web framework, names it as its bound.
///
/// It is not implemented for other types.
///
/// ```
/// use agentcfg_core::model::{JsonBody, Limits, NewWorkspace, WorkspacePatch};
/// use agentcfg_core::validate::{Invalid, Valid};
///
/// /// One function for the bodies of all routes.
/// fn body<T: JsonBody>(bytes: &[u8]) -> Result<Valid<T>, Invalid> {
///     T::read_json(bytes, Limits::default())
/// }
///
/// let new: Valid<NewWorkspace> = body(br#"{"name": "Studio"}"#)?;
/// assert_eq!(new.name, "Studio");
/// assert_eq!(body::<WorkspacePatch>(b"[]").unwrap_err().to_string(), "body must be a JSON object, got an array");
/// # Ok::<(), Invalid>(())
/// ```
pub trait JsonBody: Sized + sealed::Sealed {
    /// Reads the JSON text of a request as a service with these [limits](Limits) does; those of a service
    /// are in `AgentCfg::limits`.
    ///
    /// A persona that is too long for them is a fault next to other faults. Alone it is none, because an agent may keep
    /// a longer one that it has: the service decides.
    ///
    /// # Errors
    ///
    /// Every fault of the text, in the order of the fields.
    ///
    /// ```
    /// use agentcfg_core::model::{JsonBody, Limits, StatusReport};
    /// let report = StatusReport::read_json(br#"{"status": "idle"}"#, Limits::default())?;
    /// assert_eq!(*report, StatusReport::idle());
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    fn read_json(bytes: &[u8], limits: Limits) -> Result<Valid<Self>, Invalid>;
}

mod sealed {
    #[allow(unnameable_types)]
    pub trait Sealed {}
}

impl<T: Body> sealed::Sealed for T {}

impl<T: Body> JsonBody for T {
    fn read_json(bytes: &[u8], limits: Limits) -> Result<Valid<Self>, Invalid> {
        read_within(bytes, limits.persona_prompt)
    }
}
