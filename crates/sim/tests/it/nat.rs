//! Two machines behind NATs that are connected over a relay look for a direct path: all pairs of kinds of NAT.
//! draft-seemann-quic-nat-traversal-02, in the variant of the field.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use courser::{
    AddressObservations, CandidateStats, ClientConfig, Connection, Endpoint, ServerConfig,
    TransportConfig, runtime,
};
use courser_sim::World;
use courser_sim::identity::{SERVER_NAME, identity};
use courser_sim::nat::{NatKind, Relay};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const RELAY: [u8; 4] = [198, 51, 100, 1];
const OBSERVER: [u8; 4] = [198, 51, 100, 2];
const CLIENT: [[u8; 4]; 2] = [[192, 168, 1, 2], [203, 0, 113, 10]];
const SERVER: [[u8; 4]; 2] = [[10, 1, 1, 2], [203, 0, 113, 20]];

fn for_client() -> SocketAddr {
    SocketAddr::from((RELAY, 4000))
}

fn for_server() -> SocketAddr {
    SocketAddr::from((RELAY, 4001))
}

fn observer() -> SocketAddr {
    SocketAddr::from((OBSERVER, 4433))
}

/// The local address of a machine: it has the public one without a NAT.
fn local(addresses: [[u8; 4]; 2], kind: NatKind) -> IpAddr {
    addresses[usize::from(kind == NatKind::None)].into()
}

fn transport() -> TransportConfig {
    TransportConfig {
        max_paths: 4,
        max_candidates: 8,
        address_observations: AddressObservations::Receive,
        ..TransportConfig::default()
    }
}

fn client_config() -> Result<ClientConfig, Failure> {
    let config = ClientConfig::with_roots([identity().certificate()])?;
    Ok(config.alpn(["nat"]).transport_config(transport()))
}

fn server_config(transport: TransportConfig) -> Result<ServerConfig, Failure> {
    let config = ServerConfig::with_identity(&identity())?;
    Ok(config.alpn(["nat"]).transport_config(transport))
}

/// Tells each client its address.
async fn observe() -> Result<(), Failure> {
    let config = server_config(TransportConfig {
        address_observations: AddressObservations::Provide,
        ..TransportConfig::default()
    })?;
    let endpoint = Endpoint::server(config, observer())?;
    while let Some(incoming) = endpoint.accept().await {
        let connection = incoming.await?;
        runtime::spawn(async move { connection.closed().await });
    }
    Ok(())
}

/// Returns the address of the endpoint as the observer sees it.
async fn observed(endpoint: &Endpoint) -> Result<SocketAddr, Failure> {
    let connecting = endpoint.connect_with(client_config()?, observer(), SERVER_NAME)?;
    let connection = connecting.await?;
    let address = connection.observed_address_changed(None).await?;
    connection.close(0u32.into(), b"");
    Ok(address)
}

/// Registers at the relay, offers its addresses, and echoes.
async fn serve(kind: NatKind) -> Result<(), Failure> {
    let local = SocketAddr::from((local(SERVER, kind), 4433));
    let endpoint = Endpoint::server(server_config(transport())?, local)?;
    let address = observed(&endpoint).await?;
    // The relay learns the address of the server from a packet that nobody answers.
    drop(endpoint.connect_with(client_config()?, for_server(), SERVER_NAME)?);
    let connection = endpoint.accept().await.ok_or("closed")?.await?;
    connection.offer_candidate(address)?;
    if local != address {
        connection.offer_candidate(local)?;
    }
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let data = receive.read_to_end(1 << 20).await?;
        send.write_all(&data).await?;
        send.finish()?;
    }
    Ok(())
}

/// The result of a client.
#[derive(Debug)]
struct Outcome {
    /// The time from the offer to the open direct path, if there was one.
    direct_after: Option<Duration>,
    stats: CandidateStats,
}

async fn echo(connection: &Connection, len: usize) -> Result<(), Failure> {
    let (mut send, mut receive) = connection.open_bi().await?;
    let data = vec![7; len];
    send.write_all(&data).await?;
    send.finish()?;
    assert_eq!(receive.read_to_end(1 << 20).await?, data);
    Ok(())
}

