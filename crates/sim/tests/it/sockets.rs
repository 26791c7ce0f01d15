//! Programs for the async API on machines with faulty sockets: errors about datagrams must not end
//! a connection or cause a busy loop.

use std::net::IpAddr;
use std::time::Duration;

use crate::common::for_each_seed;
use courser::runtime;
use courser::{ClientConfig, Connection, Endpoint, ServerConfig};
use courser_sim::World;
use courser_sim::identity::{SERVER_NAME, identity};
use courser_sim::link::Probability;
use courser_sim::machine::{Machine, SocketError, SocketFaults};

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));
const BYTES: usize = 200_000;
const LINK: &str = "20mbit,rtt=40ms,queue=2bdp";

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn percent(percent: u32) -> Probability {
    Probability::from_percent(percent)
}

/// The faults last from the first packet of the handshake on for this time.
fn lasting(seconds: u64) -> SocketFaults {
    SocketFaults {
        ends: Some(Duration::from_secs(seconds)),
        ..SocketFaults::default()
    }
}

fn pattern() -> Vec<u8> {
    (0..BYTES).map(|at| (at * 31 % 251) as u8).collect()
}

/// Echoes each stream.
async fn serve() -> Result<(), Failure> {
    let config = ServerConfig::with_identity(&identity())?.alpn(["echo"]);
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
    assert_eq!(answer, question);
    Ok(())
}

/// Runs two echoes with a pause between them. Returns their duration with the handshake.
async fn client() -> Result<Duration, Failure> {
    let begin = runtime::now();
    let config = ClientConfig::with_roots([identity().certificate()])?.alpn(["echo"]);
    let endpoint = Endpoint::client((CLIENT, 0).into())?;
    let address = (SERVER, 4433).into();
    let connection = endpoint.connect_with(config, address, SERVER_NAME)?.await?;
    for _ in 0..2 {
        ask(&connection).await?;
    }
    let took = runtime::now() - begin;
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(took)
}

/// The result of a run with faulty sockets at one end.
struct Outcome {
    took: Duration,
    /// Polls of tasks on both machines.
    polls: u64,
}

fn run(seed: u64, link: &str, faults: [SocketFaults; 2]) -> Outcome {
    let mut world = World::new(seed);
    let [at_client, at_server] = faults;
    let near = world.machine("client", CLIENT);
    let far = world.machine("server", SERVER);
    near.set_socket_faults(at_client);
    far.set_socket_faults(at_server);
    world.join_machines(
        &near,
        &far,
        &link.parse().expect("the link specification is valid"),
    );
    far.spawn(serve());
    let done = world.run_until_done(near.spawn(client()));
    let took = match done {
        Ok(Ok(took)) => took,
        Ok(Err(error)) => panic!("seed {seed}: {error}"),
        Err(error) => panic!("{error}"),
    };
    let polls = [&near, &far].map(Machine::polls).iter().sum();
    Outcome { took, polls }
}

