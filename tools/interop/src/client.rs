//! The client of the interop runner.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use courser::telemetry::SinkFactory;
use courser::{
    ClientConfig, Connecting, Connection, Endpoint, QuicVersion, Side, TransportConfig, h3,
};
use courser_measure::Failure;
use courser_measure::tls::{self, Trust, Versions};
use http::Request;
use http_body_util::BodyExt as _;
use rustls::client::Resumption;
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;
use url::Url;

use crate::hq;
use crate::server::transport;
use crate::test::Test;

/// The settings of [`fetch`].
#[derive(Clone)]
pub struct ClientPlan {
    /// The test of the run.
    pub test: Test,
    /// The URLs of the files, all of one server, at least one.
    pub urls: Vec<Url>,
    /// The folder for the files.
    pub downloads: PathBuf,
    /// True if files travel over HTTP/3 in every test. Otherwise they do in [`Test::Http3`] only, and over
    /// HTTP/0.9 in the others.
    pub always_http3: bool,
    /// Receives the records of connections.
    pub sinks: Option<Arc<dyn SinkFactory>>,
}

impl ClientPlan {
    fn is_http3(&self) -> bool {
        self.always_http3 || self.test == Test::Http3
    }
}

/// Downloads the files as the test demands, until `stop` resolves. The certificate of the server is not
/// verified. Its connections are closed afterwards, so that their traces are complete.
///
/// # Errors
/// Returns an error if a file did not arrive in full.
pub async fn fetch(plan: &ClientPlan, stop: impl Future<Output = ()>) -> Result<(), Failure> {
    let first = plan.urls.first().ok_or_else(|| Failure::new("no URL"))?;
    let (address, name) = resolve(first).await?;
    let local: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let mut endpoint = Endpoint::client(local)
        .map_err(|error| Failure::new(format!("cannot open a socket: {error}")))?;
    endpoint.set_default_client_config(config(plan)?);
    let server = Server {
        endpoint,
        address,
        name,
        is_http3: plan.is_http3(),
    };
    let done = tokio::select! {
        // The first branch is polled first: signals are awaited before the first packet is sent.
        biased;
        () = stop => None,
        done = server.run(plan) => Some(done),
    };
    server.endpoint.close(0u32.into(), b"");
    let Some(done) = done else {
        let _ = tokio::time::timeout(CLOSING, server.endpoint.wait_idle()).await;
        return Err(Failure::new("stopped before all files arrived"));
    };
    server.endpoint.wait_idle().await;
    done
}

fn config(plan: &ClientPlan) -> Result<ClientConfig, Failure> {
    let protocol = match plan.is_http3() {
        true => h3::ALPN,
        false => hq::ALPN,
    };
    let mut tls = match plan.test {
        Test::ChaCha20 => tls::client_with_chacha20(&Trust::AnyServer, protocol.as_bytes())?,
        _ => {
            let protocols = vec![protocol.as_bytes().to_vec()];
            tls::client_of(&Trust::AnyServer, Versions::Tls13, protocols)?
        }
    };
    tls.resumption = Resumption::default();
    let transport = TransportConfig {
        // Its probes count as data in 1-RTT packets, of which this test allows little.
        mtu_discovery: plan.test != Test::ZeroRtt,
        ..transport()
    };
    let config = ClientConfig::with_rustls(Arc::new(tls)).transport_config(transport);
    let config = config.early_data(plan.test == Test::ZeroRtt);
    let config = match plan.test {
        Test::Version2 => config
            .versions([QuicVersion::V2, QuicVersion::V1])
            .first_version(QuicVersion::V1),
        // The server does not support the version of the first flight.
        Test::VersionNegotiation => config.versions([QuicVersion::V2, QuicVersion::V1]),
        _ => config.versions([QuicVersion::V1]),
    };
    Ok(match &plan.sinks {
        Some(sinks) => config.sinks(sinks.clone()),
        None => config,
    })
}

/// Returns the address and the name of the server of a URL.
async fn resolve(url: &Url) -> Result<(SocketAddr, String), Failure> {
    let unusable = || Failure::new(format!("cannot use the URL {url}"));
    let host = url.host_str().ok_or_else(unusable)?;
    let host = host.trim_matches(['[', ']']);
    let port = url.port_or_known_default().ok_or_else(unusable)?;
    let found = tokio::net::lookup_host((host, port)).await;
    let mut addresses =
        found.map_err(|error| Failure::new(format!("cannot resolve {host}: {error}")))?;
    let address = addresses.next();
    let address = address.ok_or_else(|| Failure::new(format!("{host} has no address")))?;
    Ok((address, host.to_owned()))
}

/// The server, from the client's point of view.
struct Server {
    endpoint: Endpoint,
    address: SocketAddr,
    name: String,
    is_http3: bool,
}

impl Server {
    async fn run(&self, plan: &ClientPlan) -> Result<(), Failure> {
        let (urls, folder) = (plan.urls.as_slice(), plan.downloads.as_path());
        match plan.test {
            Test::MultiConnect => {
                for url in urls {
                    self.connect_and_download(std::slice::from_ref(url), folder)
                        .await?;
                }
                Ok(())
            }
            Test::Resumption => {
                let (first, others) = urls.split_at(1);
                self.connect_and_download(first, folder).await?;
                self.connect_and_download(others, folder).await?;
                Ok(())
            }
            Test::ZeroRtt => {
                let (first, others) = urls.split_at(1);
                let remembered = self.connect_and_download(first, folder).await?;
                let connection = self
                    .connecting()?
                    .early()
                    .await
                    .map_err(|error| Failure::new(format!("the handshake failed: {error}")))?;
                self.download(connection, remembered, others, folder)
                    .await?;
                Ok(())
            }
            Test::KeyUpdate => {
                let connection = self.connect().await?;
                let updating = connection.clone();
                let update = tokio::spawn(async move { update_keys(&updating).await });
                self.download(connection, None, urls, folder).await?;
                update.abort();
                Ok(())
            }
            _ => {
                self.connect_and_download(urls, folder).await?;
                Ok(())
            }
        }
    }

