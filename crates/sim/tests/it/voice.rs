//! The example of a call, on links with loss and jitter.

#[path = "../../../../examples/voice/call.rs"]
mod call;

use std::time::Duration;

use courser::{ClientConfig, Endpoint, ServerConfig};
use courser_sim::World;
use courser_sim::identity::identity;
use courser_sim::replay::for_each_seed;

use self::call::Quality;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

async fn listener() -> Result<Quality> {
    let config = ServerConfig::with_identity(&identity())?.alpn(["voice"]);
    let endpoint = Endpoint::server(config, "10.0.0.2:443".parse()?)?;
    let connection = endpoint.accept().await.ok_or("closed")?.await?;
    Ok(call::listen(&connection).await)
}

async fn speaker() -> Result<u64> {
    let config = ClientConfig::with_roots([identity().certificate()])?.alpn(["voice"]);
    let endpoint = Endpoint::client("10.0.0.1:0".parse()?)?;
    let connecting = endpoint.connect_with(config, "10.0.0.2:443".parse()?, "localhost")?;
    let connection = connecting.await?;
    let expired = call::speak(&connection, 500).await?;
    connection.close(0u32.into(), b"goodbye");
    Ok(expired)
}

/// Runs a call of ten seconds.
fn run(seed: u64, link: &str) -> Quality {
    let mut world = World::new(seed);
    let near = world.machine("speaker", [10, 0, 0, 1]);
    let far = world.machine("listener", [10, 0, 0, 2]);
    world.join_machines(&near, &far, &link.parse().expect("a link"));
    let heard = far.spawn(listener());
    near.spawn(speaker());
    let heard = world.run_until_done(heard).expect("it ends");
    heard.expect("the speaker connects")
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn perfect_link_has_neither_loss_nor_jitter() {
    let heard = run(1, "40ms");
    assert_eq!((heard.played, heard.late, heard.lost()), (500, 0, 0));
    assert!(heard.jitter < MS && heard.arrival_jitter < MS, "{heard:?}");
    // One number in 160 is skipped.
    assert!(heard.packets_missing <= 10, "{heard:?}");
}

#[test]
fn loss_in_packets_is_the_loss_of_frames() {
    for_each_seed(10, |seed| {
        let heard = run(seed, "40ms,5%");
        assert!((5..50).contains(&heard.lost()), "{heard:?}");
        // The connection also sends acknowledgements, probes and datagrams without sound.
        let missing = heard.packets_missing;
        assert!(missing >= u64::from(heard.lost()), "{heard:?}");
        assert!(missing <= u64::from(heard.lost()) + 30, "{heard:?}");
    });
}

/// A uniform delay of up to 30 ms deviates by 10 ms from one frame to the next, and by 10.6 ms from the mean.
#[test]
fn both_kinds_of_jitter_agree_for_a_constant_interval() {
    for_each_seed(10, |seed| {
        let heard = run(seed, "40ms,reorder=90%:30ms");
        assert_eq!(heard.lost(), 0, "{heard:?}");
        let (real, by_arrival) = (heard.jitter, heard.arrival_jitter);
        assert!(real > 5 * MS && real < 20 * MS, "{heard:?}");
        assert!(by_arrival > real / 2 && by_arrival < real * 2, "{heard:?}");
    });
}
