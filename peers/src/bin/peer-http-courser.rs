//! HTTP/3 of courser as a peer: `peer-http-courser server|client`.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use clap::Parser;
use courser::{Algorithm, ClientConfig, Endpoint, RetryPolicy, ServerConfig, TransportConfig, h3};
use http::Request;
use http_body_util::BodyExt;
use peers::command_line::{ClientOptions, CommandLine, Role, ServerOptions, TransportOptions};
use peers::tally::Tally;
use peers::{ClientResult, Failure, ServerResult, http_client, http_server, settings, tls, web};

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
    let tls = tls::server(&options.identity, &[web::ALPN_H3])?;
    let config = ServerConfig::with_rustls(Arc::new(tls))
        .transport_config(transport(options.transport, options.streams))
        .retry(RetryPolicy::Never)
        .new_tokens(0);
    let endpoint = Endpoint::server(config, options.listen)?;
    let tally = Arc::new(Tally::default());
    let version = peers::locked_version("courser");
    http_server::run(version, endpoint.local_addr()?, &tally, || async {
        let incoming = endpoint.accept().await?;
        let tally = tally.clone();
        Some(async move {
            let connection = match incoming.await {
                Ok(connection) => connection,
                Err(error) => return eprintln!("handshake: {error}"),
            };
            tally.connected();
            let service = tower::service_fn(move |request: Request<h3::Body>| {
                let response = web::answer(&request, &tally);
                async move { Ok::<_, Infallible>(response) }
            });
            // The error is the client's close.
            let _ = h3::serve(connection, service).await;
        })
    })
    .await
}

async fn work(options: &ClientOptions) -> Result<ClientResult, Failure> {
    let tls = tls::client(&options.identity, &[web::ALPN_H3])?;
    let config = ClientConfig::with_rustls(Arc::new(tls))
        .transport_config(transport(options.transport, 100));
    let mut endpoints = Vec::new();
    let mut clients = Vec::new();
    for _ in 0..options.connections {
        let endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let connecting =
            endpoint.connect_with(config.clone(), options.server, settings::SERVER_NAME)?;
        clients.push(h3::Client::new(connecting.await?));
        endpoints.push(endpoint);
    }
    let url: http::Uri = format!("https://localhost{}", web::path(options.bytes)).parse()?;
    let version = peers::locked_version("courser");
    let result = http_client::run(options, version, &clients, move |client| {
        let url = url.clone();
        async move {
            let mut request = Request::new(h3::Empty::new());
            *request.uri_mut() = url;
            let mut body = client.send(request).await?.into_body();
            let mut length = 0;
            while let Some(frame) = body.frame().await {
                length += frame?.data_ref().map_or(0, |data| data.len() as u64);
            }
            Ok(length)
        }
    })
    .await?;
    for client in &clients {
        client.close();
    }
    for endpoint in &endpoints {
        endpoint.wait_idle().await;
    }
    Ok(result)
}

/// As `peer-courser` has it, with the streams that HTTP/3 wants.
fn transport(options: TransportOptions, streams: u32) -> TransportConfig {
    let own = TransportConfig {
        max_bidi_streams: streams.into(),
        max_idle_timeout: Some(settings::IDLE_TIMEOUT),
        congestion: Algorithm::Cubic,
        ..TransportConfig::default()
    };
    if options.own_settings {
        return own;
    }
    TransportConfig {
        stream_receive_window: settings::STREAM_WINDOW.into(),
        stream_receive_window_max: settings::STREAM_WINDOW.into(),
        receive_window: settings::CONNECTION_WINDOW.into(),
        receive_window_max: settings::CONNECTION_WINDOW.into(),
        mtu: options.datagram,
        mtu_discovery: false,
        ..own
    }
}
