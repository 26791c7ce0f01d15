//! The example of a VPN, on links that lose packets, are narrow, or become so.

#[path = "../../../../examples/vpn/hosts.rs"]
mod hosts;
#[path = "../../../../examples/vpn/packets.rs"]
mod packets;
#[path = "../../../../examples/vpn/tunnel.rs"]
mod tunnel;

use courser::{ClientConfig, Connection, Endpoint, ServerConfig};
use courser_sim::World;
use courser_sim::identity::identity;
use courser_sim::replay::for_each_seed;

use self::hosts::Report;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

async fn server() -> Result<tunnel::Sent> {
    let config = ServerConfig::with_identity(&identity())?.alpn(["tunnel"]);
    let endpoint = Endpoint::server(config, "10.0.0.2:443".parse()?)?;
    let connection = endpoint.accept().await.ok_or("closed")?.await?;
    Ok(hosts::far(connection).await)
}

async fn connect() -> Result<Connection> {
    let config = ClientConfig::with_roots([identity().certificate()])?.alpn(["tunnel"]);
    let endpoint = Endpoint::client("10.0.0.1:0".parse()?)?;
    let connecting = endpoint.connect_with(config, "10.0.0.2:443".parse()?, "localhost")?;
    Ok(connecting.await?)
}

/// Sends 200 packets of 1280 bytes through the tunnel, and returns what the host saw.
fn run(seed: u64, link: &str) -> Report {
    let mut world = World::new(seed);
    let near = world.machine("client", [10, 0, 0, 1]);
    let far = world.machine("server", [10, 0, 0, 2]);
    world.join_machines(&near, &far, &link.parse().expect("a link"));
    far.spawn(server());
    let report = near.spawn(async { Result::Ok(hosts::near(connect().await?, 200).await) });
    let report = world.run_until_done(report).expect("it ends");
    report.expect("the client connects")
}

#[test]
fn packets_of_1280_bytes_are_whole_once_the_path_is_known() {
    for_each_seed(5, |seed| {
        let report = run(seed, "20ms,mtu=1500");
        assert_eq!(report.echoed, 200, "{report:?}");
        assert!(report.sent.halved < 40, "{report:?}");
        assert_eq!(report.reported_mtu, Some(1280));
    });
}

#[test]
fn narrow_path_carries_them_in_halves() {
    for_each_seed(5, |seed| {
        let report = run(seed, "20ms,mtu=1280");
        assert_eq!((report.sent.whole, report.echoed), (0, 200), "{report:?}");
    });
}

#[test]
fn loss_costs_packets_and_nothing_else() {
    for_each_seed(10, |seed| {
        let report = run(seed, "20ms,2%,mtu=1400");
        assert!(report.echoed >= 170, "{report:?}");
    });
}

#[test]
fn path_that_becomes_narrow_is_noticed() {
    for_each_seed(5, |seed| {
        let report = run(seed, "20ms,mtu=1500,mtu@1s=1290");
        assert!(
            report.sent.whole > 20 && report.sent.halved > 50,
            "{report:?}"
        );
        assert!(report.echoed >= 130, "{report:?}");
    });
}
