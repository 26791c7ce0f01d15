//! Programs for the async API whose client moves: to other sockets, and with its network.

use std::net::IpAddr;
use std::time::Duration;

use crate::common::for_each_seed;
use courser::runtime;
use courser::{ClientConfig, Connection, Endpoint, ServerConfig};
use courser_sim::World;
use courser_sim::identity::{SERVER_NAME, identity};

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));
const BYTES: usize = 2_000_000;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The change of a client's address during its exchanges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    /// The client binds a new socket and moves to it.
    Socket,
    /// The network of the client changes, and the client gets a hint.
    Network,
    /// The network of the client changes, and the client gets no hint.
    Unseen,
}

/// The duration of the exchanges, and the packets lost meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Outcome {
    took: Duration,
    packets_lost: u64,
}

fn pattern() -> Vec<u8> {
    (0..BYTES).map(|at| (at * 31 % 251) as u8).collect()
}

/// Echoes each stream.
async fn serve(migration: bool) -> Result<(), Failure> {
    let config = ServerConfig::with_identity(&identity())?
        .alpn(["echo"])
        .migration(migration);
    let endpoint = Endpoint::server(config, (SERVER, 4433).into())?;
    while let Some(incoming) = endpoint.accept().await {
        let connection = incoming.await?;
        runtime::spawn(async move {
            while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                let data = receive.read_to_end(BYTES).await?;
                send.write_all(&data).await?;
                send.finish()?;
            }
            Ok::<(), Failure>(())
        });
    }
    Ok(())
}

async fn ask(connection: &Connection) -> Result<(), Failure> {
    let (mut send, mut receive) = connection.open_bi().await?;
    let question = pattern();
    send.write_all(&question).await?;
    send.finish()?;
    let answer = receive.read_to_end(BYTES).await?;
    assert_eq!(answer.len(), question.len());
    assert!(answer == question, "the echo differs");
    Ok(())
}

/// Echoes while the address changes `times` times, at intervals of `pause`.
async fn client(change: Change, pause: Duration, times: usize) -> Result<Outcome, Failure> {
    let config = ClientConfig::with_roots([identity().certificate()])?.alpn(["echo"]);
    let endpoint = Endpoint::client((CLIENT, 0).into())?;
    let address = (SERVER, 4433).into();
    let connection = endpoint.connect_with(config, address, SERVER_NAME)?.await?;
    let begin = runtime::now();
    let moving = endpoint.clone();
    let moves = runtime::spawn(async move {
        for _ in 0..times {
            runtime::sleep(pause).await;
            match change {
                Change::Socket => moving.rebind_to((CLIENT, 0).into())?,
                Change::Network => moving.network_changed(),
                Change::Unseen => {}
            }
        }
        Ok::<(), Failure>(())
    });
    for _ in 0..2 {
        ask(&connection).await?;
    }
    let outcome = Outcome {
        took: runtime::now() - begin,
        packets_lost: connection.stats().packets_lost,
    };
    moves.await??;
    // A connection that has moved often still works.
    ask(&connection).await?;
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(outcome)
}

fn run(seed: u64, link: &str, change: Change, pause: Duration, times: usize) -> Outcome {
    let mut world = World::new(seed);
    let near = world.machine("client", CLIENT);
    let far = world.machine("server", SERVER);
    world.join_machines(
        &near,
        &far,
        &link.parse().expect("the link specification is valid"),
    );
    far.spawn(serve(true));
    match world.run_until_done(near.spawn(client(change, pause, times))) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => panic!("seed {seed}: {error}"),
        Err(error) => panic!("{error}"),
    }
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Without moves the echoes take 3.5 seconds.
#[test]
fn a_new_socket_every_half_second_adds_at_most_a_second() {
    let link = "20mbit,rtt=40ms,queue=2bdp";
    let alone = run(1, link, Change::Unseen, millis(500), 0);
    let moving = run(1, link, Change::Socket, millis(500), 6);
    let limit = alone.took + Duration::from_secs(1);
    assert!(moving.took < limit, "{moving:?}, alone {alone:?}");
}

