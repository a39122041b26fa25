use std::sync::atomic::AtomicUsize;

use super::*;

/// A task that counts how often it is woken.
#[derive(Default)]
struct Task(AtomicUsize);

impl Task {
    fn wakes(&self) -> usize {
        self.0.load(SeqCst)
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn what_wakes_itself_is_polled_again_in_place() {
    let (task, in_place) = (Arc::new(Task::default()), InPlace::default());
    let mut polls = 0;
    let polled = in_place.poll(&mut Context::from_waker(&task.clone().into()), |cx| {
        polls += 1;
        match polls {
            3 => Poll::Ready("done"),
            _ => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    });
    assert_eq!((polled, polls, task.wakes()), (Poll::Ready("done"), 3, 0));
}

#[test]
fn a_wake_between_two_polls_wakes_the_task_that_polled_last() {
    let (first, second, in_place) = (Arc::new(Task::default()), Arc::new(Task::default()), InPlace::default());
    let mut waker = None;
    for (number, task) in [&first, &second].into_iter().enumerate() {
        let polled = in_place.poll(&mut Context::from_waker(&task.clone().into()), |cx| {
            waker = Some(cx.waker().clone());
            Poll::<()>::Pending
        });
        assert!(polled.is_pending());
        assert_eq!((first.wakes(), second.wakes()), (number, 0));
        waker.take().unwrap().wake();
    }
    assert_eq!((first.wakes(), second.wakes()), (1, 1));
}

#[test]
fn what_wakes_itself_without_an_end_yields_to_other_tasks() {
    let (task, in_place) = (Arc::new(Task::default()), InPlace::default());
    let mut polls = 0;
    let polled = in_place.poll(&mut Context::from_waker(&task.clone().into()), |cx| {
        polls += 1;
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    });
    assert!(polled.is_pending());
    assert_eq!((polls, task.wakes()), (ROUNDS, 1));
}

#[tokio::test]
async fn a_spent_budget_ends_the_rounds() {
    let in_place = InPlace::default();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..1000 {
        sender.send(()).unwrap();
    }
    let mut polls = 0;
    let mut received = 0;
    let polled = std::future::poll_fn(|cx| {
        polls += 1;
        let first = in_place.poll(cx, |cx| {
            while receiver.poll_recv(cx).is_ready() {
                received += 1;
            }
            Poll::<()>::Pending
        });
        Poll::Ready(first)
    });
    assert!(polled.await.is_pending());
    assert!((1..1000).contains(&received), "{received} within one budget");
    assert_eq!(polls, 1);
}

#[cfg(feature = "process")]
mod server {
    use std::convert::Infallible;
    use std::io;
    use std::pin::{Pin, pin};
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    use bytes::Bytes;
    use http_body_util::{BodyExt, Empty, Full};
    use hyper::Response;
    use hyper::body::{Body, Frame, Incoming};
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

    use super::*;

    /// A client that has sent these bytes and takes a few at a time.
    #[derive(Clone, Default)]
    struct Client(Arc<Mutex<Traffic>>);

    #[derive(Default)]
    struct Traffic {
        sent: Vec<u8>,
        written: Vec<u8>,
        writes: Vec<usize>,
        reads: usize,
        /// What had been written at each flush.
        flushes: Vec<usize>,
        /// What had been written at the first flush after the drop of the response's body.
        at_end: Option<usize>,
    }

    const TAKEN: usize = 40;

    impl AsyncRead for Client {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            let mut traffic = self.0.lock().unwrap();
            traffic.reads += 1;
            if traffic.sent.is_empty() {
                return Poll::Pending;
            }
            let length = traffic.sent.len().min(buffer.remaining());
            buffer.put_slice(&traffic.sent.drain(..length).collect::<Vec<_>>());
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Client {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            let mut traffic = self.0.lock().unwrap();
            let length = bytes.len().min(TAKEN);
            traffic.written.extend_from_slice(&bytes[..length]);
            traffic.writes.push(length);
            Poll::Ready(Ok(length))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            let mut traffic = self.0.lock().unwrap();
            let written = traffic.written.len();
            traffic.flushes.push(written);
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl Client {
        fn sending(bytes: &[u8]) -> Self {
            let client = Self::default();
            client.0.lock().unwrap().sent = bytes.to_vec();
            client
        }

        /// Polls a connection with this client until nothing more happens. The service reads the body and answers with
        /// `body`; the answer is what it has received.
        fn serve<B>(&self, polls: usize, body: impl Fn() -> Option<B>) -> Vec<Result<Bytes, hyper::Error>>
        where
            B: Body<Data = Bytes, Error = Infallible> + 'static,
        {
            let received = Mutex::new(Vec::new());
            {
                let service = service_fn(async |request: Request<Incoming>| {
                    let content = request.into_body().collect().await.map(|body| body.to_bytes());
                    received.lock().unwrap().push(content);
                    match body() {
                        Some(body) => Ok::<_, Infallible>(Response::new(body)),
                        None => std::future::pending().await,
                    }
                });
                let mut builder = http1::Builder::new();
                builder
                    .header_read_timeout(None)
                    .half_close(true)
                    .max_buf_size(MAX_HEAD);
                let mut connection = pin!(builder.serve_connection(TokioIo::new(self.clone()), service));
                for _ in 0..polls {
                    if connection
                        .as_mut()
                        .poll(&mut Context::from_waker(Waker::noop()))
                        .is_ready()
                    {
                        break;
                    }
                }
            }
            received.into_inner().unwrap()
        }
    }

    fn hello() -> Option<Full<Bytes>> {
        Some(Full::from("hello"))
    }

    #[test]
    fn a_refusal_is_written_before_a_service_runs_and_has_no_body() {
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(101));
        let long = format!("GET /{}", "a".repeat(70_000));
        for (sent, status) in [("garbage\r\n\r\n", 400), (&many, 431), (&long, 431)] {
            let client = Client::sending(sent.as_bytes());
            assert!(client.serve(10, hello).is_empty(), "no call of the service");
            let traffic = client.0.lock().unwrap();
            let first = &traffic.written[..traffic.writes[0]];
            assert_eq!(refusal(first), Some(status));
            let written = str::from_utf8(&traffic.written).unwrap();
            assert!(
                written.contains("\r\ncontent-length: 0\r\n") && written.ends_with("\r\n\r\n"),
                "{written}"
            );
        }
    }

    #[test]
    fn a_spoiled_line_is_refused_after_the_requests_before_it() {
        let good = b"POST /first HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi";
        let chunked =
            b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\ntrailer: x\r\n\r\n";
        let line_feeds = (0..chunked.len()).filter(|at| chunked[*at] == b'\n');
        let (head, trailers): (Vec<_>, Vec<_>) = line_feeds.partition(|at| *at < chunked.len() - 22);
        for (at, calls) in head[..4]
            .iter()
            .map(|at| (*at, 1))
            .chain(trailers[1..].iter().map(|at| (*at, 2)))
        {
            let mut spoiled = chunked.to_vec();
            spoil(&mut spoiled, at);
            let received = Client::sending(&[good.as_slice(), &spoiled].concat()).serve(10, hello);
            assert_eq!(received[0].as_ref().unwrap(), "hi");
            assert_eq!(received.len(), calls, "{at}");
            assert!(received[1..].iter().all(Result::is_err), "{at}");
        }
        let whole = Client::sending(&[good.as_slice(), chunked].concat()).serve(10, hello);
        assert!(whole.len() == 2 && whole.iter().all(Result::is_ok));
    }

    /// A body in three pieces that notes its drop.
    struct Pieces(usize, Arc<AtomicBool>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0 += 1;
            let piece = (self.0 <= 3).then(|| Frame::data(Bytes::from(vec![b'x'; 300])));
            Poll::Ready(piece.map(Ok))
        }
    }

    impl Drop for Pieces {
        fn drop(&mut self) {
            self.1.store(true, SeqCst);
        }
    }

    #[test]
    fn a_flush_after_the_drop_of_the_body_shows_that_the_response_is_written() {
        /// Notes what is written at the first flush after the drop.
        struct Noting(Client, Arc<AtomicBool>);

        impl AsyncRead for Noting {
            fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, b: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
                Pin::new(&mut self.0).poll_read(cx, b)
            }
        }

        impl AsyncWrite for Noting {
            fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
                Pin::new(&mut self.0).poll_write(cx, bytes)
            }

            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                if self.1.load(SeqCst) {
                    let mut traffic = self.0.0.lock().unwrap();
                    let written = traffic.written.len();
                    traffic.at_end.get_or_insert(written);
                }
                Poll::Ready(Ok(()))
            }

            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }
        }

