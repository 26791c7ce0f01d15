//! s2n-quic as a peer of `courser interop matrix`.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use peers_common::interop::{self, Cases, Client, Result, SERVER_NAME, Server};
use peers_common::interop_tls;
use s2n_quic::client::Connect;
use s2n_quic::connection::Handle;
use s2n_quic::provider::{endpoint_limits, limits};
use s2n_quic::stream::BidirectionalStream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime;
use tokio::task::JoinSet;

use crate::{client_tls, server_tls};

/// s2n-quic has no call for key updates, and gives no messages after the handshake to rustls, so that there
/// are no sessions.
const CASES: Cases = Cases {
    both: &[
        "handshake",
        "transfer",
        "chacha20",
        "multiconnect",
        "retry",
        "ecn",
    ],
    server: &[],
};

/// Runs the end that the last argument names.
///
/// # Errors
/// Returns the error of the end.
pub fn run() -> Result<ExitCode> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    interop::run(
        CASES,
        |server| runtime.block_on(serve(server)),
        |client| runtime.block_on(fetch(client)),
    )
}

fn limits() -> Result<limits::Limits> {
    let time = Duration::from_secs(60);
    Ok(limits::Limits::new()
        .with_max_idle_timeout(time)?
        .with_max_handshake_duration(time)?)
}

async fn serve(server: Server) -> Result {
    let mut limit = endpoint_limits::Default::builder();
    if server.case == "retry" {
        limit = limit.with_inflight_handshake_limit(0)?;
    }
    let mut endpoint = s2n_quic::Server::builder()
        .with_tls(server_tls(interop_tls::server(&server)?))?
        .with_io(server.listen)?
        .with_limits(limits()?)?
        .with_endpoint_limits(limit.build()?)?
        .start()?;
    let server = Arc::new(server);
    while let Some(mut connection) = endpoint.accept().await {
        let server = server.clone();
        tokio::spawn(async move {
            while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
                tokio::spawn(answer(stream, server.clone()));
            }
        });
    }
    Ok(())
}

async fn answer(stream: BidirectionalStream, server: Arc<Server>) -> Result {
    let (receive, mut send) = stream.split();
    let mut request = Vec::new();
    receive.take(4096).read_to_end(&mut request).await?;
    let file = server.answer(&request).ok_or("no such file")?;
    send.write_all(&file).await?;
    send.close().await?;
    Ok(())
}

async fn fetch(client: Client) -> Result {
    let mut endpoint = s2n_quic::Client::builder()
        .with_tls(client_tls(interop_tls::client(&client)?))?
        .with_io(client.local())?
        .with_limits(limits()?)?
        .start()?;
    let client = Arc::new(client);
    for connection in client.connections() {
        let connect = Connect::new(client.server).with_server_name(SERVER_NAME);
        let mut connected = endpoint.connect(connect).await?;
        connected.keep_alive(true)?;
        download(&connected.handle(), connection.files, &client).await?;
        connected.close(0u32.into());
    }
    endpoint.wait_idle().await?;
    Ok(())
}

async fn download(handle: &Handle, files: &[String], client: &Arc<Client>) -> Result {
    let mut downloads = JoinSet::new();
    for file in files {
        downloads.spawn(get(handle.clone(), file.clone(), client.clone()));
    }
    while let Some(done) = downloads.join_next().await {
        done??;
    }
    Ok(())
}

async fn get(mut handle: Handle, file: String, client: Arc<Client>) -> Result {
    let stream = handle.open_bidirectional_stream().await?;
    let (mut receive, mut send) = stream.split();
    send.write_all(interop::request(&file).as_bytes()).await?;
    send.close().await?;
    let mut content = Vec::new();
    receive.read_to_end(&mut content).await?;
    Ok(client.save(&file, &content)?)
}
