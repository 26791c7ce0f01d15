//! The server of the interop runner.

use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use courser::files::Files;
use courser::telemetry::SinkFactory;
use courser::{
    Connection, EarlyDataOptions, Endpoint, Incoming, QuicVersion, RecvStream, RetryPolicy,
    SendStream, ServerConfig, TransportConfig, h3,
};
use courser_measure::Failure;
use courser_measure::tls::{self, Identity};

use crate::hq::{self, ALPN, MAX_REQUEST};
use crate::test::Test;

/// The settings of [`serve`].
#[derive(Clone)]
pub struct ServerPlan {
    /// The test of the run.
    pub test: Test,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The preferred address to announce to clients over IPv4.
    pub preferred_v4: Option<SocketAddrV4>,
    /// The preferred address to announce to clients over IPv6.
    pub preferred_v6: Option<SocketAddrV6>,
    /// The folder with the files.
    pub root: PathBuf,
    /// The certificate chain, in PEM.
    pub chain: PathBuf,
    /// The private key, in PEM.
    pub key: PathBuf,
    /// Receives the records of connections.
    pub sinks: Option<Arc<dyn SinkFactory>>,
}

/// Serves files until `stop` resolves.
///
/// # Errors
/// Returns an error if the certificate cannot be used or the address is not free.
pub async fn serve(plan: ServerPlan, stop: impl Future<Output = ()>) -> Result<(), Failure> {
    let config = config(&plan)?;
    let endpoint = Endpoint::server(config, plan.listen)
        .map_err(|error| Failure::new(format!("cannot listen on {}: {error}", plan.listen)))?;
    let files = Files::builder()
        .open(&plan.root)
        .map_err(|error| Failure::new(format!("cannot serve {}: {error}", plan.root.display())))?;
    let root: Arc<Path> = plan.root.into();
    let accept = async {
        while let Some(incoming) = endpoint.accept().await {
            tokio::spawn(run(incoming, root.clone(), files.clone()));
        }
    };
    tokio::select! {
        () = accept => {}
        () = stop => {}
    }
    endpoint.close(0u32.into(), b"");
    // The last packets of clients that are gone need no answer.
    let _ = tokio::time::timeout(CLOSING, endpoint.wait_idle()).await;
    Ok(())
}

fn config(plan: &ServerPlan) -> Result<ServerConfig, Failure> {
    let identity = Identity::from_files(&plan.chain, &plan.key)?;
    let tls = tls::server(identity, ALPN.as_bytes())?;
    let retry = match plan.test {
        Test::Retry => RetryPolicy::Always,
        _ => RetryPolicy::Never,
    };
    let transport = TransportConfig {
        // A server gives up a client that is silent for half of the time.
        handshake_timeout: 2 * PATIENCE,
        ..transport()
    };
    let config = ServerConfig::with_rustls(tls)
        .alpn([ALPN, h3::ALPN])
        .transport_config(transport)
        .retry(retry);
    let config = match plan.test {
        Test::ZeroRtt => config.early_data(EarlyDataOptions::default()),
        Test::VersionNegotiation => config.versions([QuicVersion::V1]),
        Test::Version2 => config.versions([QuicVersion::V2, QuicVersion::V1]),
        _ => config,
    };
    let config = config.preferred_address(plan.preferred_v4, plan.preferred_v6);
    Ok(match &plan.sinks {
        Some(sinks) => config.sinks(sinks.clone()),
        None => config,
    })
}

/// Returns the settings of both ends: handshakes may take long, because cases lose most of their
/// packets.
pub(crate) fn transport() -> TransportConfig {
    TransportConfig {
        handshake_timeout: PATIENCE,
        max_idle_timeout: Some(PATIENCE),
        ..TransportConfig::default()
    }
}

/// Serves one connection. Its failures are visible to the client only.
async fn run(incoming: Incoming, root: Arc<Path>, files: Files) {
    let Ok(connecting) = incoming.accept() else {
        return;
    };
    // Requests of 0-RTT packets are answered before the handshake is complete.
    let Ok(connection) = connecting.early().await else {
        return;
    };
    let protocol = connection.handshake_data().and_then(|data| data.protocol);
    if protocol.as_deref() == Some(h3::ALPN.as_bytes()) {
        let serving = h3::serve(connection, files).settings_timeout(PATIENCE);
        let _ = serving.await;
    } else {
        answer_all(&connection, &root).await;
    }
}

async fn answer_all(connection: &Connection, root: &Arc<Path>) {
    while let Ok((send, receive)) = connection.accept_bi().await {
        let root = root.clone();
        tokio::spawn(async move { answer(send, receive, &root).await });
    }
}

/// Answers one request, or resets the stream if there is no such file.
async fn answer(mut send: SendStream, mut receive: RecvStream, root: &Path) {
    let request = receive.read_to_end(MAX_REQUEST).await;
    let file = request
        .ok()
        .and_then(|request| hq::requested_file(root, &request));
    let content = match file {
        Some(file) => tokio::fs::read(file).await.ok(),
        None => None,
    };
    let Some(content) = content else {
        let _ = send.reset(NOT_FOUND.into());
        return;
    };
    if send.write_chunk(Bytes::from(content)).await.is_ok() {
        let _ = send.finish();
    }
}

/// The time for a handshake and for the SETTINGS of HTTP/3, and the time without packets after which a
/// connection ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// The time that the last packets of connections have.
const CLOSING: Duration = Duration::from_millis(200);

/// The code with which a stream is reset whose request names no file.
const NOT_FOUND: u32 = 404;
