//! The ends of courser.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Result, ensure};
use courser::{ClientConfig, Endpoint, Identity, ServerConfig, TransportConfig};

use crate::ALPN;

fn identity(folder: &Path) -> Result<Identity> {
    let read = |name| std::fs::read(folder.join(name));
    Ok(Identity::from_pem(&read("cert.pem")?, &read("key.pem")?)?)
}

fn transport() -> TransportConfig {
    TransportConfig {
        max_paths: 4,
        ..TransportConfig::default()
    }
}

pub async fn serve(folder: &Path, address: SocketAddr) -> Result<()> {
    let config = ServerConfig::with_identity(&identity(folder)?)?;
    let config = config.alpn([ALPN]).transport_config(transport());
    let endpoint = Endpoint::server(config, address)?;
    println!("{}", endpoint.local_addr()?);
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            let connection = incoming.await?;
            let (mut send, mut receive) = connection.accept_bi().await?;
            let mut wanted = [0; 8];
            receive.read_exact(&mut wanted).await?;
            let mut left = u64::from_be_bytes(wanted);
            let chunk = vec![7; 1 << 16];
            while left > 0 {
                let next = left.min(chunk.len() as u64) as usize;
                send.write_all(&chunk[..next]).await?;
                left -= next as u64;
            }
            send.finish()?;
            connection.closed().await;
            anyhow::Ok(())
        });
    }
    Ok(())
}

pub async fn receive(
    folder: &Path,
    server: SocketAddr,
    second: Option<&str>,
    bytes: u64,
) -> Result<()> {
    let config = ClientConfig::with_roots([identity(folder)?.certificate()])?;
    let config = config.alpn([ALPN]).transport_config(transport());
    let any = SocketAddr::from(([0, 0, 0, 0], 0));
    let endpoint = Endpoint::client(any)?;
    let connection = endpoint.connect_with(config, server, "localhost")?.await?;
    if let Some(second) = second {
        let (via, connection) = (second.parse()?, connection.clone());
        tokio::spawn(async move {
            if let Err(error) = connection.open_path_via(&via).await {
                eprintln!("no second path: {error}");
            }
        });
    }
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&bytes.to_be_bytes()).await?;
    send.finish()?;
    let mut received = 0;
    while let Some(chunk) = receive.read_chunk(1 << 20).await? {
        received += chunk.len() as u64;
    }
    ensure!(received == bytes, "{received} bytes");
    let paths = connection.paths();
    let each = paths.iter().map(|path| path.traffic.bytes_received);
    eprintln!("bytes by path: {:?}", each.collect::<Vec<_>>());
    connection.close(0_u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}