/// The same faults at the client, at the server, and at both.
fn assert_completes_with_faults_at_each_end(seed: u64, faults: &SocketFaults, limit: Duration) {
    let none = SocketFaults::default;
    for faults in [
        [faults.clone(), none()],
        [none(), faults.clone()],
        [faults.clone(), faults.clone()],
    ] {
        let Outcome { took, polls } = run(seed, LINK, faults.clone());
        assert!(took < limit, "{faults:?}: {took:?}, at most {limit:?}");
        // A busy loop would be visible: there are some hundreds of packets.
        assert!(polls < 20_000, "{faults:?}: {polls} polls");
    }
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[test]
fn transfer_without_faults_takes_a_second() {
    let none = SocketFaults::default;
    let Outcome { took, polls } = run(1, LINK, [none(), none()]);
    assert!(took < seconds(1), "{took:?}");
    assert!(polls < 2000, "{polls}");
}

/// EPERM of a firewall, ENOBUFS of a device, EHOSTUNREACH, ENETUNREACH and ECONNREFUSED of ICMP,
/// EIO, EINTR (F19, F34, F37 to F39): some batches are lost.
#[test]
fn send_errors_are_losses() {
    for error in SocketError::ALL {
        for_each_seed(2, |seed| {
            let faults = SocketFaults {
                failing_sends: percent(10),
                send_errors: vec![error],
                ..lasting(20)
            };
            assert_completes_with_faults_at_each_end(seed, &faults, seconds(20));
        });
    }
}

/// F38: for two seconds all sends are refused, and then none.
#[test]
fn connection_survives_a_firewall_that_opens_after_two_seconds() {
    let faults = SocketFaults {
        failing_sends: percent(100),
        send_errors: vec![SocketError::NotPermitted],
        ..lasting(2)
    };
    assert_completes_with_faults_at_each_end(1, &faults, seconds(9));
}

/// F33, from a microsecond to five seconds. Not from the first packet on: several of the longest in
/// a row are equivalent to a client that vanished during the handshake (limit K12).
#[test]
fn senders_wait_for_full_sockets_without_a_busy_loop() {
    for micros in [1, 100, 10_000, 1_000_000, 5_000_000] {
        let faults = SocketFaults {
            full_sends: percent(20),
            full_for: Duration::from_micros(micros),
            begins: Duration::from_millis(150),
            ..lasting(6)
        };
        assert_completes_with_faults_at_each_end(1, &faults, seconds(40));
    }
}

/// F39, F41: a call sends a part of a batch, and the next call sends the rest.
#[test]
fn short_sends_lose_nothing() {
    for_each_seed(3, |seed| {
        let faults = SocketFaults {
            short_sends: percent(100),
            ..lasting(60)
        };
        assert_completes_with_faults_at_each_end(seed, &faults, seconds(1));
    });
}

/// F36: the search for a larger MTU fails, but not the connection.
#[test]
fn too_large_datagrams_are_lost_probes() {
    let faults = SocketFaults {
        largest: Some(1252),
        ..SocketFaults::default()
    };
    assert_completes_with_faults_at_each_end(1, &faults, seconds(2));
}

/// F19, F40: ICMP messages are returned as errors of receive calls, correct or forged.
#[test]
fn icmp_messages_do_not_end_a_connection() {
    for error in SocketError::ALL {
        let faults = SocketFaults {
            failing_receives: percent(30),
            receive_errors: vec![error],
            ..SocketFaults::default()
        };
        assert_completes_with_faults_at_each_end(1, &faults, seconds(1));
    }
}

/// F44: the interface is down for three seconds, in the middle of a transfer or before it begins.
#[test]
fn lost_address_costs_only_its_downtime() {
    for begins in [0, 100, 300] {
        let begins = Duration::from_millis(begins);
        let faults = SocketFaults {
            address_is_gone: true,
            begins,
            ends: Some(begins + seconds(3)),
            ..SocketFaults::default()
        };
        let none = SocketFaults::default;
        for faults in [[faults.clone(), none()], [none(), faults]] {
            let Outcome { took, .. } = run(1, LINK, faults.clone());
            assert!(took < seconds(12), "{faults:?}: {took:?}");
        }
    }
}

/// F64: all faults at once, on a link that also loses packets.
#[test]
fn connection_survives_all_socket_faults_at_once() {
    for_each_seed(10, |seed| {
        let faults = SocketFaults {
            failing_sends: percent(5),
            send_errors: SocketError::ALL.to_vec(),
            full_sends: percent(5),
            full_for: Duration::from_millis(30),
            short_sends: percent(30),
            failing_receives: percent(10),
            receive_errors: SocketError::ALL.to_vec(),
            ..lasting(30)
        };
        let link = "20mbit,rtt=40ms,queue=2bdp,1%";
        let Outcome { took, .. } = run(seed, link, [faults.clone(), faults]);
        assert!(took < seconds(30), "{took:?}");
    });
}

/// The seed determines the decisions of the machine, so a run can be repeated.
#[test]
fn faults_repeat_with_their_seed() {
    let fingerprint = |seed| {
        let faults = SocketFaults {
            failing_sends: percent(10),
            send_errors: SocketError::ALL.to_vec(),
            ..SocketFaults::default()
        };
        run(seed, LINK, [faults.clone(), faults]).took
    };
    assert_eq!(fingerprint(5), fingerprint(5));
    assert_ne!(fingerprint(5), fingerprint(6));
}
