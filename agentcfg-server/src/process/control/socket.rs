//! The address and the timeout of the control socket, for both sides.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The read and write timeout of both sides.
pub(super) const IO_TIMEOUT: Duration = Duration::from_secs(60);

/// Calls `act` with a path to the socket that the system accepts. A socket address holds 107 bytes, so a longer path is
/// reached through the open directory.
pub(super) fn at<T>(path: &Path, act: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    const LONGEST: usize = if cfg!(target_os = "linux") { 107 } else { 103 };
    if path.as_os_str().len() <= LONGEST {
        return act(path);
    }
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return act(path);
    };
    if !cfg!(target_os = "linux") {
        let message = format!(
            "the path of the socket must be at most {LONGEST} bytes, got {}",
            path.as_os_str().len()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let dir = File::open(dir)?;
    let mut reachable = PathBuf::from("/proc/self/fd");
    reachable.push(OsStr::from_bytes(dir.as_raw_fd().to_string().as_bytes()));
    act(&reachable.join(name))
}