async fn client(kind: NatKind, patience: Duration) -> Result<Outcome, Failure> {
    let endpoint = Endpoint::client((local(CLIENT, kind), 0).into())?;
    let address = observed(&endpoint).await?;
    // The server registers meanwhile.
    runtime::sleep(Duration::from_secs(1)).await;
    let connecting = endpoint.connect_with(client_config()?, for_client(), SERVER_NAME)?;
    let connection = connecting.await?;
    let begin = runtime::now();
    connection.offer_candidate(address)?;
    let here = SocketAddr::from((local(CLIENT, kind), address.port()));
    if here != address {
        connection.offer_candidate(here)?;
    }
    let direct_after = tokio::select! {
        path = connection.direct_path() => {
            path?;
            Some(runtime::now() - begin)
        }
        () = runtime::sleep(patience) => None,
    };
    echo(&connection, 1000).await?;
    if direct_after.is_some() {
        runtime::sleep(Duration::from_secs(2)).await;
        assert!(
            connection
                .direct_addresses()
                .iter()
                .any(|it| it.is_preferred)
        );
        echo(&connection, 1 << 20).await?;
    }
    let stats = connection.candidate_stats();
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(Outcome {
        direct_after,
        stats,
    })
}

/// Runs a pair. Returns the outcome and the bytes that the relay has forwarded.
fn run(seed: u64, of_client: NatKind, of_server: NatKind, patience: Duration) -> (Outcome, u64) {
    let mut world = World::new(seed);
    let [private, public] = CLIENT.map(IpAddr::from);
    let (near, near_id) = world.machine_behind("client", private, public, of_client);
    let [private, public] = SERVER.map(IpAddr::from);
    let (far, far_id) = world.machine_behind("server", private, public, of_server);
    let relay = world.add(
        "relay",
        RELAY.into(),
        Relay::new(for_client(), for_server()),
    );
    let third = world.machine("observer", OBSERVER);
    let third_id = world.id_of(&third);
    for id in [near_id, far_id] {
        for public in [relay, third_id] {
            world.connect(id, public, &"20ms".parse().expect("a link"));
        }
    }
    world.connect(near_id, far_id, &"10ms".parse().expect("a link"));
    third.spawn(observe());
    far.spawn(serve(of_server));
    let done = world.run_until_done(near.spawn(client(of_client, patience)));
    let outcome = match done {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => panic!("{of_client:?}, {of_server:?}, seed {seed}: {error}"),
        Err(error) => panic!("{of_client:?}, {of_server:?}: {error}"),
    };
    let forwarded = world.node::<Relay>(relay).map_or(0, Relay::forwarded);
    (outcome, forwarded)
}

/// Returns true if a direct path exists without guessing ports.
fn is_possible(of_client: NatKind, of_server: NatKind) -> bool {
    use NatKind::{PortRestricted, Symmetric};
    !matches!(
        (of_client, of_server),
        (Symmetric, Symmetric | PortRestricted) | (PortRestricted, Symmetric)
    )
}

/// Acceptance N-1, N-3, N-4: 22 of 25 pairs find a direct path. The relay has 80 ms of round trip, the direct path 20 ms.
#[test]
fn all_pairs_of_nats_but_three_find_a_direct_path() {
    let mut direct = 0;
    for of_client in NatKind::ALL {
        for of_server in NatKind::ALL {
            let (outcome, forwarded) = run(1, of_client, of_server, Duration::from_secs(20));
            println!("{of_client:?} {of_server:?} {outcome:?}, {forwarded} bytes over the relay");
            let is_direct = outcome.direct_after.is_some();
            assert_eq!(
                is_direct,
                is_possible(of_client, of_server),
                "{of_client:?}, {of_server:?}"
            );
            direct += usize::from(is_direct);
            if let Some(after) = outcome.direct_after {
                let limit = Duration::from_millis(2 * 80 + 20);
                assert!(after <= limit, "{of_client:?}, {of_server:?}: {after:?}");
                // The echo of 1 MiB took the direct path.
                assert!(forwarded < 60_000, "{forwarded} bytes over the relay");
            }
        }
    }
    assert_eq!(direct, 22);
}

/// Ends that never find a direct path stay on the relay and send few probes.
#[test]
fn pair_without_a_direct_path_is_quiet() {
    let minute = Duration::from_secs(60);
    for seed in 1..5 {
        let (outcome, _) = run(seed, NatKind::Symmetric, NatKind::Symmetric, minute);
        assert_eq!(outcome.direct_after, None);
        let stats = outcome.stats;
        assert!(stats.probes_sent <= 72 && stats.rounds <= 5, "{stats:?}");
    }
}
