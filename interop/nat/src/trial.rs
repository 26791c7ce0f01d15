//! The ends of a trial: a hub that relays and observes, a server and a client behind NATs.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use courser::{AddressObservations, ClientConfig, Endpoint, Identity, ServerConfig};
use tokio::net::UdpSocket;

use crate::transport;

/// The port of the relay for the client, that for the server, and that of the observer.
const FOR_CLIENT: u16 = 4000;
const FOR_SERVER: u16 = 4001;
const OBSERVER: u16 = 4433;

/// The time for which a client looks for a direct path.
const PATIENCE: Duration = Duration::from_secs(9);

/// Bytes of an echo.
const BYTES: usize = 1 << 20;

pub fn write_identity(folder: &Path) -> Result<()> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    std::fs::write(folder.join("cert.pem"), made.cert.pem())?;
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem())?;
    Ok(())
}

fn identity(folder: &Path) -> Result<Identity> {
    let read = |name| std::fs::read(folder.join(name));
    Ok(Identity::from_pem(&read("cert.pem")?, &read("key.pem")?)?)
}

fn client_config(folder: &Path) -> Result<ClientConfig> {
    let config = ClientConfig::with_roots([identity(folder)?.certificate()])?;
    let transport = transport(AddressObservations::Receive);
    Ok(config.alpn(["nat"]).transport_config(transport))
}

fn server_config(folder: &Path, observations: AddressObservations) -> Result<ServerConfig> {
    let config = ServerConfig::with_identity(&identity(folder)?)?;
    Ok(config.alpn(["nat"]).transport_config(transport(observations)))
}

/// Relays datagrams between its two ports, and reports the address of each client of its third one.
pub async fn hub(folder: &Path, own: IpAddr) -> Result<()> {
    let config = server_config(folder, AddressObservations::Provide)?;
    let endpoint = Endpoint::server(config, (own, OBSERVER).into())?;
    tokio::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            if let Ok(connection) = incoming.await {
                tokio::spawn(async move { connection.closed().await });
            }
        }
    });
    let to_client = UdpSocket::bind((own, FOR_CLIENT)).await?;
    let to_server = UdpSocket::bind((own, FOR_SERVER)).await?;
    let (mut client, mut server) = (None, None);
    let (mut from_client, mut from_server) = ([0; 2000], [0; 2000]);
    loop {
        tokio::select! {
            received = to_client.recv_from(&mut from_client) => {
                let (len, source) = received?;
                client = Some(source);
                if let Some(server) = server {
                    to_server.send_to(&from_client[..len], server).await?;
                }
            }
            received = to_server.recv_from(&mut from_server) => {
                let (len, source) = received?;
                server = Some(source);
                if let Some(client) = client {
                    to_client.send_to(&from_server[..len], client).await?;
                }
            }
        }
    }
}

/// Returns the address of the endpoint as the hub sees it.
async fn observed(endpoint: &Endpoint, folder: &Path, hub: IpAddr) -> Result<SocketAddr> {
    let observer = SocketAddr::from((hub, OBSERVER));
    let connection = endpoint
        .connect_with(client_config(folder)?, observer, "localhost")?
        .await?;
    let address = connection.observed_address_changed(None).await?;
    connection.close(0u32.into(), b"");
    Ok(address)
}

fn offer(connection: &courser::Connection, local: SocketAddr, observed: SocketAddr) -> Result<()> {
    connection.offer_candidate(observed)?;
    if local != observed {
        connection.offer_candidate(local)?;
    }
    Ok(())
}

/// Registers at the relay, offers its addresses, and echoes.
pub async fn server(folder: &Path, own: IpAddr, hub: IpAddr) -> Result<()> {
    let local = SocketAddr::from((own, 5000));
    let config = server_config(folder, AddressObservations::Receive)?;
    let endpoint = Endpoint::server(config, local)?;
    let observed = observed(&endpoint, folder, hub).await?;
    // The relay learns the address of the server from a packet that nobody answers.
    let relay = SocketAddr::from((hub, FOR_SERVER));
    drop(endpoint.connect_with(client_config(folder)?, relay, "localhost")?);
    let connection = endpoint.accept().await.context("closed")?.await?;
    offer(&connection, local, observed)?;
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let data = receive.read_to_end(2 * BYTES).await?;
        send.write_all(&data).await?;
        send.finish()?;
    }
    Ok(())
}

/// Connects over the relay, looks for a direct path, and prints `direct` or `relayed` with details.
pub async fn client(folder: &Path, own: IpAddr, hub: IpAddr) -> Result<()> {
    let local = SocketAddr::from((own, 6000));
    let endpoint = Endpoint::client(local)?;
    let observed = observed(&endpoint, folder, hub).await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let relay = SocketAddr::from((hub, FOR_CLIENT));
    let connection = endpoint
        .connect_with(client_config(folder)?, relay, "localhost")?
        .await?;
    let begin = Instant::now();
    offer(&connection, local, observed)?;
    let direct = tokio::time::timeout(PATIENCE, connection.direct_path()).await;
    let after = begin.elapsed();
    let data = vec![7; BYTES];
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&data).await?;
    send.finish()?;
    ensure!(receive.read_to_end(2 * BYTES).await? == data, "the echo differs");
    let stats = connection.candidate_stats();
    match direct {
        Ok(path) => println!("direct path {} after {} ms, {stats:?}", path?, after.as_millis()),
        Err(_) => println!("relayed, {stats:?}"),
    }
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}
