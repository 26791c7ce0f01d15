//! HTTP/3 of hyperium's h3 on quinn as a peer: `peer-http-h3-quinn server|client`.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use clap::Parser;
use h3::client::SendRequest;
use h3::server::RequestResolver;
use http::Request;
use peers::command_line::{ClientOptions, CommandLine, Role, ServerOptions};
use peers::tally::Tally;
use peers::{ClientResult, Failure, ServerResult, http_client, http_server, settings, web};
use peers_quinn::endpoint;
use quinn::VarInt;

fn main() -> Result<(), Failure> {
    let command_line = CommandLine::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match command_line.role {
            Role::Server(options) => peers::print(&serve(&options).await?)?,
            Role::Client(options) => peers::print(&work(&options).await?)?,
        }
        Ok(())
    })
}

async fn serve(options: &ServerOptions) -> Result<ServerResult, Failure> {
    let endpoint = endpoint::server(options, web::ALPN_H3)?;
    let tally = Arc::new(Tally::default());
    http_server::run(version(), endpoint.local_addr()?, &tally, || async {
        let incoming = endpoint.accept().await?;
        let tally = tally.clone();
        Some(async move {
            if let Err(error) = serve_connection(incoming, &tally).await {
                eprintln!("connection: {error}");
            }
        })
    })
    .await
}

async fn serve_connection(incoming: quinn::Incoming, tally: &Arc<Tally>) -> Result<(), Failure> {
    let connection = h3_quinn::Connection::new(incoming.await?);
    tally.connected();
    let mut connection = h3::server::builder().build::<_, Bytes>(connection).await?;
    // The error is the client's close.
    while let Ok(Some(resolver)) = connection.accept().await {
        let tally = tally.clone();
        tokio::spawn(async move {
            if let Err(error) = answer(resolver, &tally).await {
                eprintln!("request: {error}");
            }
        });
    }
    Ok(())
}

async fn answer(
    resolver: RequestResolver<h3_quinn::Connection, Bytes>,
    tally: &Tally,
) -> Result<(), Failure> {
    let (request, mut stream) = resolver.resolve_request().await?;
    let response = web::answer(&request, tally);
    let (mut parts, mut body) = response.into_parts();
    // As courser and hyper do by themselves.
    if let Some(size) = http_body::Body::size_hint(&body).exact() {
        parts
            .headers
            .insert(http::header::CONTENT_LENGTH, size.into());
    }
    stream
        .send_response(http::Response::from_parts(parts, ()))
        .await?;
    while let Some(chunk) = body.chunk() {
        stream.send_data(chunk).await?;
    }
    Ok(stream.finish().await?)
}

async fn work(options: &ClientOptions) -> Result<ClientResult, Failure> {
    let mut endpoints = Vec::new();
    let mut clients = Vec::new();
    for _ in 0..options.connections {
        let endpoint = endpoint::client(options, web::ALPN_H3)?;
        let connecting = endpoint.connect(options.server, settings::SERVER_NAME)?;
        let connection = h3_quinn::Connection::new(connecting.await?);
        let (mut driver, client) = h3::client::new(connection).await?;
        tokio::spawn(async move { driver.wait_idle().await });
        clients.push(client);
        endpoints.push(endpoint);
    }
    let url: http::Uri = format!("https://localhost{}", web::path(options.bytes)).parse()?;
    let version = version();
    let result = http_client::run(options, version, &clients, move |client| {
        request(client, url.clone())
    })
    .await?;
    for endpoint in &endpoints {
        endpoint.close(VarInt::from_u32(NO_ERROR), b"");
        endpoint.wait_idle().await;
    }
    Ok(result)
}

async fn request(
    mut client: SendRequest<h3_quinn::OpenStreams, Bytes>,
    url: http::Uri,
) -> Result<u64, Failure> {
    let mut request = Request::new(());
    *request.uri_mut() = url;
    let mut stream = client.send_request(request).await?;
    stream.finish().await?;
    stream.recv_response().await?;
    let mut length = 0;
    while let Some(data) = stream.recv_data().await? {
        length += data.remaining() as u64;
    }
    Ok(length)
}

fn version() -> String {
    format!(
        "{} on quinn {}",
        peers::locked_version("h3"),
        peers::locked_version("quinn")
    )
}

/// H3_NO_ERROR (RFC 9114 §8.1).
const NO_ERROR: u32 = 0x100;
