//! WebSocket over HTTP/3 (RFC 9220), server and client in one program: `tokio-tungstenite` on both
//! ends, over the stream of an extended CONNECT. `cargo run -p courser --example websocket`.

use std::convert::Infallible;

use courser::h3::{self, Protocol};
use courser::{ClientConfig, Endpoint, Identity, ServerConfig};
use futures_util::{SinkExt as _, StreamExt as _};
use http::{Request, Response};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Answers each text message in capital letters.
async fn shout(stream: h3::Upgraded) -> Result {
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
    while let Some(message) = socket.next().await {
        if let Message::Text(text) = message? {
            socket.send(Message::text(text.to_uppercase())).await?;
        }
    }
    Ok(())
}

async fn service(
    mut request: Request<h3::Body>,
) -> std::result::Result<Response<h3::Empty>, Infallible> {
    let mut response = Response::new(h3::Empty);
    match h3::upgrade(&mut request) {
        Some(upgrade) => drop(tokio::spawn(async move { shout(upgrade.await?).await })),
        None => *response.status_mut() = http::StatusCode::NOT_FOUND,
    }
    Ok(response)
}

async fn serve(endpoint: Endpoint) -> Result {
    while let Some(incoming) = endpoint.accept().await {
        let connection = incoming.await?;
        let service = tower::service_fn(service);
        let serving = h3::serve(connection, service).protocols([Protocol::WEBSOCKET]);
        tokio::spawn(serving.into_future());
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result {
    let identity = Identity::dev()?;
    let config = ServerConfig::with_identity(&identity)?.alpn([h3::ALPN]);
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let address = server.local_addr()?;
    tokio::spawn(serve(server));

    let endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
    let config = ClientConfig::with_roots([identity.certificate()])?.alpn([h3::ALPN]);
    let client = h3::Client::new(endpoint.connect_with(config, address, "localhost")?.await?);
    let request = Request::connect("https://localhost/shout")
        .header("sec-websocket-version", "13")
        .extension(Protocol::WEBSOCKET)
        .body(())?;
    let response = client.connect(request).await?;
    println!("{} for a WebSocket", response.status());

    let stream = response.into_body();
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
    for word in ["hello", "over", "http/3"] {
        socket.send(Message::text(word)).await?;
        let answer = socket.next().await.ok_or("the server has left")??;
        println!("{word} -> {answer}");
        assert_eq!(answer.into_text()?.as_str(), word.to_uppercase());
    }
    socket.close(None).await?;
    while socket.next().await.transpose()?.is_some() {}
    client.close();
    endpoint.wait_idle().await;
    Ok(())
}
