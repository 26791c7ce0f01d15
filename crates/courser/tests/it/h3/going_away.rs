use std::convert::Infallible;
use std::sync::Arc;

use courser::h3;
use http::{Request, Response};
use tokio::sync::Notify;

use super::{full, get, pair, text, within};

/// RFC 9114 §5.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn draining_loses_no_request() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let (signal, resume) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let begun = Arc::new(Notify::new());
    let (waiting, beginning) = (resume.clone(), begun.clone());
    let service = super::boxed(move |request: Request<h3::Body>| {
        let (waiting, beginning) = (waiting.clone(), beginning.clone());
        async move {
            if request.uri().path() == "/slow" {
                beginning.notify_one();
                waiting.notified().await;
            }
            Ok::<_, Infallible>(Response::new(full("served")))
        }
    });
    let leaving = signal.clone();
    let serving = crate::common::spawn(
        h3::serve(server, service)
            .drain(async move { leaving.notified().await })
            .into_future(),
    );
    let client = h3::Client::new(client);
    let slow = client.clone();
    let slow =
        crate::common::spawn(
            async move { text(slow.send(get("/slow")).await.expect("served")).await },
        );
    within(begun.notified()).await;
    signal.notify_one();
    let refused = within(async {
        loop {
            match client.send(get("/")).await {
                Ok(response) => assert_eq!(text(response).await, "served"),
                Err(error) => break error,
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(refused.is_unprocessed(), "{refused}");
    // GOAWAY travels on another stream than the refusal, and may arrive a little later.
    crate::common::until(|| client.goes_away()).await;
    resume.notify_one();
    assert_eq!(within(slow).await.expect("no panic"), "served");
    within(serving)
        .await
        .expect("no panic")
        .expect("an orderly end");
    let reason = within(client.quic().closed()).await;
    let error = h3::Error::from(reason);
    assert!(error.is_clean_close(), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_the_last_client_closes_the_connection() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let service = super::boxed(|_| async { Ok::<_, Infallible>(Response::new(full("x"))) });
    let serving = crate::common::spawn(h3::serve(server, service).into_future());
    let client = h3::Client::new(client);
    let response = within(client.send(get("/"))).await.expect("answered");
    drop(client);
    assert_eq!(within(text(response)).await, "x");
    let error = within(serving)
        .await
        .expect("no panic")
        .expect_err("closed");
    assert!(error.is_clean_close(), "{error}");
}

/// The end of the connection must not overtake the GOAWAY before it: the request was not processed
/// and may be sent again (RFC 9114 §5.2).
#[tokio::test]
async fn request_refused_before_the_close_was_not_processed() {
    for round in 0..20 {
        let pair = pair();
        let (client, server) = pair.connect().await;
        let client = h3::Client::new(client);
        let mut control = within(server.open_uni()).await.expect("allowed");
        // The type of the stream, and empty SETTINGS.
        control.write_all(&[0, 4, 0]).await.expect("open");
        let sender = client.clone();
        let asked = crate::common::spawn(async move { sender.send(get("/")).await });
        let _request = within(server.accept_bi()).await.expect("a request");
        // GOAWAY before the first request.
        control.write_all(&[7, 1, 0]).await.expect("open");
        control.flush();
        server.close(0x100_u32.into(), b"");
        let error = within(asked).await.expect("no panic").expect_err("refused");
        assert!(error.is_unprocessed(), "round {round}: {error}");
        let error = within(client.send(get("/"))).await.expect_err("closed");
        assert!(error.is_unprocessed(), "round {round}: {error}");
    }
}
