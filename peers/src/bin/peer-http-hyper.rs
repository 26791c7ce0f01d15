//! HTTP/2 of hyper over TLS on TCP as a peer: `peer-http-hyper server`.

use std::convert::Infallible;
use std::sync::Arc;

use clap::Parser;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use peers::command_line::{CommandLine, Role, ServerOptions};
use peers::tally::Tally;
use peers::{Failure, ServerResult, http_server, settings, sockets, tls, web};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

fn main() -> Result<(), Failure> {
    let command_line = CommandLine::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match command_line.role {
            Role::Server(options) => peers::print(&serve(&options).await?)?,
            Role::Client(_) => return Err("the client of HTTP/2 is `courser load`".into()),
        }
        Ok(())
    })
}

async fn serve(options: &ServerOptions) -> Result<ServerResult, Failure> {
    let tls = tls::server(&options.identity, &[web::ALPN_H2])?;
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind(options.listen).await?;
    sockets::tune_tcp(&listener)?;
    let streams = options.streams;
    let tally = Arc::new(Tally::default());
    let version = peers::locked_version("hyper");
    http_server::run(version, listener.local_addr()?, &tally, || async {
        let (stream, _) = listener.accept().await.ok()?;
        let (acceptor, tally) = (acceptor.clone(), tally.clone());
        Some(async move {
            if let Err(error) = serve_connection(stream, &acceptor, &tally, streams).await {
                eprintln!("connection: {error}");
            }
        })
    })
    .await
}

async fn serve_connection(
    stream: TcpStream,
    acceptor: &TlsAcceptor,
    tally: &Arc<Tally>,
    streams: u32,
) -> Result<(), Failure> {
    let stream = acceptor.accept(stream).await?;
    tally.connected();
    let tally = tally.clone();
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let response = web::answer(&request, &tally);
        async move { Ok::<_, Infallible>(response) }
    });
    http2::Builder::new(TokioExecutor::new())
        .max_concurrent_streams(streams)
        .initial_stream_window_size(settings::STREAM_WINDOW)
        .initial_connection_window_size(settings::CONNECTION_WINDOW)
        .serve_connection(TokioIo::new(stream), service)
        .await?;
    Ok(())
}
