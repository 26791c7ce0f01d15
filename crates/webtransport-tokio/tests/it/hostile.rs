//! Peers that do not play by the rules.

use std::time::Duration;

use courser_http3_tokio as h3;
use courser_webtransport_tokio::{Closed, Config, upgrade};
use http::Request;

use crate::{serve, within};

/// A345. The client reads the end of the session, and never ends its own half.
#[tokio::test]
async fn a_peer_that_ignores_the_end_is_reset() {
    let (sender, mut ended) = tokio::sync::mpsc::unbounded_channel();
    let pair = serve([Config::new(), Config::new()], move |mut request| {
        let sender = sender.clone();
        async move {
            let upgrade = upgrade(&mut request);
            upgrade
                .accept(|session| async move {
                    session.close(1, "the end");
                    sender.send(session.closed().await).is_ok()
                })
                .await
        }
    })
    .await;
    let token = h3::Protocol::new("webtransport-h3").expect("a token");
    let request = Request::connect("https://localhost/chat").extension(token);
    let request = request.body(()).expect("valid");
    let response = within(pair.client.connect(request)).await;
    let mut stream = response.expect("accepted").into_body();
    let closed = within(ended.recv()).await.expect("accepted");
    assert!(matches!(closed, Closed::Local(_)), "{closed:?}");
    // The capsule and the end of the server's half.
    let mut content = Vec::new();
    while let Some(chunk) = within(stream.read_chunk()).await.expect("no reset") {
        content.extend_from_slice(&chunk);
    }
    assert!(content.ends_with(b"the end"));
    // The server stops the other half, so that writing fails.
    let error = within(async {
        loop {
            if let Err(error) = stream.write_chunk("\0\0".into()).await {
                break error;
            }
            // Faster ones would be frames without progress (K17).
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let code = error.code().expect("a code of the peer");
    assert_eq!(code.value(), 0x170d_7b68, "{error}");
}
