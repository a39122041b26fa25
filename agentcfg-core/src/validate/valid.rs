//! Bodies that were checked.

use std::ops::Deref;

use super::{Invalid, MAX_PERSONA_PROMPT};
use crate::body::{self, Body};

/// A body that keeps all of its rules: either it was read from JSON, or [`IntoValid`] has checked a value that was made
/// in Rust.
///
/// The service takes it without another check, so the rules run once for each request.
///
/// ```
/// use agentcfg_core::model::NewWorkspace;
/// use agentcfg_core::validate::{IntoValid, Valid};
/// let read: Valid<NewWorkspace> = NewWorkspace::from_json(br#"{"name":"Studio"}"#)?;
/// let made: Valid<NewWorkspace> = NewWorkspace::new("Studio").into_valid()?;
/// assert_eq!(read, made);
/// assert_eq!(read.name, "Studio");
/// # Ok::<(), agentcfg_core::validate::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Valid<T>(T);

impl<T> Valid<T> {
    /// The body itself.
    ///
    /// ```
    /// use agentcfg_core::model::NewWorkspace;
    /// let body = NewWorkspace::from_json(br#"{"name":"Studio"}"#)?.into_inner();
    /// assert_eq!(body, NewWorkspace::new("Studio"));
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    pub fn into_inner(self) -> T {
        self.0
    }
}

/// There is no mutable access, because the rules would have to be checked again.
impl<T> Deref for Valid<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Reads a body where the deployment limits personas to this length. One that is too long for it is a fault next to
/// others; alone it is left to the service, because an agent may keep one that it has.
pub(crate) fn read_within<T: Body>(bytes: &[u8], max_persona: u32) -> Result<Valid<T>, Invalid> {
    body::from_json(bytes, max_persona).map(Valid)
}

/// Reads a body and checks every value by its rule.
pub(crate) fn read<T: Body>(bytes: &[u8]) -> Result<Valid<T>, Invalid> {
    read_within(bytes, MAX_PERSONA_PROMPT)
}

/// An argument of a method of the service that takes a body: a value made in Rust, which is then checked, or a body
/// that was checked when it was read.
///
/// ```
/// use agentcfg_core::model::NewWorkspace;
/// use agentcfg_core::validate::{IntoValid, Invalid};
///
/// fn names(new: impl IntoValid<NewWorkspace>) -> Result<String, Invalid> {
///     Ok(new.into_valid()?.into_inner().name)
/// }
///
/// assert_eq!(names(NewWorkspace::new("Studio"))?, "Studio");
/// assert_eq!(names(NewWorkspace::from_json(br#"{"name":"Studio"}"#)?)?, "Studio");
/// # Ok::<(), Invalid>(())
/// ```
pub trait IntoValid<T> {
    /// Checks the rules unless they are known to hold.
    ///
    /// # Errors
    ///
    /// Every fault, in the order of the fields.
    ///
    /// ```
    /// use agentcfg_core::model::NewWorkspace;
    /// use agentcfg_core::validate::IntoValid;
    /// assert!(NewWorkspace::new("Studio").into_valid().is_ok());
    /// assert!(NewWorkspace::new(" ").into_valid().is_err());
    /// ```
    fn into_valid(self) -> Result<Valid<T>, Invalid>;
}

impl<T: Body> IntoValid<T> for T {
    fn into_valid(self) -> Result<Valid<T>, Invalid> {
        body::check(&self)?;
        Ok(Valid(self))
    }
}

impl<T> IntoValid<T> for Valid<T> {
    fn into_valid(self) -> Result<Self, Invalid> {
        Ok(self)
    }
}
