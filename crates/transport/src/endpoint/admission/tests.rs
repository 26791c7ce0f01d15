use std::ops::Range;
use std::time::Duration;

use courser_base::{Ecn, FourTuple};
use courser_wire::packet::{self, PacketKind};

use super::*;
use crate::testing::Setup;
use crate::testing::stranger::Stranger;

/// An admission without an endpoint, with the server and the memory that it decides for.
struct Door {
    admission: Admission,
    server: ServerConfig,
    memory: Memory,
    now: Time,
}

impl Door {
    fn new(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let mut server = Setup::default().server;
        change(&mut server);
        let config = EndpointConfig::from_seed([1; 32]);
        let shared = Shared::of_test(1);
        shared
            .handshakes
            .lock()
            .set_limits(handshakes::limits_of(&config, Some(&server)));
        let shard = ShardId {
            number: 0,
            count: 1,
        };
        Self {
            admission: Admission::new(&config, shard, &Secrets::new([3; 32]), shared.clone()),
            server,
            memory: Memory::new(config.memory_budget, shard, shared),
            now: Time::ZERO + Duration::from_secs(1),
        }
    }

    /// Decides about a client, and lets it wait if it may.
    fn judge(&mut self, stranger: &Stranger) -> Verdict {
        let datagram = stranger.initial();
        let bytes = &datagram.bytes;
        let packet = packet::decode(bytes, 0, 8).expect("an Initial");
        assert_eq!(packet.kind, PacketKind::Initial);
        let arrived = Arrived {
            now: self.now,
            path: FourTuple::to(stranger.address),
            socket: SocketId::default(),
            ecn: Ecn::NotEct,
            is_handed_on: false,
        };
        let version = courser_wire::Version::V1;
        let client = Client::new(arrived, &packet, version);
        let first = FirstPacket {
            client,
            packet: &packet,
            datagram: bytes,
        };
        let verdict = self.admission.judge(&first, &self.server, &self.memory);
        if let Verdict::Wait(proof) = verdict {
            let datagram = KeptDatagram::new(arrived, bytes);
            self.admission.admit(client, proof, datagram);
        }
        verdict
    }

    /// Returns the verdicts about clients with these numbers.
    fn judge_all(&mut self, numbers: Range<u16>) -> Vec<Verdict> {
        numbers
            .map(|number| self.judge(&Stranger::new(number)))
            .collect()
    }

    fn stats(&self) -> EndpointStats {
        let mut stats = EndpointStats::default();
        self.admission.count(&mut stats);
        stats
    }
}

#[test]
fn clients_wait_and_are_offered_in_order() {
    let mut door = Door::new(|_| {});
    for verdict in door.judge_all(0..3) {
        assert_eq!(verdict, Verdict::Wait(AddressProof::None));
    }
    assert_eq!(door.stats().waiting, 3);
    let mut ids = Vec::new();
    while let Some(incoming) = door.admission.next_incoming() {
        ids.push(incoming.id);
        let waiting = door.admission.take(&incoming).expect("it waits");
        assert_eq!(waiting.client.place.tuple, incoming.path);
    }
    assert_eq!(ids, [0, 1, 2]);
    let stats = door.stats();
    assert_eq!((stats.waiting, stats.half_open), (0, 0), "claims are back");
    assert!(door.admission.is_empty());
}

#[test]
fn a_busy_server_refuses_before_it_looks_at_anything() {
    let mut door = Door::new(|server| server.retry = RetryPolicy::Always);
    door.admission.set_busy(true);
    let verdict = door.judge(&Stranger::new(0));
    assert_eq!(verdict, Verdict::refuse("the server is busy"));
    assert_eq!(door.stats().refused_while_busy, 1);
}

#[test]
fn a_server_that_always_retries_keeps_nothing() {
    let mut door = Door::new(|server| server.retry = RetryPolicy::Always);
    assert_eq!(door.judge(&Stranger::new(0)), Verdict::Retry);
    assert!(door.admission.is_empty() && !door.admission.has_incoming());
}

#[test]
fn a_full_table_ignores_clients_that_must_not_get_a_retry() {
    let mut door = Door::new(|server| {
        server.retry = RetryPolicy::Never;
        server.max_incoming = 2;
    });
    let verdicts = door.judge_all(0..4);
    assert_eq!(verdicts[2..], [Verdict::Ignore; 2]);
    let stats = door.stats();
    assert_eq!((stats.ignored, stats.ignored_for_room), (2, 2));
}

#[test]
fn short_memory_refuses() {
    let mut door = Door::new(|_| {});
    let shared = Shared::of_test(1);
    let shard = door.admission.shard;
    door.memory = Memory::new(0, shard, shared);
    door.judge(&Stranger::new(0));
    let verdict = door.judge(&Stranger::new(1));
    assert_eq!(verdict, Verdict::refuse("memory is short"));
    assert_eq!(door.stats().refused_for_memory, 1);
}

#[test]
fn datagrams_of_blocked_addresses_are_not_read() {
    let mut door = Door::new(|_| {});
    let block = address_filter::AddressPrefix::parse_list("192.0.2.0/24").expect("a list");
    let filter = AddressFilter::new(&block, &[]);
    door.admission.set_address_filter(Arc::new(filter));
    let mut admits = |address: [u8; 4]| {
        let peer = SocketAddr::from((address, 5000));
        door.admission.admits_datagrams(door.now, peer, 10)
    };
    assert!(!admits([192, 0, 2, 1]));
    assert!(admits([198, 51, 100, 1]));
    assert_eq!(door.stats().datagrams_blocked, 10);
}
