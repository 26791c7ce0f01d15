//! Datagrams (RFC 9221) over links that lose, reorder, overflow and become narrower: the facade in
//! virtual time.

use std::time::Duration;

use bytes::Bytes;
use courser::{
    ClientConfig, Connection, DatagramFate, DatagramOptions, DatagramStats, Endpoint,
    SendDatagramError, ServerConfig, runtime,
};
use courser_sim::World;
use courser_sim::identity::identity;
use courser_sim::replay::for_each_seed;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const MS: Duration = Duration::from_millis(1);

/// The observations of a server: the numbers and arrival times of datagrams, and bytes of its
/// stream.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Seen {
    datagrams: Vec<(u32, Duration)>,
    stream: usize,
    stats: DatagramStats,
}

/// Reads everything until the client closes.
async fn server() -> Result<Seen> {
    let config = ServerConfig::with_identity(&identity())?.alpn(["test"]);
    let endpoint = Endpoint::server(config, "10.0.0.2:443".parse()?)?;
    let connection = endpoint.accept().await.ok_or("closed")?.await?;
    let begun = runtime::now();
    let streams = connection.clone();
    let stream = runtime::spawn(async move {
        let mut bytes = 0;
        if let Ok(mut receive) = streams.accept_uni().await {
            while let Ok(Some(chunk)) = receive.read_chunk(usize::MAX).await {
                bytes += chunk.len();
            }
        }
        bytes
    });
    let mut datagrams = Vec::new();
    while let Ok(data) = connection.read_datagram().await {
        let number = data
            .first_chunk()
            .map_or(0, |bytes| u32::from_be_bytes(*bytes));
        datagrams.push((number, runtime::now() - begun));
    }
    Ok(Seen {
        datagrams,
        stream: stream.await?,
        stats: connection.stats().datagrams,
    })
}

async fn connect() -> Result<Connection> {
    let config = ClientConfig::with_roots([identity().certificate()])?.alpn(["test"]);
    let endpoint = Endpoint::client("10.0.0.1:0".parse()?)?;
    let connecting = endpoint.connect_with(config, "10.0.0.2:443".parse()?, "localhost")?;
    Ok(connecting.await?)
}

fn numbered(number: u32, len: usize) -> Bytes {
    let mut data = number.to_be_bytes().to_vec();
    data.resize(len.max(4), 7);
    data.into()
}

/// Writes without end on its own stream.
fn bulk(connection: Connection) {
    runtime::spawn(async move {
        let mut send = connection.open_uni().await?;
        loop {
            send.write_chunk(Bytes::from(vec![1; 16 * 1024])).await?;
        }
        #[expect(unreachable_code, reason = "tells the type of the result")]
        Result::Ok(())
    });
}

/// Runs a client on a link. Returns its result and the observations of the server.
fn run<F, T>(seed: u64, link: &str, client: impl FnOnce(Connection) -> F) -> (T, Seen)
where
    F: Future<Output = Result<T>> + Send + 'static,
    T: Send + 'static,
{
    let mut world = World::new(seed);
    let near = world.machine("client", [10, 0, 0, 1]);
    let far = world.machine("server", [10, 0, 0, 2]);
    world.join_machines(
        &near,
        &far,
        &link.parse().expect("the link specification is valid"),
    );
    let seen = far.spawn(server());
    let connected = near.spawn(connect());
    let connection = world
        .run_until_done(connected)
        .expect("the world does not stall")
        .expect("the handshake completes");
    let client = client(connection.clone());
    let result = near.spawn(async move {
        let result = client.await;
        connection.close(0u32.into(), b"");
        result
    });
    let result = world
        .run_until_done(result)
        .expect("the world does not stall");
    let seen = world
        .run_until_done(seen)
        .expect("the world does not stall");
    (
        result.expect("the client succeeds"),
        seen.expect("the server succeeds"),
    )
}

/// Sends a datagram each 10 ms and follows each to its end.
async fn tick(
    connection: Connection,
    count: u32,
    options: DatagramOptions,
) -> Result<Vec<DatagramFate>> {
    let mut fates = Vec::new();
    for number in 0..count {
        let fate = connection.send_datagram_tracked(numbered(number, 100), options)?;
        fates.push(runtime::spawn(fate));
        runtime::sleep(10 * MS).await;
    }
    let mut told = Vec::new();
    for fate in fates {
        told.push(fate.await??);
    }
    Ok(told)
}

fn count(fates: &[DatagramFate], fate: DatagramFate) -> usize {
    fates.iter().filter(|other| **other == fate).count()
}