#[test]
fn new_sockets_survive_loss_and_reordering() {
    for_each_seed(10, |seed| {
        let link = "20mbit,rtt=40ms,loss=2%,reorder=3%:10ms";
        let outcome = run(seed, link, Change::Socket, millis(400), 8);
        assert!(outcome.took < Duration::from_secs(60), "{outcome:?}");
    });
}

/// The address of the client changes at the NAT, and the client gets a hint at most half a second later.
#[test]
fn client_follows_a_network_change() {
    for_each_seed(5, |seed| {
        let link = "20mbit,rtt=40ms,rebind=addr:2s";
        let outcome = run(seed, link, Change::Network, millis(500), 10);
        assert!(outcome.took < Duration::from_secs(15), "{outcome:?}");
    });
}

/// A hint that is wrong costs a path validation and a new congestion window.
#[test]
fn hints_without_a_change_are_harmless() {
    let link = "20mbit,rtt=40ms,queue=2bdp";
    let alone = run(1, link, Change::Unseen, millis(300), 0);
    let hinted = run(1, link, Change::Network, millis(300), 20);
    let limit = alone.took + Duration::from_secs(2);
    assert!(hinted.took < limit, "{hinted:?}, alone {alone:?}");
}

/// The calls that hint at another network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hint {
    Endpoint,
    Connection,
    Nothing,
}

/// PATH_CHALLENGE and PING frames that a client sends in the first millisecond after a hint. It has
/// been silent before.
async fn hinted_client(hint: Hint) -> Result<(u64, u64), Failure> {
    let config = ClientConfig::with_roots([identity().certificate()])?.alpn(["echo"]);
    let endpoint = Endpoint::client((CLIENT, 0).into())?;
    let address = (SERVER, 4433).into();
    let connection = endpoint.connect_with(config, address, SERVER_NAME)?.await?;
    ask(&connection).await?;
    // All acknowledgements have arrived, and the search for the datagram size is over.
    runtime::sleep(Duration::from_secs(10)).await;
    let before = connection.stats().frames_sent;
    match hint {
        Hint::Endpoint => endpoint.network_changed(),
        Hint::Connection => connection.network_changed(),
        Hint::Nothing => {}
    }
    runtime::sleep(millis(1)).await;
    let after = connection.stats().frames_sent;
    ask(&connection).await?;
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    let challenges = after.path_challenge - before.path_challenge;
    Ok((challenges, after.ping - before.ping))
}

/// Without the hint, the client would detect the change with its next packet.
#[test]
fn a_hint_is_followed_by_a_probe_at_once() {
    for (migration, hint) in [
        (true, Hint::Endpoint),
        (true, Hint::Connection),
        (true, Hint::Nothing),
        (false, Hint::Endpoint),
        (false, Hint::Connection),
        (false, Hint::Nothing),
    ] {
        let mut world = World::new(1);
        let near = world.machine("client", CLIENT);
        let far = world.machine("server", SERVER);
        let link = "20mbit,rtt=40ms"
            .parse()
            .expect("the link specification is valid");
        world.join_machines(&near, &far, &link);
        far.spawn(serve(migration));
        let sent = world.run_until_done(near.spawn(hinted_client(hint)));
        let (challenges, pings) = sent.expect("the task ends").expect("the client succeeds");
        let context = format!("migration {migration}, {hint:?}: {challenges} and {pings}");
        match (hint, migration) {
            (Hint::Nothing, _) => assert_eq!((challenges, pings), (0, 0), "{context}"),
            // A server that forbids migration learns of a change from a PING.
            (_, false) => assert!(challenges == 0 && pings > 0, "{context}"),
            (_, true) => assert!(challenges > 0, "{context}"),
        }
    }
}
