//! gRPC over HTTP/3: `cargo run -p courser --example grpc`. A tonic service and its client in one
//! program, with the four kinds of calls, a status in trailers, and a deadline.

#[path = "grpc/server.rs"]
mod server;
#[path = "grpc/words.rs"]
mod words;

use std::time::Duration;

use courser::{ClientConfig, Endpoint, Identity, ServerConfig, h3};
use futures_util::{StreamExt as _, stream};
use tonic::{Code, Request};
use words::{Number, Text, WordsClient};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result {
    let identity = Identity::dev()?;
    let config = ServerConfig::with_identity(&identity)?.alpn([h3::ALPN]);
    let endpoint = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let address = endpoint.local_addr()?;
    tokio::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            tokio::spawn(async move {
                server::serve(incoming.await?).await?;
                Result::Ok(())
            });
        }
    });

    let endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
    let config = ClientConfig::with_roots([identity.certificate()])?.alpn([h3::ALPN]);
    let connection = endpoint.connect_with(config, address, "localhost")?.await?;
    let channel = h3::Client::new(connection);
    calls(WordsClient::new(
        channel,
        format!("https://localhost:{}", address.port()).parse()?,
    ))
    .await?;
    endpoint.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}

async fn calls(mut client: WordsClient<h3::Client>) -> Result {
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
            println!("wait: {}", status.message());
            Ok(())
        }
        other => Err(format!("not stopped by the deadline: {other:?}").into()),
    }
}
