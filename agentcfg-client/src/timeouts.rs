//! Time limits of a call.

use std::time::Duration;

/// Time limits of a call.
///
/// ```
/// use std::time::Duration;
/// use agentcfg_client::{Client, Timeouts};
/// let timeouts = Timeouts { total: Duration::from_secs(10), ..Timeouts::default() };
/// let client = Client::builder("https://agents.example.com").timeouts(timeouts).build()?;
/// # Ok::<(), agentcfg_client::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For one connection: name resolution, TCP and TLS.
    pub connect: Duration,
    /// For one attempt, from connecting to the last byte of the response.
    pub attempt: Duration,
    /// For a call with all its retries and the delays between them.
    pub total: Duration,
}

impl Default for Timeouts {
    /// Connect 5 s, attempt 15 s, total 45 s.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            attempt: Duration::from_secs(15),
            total: Duration::from_secs(45),
        }
    }
}
