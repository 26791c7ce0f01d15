//! s2n-quic as a peer of `courser interop matrix`: `peer-s2n-quic server|client`, with the variables of
//! the QUIC interop runner and LISTEN, WWW, CERTS and DOWNLOADS.

mod trust;

use std::env;
use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use s2n_quic::client::Connect;
use s2n_quic::provider::{endpoint_limits, limits, tls};
use s2n_quic::stream::BidirectionalStream;
use s2n_quic::{Client, Connection, Server};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const ALPN: [&str; 1] = ["hq-interop"];

/// s2n-quic has no call for key updates, and gives no messages after the handshake to rustls, so that there
/// are no sessions.
const SUPPORTED: [&str; 6] = [
    "handshake",
    "transfer",
    "chacha20",
    "multiconnect",
    "retry",
    "ecn",
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    let test = env::var("TESTCASE")?;
    let is_server = env::args().nth(1).as_deref() == Some("server");
    if !SUPPORTED.contains(&test.as_str()) {
        return Ok(ExitCode::from(127));
    }
    if is_server {
        serve(&test).await?;
    } else {
        fetch(&test).await?;
    }
    Ok(ExitCode::SUCCESS)
}

fn limits() -> Result<limits::Limits> {
    let time = Duration::from_secs(60);
    Ok(limits::Limits::new()
        .with_max_idle_timeout(time)?
        .with_max_handshake_duration(time)?)
}

async fn serve(test: &str) -> Result {
    let certificates = PathBuf::from(env::var("CERTS")?);
    let tls = tls::rustls::Server::builder()
        .with_application_protocols(ALPN.iter())?
        .with_certificate(
            certificates.join("cert.pem").as_path(),
            certificates.join("priv.key").as_path(),
        )?
        .with_key_logging()?
        .build()?;
    let listen: SocketAddr = env::var("LISTEN")?.parse()?;
    let mut endpoint = endpoint_limits::Default::builder();
    if test == "retry" {
        endpoint = endpoint.with_inflight_handshake_limit(0)?;
    }
    let mut server = Server::builder()
        .with_tls(tls)?
        .with_io(listen)?
        .with_limits(limits()?)?
        .with_endpoint_limits(endpoint.build()?)?
        .start()?;
    let root: Arc<Path> = PathBuf::from(env::var("WWW")?).into();
    while let Some(mut connection) = server.accept().await {
        let root = root.clone();
        tokio::spawn(async move {
            while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
                let root = root.clone();
                tokio::spawn(async move { answer(stream, &root).await });
            }
        });
    }
    Ok(())
}

async fn answer(stream: BidirectionalStream, root: &Path) -> Result {
    let (receive, mut send) = stream.split();
    let mut request = String::new();
    receive.take(4096).read_to_string(&mut request).await?;
    let path = request.trim_end().strip_prefix("GET /").ok_or("no GET")?;
    let content = tokio::fs::read(root.join(path)).await?;
    send.write_all(&content).await?;
    send.close().await?;
    Ok(())
}

async fn fetch(test: &str) -> Result {
    let requests = env::var("REQUESTS")?;
    let urls: Vec<&str> = requests.split_whitespace().collect();
    let (address, _) = parts(urls[0])?;
    let tls = tls::rustls::Client::from(trust::config(test == "chacha20", &ALPN)?);
    let local = if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let mut client = Client::builder()
        .with_tls(tls)?
        .with_io(local)?
        .with_limits(limits()?)?
        .start()?;
    match test {
        "multiconnect" => {
            for url in &urls {
                connect_and_download(&client, address, std::slice::from_ref(url)).await?;
            }
        }
        _ => connect_and_download(&client, address, &urls).await?,
    }
    client.wait_idle().await?;
    Ok(())
}

/// Returns the address and the path of a URL whose host is an IP address.
fn parts(url: &str) -> Result<(SocketAddr, &str)> {
    let rest = url.strip_prefix("https://").ok_or("no https URL")?;
    let (host, path) = rest.split_once('/').ok_or("no path")?;
    Ok((host.parse()?, path))
}

async fn connect_and_download(client: &Client, address: SocketAddr, urls: &[&str]) -> Result {
    let connect = Connect::new(address).with_server_name("localhost");
    let mut connection: Connection = client.connect(connect).await?;
    connection.keep_alive(true)?;
    let folder: Arc<Path> = PathBuf::from(env::var("DOWNLOADS")?).into();
    let handle = connection.handle();
    let mut downloads = tokio::task::JoinSet::new();
    for url in urls {
        let (_, path) = parts(url)?;
        let (mut handle, path, folder) = (handle.clone(), path.to_owned(), folder.clone());
        downloads.spawn(async move {
            let stream = handle.open_bidirectional_stream().await?;
            let (mut receive, mut send) = stream.split();
            send.write_all(format!("GET /{path}\r\n").as_bytes())
                .await?;
            send.close().await?;
            let mut content = Vec::new();
            receive.read_to_end(&mut content).await?;
            tokio::fs::write(folder.join(path), content).await?;
            Result::Ok(())
        });
    }
    while let Some(done) = downloads.join_next().await {
        done??;
    }
    connection.close(0u32.into());
    Ok(())
}
