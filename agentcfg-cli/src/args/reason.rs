//! The option that commands with a change share.

use clap::Args;

/// Why a change is made.
#[derive(Debug, Args)]
pub struct Reason {
    /// Why: kept in the audit log and with the version. At most 500 characters.
    #[arg(long, short, value_name = "TEXT")]
    pub message: Option<String>,
}
