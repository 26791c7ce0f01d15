//! Sends 1 MB in each direction and compares hashes, with a peer of any stack. `interop/aioquic/run` runs it with
//! aioquic.
//!
//! `interop_hash server CERTIFICATE KEY` serves one client, and `interop_hash client CERTIFICATE ADDRESS` is the
//! client. The client sends its bytes. The server answers with their SHA-256, its own bytes and the SHA-256 of
//! those. The client receives last, so it closes, with code 0.

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use courser::rustls::pki_types::{CertificateDer, pem::PemObject};
use courser::{ClientConfig, ConnectionError, Endpoint, Identity, ServerConfig};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

const PROTOCOL: &str = "interop-hash";
const LEN: usize = 1_000_000;

fn hash(bytes: &[u8]) -> impl AsRef<[u8]> {
    digest(&SHA256, bytes)
}

fn random_bytes() -> Result<Vec<u8>> {
    let mut bytes = vec![0; LEN];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| "no random numbers")?;
    Ok(bytes)
}

async fn serve(certificate: &str, key: &str) -> Result {
    let identity = Identity::from_pem_files(certificate, key)?;
    let config = ServerConfig::with_identity(&identity)?.alpn([PROTOCOL]);
    let endpoint = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    println!("listening on {}", endpoint.local_addr()?);
    let connection = endpoint.accept().await.ok_or("closed")?.await?;
    let (mut send, mut receive) = connection.accept_bi().await?;
    let upload = receive.read_to_end(LEN).await?;
    let download = random_bytes()?;
    send.write_all(hash(&upload).as_ref()).await?;
    send.write_all(&download).await?;
    send.write_all(hash(&download).as_ref()).await?;
    send.finish()?;
    let ending = connection.closed().await;
    println!("received {} bytes; {ending}", upload.len());
    endpoint.wait_idle().await;
    match ending {
        ConnectionError::ApplicationClosed { code, .. } if code.0 == 0 => Ok(()),
        other => Err(other.into()),
    }
}

async fn connect(certificate: &str, address: &str) -> Result {
    let endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
    let config = ClientConfig::with_roots([CertificateDer::from_pem_file(certificate)?])?;
    let config = config.alpn([PROTOCOL]);
    let connection = endpoint
        .connect_with(config, address.parse()?, "localhost")?
        .await?;
    let data = connection.handshake_data().ok_or("connected by now")?;
    println!(
        "handshake complete, {:?} with {:?}",
        data.suite, data.key_exchange
    );
    let (mut send, mut receive) = connection.open_bi().await?;
    let upload = random_bytes()?;
    send.write_all(&upload).await?;
    send.finish()?;
    let answer = receive.read_to_end(LEN + 2 * SHA256_OUTPUT_LEN).await?;
    let (of_upload, rest) = answer
        .split_at_checked(SHA256_OUTPUT_LEN)
        .ok_or("too short")?;
    let (download, of_download) = rest.split_at_checked(LEN).ok_or("too short")?;
    if of_upload != hash(&upload).as_ref() || of_download != hash(download).as_ref() {
        return Err("the hashes differ".into());
    }
    println!(
        "{} bytes up and {} down, the hashes agree",
        upload.len(),
        download.len()
    );
    connection.close(0u32.into(), b"done");
    endpoint.wait_idle().await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server", certificate, key] => serve(certificate, key).await,
        ["client", certificate, address] => connect(certificate, address).await,
        _ => Err("usage: interop_hash server CERTIFICATE KEY | client CERTIFICATE ADDRESS".into()),
    }
}
