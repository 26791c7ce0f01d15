//! Applications that are slow, on machines whose network is fast. Fault F49.

use std::net::IpAddr;
use std::time::Duration;

use courser::runtime;
use courser::{ClientConfig, Connection, Endpoint, ServerConfig};
use courser_sim::World;
use courser_sim::identity::{SERVER_NAME, identity};

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn server() -> Result<Endpoint, Failure> {
    let config = ServerConfig::with_identity(&identity())?.alpn(["test"]);
    Ok(Endpoint::server(config, (SERVER, 4433).into())?)
}

async fn connect() -> Result<(Endpoint, Connection), Failure> {
    let config = ClientConfig::with_roots([identity().certificate()])?.alpn(["test"]);
    let endpoint = Endpoint::client((CLIENT, 0).into())?;
    let connecting = endpoint.connect_with(config, (SERVER, 4433).into(), SERVER_NAME)?;
    Ok((endpoint, connecting.await?))
}

/// Two idle timeouts of the default.
const SECONDS: usize = 60;

async fn read_slowly_written() -> Result<Vec<u8>, Failure> {
    let endpoint = server()?;
    let connection = endpoint.accept().await.ok_or("closed")?.await?;
    let mut stream = connection.accept_uni().await?;
    let read = stream.read_to_end(SECONDS).await?;
    connection.closed().await;
    Ok(read)
}

/// Writes a byte a second. Returns the number of packets.
async fn write_slowly() -> Result<u64, Failure> {
    let (_endpoint, connection) = connect().await?;
    let mut stream = connection.open_uni().await?;
    let before = connection.stats().packets_sent;
    for byte in 0..SECONDS {
        stream.write_all(&[byte as u8]).await?;
        stream.flush();
        runtime::sleep(Duration::from_secs(1)).await;
    }
    let packets = connection.stats().packets_sent - before;
    stream.finish()?;
    stream.stopped().await?;
    connection.close(0u32.into(), b"");
    Ok(packets)
}

/// F49: no timeout, and no more packets than bytes and a few probes of the path.
#[test]
fn a_byte_a_second_keeps_the_connection_alive() {
    let mut world = World::new(1);
    let near = world.machine("client", CLIENT);
    let far = world.machine("server", SERVER);
    world.join_machines(
        &near,
        &far,
        &"rtt=40ms".parse().expect("the link specification is valid"),
    );
    let reading = far.spawn(read_slowly_written());
    let writing = near.spawn(write_slowly());
    let packets = match world.run_until_done(writing) {
        Ok(Ok(packets)) => packets,
        Ok(Err(error)) => panic!("{error}"),
        Err(error) => panic!("{error}"),
    };
    let limit = SECONDS as u64 * 2 + 30;
    assert!(packets <= limit, "{packets} packets, at most {limit}");
    match world.run_until_done(reading) {
        Ok(Ok(read)) => assert_eq!(read.len(), SECONDS),
        Ok(Err(error)) => panic!("{error}"),
        Err(error) => panic!("{error}"),
    }
}
