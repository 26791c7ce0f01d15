//! Tests several shards of one endpoint: datagrams that arrive at any of them, and common limits.

use courser_wire::{ConnectionId, Direction};

use super::*;
use crate::build::transmit::TransmitBuffer;
use crate::cid::{ConnectionIdError, ConnectionIdGenerator, RandomIdGenerator};
use crate::config::ClientConfig;
use crate::rng::Rng;
use crate::testing::{client_address, server_address, steady};

/// Bytes that a client sends on a stream.
const BYTES: usize = 30_000;

/// The shards of an endpoint, and the bytes that it has read.
struct Group {
    shards: Vec<Endpoint>,
    address: SocketAddr,
    handles: Vec<(usize, ConnectionHandle)>,
    read: usize,
    lost: Vec<ConnectionError>,
}

impl Group {
    fn new(config: EndpointConfig, is_server: bool, count: usize, seed: u8) -> Self {
        let server = Arc::new(Setup::default().server);
        let server = is_server.then_some(server);
        Self {
            shards: Endpoint::shards(config, server, [seed; 32], count),
            address: if is_server {
                server_address()
            } else {
                client_address()
            },
            handles: Vec::new(),
            read: 0,
            lost: Vec::new(),
        }
    }

    fn stats(&self) -> EndpointStats {
        let mut sum = self.shards[0].stats();
        self.shards[1..].iter().for_each(|it| sum += it.stats());
        sum
    }

    /// Accepts clients, reads events and streams, and returns what is sent.
    fn drive(&mut self, now: Time) -> Vec<Datagram> {
        let mut buffer = TransmitBuffer::new(16);
        let mut sent = Vec::new();
        for shard in 0..self.shards.len() {
            while let Some(incoming) = self.shards[shard].poll_incoming() {
                if let Ok(handle) = self.shards[shard].accept(now, incoming, None) {
                    self.handles.push((shard, handle));
                }
            }
            while let Some(handle) = self.shards[shard].next_ready() {
                self.on_ready(shard, handle);
                let endpoint = &mut self.shards[shard];
                while let Some(transmit) = endpoint.poll_transmit(now, handle, &mut buffer) {
                    sent.extend(Datagram::split(&transmit, buffer.bytes(), self.address));
                }
            }
            while let Some(transmit) = self.shards[shard].poll_stateless_transmit(&mut buffer) {
                sent.extend(Datagram::split(&transmit, buffer.bytes(), self.address));
            }
        }
        sent
    }

    fn on_ready(&mut self, shard: usize, handle: ConnectionHandle) {
        let endpoint = &mut self.shards[shard];
        let Some(connection) = endpoint.connection_mut(handle) else {
            return;
        };
        while let Some(event) = connection.poll_event() {
            if let Event::Lost(error) = event {
                self.lost.push(error);
            }
        }
        let streams = connection.streams();
        let mut bytes = [0; 4096];
        while let Some(id) = streams.accept(Direction::Unidirectional) {
            // Streams are read to their end by the rounds of the test.
            assert!(matches!(streams.read(id, &mut bytes[..0]), Ok(_) | Err(_)));
        }
        if connection.side().is_server() {
            let id = courser_wire::StreamId::new(
                courser_base::Side::Client,
                Direction::Unidirectional,
                0,
            );
            while let Ok(Some(count)) = connection.streams().read(id, &mut bytes) {
                self.read += count;
            }
        }
        if endpoint
            .connection(handle)
            .is_some_and(Connection::is_drained)
        {
            endpoint.release(handle);
        }
    }
}

/// Two ends without delay between them. The test chooses the shard at which each datagram arrives.
struct Net {
    now: Time,
    client: Group,
    server: Group,
    rng: Rng,
    /// True if datagrams arrive at the shards in turn instead of at random ones.
    in_order: bool,
}

impl Net {
    fn new(client: Group, server: Group) -> Self {
        Self {
            now: Time::ZERO + Duration::from_secs(1),
            client,
            server,
            rng: Rng::new([9; 32]),
            in_order: false,
        }
    }

    fn connect(&mut self, shard: usize) {
        let mut config = ClientConfig::new(Setup::default().client_tls);
        config.transport = Arc::new(steady());
        let endpoint = &mut self.client.shards[shard];
        let handle = endpoint.connect(self.now, &config, server_address(), "localhost");
        self.client.handles.push((shard, handle.expect("valid")));
    }

    /// Has each client write a stream.
    fn write(&mut self) {
        for (shard, handle) in self.client.handles.clone() {
            let endpoint = &mut self.client.shards[shard];
            let streams = endpoint.connection_mut(handle).expect("open").streams();
            let id = streams.open(Direction::Unidirectional).expect("allowed");
            assert_eq!(streams.write(id, &[7; BYTES]), Ok(BYTES));
            streams.finish(id).expect("open");
            endpoint.mark_ready(handle);
        }
    }

