//! Time limits of a call.

use std::time::Duration;

agentcfg_core::__settable! {
    /// Time limits of a call.
    ///
    /// ```
    /// use std::time::Duration;
    /// use agentcfg_client::{Client, Timeouts};
    /// let timeouts = Timeouts::default().total(Duration::from_secs(10));
    /// let client = Client::builder("https://agents.example.com").timeouts(timeouts).build()?;
    /// # Ok::<(), agentcfg_client::Error>(())
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    Timeouts {
        /// For one connection: name resolution, TCP and TLS.
        connect: Duration,
        /// For one attempt, from connecting to the last byte of the response.
        attempt: Duration,
        /// For a call with all its retries and the delays between them.
        total: Duration,
    }
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
