//! A TCP proxy in front of the provider that can stall.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub struct Proxy {
    pub port: u16,
    connections: Arc<AtomicUsize>,
    flowing: watch::Sender<bool>,
}

impl Proxy {
    /// Starts a proxy for a port that may become known later.
    pub async fn start(target: watch::Receiver<u16>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            port: listener.local_addr().unwrap().port(),
            connections: Arc::default(),
            flowing: watch::Sender::new(true),
        };
        let (connections, flowing) = (Arc::clone(&proxy.connections), proxy.flowing.subscribe());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let (mut flowing, port) = (flowing.clone(), *target.borrow());
                tokio::spawn(async move {
                    let _ = flowing.wait_for(|flowing| *flowing).await;
                    let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else {
                        return;
                    };
                    let ((from_client, to_client), (from_server, to_server)) =
                        (client.into_split(), server.into_split());
                    // The end of either direction ends both.
                    tokio::select! {
                        () = pump(from_client, to_server, flowing.clone()) => {}
                        () = pump(from_server, to_client, flowing) => {}
                    }
                });
            }
        });
        proxy
    }

    /// From now on the proxy accepts connections and forwards nothing.
    pub fn stall(&self) {
        self.flowing.send_replace(false);
    }

    pub fn resume(&self) {
        self.flowing.send_replace(true);
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn pump(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, mut flowing: watch::Receiver<bool>) {
    let mut buffer = [0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let _ = flowing.wait_for(|flowing| *flowing).await;
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