    fn close(&mut self) {
        for (shard, handle) in self.client.handles.clone() {
            if let Some(connection) = self.client.shards[shard].connection_mut(handle) {
                connection.close(self.now, 0, b"");
                self.client.shards[shard].mark_ready(handle);
            }
        }
    }

    /// Runs for a time in which nothing is lost.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += Duration::from_millis(5);
            for shard in self.client.shards.iter_mut().chain(&mut self.server.shards) {
                shard.handle_timeout(self.now);
            }
            for _ in 0..1000 {
                let to_server = self.client.drive(self.now);
                let to_client = self.server.drive(self.now);
                if to_server.is_empty() && to_client.is_empty() {
                    break;
                }
                to_server.into_iter().for_each(|it| self.deliver(it, true));
                to_client.into_iter().for_each(|it| self.deliver(it, false));
            }
        }
    }

    fn deliver(&mut self, mut datagram: Datagram, to_server: bool) {
        let group = match to_server {
            true => &mut self.server,
            false => &mut self.client,
        };
        let count = group.shards.len();
        let [at] = self.rng.array();
        let at = if self.in_order {
            0
        } else {
            usize::from(at) % count
        };
        let meta = ReceiveMeta {
            path: FourTuple::to(datagram.from),
            ecn: datagram.ecn,
            segment_size: datagram.bytes.len(),
        };
        let shard = &mut group.shards[at];
        shard.handle_datagrams(self.now, &mut datagram.bytes, &meta);
        while let Some(batch) = group.shards[at].poll_misrouted() {
            let to = batch.shard();
            assert_ne!(to, at, "its own datagram");
            group.shards[to].handle_misrouted(self.now, batch);
            assert!(
                group.shards[to].poll_misrouted().is_none(),
                "forwarded twice"
            );
        }
    }
}

fn config(ids: Option<Arc<dyn ConnectionIdGenerator>>) -> EndpointConfig {
    let mut config = EndpointConfig::from_seed([3; 32]);
    config.unix_seconds_at_epoch = 1_700_000_000;
    config.connection_ids = ids;
    config
}

/// A generator whose IDs have no byte for the shard.
#[derive(Debug)]
struct WithoutShardByte;

impl ConnectionIdGenerator for WithoutShardByte {
    fn length(&self) -> usize {
        8
    }

    fn generate(&self, rng: &mut Rng) -> ConnectionId {
        ConnectionId::new(&rng.array::<8>()).expect("8 bytes")
    }
}

type Ids = Option<Arc<dyn ConnectionIdGenerator>>;

fn check_transfer(server_ids: Ids, client_ids: Ids, shards: usize) {
    let client = Group::new(config(client_ids), false, 2, 1);
    let mut server = config(server_ids);
    server.reset_key = [4; 32];
    let server = Group::new(server, true, shards, 2);
    let mut net = Net::new(client, server);
    let clients = 6;
    let is_alone = net.client.shards[0].router.ids().length() == 0;
    for number in 0..clients {
        net.connect(number % 2);
        net.client
            .address
            .set_port(50_000 + u16::try_from(number).expect("few"));
        if is_alone {
            // Connections without IDs are distinguished by address.
            break;
        }
        net.run(Duration::from_millis(5));
    }
    net.run(Duration::from_millis(300));
    let connections = net.client.handles.len();
    assert_eq!(
        net.server.handles.len(),
        connections,
        "{shards} shards, each client once"
    );
    net.write();
    // All clients are behind another address now.
    net.client.address.set_port(60_000);
    net.run(Duration::from_millis(2000));
    assert_eq!(
        net.server.read,
        connections * BYTES,
        "{shards} shards: all arrived"
    );
    assert_eq!((net.client.lost.len(), net.server.lost.len()), (0, 0));
    if shards > 1 {
        let stats = net.server.stats();
        assert!(stats.strays_sent > 0);
        assert_eq!(stats.strays_sent, stats.strays_received);
        assert_eq!((stats.resets_sent, stats.datagrams_dropped), (0, 0));
    }
    net.close();
    net.run(Duration::from_millis(3000));
    for group in [&net.client, &net.server] {
        let stats = group.stats();
        assert_eq!(
            (stats.connections, stats.half_open, stats.waiting),
            (0, 0, 0)
        );
        let left = |it: &Endpoint| it.router.len() + it.router.common_len();
        assert_eq!(group.shards.iter().map(left).sum::<usize>(), 0, "routes");
    }
}

/// Generates an unused ID of a shard.
fn new_id(shard: &mut Endpoint) -> Result<ConnectionId, ConnectionIdError> {
    shard.router.new_id(&mut shard.rng)
}

