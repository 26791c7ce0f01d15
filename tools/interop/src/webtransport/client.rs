//! The client of the cases of WebTransport.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use courser::telemetry::SinkFactory;
use courser::webtransport::{Client, Session};
use courser::{ClientConfig, h3};
use courser_measure::Failure;
use courser_measure::tls::{self, Trust, Versions};
use futures_util::future::try_join_all;
use url::Url;

use super::send::{Source, ended};
use super::{SessionTest, receive};
use crate::server::transport;

/// The settings of [`run_client`].
#[derive(Clone)]
pub struct SessionClientPlan {
    /// The test of the run.
    pub test: SessionTest,
    /// The URLs of files, each below an endpoint, or of endpoints without files.
    pub urls: Vec<Url>,
    /// The application protocols to offer.
    pub protocols: Vec<String>,
    /// The folder with files to send.
    pub root: PathBuf,
    /// The folder for files that arrive, and for the name of the protocol.
    pub downloads: PathBuf,
    /// Receives the records of connections.
    pub sinks: Option<Arc<dyn SinkFactory>>,
}

/// Opens a session for each endpoint and runs the test in it. The certificate of the server is not verified.
///
/// # Errors
/// Returns an error if a session fails, or a file does not arrive.
pub async fn run_client(
    plan: &SessionClientPlan,
    stop: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let client = client(plan)?;
    let endpoints = endpoints(&plan.urls)?;
    let each = endpoints.iter().map(|(endpoint, names)| {
        let client = &client;
        async move {
            let url = endpoint.as_str();
            let session = client.connect(url).await.map_err(ended)?;
            let path = endpoint.path().trim_matches('/');
            let done = run(plan, &session, (path, names)).await;
            session.close(0, "");
            session.closed().await;
            // The task of the session has yet to send the reason.
            tokio::time::sleep(3 * session.stats().rtt).await;
            done
        }
    });
    tokio::select! {
        done = try_join_all(each) => done.map(drop),
        () = stop => Err(Failure::new("stopped before the end of the test")),
    }
}

async fn run(
    plan: &SessionClientPlan,
    session: &Session,
    (endpoint, names): (&str, &[String]),
) -> Result<(), Failure> {
    match plan.test {
        SessionTest::Handshake => write_protocol(&plan.downloads, session).await,
        SessionTest::Transfer => {
            let source = Source::new(plan.root.clone(), endpoint);
            source.serve(session).await;
            Ok(())
        }
        SessionTest::Request(way) => {
            receive::request(session, way, (endpoint, names), &plan.downloads).await
        }
    }
}

/// Writes the name of the application protocol, where the runner looks for it.
pub(super) async fn write_protocol(
    downloads: &std::path::Path,
    session: &Session,
) -> Result<(), Failure> {
    let file = downloads.join("negotiated_protocol.txt");
    let name = session.protocol().unwrap_or_default();
    let written = tokio::fs::write(&file, name).await;
    written.map_err(|error| Failure::new(format!("cannot write {}: {error}", file.display())))
}

fn client(plan: &SessionClientPlan) -> Result<Client, Failure> {
    let protocols = vec![h3::ALPN.as_bytes().to_vec()];
    let tls = tls::client_of(&Trust::AnyServer, Versions::Tls13, protocols)?;
    let config = ClientConfig::with_rustls(Arc::new(tls)).transport_config(transport());
    let config = match &plan.sinks {
        Some(sinks) => config.sinks(sinks.clone()),
        None => config,
    };
    let client = Client::new().quic(config);
    client.protocols(plan.protocols.clone()).map_err(ended)
}

/// Returns the URL of each endpoint, with the names of its files.
fn endpoints(urls: &[Url]) -> Result<BTreeMap<Url, Vec<String>>, Failure> {
    let mut all: BTreeMap<Url, Vec<String>> = BTreeMap::new();
    for url in urls {
        let path = url.path().trim_start_matches('/');
        let (endpoint, name) = path.split_once('/').unwrap_or((path, ""));
        let session = url.join(&format!("/{endpoint}")).map_err(ended)?;
        let names = all.entry(session).or_default();
        if !name.is_empty() {
            names.push(name.to_owned());
        }
    }
    Ok(all)
}
