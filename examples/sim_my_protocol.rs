//! A test of a custom protocol, in a network of 50 ms and 5 % loss, with 100 seeds:
//! `cargo run -p courser-sim --example sim_my_protocol`.
//!
//! The protocol is a counter to which clients add. Server and client below would run on tokio without a change;
//! only `run` is specific to the simulator.

use std::time::Duration;

use courser::{ClientConfig, Endpoint, ServerConfig, runtime};
use courser_sim::{World, identity::identity};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

async fn server() -> Result {
    let config = ServerConfig::with_identity(&identity())?.alpn(["count"]);
    let endpoint = Endpoint::server(config, "10.0.0.2:4433".parse()?)?;
    let incoming = endpoint.accept().await.ok_or("closed")?;
    let (connection, mut sum) = (incoming.await?, 0);
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let mut number = [0; 8];
        receive.read_exact(&mut number).await?;
        sum += u64::from_be_bytes(number);
        send.write_all(&sum.to_be_bytes()).await?;
    }
    Ok(())
}

async fn client() -> Result<(u64, Duration)> {
    let (begin, mut sum) = (runtime::now(), [0; 8]);
    let config = ClientConfig::with_roots([identity().certificate()])?.alpn(["count"]);
    let endpoint = Endpoint::client("10.0.0.1:0".parse()?)?;
    let connecting = endpoint.connect_with(config, "10.0.0.2:4433".parse()?, "localhost")?;
    let connection = runtime::timeout(Duration::from_secs(10), connecting).await??;
    for number in 1..=20u64 {
        let (mut send, mut receive) = connection.open_bi().await?;
        send.write_all(&number.to_be_bytes()).await?;
        receive.read_exact(&mut sum).await?;
        runtime::sleep(Duration::from_millis(10)).await;
    }
    Ok((u64::from_be_bytes(sum), runtime::now() - begin))
}

fn run(seed: u64) -> Result<(Duration, u64)> {
    let mut world = World::new(seed);
    let near = world.machine("client", [10, 0, 0, 1]);
    let far = world.machine("server", [10, 0, 0, 2]);
    world.join_machines(&near, &far, &"50ms,5%".parse()?);
    far.spawn(server());
    let (sum, time) = world.run_until_done(near.spawn(client()))??;
    assert_eq!(sum, 210, "seed {seed}");
    assert!(time < Duration::from_secs(20), "seed {seed}: {time:?}");
    Ok((time, world.digest()))
}

fn main() -> Result {
    let mut times = (0..100)
        .map(|seed| run(seed).map(|(time, _)| time))
        .collect::<Result<Vec<_>>>()?;
    times.sort();
    println!(
        "20 answers in {:?} at best, {:?} as a rule, {:?} at worst",
        times[0], times[50], times[99]
    );
    assert_eq!(run(7)?, run(7)?, "one seed, one run");
    Ok(())
}
