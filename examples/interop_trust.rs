//! Sends requests to a server over HTTP/3, HTTP/2 and HTTP/1.1, and trusts one root certificate: the client of
//! `interop/acme/run`. `interop_trust ADDRESS NAME ROOT.pem`

use std::net::SocketAddr;
use std::sync::Arc;

use courser::rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use courser::rustls::{ClientConfig as TlsConfig, RootCertStore};
use courser::{ClientConfig, Endpoint, h3};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("usage: ADDRESS NAME ROOT.pem");
    let (address, name, root) = (next()?.parse::<SocketAddr>()?, next()?, next()?);
    let root = CertificateDer::from_pem_file(root)?;
    let uri = format!("https://{name}:{}/", address.port());

    let endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
    let config = ClientConfig::with_roots([root.clone()])?.alpn([h3::ALPN]);
    let connection = endpoint.connect_with(config, address, &name)?.await?;
    let client = h3::Client::new(connection);
    let response = client.send(Request::get(&uri).body(h3::Empty)?).await?;
    let status = response.status();
    tell(
        "h3",
        status,
        response.into_body().collect().await?.to_bytes(),
    )?;

    let io = TokioIo::new(tls(address, &name, &root, "h2").await?);
    let (mut send, connection) = http2::handshake(TokioExecutor::new(), io).await?;
    tokio::spawn(connection);
    let request = Request::get(&uri).body(Empty::<bytes::Bytes>::new())?;
    let response = send.send_request(request).await?;
    let status = response.status();
    tell(
        "h2",
        status,
        response.into_body().collect().await?.to_bytes(),
    )?;

    let io = TokioIo::new(tls(address, &name, &root, "http/1.1").await?);
    let (mut send, connection) = http1::handshake(io).await?;
    tokio::spawn(connection);
    let request = Request::get("/").header("host", &name);
    let response = send
        .send_request(request.body(Empty::<bytes::Bytes>::new())?)
        .await?;
    let status = response.status();
    tell(
        "http/1.1",
        status,
        response.into_body().collect().await?.to_bytes(),
    )
}

async fn tls(
    address: SocketAddr,
    name: &str,
    root: &CertificateDer<'static>,
    protocol: &str,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone())?;
    let mut config = TlsConfig::builder_with_provider(courser::crypto_provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from(name.to_owned())?;
    Ok(TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await?)
}

fn tell(protocol: &str, status: StatusCode, body: bytes::Bytes) -> Result {
    print!("{protocol}: {status} {}", String::from_utf8_lossy(&body));
    if status.is_success() {
        Ok(())
    } else {
        Err(format!("{protocol}: {status}").into())
    }
}
