//! Timeouts, the connection limit, and draining.

use super::*;

#[tokio::test]
async fn slow_heads_and_connections_without_a_request_are_closed() {
    let server = Server::start(Limits {
        header_timeout: short(),
        ..Limits::default()
    })
    .await;
    assert_eq!(server.exchange(b"").await, "");
    assert_eq!(server.exchange(b"GET / HTTP/1.1\r\nhost: a\r\nname: ").await, "");
    // Slow-loris: sending single bytes does not extend the timeout, which starts again for each head.
    let mut stream = server.connect().await;
    stream.write_all(b"GET /ok HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    read_until(&mut stream, "3 bytes of path").await;
    let (mut reading, mut writing) = stream.into_split();
    let trickle = tokio::spawn(async move {
        while writing.write_all(b"G").await.is_ok() {
            tokio::time::sleep(short() / 10).await;
        }
    });
    let mut rest = Vec::new();
    let _ = reading.read_to_end(&mut rest).await;
    assert!(rest.is_empty());
    trickle.await.unwrap();
    assert_eq!(server.calls(), 1);
}

#[tokio::test]
async fn idle_connections_are_closed_after_the_idle_timeout() {
    let server = Server::start(Limits {
        idle_timeout: short(),
        ..Limits::default()
    })
    .await;
    for request in [
        "GET /ok HTTP/1.1\r\nhost: a\r\n\r\n",
        "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 15\r\n\r\n3 bytes of path",
    ] {
        let mut stream = server.connect().await;
        for _ in 0..2 {
            stream.write_all(request.as_bytes()).await.unwrap();
            read_until(&mut stream, "3 bytes of path").await;
        }
        assert_eq!(read_to_end(&mut stream).await, "");
    }
}

#[tokio::test]
async fn the_service_sees_a_body_timeout() {
    let server = Server::start(Limits {
        body_timeout: short(),
        ..Limits::default()
    })
    .await;
    let answer = server
        .exchange(b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhe")
        .await;
    assert!(answer.ends_with("body timed out"), "{answer}");
    // The body timeout does not limit a call that has its body.
    let mut stream = server.connect().await;
    stream
        .write_all(b"GET /wait HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    server.waiting.notified().await;
    tokio::time::sleep(short() * 2).await;
    server.release.notify_one();
    read_until(&mut stream, "waited").await;
}

#[tokio::test]
async fn a_body_below_the_minimal_rate_is_cut_before_its_time_limit() {
    let limits = Limits {
        body_grace: short(),
        min_body_rate: 100,
        ..Limits::default()
    };
    let began = tokio::time::Instant::now();
    let server = Server::start(limits.clone()).await;
    let slow = b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhe";
    let answer = server.exchange(slow).await;
    assert!(answer.ends_with("body timed out"), "{answer}");
    assert!(began.elapsed() < limits.body_timeout / 2);
    // Bytes that arrive earn time: 100 of them a second.
    let mut stream = server.connect().await;
    stream
        .write_all(b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 505\r\n\r\n")
        .await
        .unwrap();
    tokio::time::sleep(short() / 3).await;
    stream.write_all(&[b'x'; 500]).await.unwrap();
    tokio::time::sleep(short() * 3).await;
    stream.write_all(b"hello").await.unwrap();
    read_until(&mut stream, "xhello").await;
}

#[tokio::test]
async fn a_connection_with_an_unread_response_is_closed() {
    let server = Server::start(Limits {
        write_timeout: short(),
        ..Limits::default()
    })
    .await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET /big HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    read_until(&mut stream, "\r\n\r\n").await;
    while server.open.get() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert!(rest.len() < 64 << 20);
}

#[tokio::test]
async fn a_client_that_reads_a_trickle_is_cut_at_the_end_of_its_response() {
    let server = Server::start(Limits::default()).await;
    let mut stream = server.connect().await;
    stream
        .write_all(b"GET /ending HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\n\r\n")
        .await
        .unwrap();
    read_until(&mut stream, "\r\n\r\n").await;
    let began = tokio::time::Instant::now();
    // The client never stops to read, so that the time limit of a single write is never over.
    let mut taken = vec![0; 64 << 10];
    while server.open.get() > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let _ = stream.read(&mut taken).await;
    }
    assert!(began.elapsed() < Limits::default().write_timeout);
}

#[tokio::test]
async fn connections_above_the_limit_wait_in_the_backlog() {
    let server = Server::start(Limits {
        max_connections: 1,
        ..Limits::default()
    })
    .await;
    let mut first = server.connect().await;
    first.write_all(b"GET /ok HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    read_until(&mut first, "3 bytes of path").await;
    let mut second = server.connect().await;
    second.write_all(b"GET /ok HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    assert!(tokio::time::timeout(short(), second.read_u8()).await.is_err());
    drop(first);
    read_until(&mut second, "3 bytes of path").await;
    assert_eq!(server.open.get(), 1);
}

#[tokio::test]
async fn idle_connections_close_while_a_client_waits_for_one() {
    let server = Server::start(Limits {
        max_connections: 2,
        ..Limits::default()
    })
    .await;
    let mut idle = server.connect().await;
    idle.write_all(b"GET /ok HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    read_until(&mut idle, "3 bytes of path").await;
    let mut busy = server.connect().await;
    busy.write_all(b"GET /wait HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    server.waiting.notified().await;
    // From here on, the time passes as soon as nothing else is to be done.
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let mut third = server.connect().await;
    third.write_all(b"GET /ok HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    read_until(&mut third, "3 bytes of path").await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(read_to_end(&mut idle).await, "");
    server.release.notify_one();
    read_until(&mut busy, "waited").await;
}

#[tokio::test]
async fn shutdown_drains_requests_and_closes_idle_connections() {
    let mut server = Server::start(Limits::default()).await;
    let mut idle = server.connect().await;
    idle.write_all(b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi")
        .await
        .unwrap();
    read_until(&mut idle, "hi").await;
    let mut busy = server.connect().await;
    busy.write_all(b"GET /wait HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    server.waiting.notified().await;
    server.stop();
    assert_eq!(read_to_end(&mut idle).await, "");
    assert!(TcpStream::connect(server.address).await.is_err());
    assert!(!server.done.is_finished());
    server.release.notify_one();
    let answer = read_to_end(&mut busy).await;
    assert!(
        answer.ends_with("waited") && answer.contains("connection: close"),
        "{answer}"
    );
    assert!(server.done.await.unwrap().is_complete());
}

#[tokio::test]
async fn shutdown_closes_connections_that_exceed_its_timeout() {
    let mut server = Server::start(Limits {
        shutdown_timeout: short(),
        ..Limits::default()
    })
    .await;
    let mut busy = server.connect().await;
    busy.write_all(b"GET /wait HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    server.waiting.notified().await;
    server.stop();
    assert_eq!(server.done.await.unwrap(), Drained { cut: 1 });
    assert_eq!(server.open.get(), 0);
}
