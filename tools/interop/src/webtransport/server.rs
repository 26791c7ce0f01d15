//! The server of the cases of WebTransport.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use courser::telemetry::SinkFactory;
use courser::webtransport::{Config, Listener, Origins, PendingSession, Session};
use courser::{Endpoint, ServerConfig, h3};
use courser_measure::Failure;
use courser_measure::tls::{self, Identity};
use http::StatusCode;

use super::client::write_protocol;
use super::send::{Source, ended};
use super::{SessionTest, receive};
use crate::server::transport;

/// The settings of [`run_server`].
#[derive(Clone)]
pub struct SessionServerPlan {
    /// The test of the run.
    pub test: SessionTest,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The application protocols to choose from.
    pub protocols: Vec<String>,
    /// The paths of files to request, each below an endpoint.
    pub requests: Vec<String>,
    /// The folder with files to send.
    pub root: PathBuf,
    /// The folder for files that arrive, and for the name of the protocol.
    pub downloads: PathBuf,
    /// The certificate chain, in PEM.
    pub chain: PathBuf,
    /// The private key, in PEM.
    pub key: PathBuf,
    /// Receives the records of connections.
    pub sinks: Option<Arc<dyn SinkFactory>>,
}

/// Serves sessions at the endpoints until `stop` resolves.
///
/// # Errors
/// Returns an error if the certificate cannot be used or the address is not free.
pub async fn run_server(
    plan: SessionServerPlan,
    stop: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let identity = Identity::from_files(&plan.chain, &plan.key)?;
    let config = ServerConfig::with_rustls(tls::server(identity, h3::ALPN.as_bytes())?);
    let config = config.alpn([h3::ALPN]).transport_config(transport());
    let config = match &plan.sinks {
        Some(sinks) => config.sinks(sinks.clone()),
        None => config,
    };
    let endpoint = Endpoint::server(config, plan.listen)
        .map_err(|error| Failure::new(format!("cannot listen on {}: {error}", plan.listen)))?;
    let sessions = Config {
        origins: Origins::any(),
        ..Config::new()
    };
    let mut listener = Listener::on(endpoint.clone(), sessions).map_err(ended)?;
    let plan = Arc::new(plan);
    let accept = async {
        while let Some(request) = listener.accept().await {
            let plan = plan.clone();
            tokio::spawn(async move {
                if let Err(failure) = serve(&plan, request).await {
                    eprintln!("{failure}");
                }
            });
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

async fn serve(plan: &SessionServerPlan, request: PendingSession) -> Result<(), Failure> {
    let endpoint = request.uri().path().trim_matches('/').to_owned();
    let is_endpoint = !endpoint.is_empty() && !endpoint.contains(['/', '.']);
    if !is_endpoint || !plan.root.join(&endpoint).is_dir() {
        request.reject(StatusCode::NOT_FOUND);
        return Err(Failure::new(format!("no endpoint '{endpoint}'")));
    }
    let chosen = request.protocols().select(&plan.protocols);
    let request = match chosen.map(ToOwned::to_owned) {
        Some(chosen) => request.protocol(&chosen).map_err(ended)?,
        None => request,
    };
    let session = request.accept().await.map_err(ended)?;
    run(plan, &session, &endpoint).await
}

async fn run(plan: &SessionServerPlan, session: &Session, endpoint: &str) -> Result<(), Failure> {
    match plan.test {
        SessionTest::Handshake => {
            write_protocol(&plan.downloads, session).await?;
            session.closed().await;
        }
        SessionTest::Transfer => {
            let source = Source::new(plan.root.clone(), endpoint);
            source.serve(session).await;
        }
        SessionTest::Request(way) => {
            let of_endpoint = plan.requests.iter().filter_map(|path| {
                let path = path.trim_start_matches('/');
                path.strip_prefix(endpoint)?.strip_prefix('/')
            });
            let names: Vec<String> = of_endpoint.map(ToOwned::to_owned).collect();
            let files = (endpoint, names.as_slice());
            let done = receive::request(session, way, files, &plan.downloads).await;
            // The client serves until the session ends.
            session.close(0, "");
            session.closed().await;
            done?;
        }
    }
    Ok(())
}

/// Time for the end of connections.
const CLOSING: Duration = Duration::from_secs(1);
