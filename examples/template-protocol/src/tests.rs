//! The protocol on simulated networks. Time is virtual: a minute takes milliseconds.

use courser::{ClientConfig, ServerConfig};
use courser_sim::World;
use courser_sim::identity::identity;
use courser_sim::replay::for_each_seed;

use super::*;

async fn server() -> Result {
    let config = ServerConfig::with_identity(&identity())?.alpn([ALPN]);
    serve(Endpoint::server(config, "10.0.0.2:4433".parse()?)?).await;
    Ok(())
}

async fn client(questions: usize) -> Result<Duration> {
    let config = ClientConfig::with_roots([identity().certificate()])?.alpn([ALPN]);
    let endpoint = Endpoint::client("10.0.0.1:0".parse()?)?;
    let connecting = endpoint.connect_with(config, "10.0.0.2:4433".parse()?, "localhost")?;
    let (begin, connection) = (runtime::now(), connecting.await?);
    for number in 1..=questions {
        let answer = ask(&connection, &vec![7; 1000 * number]).await?;
        assert_eq!(answer, format!("{} bytes", 1000 * number));
    }
    Ok(runtime::now() - begin)
}

/// Runs client and server over a link, and returns the time that the client took.
fn run(seed: u64, link: &str) -> Result<Duration> {
    let mut world = World::new(seed);
    let near = world.machine("client", [10, 0, 0, 1]);
    let far = world.machine("server", [10, 0, 0, 2]);
    world.join_machines(&near, &far, &link.parse()?);
    far.spawn(server());
    world.run_until_done(near.spawn(client(10)))?
}

#[test]
fn answers_take_a_round_trip_each() {
    let time = run(1, "50ms").expect("it works");
    assert!(time < Duration::from_millis(1500), "{time:?}");
}

#[test]
fn loss_is_repaired() {
    for_each_seed(20, |seed| {
        run(seed, "10mbit,50ms,5%,queue=64k").expect("it works");
    });
}

/// Everything is lost from 300 ms on, for two seconds.
#[test]
fn outage_is_survived() {
    for_each_seed(5, |seed| {
        let time = run(seed, "50ms,blackhole=300ms:2s").expect("it works");
        assert!(time > Duration::from_secs(2), "{time:?}");
    });
}

#[test]
fn same_seed_gives_the_same_run() {
    let link = "10mbit,50ms,5%,queue=64k";
    let [first, second] = [run(7, link), run(7, link)].map(|time| time.expect("it works"));
    assert_eq!(first, second);
}
