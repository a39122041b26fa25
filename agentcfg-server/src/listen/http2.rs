//! Serving one HTTP/2 connection.
//!
//! h2 parses the frames and bounds what a client may make it keep. This module adds what h2 leaves to a server: the host of
//! a request, `100 Continue`, time limits for bodies and for responses that a client does not take, the end of idle and of
//! dead connections, and of those whose client resets its requests. hyper would serve h2 too, but cannot send a `100`.

mod activity;
mod body;
mod piece;
mod request;
mod stream;
mod watched;

use std::convert::Infallible;
use std::error::Error;
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Builder, Connection, SendResponse};
use h2::{Ping, PingPong, RecvStream};
use hyper::body::Body;
use hyper::{Request, Response};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tower_service::Service;

use self::activity::{Activity, OpenStream};
pub use self::body::{StreamBody, StreamBodyError};
use self::piece::Piece;
use self::watched::Watched;
use super::demand::{self, Demand, closing};
use super::limits::Limits;
use super::linger::LingeringClose;

/// Requests that a client may have in flight on one connection.
const MAX_STREAMS: u32 = 128;

/// Bytes that a client may send of one body, and of all bodies of a connection, before the service reads them. A client
/// with many connections can make the server keep so much for each, and a client half a second away can send the longest
/// body of 10 MiB within the 30 seconds that it has.
const STREAM_WINDOW: u32 = 192 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;

/// Bytes of one response that wait for the client.
const SEND_BUFFER: usize = 64 << 10;

/// The greatest size of the header fields as HPACK counts them, 32 bytes more for each than on the wire. It is well
/// above the limits of the service, so that the service refuses with its own message.
const MAX_HEADER_LIST: u32 = 64 << 10;

/// Requests that a client resets before the server has accepted them, and frames for streams that the server has reset.
/// Beyond it the connection is closed (rapid reset, CVE-2023-44487 and CVE-2025-8671).
const MAX_PENDING_RESETS: usize = 20;
const MAX_LOCAL_RESETS: usize = 256;

/// The interval of pings, which find connections whose client is gone, and the time for their answer.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Time for a client without requests in flight to close a connection that the server has ended with GOAWAY.
const GOODBYE: Duration = Duration::from_secs(5);

/// How long, and how much, the input of a client is discarded that reads the last responses slowly. What it sends is
/// window updates then.
const LINGER_TOTAL: Duration = Duration::from_secs(20);
const LINGER_BYTES: u64 = 64 << 10;

/// Serves `io` until either side closes it, or `demand` says so.
pub(super) async fn run<T, S, B>(mut io: T, service: S, limits: Limits, demand: watch::Receiver<Demand>)
where
    T: AsyncRead + AsyncWrite + Unpin,
    S: Service<Request<StreamBody>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let activity = Arc::new(Activity::new(&limits));
    let times = (limits.body_pace(), limits.write_timeout);
    // The tasks of the streams end with the connection.
    let mut tasks = JoinSet::new();
    let begin = |request, respond| {
        let open = OpenStream::new(&activity);
        // The set keeps the results of ended tasks until they are taken.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(stream::serve(request, respond, service.clone(), times, open));
    };
    let end = serve(&mut io, begin, &limits, &activity, demand).await;
    drop(tasks);
    if end == End::InOrder && io.shutdown().await.is_ok() && activity.has_answered_within(GOODBYE) {
        // What a client reads slowly lies in the buffers of the system, which a reset would discard.
        let mut closing = LingeringClose::begin(GOODBYE, LINGER_TOTAL);
        let mut input = io.take(LINGER_BYTES);
        poll_fn(|cx| closing.poll(&mut input, cx)).await;
    }
}

/// How the service of a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// All responses that had begun were written.
    InOrder,
    /// The connection is broken, or not worth more.
    Cut,
}

