//! axum over HTTP/3: `cargo run -p courser --example http3_server`, with a file directory and an
//! echo. Prints its URL.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::Path;
use axum::routing::{get, post};
use courser::{Endpoint, Identity, ServerConfig, h3};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn app() -> Router {
    Router::new()
        .route("/", get(|| async { "hello over HTTP/3\n" }))
        .route("/greet/{name}", get(greet))
        .route("/echo", post(|body: axum::body::Body| async { body }))
        .route("/bytes/{count}", get(bytes))
}

async fn greet(Path(name): Path<String>) -> String {
    format!("hello, {name}\n")
}

async fn bytes(Path(count): Path<usize>) -> Vec<u8> {
    vec![b'x'; count]
}

#[tokio::main]
async fn main() -> Result {
    let address: SocketAddr = match std::env::args().nth(1) {
        Some(address) => address.parse()?,
        None => "[::1]:4433".parse()?,
    };
    let identity = Identity::dev()?;
    let config = ServerConfig::with_identity(&identity)?.alpn([h3::ALPN]);
    let endpoint = Endpoint::server(config, address)?;
    println!("https://localhost:{}", endpoint.local_addr()?.port());
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            let connection = incoming.await?;
            h3::serve(connection, app()).await?;
            Result::Ok(())
        });
    }
    Ok(())
}