#[test]
fn connections_work_with_datagrams_at_any_shard() {
    for shards in [1, 2, 3, 16, 256] {
        check_transfer(None, None, shards);
    }
}

#[test]
fn ids_without_a_byte_for_the_shard_are_routed() {
    check_transfer(
        Some(Arc::new(WithoutShardByte)),
        Some(Arc::new(WithoutShardByte)),
        4,
    );
}

#[test]
fn server_ids_are_unchanged_by_the_shard() {
    let ids = crate::ServerIdGenerator::new(2, &[1, 2, 3], 5).expect("valid");
    check_transfer(Some(Arc::new(ids)), None, 4);
}

#[test]
fn connections_without_ids_are_routed_by_address() {
    let none = RandomIdGenerator::new(0).expect("valid");
    check_transfer(None, Some(Arc::new(none)), 4);
}

#[test]
fn every_id_names_its_shard() {
    for count in [2, 3, 7, 16, 255, 256] {
        for (number, shard) in Endpoint::shards(config(None), None, [1; 32], count)
            .iter_mut()
            .enumerate()
        {
            let mut last_bytes = std::collections::HashSet::new();
            for _ in 0..300 {
                let id = new_id(shard).expect("free");
                assert_eq!(usize::from(id[7]) % count, number, "{count} shards");
                last_bytes.insert(id[7]);
            }
            let values = 256 / count;
            assert!(last_bytes.len() > values / 2 && last_bytes.len() <= values + 1);
        }
    }
}

/// The server loses its state. Its reset reaches the client through any shards.
#[test]
fn resets_find_their_connection_at_both_ends() {
    let client = Group::new(config(None), false, 4, 1);
    let mut settings = config(None);
    settings.reset_key = [4; 32];
    let server = Group::new(settings.clone(), true, 4, 2);
    let mut net = Net::new(client, server);
    for shard in 0..4 {
        net.connect(shard);
        net.run(Duration::from_millis(100));
        net.client
            .address
            .set_port(50_001 + u16::try_from(shard).expect("few"));
    }
    assert_eq!(net.server.handles.len(), 4);
    // Another number of shards than before.
    net.server = Group::new(settings, true, 3, 5);
    net.write();
    net.run(Duration::from_millis(100));
    assert!(net.server.stats().resets_sent >= 4);
    let is_reset = |error: &ConnectionError| *error == ConnectionError::Reset;
    assert_eq!(net.client.lost.len(), 4, "{:?}", net.client.lost);
    assert!(
        net.client.lost.iter().all(is_reset),
        "{:?}",
        net.client.lost
    );
}

fn send_first_datagrams(net: &mut Net, numbers: std::ops::Range<u16>) {
    for number in numbers {
        net.deliver(FirstDatagram::new(number).initial(), true);
    }
}

fn server_of(count: usize, change: impl FnOnce(&mut ServerConfig)) -> Net {
    let client = Group::new(config(None), false, 1, 1);
    let mut server = Group::new(config(None), true, count, 2);
    let mut settings = Setup::default().server;
    change(&mut settings);
    let settings = Arc::new(settings);
    for shard in &mut server.shards {
        shard.set_server_config(Some(settings.clone()));
    }
    Net::new(client, server)
}

#[test]
fn limit_on_waiting_clients_is_common_to_all_shards() {
    let counts = [1, 4].map(|count| {
        let mut net = server_of(count, |server| {
            server.max_incoming = 20;
            server.retry = crate::RetryPolicy::Never;
        });
        send_first_datagrams(&mut net, 0..100);
        let stats = net.server.stats();
        (stats.waiting, stats.half_open, stats.refused_for_share)
    });
    assert_eq!(counts[0], counts[1]);
    // The addresses are those of one network, which has its share.
    assert_eq!(counts[0], (18, 18, 82));
}

#[test]
fn rate_of_an_address_is_common_to_all_shards() {
    for count in [1, 4] {
        let mut net = server_of(count, |server| {
            server.connection_rate = Some(10);
            server.retry = crate::RetryPolicy::Never;
        });
        for number in 0..50 {
            let mut first_datagram = FirstDatagram::new(number);
            first_datagram.address = FirstDatagram::new(0).address;
            net.deliver(first_datagram.initial(), true);
        }
        let stats = net.server.stats();
        assert_eq!(
            (stats.waiting, stats.refused_for_rate),
            (10, 40),
            "{count} shards"
        );
    }
}

