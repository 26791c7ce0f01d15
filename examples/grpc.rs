//! gRPC over HTTP/3: `cargo run -p courser --features grpc --example grpc`. A tonic service and its client in one program,
//! with the four kinds of calls, a status in trailers, and a deadline.

#[path = "grpc/server.rs"]
mod server;
// Generated from `words.proto` by tonic-prost-build.
#[path = "grpc/words.rs"]
#[allow(clippy::all, clippy::too_many_lines, reason = "generated")]
mod words;

use std::time::Duration;

use courser::Identity;
use courser::grpc::{Channel, ServerLayer};
use futures_util::{StreamExt as _, stream};
use tonic::{Code, Request};
use tower::Layer as _;
use words::words_client::WordsClient;
use words::words_server::WordsServer;
use words::{Number, Text};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result {
    let identity = Identity::dev()?;
    let service = ServerLayer::new().layer(WordsServer::new(server::Counting));
    let server = courser::serve("127.0.0.1:0", &identity).bind()?;
    let uri = format!("https://localhost:{}", server.local_addr().port());
    tokio::spawn(server.service(service).into_future());

    let channel = Channel::builder(uri).root(identity.certificate()).build()?;
    calls(WordsClient::new(channel)).await
}

async fn calls(mut client: WordsClient<Channel>) -> Result {
    let text = |text: &str| Text { text: text.into() };

    let response = client.count(Request::new(text("a few words"))).await?;
    println!("count: {}", response.get_ref().number);

    let response = client.split(Request::new(text("one by one"))).await?;
    let mut words = response.into_inner();
    while let Some(word) = words.message().await? {
        println!("split: {}", word.text);
    }

    let words = stream::iter(["put", "together"]).map(text);
    let response = client.join(Request::new(words)).await?;
    println!("join: {}", response.get_ref().text);

    let words = stream::iter(["loud", "words"]).map(text);
    let response = client.shout(Request::new(words)).await?;
    let mut words = response.into_inner();
    while let Some(word) = words.message().await? {
        println!("shout: {}", word.text);
    }

    let response = client.split(Request::new(text("some are lost"))).await?;
    let mut words = response.into_inner();
    let status = loop {
        match words.message().await {
            Ok(Some(word)) => println!("split: {}", word.text),
            Ok(None) => return Err("the status was lost".into()),
            Err(status) => break status,
        }
    };
    println!("split: {:?}, {}", status.code(), status.message());

    let mut request = Request::new(Number { number: 10_000 });
    request.set_timeout(Duration::from_millis(100));
    match client.wait(request).await {
        Err(status) if status.code() == Code::DeadlineExceeded => {
            println!("wait: {:?}", status.code());
            Ok(())
        }
        other => Err(format!("not stopped by the deadline: {other:?}").into()),
    }
}
