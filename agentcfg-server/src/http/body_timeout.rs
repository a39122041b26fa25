//! The error of a request body that did not arrive in time.

use std::error::Error;
use std::io;

use agentcfg_core::error::causes;

/// The client took too long to send. A listener raises it within an [`io::Error`], because sockets have no other
/// errors, and as `StreamBodyError::TooSlow` in HTTP/2.
///
/// ```
/// use agentcfg_server::listen::BodyTimeout;
/// assert_eq!(BodyTimeout.to_string(), "client is too slow");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("client is too slow")]
pub struct BodyTimeout;

impl From<BodyTimeout> for io::Error {
    fn from(error: BodyTimeout) -> Self {
        Self::new(io::ErrorKind::TimedOut, error)
    }
}

impl BodyTimeout {
    /// Whether this error, or one beneath it, is a body timeout.
    ///
    /// ```
    /// use agentcfg_server::listen::BodyTimeout;
    /// assert!(BodyTimeout::is_in(&std::io::Error::from(BodyTimeout)));
    /// assert!(!BodyTimeout::is_in(&std::io::Error::other("broken pipe")));
    /// ```
    pub fn is_in(error: &(dyn Error + 'static)) -> bool {
        causes(error).any(|cause| cause.is::<Self>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_found_beneath_other_errors_and_nothing_else_is() {
        assert!(BodyTimeout::is_in(&BodyTimeout));
        assert!(BodyTimeout::is_in(&io::Error::from(BodyTimeout)));
        assert!(BodyTimeout::is_in(&io::Error::other(io::Error::from(BodyTimeout))));
        assert!(!BodyTimeout::is_in(&io::Error::from(io::ErrorKind::TimedOut)));
        assert!(!BodyTimeout::is_in(&io::Error::other("client is too slow")));
    }
}