#[test]
fn rates_of_replies_are_common_to_all_shards() {
    for count in [1, 4] {
        let client = Group::new(config(None), false, 1, 1);
        let mut settings = config(None);
        settings.reset_limits = ReplyLimits {
            per_prefix: 30,
            overall: 1000,
        };
        let server = Group::new(settings, true, count, 2);
        let mut net = Net::new(client, server);
        for number in 0..=255u8 {
            let mut bytes = vec![number; 100];
            bytes[0] = 0x40;
            let (from, to) = (client_address(), server_address());
            let ecn = Ecn::NotEct;
            net.deliver(
                Datagram {
                    from,
                    to,
                    ecn,
                    bytes,
                },
                true,
            );
        }
        let stats = net.server.stats();
        assert_eq!(
            (stats.resets_sent, stats.replies_over_rate),
            (30, 226),
            "{count} shards"
        );
    }
}

/// A client whose address changes before it receives an ID of the server repeats its first packet, which
/// then arrives at another shard.
#[test]
fn first_packets_repeated_at_another_shard_are_routed() {
    let mut net = server_of(8, |_| {});
    let first_datagram = FirstDatagram::new(1);
    for port in 0..64 {
        let mut datagram = first_datagram.initial();
        datagram.from.set_port(40_000 + port);
        net.deliver(datagram, true);
    }
    let stats = net.server.stats();
    assert_eq!((stats.waiting, stats.half_open), (1, 1));
    assert!(stats.strays_sent > 40, "{}", stats.strays_sent);
}

#[test]
fn single_shard_equals_an_endpoint_without_shards() {
    let seed = [6; 32];
    let mut shards = Endpoint::shards(config(None), None, seed, 1);
    let mut alone = Endpoint::new(config(None), None, seed);
    for _ in 0..10 {
        assert_eq!(new_id(&mut shards[0]), new_id(&mut alone));
    }
    assert_eq!(shards[0].stats(), alone.stats());
}

#[test]
fn datagrams_of_one_batch_are_forwarded_together() {
    let mut net = server_of(4, |_| {});
    net.in_order = true;
    net.connect(0);
    net.run(Duration::from_millis(100));
    assert_eq!(net.server.handles, [(0, net.server.handles[0].1)]);
    let id = new_id(&mut net.server.shards[0]).expect("free");
    let other = ConnectionId::new(&[&id[..7], &[2]].concat()).expect("8 bytes");
    let datagram = |id: &ConnectionId, len| {
        let mut bytes = vec![0x40];
        bytes.extend_from_slice(id);
        bytes.resize(len, 0xee);
        bytes
    };
    let buffer = [
        datagram(&other, 100),
        datagram(&other, 100),
        datagram(&id, 100),
        datagram(&other, 60),
    ];
    let meta = ReceiveMeta {
        path: FourTuple::to(client_address()),
        ecn: Ecn::Ect0,
        segment_size: 100,
    };
    let shard = &mut net.server.shards[0];
    shard.handle_datagrams(net.now, &mut buffer.concat(), &meta);
    let batches: Vec<_> = std::iter::from_fn(|| shard.poll_misrouted()).collect();
    let sizes: Vec<_> = batches
        .iter()
        .map(|it| (it.shard(), it.datagrams(), it.len()))
        .collect();
    assert_eq!(sizes, [(2, 3, 260)]);
}

/// A dropped shard releases its share of the limits on handshakes and memory, and its routes.
#[test]
fn dropped_shard_releases_shared_resources() {
    let client = Group::new(config(None), false, 1, 1);
    let mut server_config = config(None);
    server_config.reset_key = [4; 32];
    let server = Group::new(server_config, true, 2, 2);
    let mut net = Net::new(client, server);
    net.in_order = true;
    net.connect(0);
    // The first datagram arrives, and the client waits to be accepted. A handshake is in progress.
    for datagram in net.client.drive(net.now) {
        net.deliver(datagram, true);
    }
    let shared = net.server.shards[0].admission.shared().clone();
    let incoming = net.server.shards[0].poll_incoming().expect("a client");
    let accepted = net.server.shards[0].accept(net.now, incoming, None);
    let mut buffer = TransmitBuffer::new(1);
    let handle = accepted.expect("valid");
    let shard = &mut net.server.shards[0];
    while shard.poll_transmit(net.now, handle, &mut buffer).is_some() {}
    net.client.address.set_port(50_001);
    net.connect(0);
    for datagram in net.client.drive(net.now) {
        net.deliver(datagram, true);
    }
    let held = || {
        let handshakes = shared.handshakes.lock();
        let room = (handshakes.waiting(), handshakes.half_open());
        let bytes = shared.memory.used[0]
            .0
            .load(std::sync::atomic::Ordering::Relaxed);
        (room, bytes > 0)
    };
    assert_eq!(held(), ((1, 2), true));
    assert!(net.server.shards[1].router.common_len() > 0);
    drop(net.server.shards.remove(0));
    assert_eq!(held(), ((0, 0), false));
    assert_eq!(net.server.shards[0].router.common_len(), 0);
}
