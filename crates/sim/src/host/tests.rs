use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use courser_base::Side;
use courser_telemetry::{Record, Sink, SinkFactory};
use courser_wire::ConnectionId;

use super::*;
use crate::World;
use crate::apps::{Amount, Bulk, Serve, TransferDirection};
use crate::world::NodeId;

const CLIENT: ([u8; 4], u16) = ([10, 1, 1, 1], 50_000);
const SERVER: ([u8; 4], u16) = ([10, 2, 1, 1], 443);

fn pair(world: &mut World, retry: RetryPolicy, transport: TransportConfig) -> (NodeId, NodeId) {
    let (client, server) = (SocketAddr::from(CLIENT), SocketAddr::from(SERVER));
    let bulk = Bulk::new(server, TransferDirection::Up, Amount::Bytes(100_000));
    let left = Host::new(
        HostSpec::client(client, world.seed_for("client")).with_transport(transport.clone()),
        bulk,
    );
    let spec = HostSpec {
        retry,
        ..HostSpec::server(server, world.seed_for("server")).with_transport(transport)
    };
    let right = Host::new(spec, Serve::new());
    let left = world.add("client", client.ip(), left);
    let right = world.add("server", server.ip(), right);
    world.connect(
        left,
        right,
        &"10mbit,10ms".parse().expect("the link is valid"),
    );
    (left, right)
}

#[test]
fn counters_remain_after_the_connection_is_removed() {
    let mut world = World::new(1);
    let (client, server) = pair(&mut world, RetryPolicy::Never, TransportConfig::default());
    world
        .run_for(Duration::from_secs(5))
        .expect("the world does not stall");
    for id in [client, server] {
        let host = world.node::<Host>(id).expect("the node is a host");
        assert_eq!(
            host.endpoint().connections(),
            0,
            "the connection is removed"
        );
        let handles = host.connections();
        assert_eq!(handles.len(), 1);
        let stats = host.stats(handles[0]).expect("the counters are kept");
        let moved = stats.data_sent.max(stats.data_received);
        assert_eq!(moved, 100_008, "header and payload");
        assert!(
            host.log()
                .iter()
                .any(|(_, _, event)| *event == Event::Connected)
        );
    }
    let host = world.node::<Host>(client).expect("the node is a host");
    let stats = host
        .stats(host.connections()[0])
        .expect("the counters are kept");
    assert_eq!(stats.data_acked, 100_008);
    assert_eq!(stats.path.controller, "cubic");
}

#[test]
fn retry_adds_a_round_trip() {
    let handshake = |retry| {
        let mut world = World::new(1);
        let (client, _) = pair(&mut world, retry, TransportConfig::default());
        world
            .run_for(Duration::from_secs(5))
            .expect("the world does not stall");
        let host = world.node::<Host>(client).expect("the node is a host");
        let stats = host
            .stats(host.connections()[0])
            .expect("the counters are kept");
        stats.handshake_time.expect("the handshake completed")
    };
    let more = handshake(RetryPolicy::Always) - handshake(RetryPolicy::Never);
    let allowed = Duration::from_millis(20)..Duration::from_millis(24);
    assert!(allowed.contains(&more), "{more:?}");
}

/// Counts the packets that each side sends.
#[derive(Debug, Default)]
struct Counts(Arc<Mutex<[u32; 2]>>);

impl SinkFactory for Counts {
    fn sink(&self, _: &ConnectionId, side: Side) -> Option<Box<dyn Sink>> {
        let sent = Arc::clone(&self.0);
        Some(Box::new(move |_: Time, record: &Record| {
            if matches!(record, Record::PacketSent(_)) {
                sent.lock().expect("the lock is not poisoned")
                    [usize::from(side == Side::Server)] += 1;
            }
        }))
    }
}

#[test]
fn sinks_receive_records_of_both_ends() {
    let counts = Arc::new(Counts::default());
    let transport = TransportConfig {
        sinks: Some(Arc::clone(&counts) as Arc<dyn SinkFactory>),
        ..TransportConfig::default()
    };
    let mut world = World::new(1);
    pair(&mut world, RetryPolicy::Never, transport);
    world
        .run_for(Duration::from_secs(5))
        .expect("the world does not stall");
    let sent = counts.0.lock().expect("the lock is not poisoned");
    assert!(sent[0] > 80 && sent[1] > 20, "{sent:?}");
}

#[test]
#[should_panic(expected = "mtu")]
fn invalid_settings_are_refused() {
    let mut spec = HostSpec::client(CLIENT.into(), 1);
    spec.transport.mtu = 100;
    let _ = Host::new(spec, Serve::new());
}
