//! The format of a store, and the build that made it.
//!
//! One number stands for everything that a store keeps: the records, and how its engine or a backup lays them out. A
//! change of either that this build cannot read, or that the build before cannot, raises [`FORMAT`]. A store or a
//! backup of another format is refused before anything is written, with the name of the build that made it.

use std::fmt;

/// The format of the stores and the backups that this build makes, and the only one that it reads.
///
/// ```
/// use agentcfg_core::store::{FORMAT, OtherFormat};
///
/// /// An engine keeps both beside the records, and compares the format before it writes anything.
/// fn verify(found: u32, build: Option<String>) -> Result<(), OtherFormat> {
///     match found {
///         FORMAT => Ok(()),
///         found => Err(OtherFormat { found, build }),
///     }
/// }
/// assert!(verify(FORMAT, None).is_ok() && verify(FORMAT + 1, None).is_err());
/// ```
pub const FORMAT: u32 = 7;

/// The version of this build, which the stores and the backups that it makes name.
///
/// ```
/// assert_eq!(agentcfg_core::store::BUILD.split('.').count(), 3);
/// ```
pub const BUILD: &str = env!("CARGO_PKG_VERSION");

/// Why a store or a backup was refused: it has another format. It was not changed.
///
/// ```
/// use agentcfg_core::store::{FORMAT, OtherFormat};
/// let newer = OtherFormat { found: FORMAT + 1, build: Some("7.1.0".into()) };
/// assert!(newer.to_string().starts_with("made by agentcfg 7.1.0 with format"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherFormat {
    /// The format that was found.
    pub found: u32,
    /// The build that made it; `None` where it does not say, as before 0.1.0.
    pub build: Option<String>,
}

impl fmt::Display for OtherFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { found, build } = self;
        match build {
            Some(build) => write!(f, "made by agentcfg {build} with format {found}")?,
            None => write!(f, "made by a build of agentcfg before 0.1.0 with format {found}")?,
        }
        write!(f, "; this build, {BUILD}, reads format {FORMAT}")
    }
}

impl std::error::Error for OtherFormat {}
