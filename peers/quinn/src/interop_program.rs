//! The interop program, written once and compiled against each library that has quinn's method names.
//!
//! A crate that includes this file with `#[path]` has the library at its root under the name `api`, and the
//! modules `interop` and `interop_tls` of `peers-common`.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rustls::Tls13CipherSuite;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use tokio::runtime;
use tokio::task::JoinSet;

use crate::api::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use crate::api::{
    ClientConfig, Connection, Endpoint, Incoming, RecvStream, SendStream, ServerConfig,
    TransportConfig,
};
use crate::interop::{self, Cases, Client, Result, SERVER_NAME, Server, Start};
use crate::interop_tls;

/// Clients stay at the address that they connected to, and HTTP/3 is not part of these libraries.
const CASES: Cases = Cases {
    both: &[
        "handshake",
        "transfer",
        "chacha20",
        "multiconnect",
        "retry",
        "resumption",
        "zerortt",
        "keyupdate",
        "ecn",
    ],
    server: &["connectionmigration"],
};

/// Runs the end that the last argument names. In `zerortt`, `rtt` is the assumed round-trip time of a new connection, if
/// the default of the library does not fit.
///
/// # Errors
/// Returns the error of the end.
pub fn run(rtt: Option<Duration>) -> Result<ExitCode> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    interop::run(
        CASES,
        |server| runtime.block_on(serve(server, rtt)),
        |client| runtime.block_on(fetch(client, rtt)),
    )
}

fn transport(case: &str, rtt: Option<Duration>) -> Result<Arc<TransportConfig>> {
    let mut config = TransportConfig::default();
    config.max_idle_timeout(Some(Duration::from_secs(60).try_into()?));
    if case == "zerortt" {
        // Probes of the path MTU count as data in 1-RTT packets.
        config.mtu_discovery_config(None);
        if let Some(rtt) = rtt {
            config.initial_rtt(rtt);
        }
    }
    Ok(Arc::new(config))
}

async fn serve(server: Server, rtt: Option<Duration>) -> Result {
    let crypto = QuicServerConfig::try_from(interop_tls::server(&server)?)?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(transport(&server.case, rtt)?);
    config.preferred_address_v4(server.preferred);
    let endpoint = Endpoint::server(config, server.listen)?;
    let server = Arc::new(server);
    while let Some(incoming) = endpoint.accept().await {
        if server.case == "retry" && !incoming.remote_address_validated() {
            incoming.retry()?;
            continue;
        }
        tokio::spawn(serve_connection(incoming, server.clone()));
    }
    Ok(())
}

async fn serve_connection(incoming: Incoming, server: Arc<Server>) -> Result {
    // Requests of 0-RTT are answered before the handshake is complete.
    let connection = match incoming.accept()?.into_0rtt() {
        Ok((connection, _)) => connection,
        Err(connecting) => connecting.await?,
    };
    loop {
        let (send, receive) = connection.accept_bi().await?;
        tokio::spawn(answer(send, receive, server.clone()));
    }
}

async fn answer(mut send: SendStream, mut receive: RecvStream, server: Arc<Server>) -> Result {
    let request = receive.read_to_end(4096).await?;
    let file = server.answer(&request).ok_or("no such file")?;
    send.write_all(&file).await?;
    send.finish()?;
    send.stopped().await?;
    Ok(())
}

async fn fetch(client: Client, rtt: Option<Duration>) -> Result {
    let endpoint = Endpoint::client(client.local())?;
    let mut config = ClientConfig::new(Arc::new(crypto(&client)?));
    config.transport_config(transport(&client.case, rtt)?);
    let client = Arc::new(client);
    for connection in client.connections() {
        let connecting = endpoint.connect_with(config.clone(), client.server, SERVER_NAME)?;
        let connected = if connection.start == Start::Early {
            let early = connecting.into_0rtt();
            let (connected, _) = early.map_err(|_| "no 0-RTT keys")?;
            connected
        } else {
            connecting.await?
        };
        download(&connected, connection.files, &client).await?;
        connected.close(0u32.into(), b"");
    }
    endpoint.wait_idle().await;
    Ok(())
}

fn crypto(client: &Client) -> Result<QuicClientConfig> {
    let tls = Arc::new(interop_tls::client(client)?);
    // Initial packets have the suite of RFC 9001 §5, which this client does not offer.
    if client.case == "chacha20" {
        let initial = TLS13_AES_128_GCM_SHA256
            .tls13()
            .and_then(Tls13CipherSuite::quic_suite)
            .ok_or("no suite for Initial packets")?;
        return Ok(QuicClientConfig::with_initial(tls, initial)?);
    }
    Ok(QuicClientConfig::try_from(tls)?)
}

async fn download(connection: &Connection, files: &[String], client: &Arc<Client>) -> Result {
    let mut downloads = JoinSet::new();
    for file in files {
        downloads.spawn(get(connection.clone(), file.clone(), client.clone()));
    }
    while let Some(done) = downloads.join_next().await {
        done??;
    }
    Ok(())
}

async fn get(connection: Connection, file: String, client: Arc<Client>) -> Result {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(interop::request(&file).as_bytes()).await?;
    send.finish()?;
    let mut content = Vec::new();
    let mut buffer = vec![0; 65536];
    while let Some(len) = receive.read(&mut buffer).await? {
        if client.case == "keyupdate" && content.is_empty() {
            connection.force_key_update();
        }
        content.extend_from_slice(&buffer[..len]);
    }
    Ok(client.save(&file, &content)?)
}