/// Serves a connection, of which `begin` starts each stream.
async fn serve<T>(
    io: &mut T,
    mut begin: impl FnMut(Request<RecvStream>, SendResponse<Piece>),
    limits: &Limits,
    activity: &Arc<Activity>,
    mut demand: watch::Receiver<Demand>,
) -> End
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let io = Watched {
        io,
        activity: Arc::clone(activity),
    };
    let first_request = Instant::now() + limits.header_timeout;
    let handshake = tokio::select! {
        biased;
        handshake = timeout_at(first_request, builder().handshake(io)) => handshake,
        () = closing(demand.clone()) => return End::Cut,
    };
    let Ok(Ok(mut connection)) = handshake else {
        return End::Cut;
    };
    let mut ping_pong = connection.ping_pong();
    let mut client_gone = pin!(client_gone(ping_pong.as_mut(), activity));
    let mut idle_timeout = limits.idle_timeout;
    let mut alarm = pin!(sleep_until(first_request));
    // Whether the connection is to end with its first request.
    let mut is_leaving = false;
    // Whether a GOAWAY was sent: at shutdown, or because the connection is idle.
    let mut is_closing = false;
    let mut is_ending = false;
    loop {
        let mut is_to_end = false;
        tokio::select! {
            biased;
            accepted = accept_streams(&mut connection, is_leaving, &mut begin) => match accepted {
                Ok(Accepted::First) => is_to_end = true,
                Ok(Accepted::All) => return End::InOrder,
                Err(error) => {
                    tracing::debug!(error = &error as &dyn Error, "connection ended early");
                    return End::Cut;
                }
            },
            demand = async { if is_closing { pending().await } else { demand::next(&mut demand).await } } => match demand {
                Demand::Close => {
                    if !activity.has_begun() {
                        return End::Cut;
                    }
                    is_closing = true;
                    is_to_end = true;
                }
                // Here a field of an answer ends nothing; GOAWAY lets the requests in flight finish.
                Demand::Leave if activity.has_begun() => is_to_end = !is_ending,
                Demand::Leave => is_leaving = true,
                Demand::Hurry(idle) => {
                    idle_timeout = idle;
                    if !is_ending {
                        let deadline = activity.deadline(idle);
                        alarm.as_mut().reset(deadline.unwrap_or_else(|| Instant::now() + idle));
                    }
                }
                Demand::Serve => idle_timeout = limits.idle_timeout,
            },
            () = activity.abused() => {
                tracing::info!("closing an HTTP/2 connection whose client resets its requests");
                return End::Cut;
            }
            () = client_gone.as_mut() => {
                tracing::debug!("closing an HTTP/2 connection whose client answers no ping");
                return End::Cut;
            }
            () = alarm.as_mut() => {
                let now = Instant::now();
                match activity.deadline(idle_timeout) {
                    None if is_ending => alarm.as_mut().reset(now + GOODBYE),
                    None => alarm.as_mut().reset(now + idle_timeout),
                    Some(_) if is_ending => return End::InOrder,
                    Some(deadline) if deadline > now => alarm.as_mut().reset(deadline),
                    Some(_) if !activity.has_begun() => return End::Cut,
                    Some(_) => is_to_end = true,
                }
            }
        }
        if is_to_end {
            is_leaving = false;
            is_ending = true;
            connection.graceful_shutdown();
            alarm.as_mut().reset(Instant::now() + GOODBYE);
        }
    }
}

/// The settings of a connection.
fn builder() -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(MAX_STREAMS)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(SEND_BUFFER)
        .max_header_list_size(MAX_HEADER_LIST)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .max_local_error_reset_streams(Some(MAX_LOCAL_RESETS));
    builder
}

/// What [`accept_streams`] has accepted.
enum Accepted {
    First,
    All,
}

/// Drives the connection and begins its streams, until it ends, or `until_first` stream. Cancel safe. It does not resolve
/// for each stream, because what else is awaited would register its wakers again.
async fn accept_streams<T: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<T, Piece>,
    until_first: bool,
    mut begin: impl FnMut(Request<RecvStream>, SendResponse<Piece>),
) -> Result<Accepted, h2::Error> {
    while let Some(accepted) = connection.accept().await {
        let (request, respond) = accepted?;
        begin(request, respond);
        if until_first {
            return Ok(Accepted::First);
        }
    }
    Ok(Accepted::All)
}

