use std::ops::Range;
use std::time::Duration;

use courser_base::{Ecn, FourTuple};
use courser_wire::packet::{self, PacketKind};

use super::*;
use crate::testing::Setup;
use crate::testing::first_datagram::FirstDatagram;

/// An admission without an endpoint, with a server configuration and a memory budget.
struct Fixture {
    admission: Admission,
    server: ServerConfig,
    memory: Memory,
    now: Time,
}

impl Fixture {
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

    /// Decides about a client, and stores it if it may wait.
    fn judge(&mut self, first_datagram: &FirstDatagram) -> Verdict {
        let datagram = first_datagram.initial();
        let bytes = &datagram.bytes;
        let packet = packet::decode(bytes, 0, 8).expect("an Initial");
        assert_eq!(packet.kind, PacketKind::Initial);
        let arrived = Arrived {
            now: self.now,
            path: FourTuple::to(first_datagram.address),
            socket: SocketId::default(),
            ecn: Ecn::NotEct,
            is_handed_on: false,
            is_over_share: false,
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
            let datagram = StoredDatagram::new(arrived, bytes);
            self.admission.admit(client, proof, datagram);
        }
        verdict
    }

    /// Returns the verdicts about clients with these numbers.
    fn judge_all(&mut self, numbers: Range<u16>) -> Vec<Verdict> {
        numbers
            .map(|number| self.judge(&FirstDatagram::new(number)))
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
    let mut fixture = Fixture::new(|_| {});
    for verdict in fixture.judge_all(0..3) {
        assert_eq!(verdict, Verdict::Wait(AddressProof::None));
    }
    assert_eq!(fixture.stats().waiting, 3);
    let mut ids = Vec::new();
    while let Some(incoming) = fixture.admission.next_incoming() {
        ids.push(incoming.id);
        let waiting = fixture.admission.take(&incoming).expect("it waits");
        assert_eq!(waiting.client.place.tuple, incoming.path);
    }
    assert_eq!(ids, [0, 1, 2]);
    let stats = fixture.stats();
    assert_eq!(
        (stats.waiting, stats.half_open),
        (0, 0),
        "claims are released"
    );
    assert!(fixture.admission.is_empty());
}

#[test]
fn busy_server_refuses_before_any_other_check() {
    let mut fixture = Fixture::new(|server| server.retry = RetryPolicy::Always);
    fixture.admission.set_refusal(Some("lunch"));
    let verdict = fixture.judge(&FirstDatagram::new(0));
    assert_eq!(verdict, Verdict::refuse("lunch"));
    assert_eq!(fixture.stats().refused_while_busy, 1);
}

#[test]
fn server_that_always_sends_retry_stores_nothing() {
    let mut fixture = Fixture::new(|server| server.retry = RetryPolicy::Always);
    assert_eq!(fixture.judge(&FirstDatagram::new(0)), Verdict::Retry);
    assert!(fixture.admission.is_empty() && !fixture.admission.has_incoming());
}

#[test]
fn a_full_table_ignores_clients_that_must_not_get_a_retry() {
    let mut fixture = Fixture::new(|server| {
        server.retry = RetryPolicy::Never;
        server.max_incoming = 2;
    });
    let verdicts = fixture.judge_all(0..4);
    assert_eq!(verdicts[2..], [Verdict::Ignore; 2]);
    let stats = fixture.stats();
    assert_eq!((stats.ignored, stats.ignored_for_room), (2, 2));
}

#[test]
fn clients_are_refused_when_memory_is_short() {
    let mut fixture = Fixture::new(|_| {});
    let shared = Shared::of_test(1);
    let shard = fixture.admission.shard;
    fixture.memory = Memory::new(0, shard, shared);
    fixture.judge(&FirstDatagram::new(0));
    let verdict = fixture.judge(&FirstDatagram::new(1));
    assert_eq!(verdict, Verdict::refuse("memory is short"));
    assert_eq!(fixture.stats().refused_for_memory, 1);
}

#[test]
fn datagrams_of_blocked_addresses_are_not_processed() {
    let mut fixture = Fixture::new(|_| {});
    let block = address_filter::AddressPrefix::parse_list("192.0.2.0/24").expect("a list");
    let filter = AddressFilter::new(&block, &[]);
    fixture.admission.set_address_filter(Arc::new(filter));
    let mut admits = |address: [u8; 4]| {
        let peer = SocketAddr::from((address, 5000));
        fixture.admission.admit_datagrams(fixture.now, peer, 10)
    };
    assert_eq!(admits([192, 0, 2, 1]), Admitted::None);
    assert_eq!(admits([198, 51, 100, 1]), Admitted::All);
    assert_eq!(fixture.stats().datagrams_blocked, 10);
}
