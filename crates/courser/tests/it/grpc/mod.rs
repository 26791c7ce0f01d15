//! gRPC over HTTP/3 with the service of the example: the four kinds of calls, status and metadata
//! in headers and trailers, deadlines, cancelled calls.

#[path = "../../../../../examples/grpc/server.rs"]
mod server;
mod versions;
#[path = "../../../../../examples/grpc/words.rs"]
#[allow(clippy::all, clippy::too_many_lines, reason = "generated")]
mod words;

use std::time::{Duration, Instant};

use crate::common::{Pair, pair, within};
use courser::grpc::{ServerLayer, ServerService};
use courser::h3;
use futures_util::{StreamExt as _, stream};
use tokio::sync::mpsc;
use tonic::{Code, Request};
use tower::Layer as _;
use words::words_client::WordsClient;
use words::words_server::WordsServer;
use words::{Number, Text};

type Client = WordsClient<h3::Client>;

async fn start() -> (Pair, h3::Client, Client) {
    let pair = pair();
    let (client, answering) = pair.connect().await;
    crate::common::spawn(h3::serve(answering, service()).into_future());
    let channel = h3::Client::new(client);
    let origin = "https://localhost".parse().expect("an origin");
    (
        pair,
        channel.clone(),
        WordsClient::with_origin(channel, origin),
    )
}

fn service() -> ServerService<WordsServer<server::Counting>> {
    ServerLayer::new().layer(WordsServer::new(server::Counting))
}

fn text(text: impl Into<String>) -> Text {
    Text { text: text.into() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unary_calls_carry_metadata() {
    let (_pair, _channel, mut client) = start().await;
    let mut request = Request::new(text("one two three"));
    let id = "7f".parse().expect("a value");
    request.metadata_mut().insert("request-id", id);
    let response = within(20, client.count(request)).await.expect("answered");
    assert_eq!(
        response.metadata().get("request-id").expect("present"),
        "7f"
    );
    assert_eq!(response.get_ref().number, 3);
}

/// The status of a call that fails at once is in the header section, without a body.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_carry_code_and_message() {
    let (_pair, channel, mut client) = start().await;
    let status = within(20, client.count(Request::new(text(" "))))
        .await
        .expect_err("empty");
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(status.message(), "the text has no words");

    let mut other =
        tonic::client::Grpc::with_origin(channel, "https://localhost".parse().expect("an origin"));
    let codec = tonic_prost::ProstCodec::<Text, Text>::default();
    let path = http::uri::PathAndQuery::from_static("/words.Words/Sing");
    let status = within(20, other.unary(Request::new(text("la")), path, codec))
        .await
        .expect_err("no such method");
    assert_eq!(status.code(), Code::Unimplemented);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_streaming_ends_with_a_status_in_trailers() {
    let (_pair, _channel, mut client) = start().await;
    let many: Vec<String> = (0..20_000).map(|n| n.to_string()).collect();
    let request = Request::new(text(many.join(" ")));
    let response = within(20, client.split(request)).await.expect("started");
    let got: Vec<_> = within(20, response.into_inner().collect()).await;
    let got: Vec<String> = got
        .into_iter()
        .map(|word: Result<Text, _>| word.expect("a message").text)
        .collect();
    assert_eq!(got, many);

    let request = Request::new(text("two words lost here"));
    let response = within(20, client.split(request)).await.expect("started");
    let mut words = response.into_inner();
    for expected in ["two", "words"] {
        let word = within(20, words.message()).await.expect("no error yet");
        assert_eq!(word.expect("a message").text, expected);
    }
    let status = within(20, words.message()).await.expect_err("lost");
    assert_eq!(status.code(), Code::DataLoss);
    assert_eq!(status.metadata().get("words-sent").expect("present"), "2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_streaming_call_returns_one_answer() {
    let (_pair, _channel, mut client) = start().await;
    let words: Vec<String> = (0..20_000).map(|n| n.to_string()).collect();
    let expected = words.join(" ");
    let request = Request::new(stream::iter(words.into_iter().map(text)));
    let response = within(20, client.join(request)).await.expect("answered");
    assert_eq!(response.into_inner().text, expected);
}

/// Each message is answered before the next is sent: nothing waits for the end of a direction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bidirectional_calls_interleave_messages() {
    let (_pair, _channel, mut client) = start().await;
    let (feed, rest) = mpsc::channel(1);
    let words = stream::unfold(rest, |mut rest: mpsc::Receiver<Text>| async {
        rest.recv().await.map(|word| (word, rest))
    });
    let response = within(20, client.shout(Request::new(words)))
        .await
        .expect("started");
    let mut answers = response.into_inner();
    for n in 0..100 {
        feed.send(text(format!("word {n}"))).await.expect("open");
        let answer = within(20, answers.message()).await.expect("open");
        assert_eq!(answer.expect("an answer").text, format!("WORD {n}"));
    }
    drop(feed);
    let end = within(20, answers.message()).await.expect("status 0");
    assert_eq!(end, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadlines_are_enforced() {
    let (_pair, _channel, mut client) = start().await;
    let begun = Instant::now();
    let mut request = Request::new(Number { number: 60_000 });
    request.set_timeout(Duration::from_millis(50));
    let status = within(20, client.wait(request))
        .await
        .expect_err("timed out");
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert!(begun.elapsed() >= Duration::from_millis(50));

    let mut request = Request::new(Number { number: 1 });
    request.set_timeout(Duration::from_secs(20));
    within(20, client.wait(request)).await.expect("in time");
    // A malformed value counts as none, as in tonic.
    let mut request = Request::new(Number { number: 1 });
    let timeout = "soon".parse().expect("a value");
    request.metadata_mut().insert("grpc-timeout", timeout);
    within(20, client.wait(request)).await.expect("answered");
}

/// Dropping a call cancels it, and other calls on its connection continue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_can_be_cancelled() {
    let (_pair, channel, mut client) = start().await;
    let call = client.wait(Request::new(Number { number: 60_000 }));
    let result = tokio::time::timeout(Duration::from_millis(50), call).await;
    assert!(result.is_err(), "there is no answer yet");
    let calls: Vec<_> = (1..=100)
        .map(|n: u64| {
            let mut client = client.clone();
            crate::common::spawn(async move {
                let request = Request::new(text("word ".repeat(n as usize)));
                let response = client.count(request).await.expect("answered");
                assert_eq!(response.get_ref().number, n);
            })
        })
        .collect();
    for call in calls {
        within(20, call).await.expect("no panic");
    }
    assert!(channel.quic().close_reason().is_none());
}