    fn connecting(&self) -> Result<Connecting, Failure> {
        self.endpoint
            .connect(self.address, &self.name)
            .map_err(|error| Failure::new(format!("cannot connect: {error}")))
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        let connected = self.connecting()?.await;
        connected.map_err(|error| Failure::new(format!("the handshake failed: {error}")))
    }

    /// Returns the server's settings of HTTP/3.
    async fn connect_and_download(
        &self,
        urls: &[Url],
        folder: &Path,
    ) -> Result<Option<h3::Settings>, Failure> {
        let connection = self.connect().await?;
        self.download(connection, None, urls, folder).await
    }

    /// Downloads files and closes the connection. `remembered` are settings of HTTP/3 of an earlier
    /// connection, with which requests can leave early. Returns those of this one.
    async fn download(
        &self,
        connection: Connection,
        remembered: Option<h3::Settings>,
        urls: &[Url],
        folder: &Path,
    ) -> Result<Option<h3::Settings>, Failure> {
        if !self.is_http3 {
            download_all(&connection, urls, folder).await?;
            connection.close(0u32.into(), b"");
            return Ok(None);
        }
        let (client, pause) = match remembered {
            Some(settings) => {
                let config = h3::Config::new(Side::Client);
                (
                    h3::Client::resume(connection, config, settings),
                    EARLY_PAUSE,
                )
            }
            None => (h3::Client::new(connection), Duration::ZERO),
        };
        download_http3(&client, urls, folder, pause).await?;
        let settings = client.settings().await;
        client.close();
        Ok(settings)
    }
}

/// Begins a key update as soon as the connection allows one.
async fn update_keys(connection: &Connection) {
    while connection.force_key_update().is_err() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Downloads files in parallel over HTTP/0.9.
async fn download_all(connection: &Connection, urls: &[Url], folder: &Path) -> Result<(), Failure> {
    let mut downloads = JoinSet::new();
    for url in urls {
        let (connection, url) = (connection.clone(), url.clone());
        let destination = destination(folder, &url)?;
        downloads.spawn(async move { download(&connection, &url, &destination).await });
    }
    finish(downloads).await
}

async fn download(connection: &Connection, url: &Url, destination: &Path) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(format!("{url}: {error}"));
    let (mut send, mut receive) = connection.open_bi().await.map_err(|e| failed(&e))?;
    let request = hq::request(url.path());
    send.write_all(&request).await.map_err(|e| failed(&e))?;
    send.finish().map_err(|e| failed(&e))?;
    let mut file = File::create(destination).await.map_err(|e| failed(&e))?;
    while let Some(chunk) = receive.read_chunk(CHUNK).await.map_err(|e| failed(&e))? {
        file.write_all(&chunk).await.map_err(|e| failed(&e))?;
    }
    file.flush().await.map_err(|e| failed(&e))
}

/// Downloads files in parallel over HTTP/3, and pauses after every [`BURST`] requests.
async fn download_http3(
    client: &h3::Client,
    urls: &[Url],
    folder: &Path,
    pause: Duration,
) -> Result<(), Failure> {
    let mut downloads = JoinSet::new();
    for (index, url) in urls.iter().enumerate() {
        if index > 0 && index % BURST == 0 && !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        let (client, url) = (client.clone(), url.clone());
        let destination = destination(folder, &url)?;
        downloads.spawn(async move { get(&client, &url, &destination).await });
    }
    finish(downloads).await
}

async fn get(client: &h3::Client, url: &Url, destination: &Path) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(format!("{url}: {error}"));
    let request = Request::get(url.as_str()).body(h3::Empty);
    let request = request.map_err(|e| failed(&e))?;
    let response = client.send(request).await.map_err(|e| failed(&e))?;
    if !response.status().is_success() {
        return Err(failed(&response.status()));
    }
    let mut body = response.into_body();
    let mut file = File::create(destination).await.map_err(|e| failed(&e))?;
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(|e| failed(&e))?.into_data() {
            file.write_all(&data).await.map_err(|e| failed(&e))?;
        }
    }
    file.flush().await.map_err(|e| failed(&e))
}

async fn finish(mut downloads: JoinSet<Result<(), Failure>>) -> Result<(), Failure> {
    while let Some(done) = downloads.join_next().await {
        done.map_err(|error| Failure::new(format!("a download panicked: {error}")))??;
    }
    Ok(())
}

/// Returns the path of a downloaded file: the last segment of the URL, in the folder.
fn destination(folder: &Path, url: &Url) -> Result<PathBuf, Failure> {
    let name = url
        .path_segments()
        .and_then(|mut segments| segments.next_back());
    let name = name.filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| Failure::new(format!("the URL {url} names no file")))?;
    Ok(folder.join(name))
}

/// The number of concurrent early requests over HTTP/3. Each has a packet of its own, and a bottleneck of the
/// runner has room for 25.
const BURST: usize = 20;

/// The pause after [`BURST`] early requests, in which the bottleneck sends them on. The round trip is 30 ms.
const EARLY_PAUSE: Duration = Duration::from_millis(5);

/// The most bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// The time that connections have to close after a stop. The process is killed soon after.
const CLOSING: Duration = Duration::from_millis(500);