        let client = Client::sending(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        let is_dropped = Arc::new(AtomicBool::new(false));
        let service = service_fn(async |_: Request<Incoming>| {
            Ok::<_, Infallible>(Response::new(Pieces(0, Arc::clone(&is_dropped))))
        });
        let noting = Noting(client.clone(), Arc::clone(&is_dropped));
        let mut connection = pin!(http1::Builder::new().serve_connection(TokioIo::new(noting), service));
        for _ in 0..10 {
            let _ = connection.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        let traffic = client.0.lock().unwrap();
        assert!(traffic.written.ends_with(b"\r\n0\r\n\r\n"), "chunks and their end");
        assert_eq!(traffic.at_end, Some(traffic.written.len()));
    }

    #[test]
    fn hyper_flushes_and_does_not_read_while_a_response_is_awaited() {
        let client = Client::sending(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        client.serve(1, || None::<Empty<Bytes>>);
        let first = client.0.lock().unwrap().reads;
        let again = Client::sending(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        again.serve(5, || None::<Empty<Bytes>>);
        let traffic = again.0.lock().unwrap();
        assert_eq!(traffic.reads, first, "all polls but the first read nothing");
        assert!(traffic.flushes.len() >= 5);
    }

    #[tokio::test]
    async fn a_request_that_was_not_sent_is_given_back() {
        let (near, far) = tokio::io::duplex(1 << 10);
        let (mut requests, connection) = hyper::client::conn::http1::handshake(TokioIo::new(near)).await.unwrap();
        drop(far);
        let _ = connection.await;
        let request = Request::get("/given").body(Empty::<Bytes>::new()).unwrap();
        let mut error = requests.try_send_request(request).await.unwrap_err();
        assert_eq!(unsent(&mut error).unwrap().uri(), "/given");

        // One that was sent before the connection ended is not.
        let (near, far) = tokio::io::duplex(1 << 10);
        let (mut requests, connection) = hyper::client::conn::http1::handshake(TokioIo::new(near)).await.unwrap();
        let request = Request::get("/lost").body(Empty::<Bytes>::new()).unwrap();
        let sent = requests.try_send_request(request);
        let taken = async {
            let mut far = far;
            let mut first = [0; 5];
            tokio::io::AsyncReadExt::read_exact(&mut far, &mut first).await.unwrap();
        };
        let (outcome, _, ()) = tokio::join!(sent, connection, taken);
        assert!(unsent(&mut outcome.unwrap_err()).is_none());
    }
}
