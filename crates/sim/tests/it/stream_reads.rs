//! Programs for the async API that read the pieces of a stream in the order of arrival.

use std::net::IpAddr;

use crate::common::for_each_seed;
use courser::runtime;
use courser::{ClientConfig, Endpoint, ReadError, ServerConfig};
use courser_sim::World;
use courser_sim::identity::{SERVER_NAME, identity};

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));
const BYTES: usize = 300_000;
/// The number of bytes at the beginning that are read in order.
const ORDERED: usize = 10_000;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn pattern() -> Vec<u8> {
    (0..BYTES).map(|at| (at * 31 % 251) as u8).collect()
}

/// Reads the beginning of a stream in order and the rest in the order of arrival. Returns the
/// number of pieces that arrived before a byte with a lower offset.
async fn serve() -> Result<usize, Failure> {
    let config = ServerConfig::with_identity(&identity())?.alpn(["pieces"]);
    let endpoint = Endpoint::server(config, (SERVER, 4433).into())?;
    let incoming = endpoint.accept().await.ok_or("no client")?;
    let connection = incoming.await?;
    let mut receive = connection.accept_uni().await?;
    let mut beginning = vec![0; ORDERED];
    receive.read_exact(&mut beginning).await?;
    let (mut all, mut has_byte) = (vec![0; BYTES], vec![false; BYTES]);
    all[..ORDERED].copy_from_slice(&beginning);
    has_byte[..ORDERED].fill(true);
    let mut early = 0;
    while let Some((offset, bytes)) = receive.read_unordered(usize::MAX).await? {
        let start = usize::try_from(offset)?;
        let places = start..start + bytes.len();
        assert!(!bytes.is_empty());
        assert!(
            !has_byte[places.clone()].contains(&true),
            "bytes at {places:?} were read twice"
        );
        early += usize::from(has_byte[..start].contains(&false));
        has_byte[places.clone()].fill(true);
        all[places].copy_from_slice(&bytes);
    }
    assert!(all == pattern(), "the bytes differ");
    assert_eq!(receive.read(&mut [0]).await, Ok(None), "the end");
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(early)
}

async fn client() -> Result<(), Failure> {
    let config = ClientConfig::with_roots([identity().certificate()])?.alpn(["pieces"]);
    let endpoint = Endpoint::client((CLIENT, 0).into())?;
    let address = (SERVER, 4433).into();
    let connection = endpoint.connect_with(config, address, SERVER_NAME)?.await?;
    let mut send = connection.open_uni().await?;
    send.write_all(&pattern()).await?;
    send.finish()?;
    connection.closed().await;
    endpoint.wait_idle().await;
    Ok(())
}

/// Returns the number of pieces that were read before earlier bytes.
fn run(seed: u64, link: &str) -> usize {
    let mut world = World::new(seed);
    let near = world.machine("client", CLIENT);
    let far = world.machine("server", SERVER);
    world.join_machines(
        &near,
        &far,
        &link.parse().expect("the link specification is valid"),
    );
    let task = far.spawn(serve());
    near.spawn(client());
    match world.run_until_done(task) {
        Ok(Ok(early)) => early,
        Ok(Err(error)) => panic!("seed {seed}: {error}"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn bytes_past_a_loss_are_read_at_once_and_none_twice() {
    for_each_seed(10, |seed| {
        let early = run(seed, "20mbit,rtt=40ms,loss=5%,reorder=3%:10ms,duplicate=3%");
        assert!(early > 5, "seed {seed}: {early} pieces");
    });
}

#[test]
fn without_loss_all_bytes_come_in_order() {
    assert_eq!(run(1, "20mbit,rtt=40ms"), 0);
}

#[test]
fn ordered_reads_are_refused_after_unordered_ones() {
    let mut world = World::new(3);
    let near = world.machine("client", CLIENT);
    let far = world.machine("server", SERVER);
    world.join_machines(
        &near,
        &far,
        &"rtt=10ms".parse().expect("the link specification is valid"),
    );
    near.spawn(client());
    let task = far.spawn(async {
        let config = ServerConfig::with_identity(&identity())?.alpn(["pieces"]);
        let endpoint = Endpoint::server(config, (SERVER, 4433).into())?;
        let connection = endpoint.accept().await.ok_or("no client")?.await?;
        let mut receive = connection.accept_uni().await?;
        let piece = receive.read_unordered(100).await?;
        assert_eq!(
            piece.map(|(offset, bytes)| (offset, bytes.len())),
            Some((0, 100))
        );
        assert_eq!(receive.read(&mut [0]).await, Err(ReadError::Unordered));
        assert_eq!(receive.read_chunk(9).await, Err(ReadError::Unordered));
        // The stream continues nevertheless.
        let piece = receive.read_unordered(100).await?;
        assert_eq!(
            piece.map(|(offset, bytes)| (offset, bytes.len())),
            Some((100, 100))
        );
        runtime::sleep(std::time::Duration::from_millis(1)).await;
        connection.close(0u32.into(), b"");
        Ok::<(), Failure>(())
    });
    match world.run_until_done(task) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => panic!("{error}"),
        Err(error) => panic!("{error}"),
    }
}