#[test]
fn reported_fate_of_each_datagram_is_correct() {
    for_each_seed(10, |seed| {
        let (fates, seen) = run(seed, "10mbit,30ms,5%", |connection| {
            tick(connection, 200, DatagramOptions::new())
        });
        let (acked, lost) = (
            count(&fates, DatagramFate::Acked),
            count(&fates, DatagramFate::Lost),
        );
        assert_eq!(acked + lost, 200);
        assert!((1..40).contains(&lost), "{lost}");
        for (number, fate) in (0..).zip(&fates) {
            let arrived = seen.datagrams.iter().filter(|(seen, _)| *seen == number);
            match (fate, arrived.count()) {
                (DatagramFate::Acked, 1) | (DatagramFate::Lost, 0) => {}
                // Datagrams are never retransmitted.
                other => panic!("{number}: {other:?}"),
            }
        }
    });
}

#[test]
fn reordered_and_copied_datagrams_arrive_at_most_once() {
    for_each_seed(10, |seed| {
        let link = "10mbit,30ms,reorder=20%:15ms,duplicate=10%";
        let (fates, seen) = run(seed, link, |connection| {
            tick(connection, 200, DatagramOptions::new())
        });
        let mut numbers: Vec<_> = seen.datagrams.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers.len(), 200, "nothing was lost on the way");
        assert!(!numbers.is_sorted(), "the link did reorder");
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 200);
        // Late datagrams may have been declared lost.
        assert!(count(&fates, DatagramFate::Acked) > 150);
    });
}

/// Datagrams and a stream share a link that is too narrow for both.
#[test]
fn datagrams_and_a_bulk_stream_do_not_starve_each_other() {
    let (sent, seen) = run(1, "8mbit,40ms,queue=100ms", |connection| async move {
        bulk(connection.clone());
        let begun = runtime::now();
        let mut number = 0;
        while runtime::now() - begun < 10_000 * MS {
            connection
                .send_datagram_wait(numbered(number, 1000))
                .await?;
            number += 1;
        }
        Ok(number)
    });
    let datagrams = 1000 * seen.datagrams.len();
    assert!(sent > 3000, "{sent}");
    let total = datagrams + seen.stream;
    assert!(total > 7_500_000, "{total} of 10 000 000");
    let share = datagrams as f64 / total as f64;
    assert!((0.4..0.6).contains(&share), "{share}");
}

/// A voice call beside an upload waits in the queue of the link, but not behind the upload's data
/// in the send buffer.
#[test]
fn datagrams_overtake_queued_stream_data() {
    let (fates, seen) = run(1, "8mbit,40ms,queue=50ms", |connection| async move {
        bulk(connection.clone());
        runtime::sleep(1000 * MS).await;
        tick(connection, 200, DatagramOptions::new()).await
    });
    assert!(seen.stream > 1_000_000, "{}", seen.stream);
    assert_eq!(count(&fates, DatagramFate::Dropped), 0);
    let gaps = seen.datagrams.windows(2).map(|pair| pair[1].1 - pair[0].1);
    let longest = gaps.max().expect("at least one datagram arrived");
    assert!(longest < 150 * MS, "{longest:?}");
}

/// 16 times the capacity of the link, each datagram useful for 30 ms.
#[test]
fn narrow_link_expires_old_datagrams_and_sends_new_ones() {
    let (fates, seen) = run(1, "1mbit,20ms,queue=20ms", |connection| async move {
        let options = DatagramOptions::new().max_age(30 * MS);
        let mut fates = Vec::new();
        for number in 0..2000 {
            let fate = connection.send_datagram_tracked(numbered(number, 1000), options)?;
            fates.push(runtime::spawn(fate));
            runtime::sleep(MS / 2).await;
        }
        let mut told = Vec::new();
        for fate in fates {
            told.push(fate.await??);
        }
        Ok(told)
    });
    let expired = count(&fates, DatagramFate::Expired);
    assert!(expired > 1000, "{expired}");
    assert!(!seen.datagrams.is_empty());
    let (newest, _) = seen
        .datagrams
        .last()
        .expect("at least one datagram arrived");
    assert!(*newest > 1900, "{newest}");
}

#[test]
fn full_queue_drops_the_oldest_datagram() {
    let (stats, seen) = run(1, "1mbit,20ms,queue=1000ms", |connection| async move {
        for number in 0..1000 {
            connection.send_datagram(numbered(number, 1000))?;
        }
        let stats = connection.stats().datagrams;
        runtime::sleep(5000 * MS).await;
        Ok(stats)
    });
    assert!(stats.unsent_dropped > 900, "{stats:?}");
    // The first went at once, and the last 64 waited (limit K27).
    let numbers: Vec<_> = seen.datagrams.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers[0], 0);
    let last: Vec<_> = (1000 - 64..1000).collect();
    assert!(numbers.ends_with(&last), "{numbers:?}");
}

