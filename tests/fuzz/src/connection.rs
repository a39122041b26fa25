//! A connection that speaks HTTP/1.1, or something else.

use agentcfg_server::fuzzing;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// The bytes of a connection. What the framing refuses does not depend on how the bytes arrive, nothing behind the
/// refused line is answered as a request, and the connection ends.
pub fn heads(input: &[u8]) {
    let whole = fuzzing::framing(input, input.len().max(1));
    for piece in [1, 3, 17] {
        assert_eq!(fuzzing::framing(input, piece), whole, "in pieces of {piece}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let (answer, calls) = runtime.block_on(async {
        let (near, mut far) = tokio::io::duplex(1 << 20);
        let serving = fuzzing::serve(near);
        let calling = async {
            // The server may close before all is written.
            let _ = far.write_all(input).await;
            let _ = far.shutdown().await;
            let mut answer = Vec::new();
            let _ = far.read_to_end(&mut answer).await;
            answer
        };
        let (calls, answer) = tokio::join!(serving, calling);
        (answer, calls)
    });
    assert!(
        answer.is_empty() || answer.starts_with(b"HTTP/1."),
        "{}",
        answer.escape_ascii()
    );
    // A call needs a head of its own before the line that is refused.
    let before = whole.map_or(input, |(_, at)| &input[..at]);
    let heads = before.windows(4).filter(|window| window == b"\r\n\r\n").count();
    assert!(calls <= heads, "{calls} calls from {heads} heads");
}
