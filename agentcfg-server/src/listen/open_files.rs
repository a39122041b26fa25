//! The limit of open files: each connection needs a file descriptor, and the default soft limit is low.

use rustix::process::{Resource, getrlimit, setrlimit};

use super::limits::Limits;

/// Descriptors reserved for the store, the logs and the senders of webhooks, of which hundreds have a connection.
const SPARE: u64 = 1024;

/// Makes [`max_connections`](Limits::max_connections) fit the limit of open files: raises the soft limit of this
/// process as far as the hard limit allows and, if that is not enough, lowers `max_connections` and logs a warning.
///
/// Otherwise a server with all its connections in use could not open its own files. Only the binary calls it, because
/// it changes the whole process.
pub fn fit_to_open_files(limits: &mut Limits) {
    let mut files = getrlimit(Resource::Nofile);
    // A model call also has a connection to the provider.
    let wanted = (limits.max_connections as u64).saturating_mul(2).saturating_add(SPARE);
    if files.current.is_some_and(|current| current < wanted) {
        let raised = files.maximum.map_or(wanted, |maximum| maximum.min(wanted));
        let soft = files.current.replace(raised);
        if let Err(error) = setrlimit(Resource::Nofile, files) {
            tracing::debug!(%error, "cannot raise the limit of open files");
            files.current = soft;
        }
    }
    let room = room(files.current);
    if room < limits.max_connections {
        tracing::warn!(
            max_connections = limits.max_connections,
            lowered_to = room,
            "the limit of open files (ulimit -n) allows fewer connections than configured"
        );
        limits.max_connections = room;
    }
}

/// The number of connections that a limit of open files allows. Of a low limit a quarter is reserved.
fn room(files: Option<u64>) -> usize {
    files.map_or(usize::MAX, |files| {
        let room = files.saturating_sub(SPARE.min(files / 4)).max(1);
        usize::try_from(room).unwrap_or(usize::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_reserved_for_other_files() {
        assert_eq!(room(None), usize::MAX);
        assert_eq!(room(Some(100_000)), 98_976);
        assert_eq!(room(Some(1024)), 768);
        assert_eq!(room(Some(1)), 1);
    }

    #[test]
    fn the_soft_limit_follows_the_wanted_connections() {
        let before = getrlimit(Resource::Nofile);
        let mut limits = Limits {
            max_connections: usize::MAX,
            ..Limits::default()
        };
        fit_to_open_files(&mut limits);
        let after = getrlimit(Resource::Nofile);
        assert_eq!(after.current, before.maximum.or(after.current));
        assert_eq!(limits.max_connections, room(after.current));
        setrlimit(Resource::Nofile, before).unwrap();
    }
}
