//! Programs for the async API that limit the rate of one stream.

use std::net::IpAddr;
use std::time::Duration;

use crate::common::for_each_seed;
use courser::runtime;
use courser::{ClientConfig, Connection, Endpoint, Rate, ServerConfig};
use courser_sim::World;
use courser_sim::identity::{SERVER_NAME, identity};

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));
const SECONDS: u64 = 5;

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn serve() -> Result<(), Failure> {
    let config = ServerConfig::with_identity(&identity())?.alpn(["rates"]);
    let endpoint = Endpoint::server(config, (SERVER, 4433).into())?;
    let connection = endpoint.accept().await.ok_or("no client")?.await?;
    while let Ok(mut receive) = connection.accept_uni().await {
        runtime::spawn(async move {
            // The client resets it at the end.
            while let Ok(Some(_)) = receive.read_chunk(usize::MAX).await {}
        });
    }
    endpoint.wait_idle().await;
    Ok(())
}

/// Sends on a stream for some seconds and returns the bytes per second that have left.
async fn send(connection: Connection, rate: Option<Rate>) -> Result<u64, Failure> {
    let mut send = connection.open_uni().await?;
    send.set_max_send_rate(rate)?;
    let begin = runtime::now();
    let mut end = begin;
    while end < begin + Duration::from_secs(SECONDS) {
        send.write_all(&[7; 5000]).await?;
        end = runtime::now();
    }
    let sent = send.stats()?.sent;
    send.reset(0u32.into())?;
    let nanos = (end - begin).as_nanos();
    Ok(u64::try_from(u128::from(sent) * 1_000_000_000 / nanos)?)
}

/// Sends on two streams, the first of which is limited, and returns their rates.
async fn client(limit: u64) -> Result<[u64; 2], Failure> {
    let config = ClientConfig::with_roots([identity().certificate()])?.alpn(["rates"]);
    let endpoint = Endpoint::client((CLIENT, 0).into())?;
    let address = (SERVER, 4433).into();
    let connection = endpoint.connect_with(config, address, SERVER_NAME)?.await?;
    let limit = Rate::from_bytes_per_second(limit);
    let limited = runtime::spawn(send(connection.clone(), Some(limit)));
    let free = runtime::spawn(send(connection.clone(), None));
    let rates = [limited.await??, free.await??];
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(rates)
}

fn run(seed: u64, link: &str, limit: u64) -> [u64; 2] {
    let mut world = World::new(seed);
    let near = world.machine("client", CLIENT);
    let far = world.machine("server", SERVER);
    world.join_machines(
        &near,
        &far,
        &link.parse().expect("the link specification is valid"),
    );
    far.spawn(serve());
    match world.run_until_done(near.spawn(client(limit))) {
        Ok(Ok(rates)) => rates,
        Ok(Err(error)) => panic!("seed {seed}: {error}"),
        Err(error) => panic!("{error}"),
    }
}

fn assert_near(rate: u64, expected: u64) {
    assert!(
        (expected * 95 / 100..=expected * 105 / 100).contains(&rate),
        "{rate} of {expected}"
    );
}

/// The link carries 2.5 MB per second.
#[test]
fn limited_stream_meets_its_rate_within_five_percent_and_leaves_the_rest() {
    for limit in [50_000, 250_000, 1_000_000] {
        let [limited, free] = run(1, "20mbit,rtt=40ms,queue=2bdp,mtu=1500", limit);
        assert_near(limited, limit);
        let rest = 2_500_000 - limit;
        assert!(free > rest * 8 / 10, "{limit}: {free} of {rest}");
    }
}

#[test]
fn limited_stream_meets_its_rate_with_loss() {
    for_each_seed(5, |seed| {
        let [limited, _] = run(seed, "20mbit,rtt=20ms,loss=1%,mtu=1500", 100_000);
        assert_near(limited, 100_000);
    });
}

/// A limit above its share does not give a stream more than its share.
#[test]
fn limit_above_its_share_has_no_effect() {
    let [limited, free] = run(1, "20mbit,rtt=40ms,queue=2bdp,mtu=1500", 100_000_000);
    assert!(limited.abs_diff(free) < free / 5, "{limited}, {free}");
}
