//! The server of the control socket.

use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::task::JoinHandle;

use super::frames;
use super::order::{LONGEST_LINE, Order};
use super::socket::{self, IO_TIMEOUT};
use crate::process::datadir::DataLock;

/// The time that a client has to send its order.
const ORDER_TIME: Duration = Duration::from_secs(5);

/// Accepts orders until it is dropped. The drop removes the socket and aborts a running backup.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    stopped: Arc<AtomicBool>,
    accepting: JoinHandle<()>,
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.accepting.abort();
        // When the removal fails, the next server removes the stale socket.
        let _ = fs::remove_file(&self.path);
    }
}

/// Takes orders on the control socket of the directory that `lock` holds. `execute` carries one out and writes the
/// answer; it runs on a blocking thread, one at a time.
///
/// Only processes of the same user, and root, are answered. Must be called in a Tokio runtime.
///
/// # Errors
///
/// When the socket cannot be made.
pub fn spawn<F>(lock: &DataLock, execute: F) -> io::Result<Control>
where
    F: Fn(&Order, &mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
{
    let path = lock.dir().socket_path();
    // The process that created it has ended, because this process holds the lock.
    clear(&path)?;
    let listener = socket::at(&path, |reachable| UnixListener::bind(reachable))?;
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    let stopped = Arc::new(AtomicBool::new(false));
    let accepting = tokio::spawn(accept(listener, Arc::new(execute), stopped.clone()));
    Ok(Control {
        path,
        stopped,
        accepting,
    })
}

fn clear(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => fs::remove_file(path),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("{} is not a socket; move it away", path.display()),
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

async fn accept<F>(listener: UnixListener, execute: Arc<F>, stopped: Arc<AtomicBool>)
where
    F: Fn(&Order, &mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
{
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept on the control socket");
                tokio::time::sleep(Duration::from_millis(500)).await;
                continue;
            }
        };
        // Between bind and chmod only the umask protected the socket.
        let peer = stream.peer_cred().map(|peer| peer.uid());
        let own = rustix::process::geteuid().as_raw();
        if !peer.as_ref().is_ok_and(|uid| *uid == own || *uid == 0) {
            tracing::warn!(?peer, "refused another user on the control socket");
            continue;
        }
        let (execute, stopped) = (execute.clone(), stopped.clone());
        let served = tokio::task::spawn_blocking(move || serve(stream.into_std()?, &stopped, &*execute));
        match served.await {
            Ok(Ok((order, bytes))) => tracing::info!(?order, bytes, "carried out an order on the control socket"),
            Ok(Err(error)) => tracing::warn!(%error, "an order on the control socket failed"),
            Err(error) => tracing::error!(%error, "an order on the control socket panicked"),
        }
    }
}

fn serve(
    mut stream: UnixStream,
    stopped: &AtomicBool,
    execute: &dyn Fn(&Order, &mut dyn Write) -> io::Result<()>,
) -> io::Result<(Order, u64)> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(ORDER_TIME))?;
    stream.set_write_timeout(Some(IO_TIMEOUT))?;
    let mut order = Vec::new();
    let mut byte = [0];
    while order.len() < LONGEST_LINE && order.last() != Some(&b'\n') && stream.read(&mut byte)? == 1 {
        order.push(byte[0]);
    }
    let Some(known) = Order::read(&order) else {
        frames::refuse(
            &mut stream,
            "unknown order; this server knows `backup 1`, `compact 1`, `rotate-master-key 1` and `login-link 1 USER`",
        )?;
        return Err(io::Error::other(format!(
            "unknown order {:?}",
            order.escape_ascii().to_string()
        )));
    };
    let sent = frames::send(&mut stream, stopped, &|out| execute(&known, out))?;
    Ok((known, sent))
}
