//! How often the task of a connection wakes itself: each time would cost a change of the thread.

use std::sync::atomic::AtomicBool;
use std::task::{Wake, Waker};

use atomic_waker::AtomicWaker;

use super::*;

/// Counts the wakes of a task while it is polled, and passes all on.
#[derive(Default)]
struct Watch {
    is_polled: AtomicBool,
    by_itself: AtomicUsize,
    task: AtomicWaker,
}

impl Wake for Watch {
    fn wake(self: Arc<Self>) {
        if self.is_polled.load(Ordering::SeqCst) {
            self.by_itself.fetch_add(1, Ordering::SeqCst);
        }
        self.task.wake();
    }
}

/// How often a task wakes itself while it answers ten requests with a body, when `task` makes it of the connection.
async fn wakes_of<F: Future<Output = ()>>(
    task: impl FnOnce(std::pin::Pin<Box<dyn Future<Output = ()> + Send>>) -> F,
) -> usize {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let (_closing, watched) = watch::channel(Demand::Serve);
    let echo = service_fn(async |request: Request<Incoming>| {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        Ok::<_, Infallible>(Response::new(Full::new(body)))
    });
    let connection = connection::run(stream, None, move |_| echo, Limits::default(), watched);
    let mut served = pin!(task(Box::pin(connection)));
    let watch = Arc::new(Watch::default());
    let waker = Waker::from(watch.clone());
    let served = std::future::poll_fn(|cx| {
        watch.task.register(cx.waker());
        watch.is_polled.store(true, Ordering::SeqCst);
        let polled = served.as_mut().poll(&mut Context::from_waker(&waker));
        watch.is_polled.store(false, Ordering::SeqCst);
        polled
    });
    let asking = async {
        for _ in 0..10 {
            client
                .write_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello")
                .await
                .unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(b"hello") {
                assert!(client.read_buf(&mut answer).await.unwrap() > 0);
            }
        }
        drop(client);
    };
    tokio::join!(served, asking);
    watch.by_itself.load(Ordering::SeqCst)
}

#[tokio::test]
async fn a_request_with_a_body_does_not_wake_its_own_task() {
    let alone = wakes_of(|connection| connection).await;
    assert!(alone >= 10, "without help hyper wakes it: {alone}");
    let served = wakes_of(|connection| Served {
        connection,
        in_place: InPlace::default(),
        open: Open::new(&Gauge::default()),
    });
    assert_eq!(served.await, 0);
}
