//! The settings of the command line.

use std::path::PathBuf;

/// The settings that the command line carries.
///
/// ```
/// use agentcfg_server::process::Flags;
/// let flags = Flags { listen: Some("127.0.0.1:0".into()), ..Flags::default() };
/// ```
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--config`: the TOML file.
    pub config: Option<PathBuf>,
    /// `--data`.
    pub data: Option<PathBuf>,
    /// `--listen`.
    pub listen: Option<String>,
    /// `--wait-for`, in seconds.
    pub wait_for: Option<u32>,
    /// Whether a command beside the server reads the settings, such as `backup`. Without the file of the server it
    /// does not know the providers, and takes a managed credential for any.
    pub is_beside_server: bool,
}
