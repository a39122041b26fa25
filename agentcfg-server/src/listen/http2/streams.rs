//! The tasks of the streams of one connection: their number, and the watch over clients that do not take their
//! response.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use agentcfg_core::sync::lock;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::rt::Executor;
use pin_project_lite::pin_project;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep};

use super::body::Leftover;
use crate::listen::connection::Follow;
use crate::listen::limits::{LINGER_IDLE, LINGER_TOTAL, Limits};

/// The longest piece of a response that is given to the connection at a time. The client must take all but the last one
/// within the write timeout, so a short piece bounds what a client can leave in the server.
const PIECE: usize = 64 << 10;

/// How many more requests a client may reset than it lets the server answer. A browser resets a few when a page is
/// left.
const MAX_ABANDONED: u32 = 256;

tokio::task_local! {
    /// The progress of the stream whose task runs.
    static PROGRESS: Arc<Progress>;
}

/// How far the response of a stream is.
#[derive(Debug, Default)]
struct Progress {
    /// Pieces that were given to the connection.
    given: AtomicU64,
    /// Whether the connection holds a piece that the client has not allowed it to send.
    awaits_client: AtomicBool,
    /// Whether the response has come to its end.
    is_complete: AtomicBool,
    /// The body of the request, if the service has not read all of it.
    leftover: Leftover<Incoming>,
}

/// What happens on one connection.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<StreamCounts>,
    header_timeout: Duration,
    abuse: Notify,
}

#[derive(Debug)]
struct StreamCounts {
    open: usize,
    has_begun: bool,
    /// Since when no request is open, if none is.
    idle_since: Instant,
    /// Requests that the client has reset, less those that were answered.
    abandoned: u32,
}

impl Activity {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            state: Mutex::new(StreamCounts {
                open: 0,
                has_begun: false,
                idle_since: Instant::now(),
                abandoned: 0,
            }),
            header_timeout: limits.header_timeout,
            abuse: Notify::new(),
        }
    }

    /// When the connection has been idle for too long; `None` while requests are in flight.
    pub(super) fn deadline(&self, idle_timeout: Duration) -> Option<Instant> {
        let state = lock(&self.state);
        // The first request has no request before it, so the header timeout applies instead of the idle timeout.
        let timeout = if state.has_begun {
            idle_timeout
        } else {
            self.header_timeout
        };
        (state.open == 0).then(|| state.idle_since + timeout)
    }

    /// Resolves when the client has reset too many requests.
    pub(super) async fn abused(&self) {
        self.abuse.notified().await;
    }

    /// Whether there was a request.
    pub(super) fn has_begun(&self) -> bool {
        lock(&self.state).has_begun
    }

    fn opened(&self) {
        let mut state = lock(&self.state);
        state.open += 1;
        state.has_begun = true;
    }

    fn closed(&self, is_complete: bool) {
        let mut state = lock(&self.state);
        state.open -= 1;
        if state.open == 0 {
            state.idle_since = Instant::now();
        }
        if is_complete {
            state.abandoned = state.abandoned.saturating_sub(1);
        } else {
            state.abandoned += 1;
            if state.abandoned > MAX_ABANDONED {
                self.abuse.notify_one();
            }
        }
    }
}

/// Runs the streams of one connection, each as a task.
#[derive(Debug, Clone)]
pub(super) struct Streams {
    /// Weak, because each task holds a clone of its executor.
    tasks: Weak<Mutex<JoinSet<()>>>,
    activity: Arc<Activity>,
    write_timeout: Duration,
}

impl Streams {
    pub(super) fn new(tasks: &Arc<Mutex<JoinSet<()>>>, activity: &Arc<Activity>, write_timeout: Duration) -> Self {
        Self {
            tasks: Arc::downgrade(tasks),
            activity: Arc::clone(activity),
            write_timeout,
        }
    }
}

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, exchange: F) {
        let Some(tasks) = self.tasks.upgrade() else { return };
        self.activity.opened();
        let progress = Arc::new(Progress::default());
        let task = StreamTask {
            exchange,
            rest: None,
            stall: None,
            write_timeout: self.write_timeout,
            _open: OpenStream {
                activity: Arc::clone(&self.activity),
                progress: Arc::clone(&progress),
            },
            progress,
        };
        let mut tasks = lock(&tasks);
        // The set keeps the results of ended tasks until they are taken.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}

/// Counts a stream as open until it is dropped.
#[derive(Debug)]
struct OpenStream {
    activity: Arc<Activity>,
    progress: Arc<Progress>,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.activity.closed(self.progress.is_complete.load(Relaxed));
    }
}

pin_project! {
    /// One stream, which ends when the client leaves its response unread for too long. hyper resets it then. After the
    /// response, what the client still sends is read and discarded for a while.
    struct StreamTask<F> {
        #[pin]
        exchange: F,
        // After the response: the reading of the rest of the request.
        rest: Option<Pin<Box<Discard>>>,
        progress: Arc<Progress>,
        // The piece that waits for the client, and how long it still may.
        stall: Option<(u64, Pin<Box<Sleep>>)>,
        write_timeout: Duration,
        _open: OpenStream,
    }
}