/// RFC 9221 §5: a datagram that fits now may not fit later.
#[test]
fn largest_datagram_size_shrinks_with_the_path() {
    let link = "20mbit,20ms,mtu=1500,mtu@3s=1280";
    let (sizes, seen) = run(1, link, |connection| async move {
        let mut sizes = Vec::new();
        for number in 0..1000_u32 {
            let max = connection.max_datagram_size().ok_or("no datagrams")?;
            sizes.push(max);
            connection.send_datagram(numbered(number, max))?;
            let refused = connection.send_datagram(numbered(number, max + 1));
            assert!(matches!(refused, Err(SendDatagramError::TooLarge { .. })));
            runtime::sleep(10 * MS).await;
        }
        Ok(sizes)
    });
    let max_window = sizes.iter().max().copied();
    assert!(
        max_window.is_some_and(|size| (1400..1472).contains(&size)),
        "{max_window:?}"
    );
    let last = sizes.last().copied();
    assert!(
        last.is_some_and(|size| (1150..1252).contains(&size)),
        "{last:?}"
    );
    assert!(
        seen.datagrams
            .last()
            .expect("at least one datagram arrived")
            .0
            > 990,
        "datagrams still arrive"
    );
}

#[test]
fn equal_seeds_give_equal_runs() {
    let once = || {
        run(3, "10mbit,30ms,5%,reorder=5%:10ms", |connection| {
            tick(connection, 100, DatagramOptions::new())
        })
    };
    assert_eq!(once(), once());
}

/// Opens `count` connections that send nothing. Returns the packets that both machines have sent after 5 s and after
/// 20 s, and the sizes of datagrams at the client.
fn idle_connections(count: usize, link: &str, searches: bool) -> (u64, u64, Vec<u16>) {
    let transport = move || courser::TransportConfig {
        mtu_discovery: searches,
        ..courser::TransportConfig::default()
    };
    let mut world = World::new(1);
    let near = world.machine("client", [10, 0, 0, 1]);
    let far = world.machine("server", [10, 0, 0, 2]);
    world.join_machines(&near, &far, &link.parse().expect("a link"));
    far.spawn(async move {
        let config = ServerConfig::with_identity(&identity())?.alpn(["test"]);
        let endpoint = Endpoint::server(
            config.transport_config(transport()),
            "10.0.0.2:443".parse()?,
        )?;
        while let Some(incoming) = endpoint.accept().await {
            runtime::spawn(async move {
                incoming.await?.closed().await;
                Result::Ok(())
            });
        }
        Result::Ok(())
    });
    let connections = near.spawn(async move {
        let config = ClientConfig::with_roots([identity().certificate()])?.alpn(["test"]);
        let config = config.transport_config(transport());
        let endpoint = Endpoint::client("10.0.0.1:0".parse()?)?;
        let mut connections = Vec::new();
        for _ in 0..count {
            let address = "10.0.0.2:443".parse()?;
            let connecting = endpoint.connect_with(config.clone(), address, "localhost")?;
            connections.push(connecting.await?);
        }
        Result::Ok(connections)
    });
    let connections = world.run_until_done(connections).expect("they are there");
    let connections = connections.expect("no error");
    let sent = || near.network_counters().sent + far.network_counters().sent;
    world.run_for(Duration::from_secs(5)).expect("no stall");
    let soon = sent();
    world.run_for(Duration::from_secs(15)).expect("no stall");
    let mtu = |it: &Connection| it.stats().path.mtu;
    (soon, sent(), connections.iter().map(mtu).collect())
}

/// The search costs an idle connection a few packets once, and then nothing.
#[test]
fn idle_connections_send_a_few_probes_once() {
    const COUNT: usize = 100;
    let link = "20ms,mtu=1500";
    let (without, later, sizes) = idle_connections(COUNT, link, false);
    assert_eq!(without, later);
    assert_eq!(sizes, [1200; COUNT]);
    let (with, later, sizes) = idle_connections(COUNT, link, true);
    assert_eq!(with, later, "the search has ended");
    assert_eq!(sizes, [1472; COUNT]);
    // Three probes of each end, and their acknowledgements.
    let packets = (with - without) / COUNT as u64;
    assert!((6..=16).contains(&packets), "{packets} packets each");
}