/// Resolves when the client has left a ping unanswered, and gives no other sign of life. The ping of a client that reads
/// slowly waits behind what was written before.
async fn client_gone(ping_pong: Option<&mut PingPong>, activity: &Activity) {
    let Some(ping_pong) = ping_pong else {
        return pending().await;
    };
    loop {
        sleep(PING_INTERVAL).await;
        activity.take_heard();
        let mut pong = pin!(ping_pong.ping(Ping::opaque()));
        loop {
            match timeout(PING_TIMEOUT, pong.as_mut()).await {
                Ok(Ok(_)) => break,
                // The connection is ending by itself.
                Ok(Err(_)) => return pending().await,
                Err(_) if activity.take_heard() || activity.is_blocked() => {}
                Err(_) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::header::{self, HeaderValue};
    use tokio::io::DuplexStream;
    use tokio::sync::Semaphore;
    use tokio::task::JoinHandle;

    use super::*;

    /// Answers each request when it may.
    #[derive(Clone)]
    struct Hello(Arc<Semaphore>);

    impl Service<Request<StreamBody>> for Hello {
        type Response = Response<String>;
        type Error = Infallible;
        type Future = Pin<Box<dyn Future<Output = Result<Response<String>, Infallible>> + Send>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<StreamBody>) -> Self::Future {
            let may = Arc::clone(&self.0);
            Box::pin(async move {
                may.acquire().await.unwrap().forget();
                let mut response = Response::new("hello ".repeat(request.uri().path().len()));
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
                Ok(response)
            })
        }
    }

    /// A connection to a server that answers so many requests.
    struct Client {
        requests: h2::client::SendRequest<Bytes>,
        connection: h2::client::Connection<DuplexStream, Bytes>,
        server: JoinHandle<()>,
        demand: watch::Sender<Demand>,
        may: Arc<Semaphore>,
    }

    impl Client {
        async fn connect(answers: usize) -> Self {
            Self::with(&h2::client::Builder::new(), answers).await
        }

        async fn with(builder: &h2::client::Builder, answers: usize) -> Self {
            Self::over(tokio::io::duplex(1 << 20), builder, answers).await
        }

        async fn over(
            (near, far): (DuplexStream, DuplexStream),
            builder: &h2::client::Builder,
            answers: usize,
        ) -> Self {
            let (demand, watched) = watch::channel(Demand::Serve);
            let may = Arc::new(Semaphore::new(answers));
            let server = tokio::spawn(run(near, Hello(Arc::clone(&may)), Limits::default(), watched));
            let (requests, connection) = builder.handshake(far).await.unwrap();
            Self {
                requests,
                connection,
                server,
                demand,
                may,
            }
        }

        fn ask(&mut self, path: &str) -> h2::client::ResponseFuture {
            let request = Request::get(format!("https://a.example{path}")).body(()).unwrap();
            self.requests.send_request(request, true).unwrap().0
        }
    }

    #[tokio::test]
    async fn a_long_response_arrives_whole_and_without_fields_of_a_connection() {
        let mut client = Client::connect(1).await;
        let answer = client.ask(&format!("/{}", "x".repeat(40_000)));
        tokio::spawn(client.connection);
        let (head, mut body) = answer.await.unwrap().into_parts();
        assert_eq!(head.headers[header::CONTENT_LENGTH], "240006");
        assert!(head.headers[header::DATE].to_str().unwrap().ends_with(" GMT"));
        assert!(!head.headers.contains_key(header::CONNECTION));
        let mut received = Vec::new();
        while let Some(piece) = body.data().await {
            let piece = piece.unwrap();
            body.flow_control().release_capacity(piece.len()).unwrap();
            received.extend_from_slice(&piece);
        }
        assert!(received == "hello ".repeat(40_001).as_bytes());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_answers_no_ping_is_disconnected() {
        let mut client = Client::connect(0).await;
        let began = Instant::now();
        let _answer = client.ask("/");
        // Its request is on the way, and then it does nothing more.
        let _ = poll_fn(|cx| Poll::Ready(Pin::new(&mut client.connection).poll(cx))).await;
        client.server.await.unwrap();
        assert_eq!(began.elapsed().as_secs(), (PING_INTERVAL + PING_TIMEOUT).as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_gets_all_of_an_answer_that_was_begun_before_the_shutdown() {
        let mut slow = h2::client::Builder::new();
        slow.initial_window_size(1000);
        let mut client = Client::with(&slow, 1).await;
        let answer = client.ask(&format!("/{}", "x".repeat(4999)));
        let connection = tokio::spawn(client.connection);
        let mut body = answer.await.unwrap().into_body();
        client.demand.send_replace(Demand::Close);
        let mut received = 0;
        while let Some(piece) = body.data().await {
            let piece = piece.unwrap();
            received += piece.len();
            sleep(Duration::from_secs(1)).await;
            body.flow_control().release_capacity(piece.len()).unwrap();
        }
        assert_eq!(received, 30_000);
        connection.await.unwrap().unwrap();
        client.server.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn streams_that_share_a_slow_connection_are_answered_whole() {
        let (near, slow) = tokio::io::duplex(1 << 10);
        let (inner, far) = tokio::io::duplex(1 << 10);
        let (mut from_server, mut to_server) = tokio::io::split(slow);
        let (mut from_client, mut to_client) = tokio::io::split(inner);
        tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
        // 10 kB a second, so that all answers take twice the write timeout.
        tokio::spawn(async move {
            let mut bytes = [0; 1000];
            while let Ok(count @ 1..) = from_server.read(&mut bytes).await {
                to_client.write_all(&bytes[..count]).await.unwrap();
                sleep(Duration::from_millis(100)).await;
            }
        });
        let mut client = Client::over((near, far), &h2::client::Builder::new(), 20).await;
        let answers: Vec<_> = (0..20).map(|_| client.ask(&format!("/{}", "x".repeat(4999)))).collect();
        tokio::spawn(client.connection);
        let mut reading = JoinSet::new();
        for answer in answers {
            reading.spawn(async move {
                let mut body = answer.await.unwrap().into_body();
                let mut received = 0;
                while let Some(piece) = body.data().await {
                    let piece = piece.unwrap();
                    received += piece.len();
                    body.flow_control().release_capacity(piece.len()).unwrap();
                }
                received
            });
        }
        let began = Instant::now();
        assert_eq!(reading.join_all().await, [30_000; 20]);
        assert!(began.elapsed() > Duration::from_secs(55), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_first_request_comes_while_the_server_leaves_ends_with_it() {
        let mut client = Client::connect(1).await;
        client.demand.send_replace(Demand::Leave);
        let connection = tokio::spawn(client.connection);
        // The server takes the demand first.
        sleep(Duration::from_secs(1)).await;
        let request = Request::get("https://a.example/").body(()).unwrap();
        let answer = client.requests.send_request(request, true).unwrap().0;
        let began = Instant::now();
        assert_eq!(answer.await.unwrap().status(), 200);
        drop(client.requests);
        connection.await.unwrap().unwrap();
        client.server.await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    }

    /// The time that a connection stays open after a demand, which comes while a stream is open or none is.
    async fn idle_after_a_demand(is_open: bool) -> Duration {
        let mut client = Client::connect(0).await;
        let answer = tokio::spawn(client.ask("/"));
        let connection = tokio::spawn(client.connection);
        let hurry = || client.demand.send_replace(Demand::Hurry(Duration::from_secs(18)));
        if is_open {
            // From then on, the end of an idle connection is awaited, and no more its first request.
            tokio::time::sleep(Limits::default().header_timeout * 2).await;
            hurry();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        client.may.add_permits(1);
        assert_eq!(answer.await.unwrap().unwrap().status(), 200);
        let began = Instant::now();
        if !is_open {
            hurry();
        }
        tokio::time::sleep(Duration::from_secs(17)).await;
        assert!(!client.server.is_finished());
        client.server.await.unwrap();
        connection.await.unwrap().unwrap();
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_closes_earlier_while_a_client_waits_for_one() {
        for is_open in [false, true] {
            let idle = idle_after_a_demand(is_open).await;
            assert!(idle < Duration::from_secs(20), "{is_open} {idle:?}");
        }
    }
}