impl<F: Future<Output = ()>> Future for StreamTask<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if let Some(rest) = this.rest {
            return rest.as_mut().poll(cx);
        }
        let exchange = this.exchange;
        if PROGRESS
            .sync_scope(Arc::clone(this.progress), || exchange.poll(cx))
            .is_ready()
        {
            let Some(unread) = lock(&this.progress.leftover).take() else {
                return Poll::Ready(());
            };
            return this.rest.insert(Box::pin(Discard::new(unread))).as_mut().poll(cx);
        }
        if !this.progress.awaits_client.load(Relaxed) {
            *this.stall = None;
            return Poll::Pending;
        }
        let piece = this.progress.given.load(Relaxed);
        let known = this.stall.take().filter(|(number, _)| *number == piece);
        let (_, timer) = this
            .stall
            .insert(known.unwrap_or_else(|| (piece, Box::pin(sleep(*this.write_timeout)))));
        ready!(timer.as_mut().poll(cx));
        tracing::debug!("resetting a stream whose client does not read its response");
        Poll::Ready(())
    }
}

/// Reads and discards a body, until its end or for a limited time.
#[derive(Debug)]
struct Discard {
    body: Incoming,
    idle: Pin<Box<Sleep>>,
    end: Instant,
}

impl Discard {
    fn new(body: Incoming) -> Self {
        Self {
            body,
            idle: Box::pin(sleep(LINGER_IDLE)),
            end: Instant::now() + LINGER_TOTAL,
        }
    }
}

impl Future for Discard {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        // A limited number, so that other tasks run as well.
        for _ in 0..32 {
            if this.idle.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(_)) => this.idle.as_mut().reset(this.end.min(Instant::now() + LINGER_IDLE)),
                Some(Err(_)) | None => return Poll::Ready(()),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Follows the response of a stream.
#[derive(Debug)]
pub(super) struct Follower(Arc<Progress>);

impl Follower {
    /// Of the stream whose task runs.
    pub(super) fn of_this_stream() -> Self {
        Self(PROGRESS.try_with(Arc::clone).unwrap_or_default())
    }

    /// Where the body of the request is left if the service does not read all of it.
    pub(super) fn leftover(&self) -> Leftover<Incoming> {
        Arc::clone(&self.0.leftover)
    }
}

impl Follow for Follower {
    type Followed<B> = Pieces<B>;

    fn follow<B>(guard: Option<Self>, body: B) -> Pieces<B> {
        Pieces {
            body,
            rest: Bytes::new(),
            progress: guard.map(|follower| follower.0).unwrap_or_default(),
        }
    }
}

/// A response body that is given to the connection in short pieces.
#[derive(Debug)]
pub(super) struct Pieces<B> {
    body: B,
    /// The part of a long piece of the body that was not given yet.
    rest: Bytes,
    progress: Arc<Progress>,
}

impl<B: Body<Data = Bytes> + Unpin> Body for Pieces<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        self.progress.awaits_client.store(false, Relaxed);
        let piece = if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                ended => {
                    self.progress.is_complete.store(true, Relaxed);
                    return Poll::Ready(ended);
                }
            }
        } else {
            std::mem::take(&mut self.rest)
        };
        let mut piece = piece;
        if piece.len() > PIECE {
            self.rest = piece.split_off(PIECE);
        }
        let progress = &self.progress;
        progress.given.fetch_add(1, Relaxed);
        progress.awaits_client.store(true, Relaxed);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        let is_end = self.rest.is_empty() && self.body.is_end_stream();
        if is_end {
            self.progress.is_complete.store(true, Relaxed);
        }
        is_end
    }

    /// hyper asks before the first piece, when there is no rest.
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Full};

    use super::*;

    #[tokio::test]
    async fn a_long_body_is_given_in_short_pieces() {
        let content: Bytes = (0..200_000).map(|at: u32| (at % 251) as u8).collect();
        let mut body = Follower::follow(None, Full::new(content.clone()));
        assert_eq!(body.size_hint().exact(), Some(200_000));
        let mut received = Vec::new();
        while let Some(frame) = body.frame().await {
            let piece = frame.unwrap().into_data().unwrap();
            assert!(piece.len() <= PIECE);
            received.extend_from_slice(&piece);
        }
        assert!(received == content);
        assert!(body.is_end_stream());
        assert!(body.progress.is_complete.load(Relaxed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_while_no_stream_is_open() {
        let activity = Activity::new(&Limits::default());
        let begin = Instant::now();
        assert_eq!(
            activity.deadline(Duration::from_secs(75)),
            Some(begin + Duration::from_secs(10))
        );
        activity.opened();
        activity.opened();
        activity.closed(true);
        assert_eq!(activity.deadline(Duration::from_secs(75)), None);
        activity.closed(true);
        assert_eq!(
            activity.deadline(Duration::from_secs(75)),
            Some(begin + Duration::from_secs(75))
        );
    }

    #[tokio::test]
    async fn a_client_that_resets_more_than_it_lets_finish_is_found() {
        let activity = Activity::new(&Limits::default());
        let is_abused = || tokio::time::timeout(Duration::ZERO, activity.abused());
        for round in 0..1000 {
            activity.opened();
            activity.closed(round % 2 == 0);
        }
        assert!(is_abused().await.is_err());
        for _ in 0..=MAX_ABANDONED {
            activity.opened();
            activity.closed(false);
        }
        assert!(is_abused().await.is_ok());
    }
}
