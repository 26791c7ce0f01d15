//! Tests paths that silently drop packets with an optional feature: batches, ECN marks, the cleared
//! QUIC bit.

use courser_base::{Mutex, Side};
use courser_recovery::EcnState;
use courser_telemetry::{PathFeature, PathFeatureUpdated, Record, Sink, SinkFactory};
use courser_wire::ConnectionId;

use super::*;
use crate::connection::{Fallbacks, WithheldFeatures};
use crate::testing::link::BatchFault;
use crate::testing::{End, client_address};

/// The first probe timeout, before there is a sample of the round trip: three times 333 ms.
const FIRST_TIMEOUT: Duration = Duration::from_millis(1000);

/// A receiver that reads an Ethernet payload of a merged datagram.
const CUT: BatchFault = BatchFault::CutAfter(1500);

/// Connects and returns how long it took to confirm the handshake at both ends.
fn time_to_connect(pair: &mut Pair) -> Duration {
    let begun = pair.now;
    let before = [&pair.client, &pair.server].map(confirmations);
    pair.start();
    let is_done = pair.run_until(Duration::from_secs(20), |pair| {
        [&pair.client, &pair.server].map(confirmations) == before.map(|count| count + 1)
    });
    assert!(is_done, "no handshake: {:?}", pair.client.events);
    pair.now - begun
}

fn confirmations(end: &End) -> usize {
    let confirmed = end.events.iter().filter(|it| **it == Event::Confirmed);
    confirmed.count()
}

/// Returns the largest batch since the first `seen` ones.
fn largest_batch(end: &End, seen: usize) -> usize {
    end.batches[seen..].iter().copied().max().unwrap_or(0)
}

#[test]
fn lost_batches_cost_a_timeout_at_most_and_are_disabled() {
    for fault in [BatchFault::Lost, CUT] {
        for (client, server) in [(true, false), (false, true), (true, true)] {
            let case = format!("{fault:?}, client {client}, server {server}");
            let mut pair = Pair::with(both(|_| {}));
            if client {
                pair.client.batch_fault = fault;
            }
            if server {
                pair.server.batch_fault = fault;
            }
            let took = time_to_connect(&mut pair);
            let longest = if server {
                FIRST_TIMEOUT
            } else {
                Duration::ZERO
            } + RTT * 4;
            assert!(took <= longest, "{case}: connected after {took:?}");
            pair.upload(300_000);
            pair.download(300_000);
            let seen = [pair.client.batches.len(), pair.server.batches.len()];
            let time = pair.upload(300_000).max(pair.download(300_000));
            assert!(time < Duration::from_secs(1), "{case}: {time:?}");
            for (end, is_faulty, seen) in [
                (&mut pair.client, client, seen[0]),
                (&mut pair.server, server, seen[1]),
            ] {
                assert_eq!(largest_batch(end, seen) == 1, is_faulty, "{case}");
                let stats = end.connection().stats();
                assert_eq!(stats.path.withheld.batches, is_faulty, "{case}");
                assert_eq!(stats.fallbacks.batches, u64::from(is_faulty), "{case}");
                assert_eq!(end.endpoint.stats().fallbacks, stats.fallbacks, "{case}");
            }
        }
    }
}

#[test]
fn first_flight_of_a_client_is_sent_as_single_datagrams() {
    let mut pair = Pair::with(both(|_| {}));
    pair.start();
    pair.drive();
    assert!(pair.client.sent.len() > 1, "a ClientHello of two datagrams");
    assert_eq!(largest_batch(&pair.client, 0), 1);
}

#[test]
fn batches_that_become_lost_are_disabled_within_a_few_timeouts() {
    for fault in [BatchFault::Lost, CUT] {
        for is_up in [true, false] {
            let mut pair = connected(|_| {});
            pair.upload(500_000);
            pair.download(500_000);
            let end = if is_up {
                &mut pair.client
            } else {
                &mut pair.server
            };
            assert!(largest_batch(end, 0) > 4);
            end.batch_fault = fault;
            let before = end.connection().stats().ptos;
            let time = match is_up {
                true => pair.upload(500_000),
                false => pair.download(500_000),
            };
            let end = if is_up {
                &mut pair.client
            } else {
                &mut pair.server
            };
            let stats = end.connection().stats();
            assert!(time < Duration::from_secs(2), "{fault:?}: {time:?}");
            assert!(stats.ptos - before <= 3, "{fault:?}: {}", stats.ptos);
            assert_eq!(stats.fallbacks.batches, 1, "{fault:?}");
            assert!(stats.path.withheld.batches, "{fault:?}");
        }
    }
}

#[test]
fn batches_stay_enabled_through_loss_outages_and_timeouts() {
    for (loss, seed) in [(10, 1), (30, 2), (100, 3), (100, 4)] {
        let mut pair = Pair::with(Setup {
            seed,
            ..both(|_| {})
        });
        pair.connect();
        pair.link.loss = loss;
        pair.upload(2_000_000);
        assert!(!pair.client.connection().stats().path.withheld.batches);
        // Messages whose end is lost from time to time.
        for _ in 0..100 {
            pair.upload(2_500);
        }
        pair.link.loss = 1000;
        let transfer = Transfer::up(&mut pair, 2_000_000);
        pair.run_for(Duration::from_secs(3));
        pair.link.loss = 0;
        assert!(
            transfer
                .finish(&mut pair, Duration::from_secs(30))
                .is_some()
        );
        let seen = pair.client.batches.len();
        pair.upload(2_000_000);
        let stats = pair.client.connection().stats();
        assert!(stats.ptos > 3, "loss {loss}: {} timeouts", stats.ptos);
        assert!(!stats.path.withheld.batches, "loss {loss}");
        assert!(largest_batch(&pair.client, seen) > 4, "loss {loss}");
    }
}

#[test]
fn batches_are_tried_again_after_a_minute() {
    let mut pair = connected(|config| config.max_idle_timeout = None);
    pair.client.batch_fault = BatchFault::Lost;
    pair.upload(300_000);
    assert!(pair.client.connection().stats().path.withheld.batches);
    pair.client.batch_fault = BatchFault::None;
    pair.upload(300_000);
    assert!(pair.client.connection().stats().path.withheld.batches);
    pair.run_for(Duration::from_secs(61));
    pair.upload(300_000);
    let stats = pair.client.connection().stats();
    assert_eq!(stats.path.withheld, WithheldFeatures::default());
    let seen = pair.client.batches.len();
    pair.upload(300_000);
    assert!(largest_batch(&pair.client, seen) > 1);
}

#[test]
fn connections_of_an_endpoint_that_lost_batches_begin_without_them() {
    let mut pair = Pair::with(both(|_| {}));
    pair.server.batch_fault = BatchFault::Lost;
    let first = time_to_connect(&mut pair);
    assert!(first >= FIRST_TIMEOUT, "{first:?}");
    pair.download(100_000);
    let second = time_to_connect(&mut pair);
    assert!(second < RTT * 4, "{second:?}");
    pair.server.batch_fault = BatchFault::None;
    pair.download(200_000);
    time_to_connect(&mut pair);
    let seen = pair.server.batches.len();
    pair.download(200_000);
    assert!(largest_batch(&pair.server, seen) > 4, "a trial has arrived");
}

#[test]
fn probes_use_no_optional_feature() {
    let mut setup = both(|config| config.mtu = 1400);
    setup.client.ack_frequency = true;
    let mut pair = Pair::with(setup);
    pair.connect();
    pair.upload(200_000);
    pair.link.loss = 1000;
    let _transfer = Transfer::up(&mut pair, 200_000);
    pair.run_for(RTT);
    let sent = (pair.client.sent.len(), pair.client.batches.len());
    let last = pair.client.sent.last().expect("a packet");
    assert_eq!((last.ecn, last.bytes.len()), (Ecn::Ect0, 1400));
    let before = pair.client.connection().stats().ptos;
    while pair.client.connection().stats().ptos < before + 4 {
        pair.step();
    }
    let probes = &pair.client.sent[sent.0..];
    assert!(probes.len() >= 7, "{} probes", probes.len());
    for probe in probes {
        assert_eq!(probe.ecn, Ecn::NotEct);
        assert!(probe.bytes.len() <= 1200, "{} bytes", probe.bytes.len());
    }
    assert_eq!(largest_batch(&pair.client, sent.1), 1);
}

#[test]
fn application_datagram_that_fits_no_probe_is_sent_after_it() {
    let mut pair = connected(|config| config.mtu = 1400);
    let now = pair.now;
    let before = pair.client.connection().stats().datagrams.sent;
    pair.link.loss = 1000;
    write(&mut pair, b"lost");
    pair.drive();
    let datagram = bytes::Bytes::from(vec![7; 1300]);
    let client = pair.client.connection();
    client
        .send_datagram(now, datagram, crate::SendOptions::default())
        .expect("room");
    pair.run_for(Duration::from_secs(5));
    let stats = pair.client.connection().stats();
    assert!(stats.ptos > 2);
    assert_eq!(stats.datagrams.sent, before + 1);
}

/// Connects over a path that drops marked datagrams of the ends that are named.
fn without_marks(to_server: bool, to_client: bool) -> (Pair, Duration) {
    let mut pair = Pair::with(both(|_| {}));
    drop_marks(&mut pair, to_server, to_client);
    let took = time_to_connect(&mut pair);
    (pair, took)
}

fn drop_marks(pair: &mut Pair, to_server: bool, to_client: bool) {
    pair.link.filter = Some(Box::new(move |_, datagram| {
        let is_dropped = match datagram.to == client_address() {
            true => to_client,
            false => to_server,
        };
        !is_dropped || datagram.ecn == Ecn::NotEct
    }));
}

#[test]
fn path_that_drops_marks_costs_one_timeout() {
    for (to_server, to_client) in [(true, false), (false, true), (true, true)] {
        let case = format!("to the server {to_server}, to the client {to_client}");
        let (mut pair, took) = without_marks(to_server, to_client);
        assert!(took <= FIRST_TIMEOUT + RTT * 4, "{case}: {took:?}");
        let message = pair.upload(1_000).max(pair.download(1_000));
        assert!(message <= RTT * 2, "{case}: {message:?}");
        let time = pair.upload(200_000).max(pair.download(200_000));
        assert!(time < Duration::from_secs(1), "{case}: {time:?}");
        let client = pair.client.connection().stats();
        assert_eq!(client.path.withheld.ecn, to_server, "{case}");
        assert_eq!(client.fallbacks.ecn, u64::from(to_server), "{case}");
        let server = pair.server.connection().stats();
        assert_eq!(server.path.withheld.ecn, to_client, "{case}");
        assert_eq!(server.fallbacks.ecn, u64::from(to_client), "{case}");
    }
}

#[test]
fn marking_stops_when_marked_datagrams_become_lost() {
    let mut pair = connected(|_| {});
    pair.upload(100_000);
    assert_eq!(pair.client.sent.last().map(|it| it.ecn), Some(Ecn::Ect0));
    drop_marks(&mut pair, true, true);
    let time = pair.upload(300_000);
    assert!(time < Duration::from_secs(2), "{time:?}");
    let stats = pair.client.connection().stats();
    assert_eq!((stats.path.withheld.ecn, stats.fallbacks.ecn), (true, 1));
}

#[test]
fn loss_of_the_first_flight_only_delays_marks() {
    let mut pair = Pair::with(both(|_| {}));
    pair.link.filter = Some(Box::new(|number, _| number > 2));
    time_to_connect(&mut pair);
    pair.upload(300_000);
    for end in [&mut pair.client, &mut pair.server] {
        assert!(!end.connection().stats().path.withheld.ecn);
    }
    assert_eq!(
        pair.client.connection().packets.recovery.ecn_state(),
        EcnState::Capable
    );
}

#[test]
fn server_marks_for_clients_whose_first_flight_has_no_mark() {
    let mut pair = Pair::with(both(|_| {}));
    pair.link.filter = Some(Box::new(|number, datagram| {
        if number <= 2 {
            datagram.ecn = Ecn::NotEct;
        }
        true
    }));
    time_to_connect(&mut pair);
    pair.download(300_000);
    assert_eq!(pair.server.sent.last().map(|it| it.ecn), Some(Ecn::Ect0));
    assert_eq!(
        pair.server.connection().stats().fallbacks,
        Fallbacks::default()
    );
}

#[test]
fn ends_that_never_mark_send_batches() {
    let mut setup = both(|config| config.ecn = false);
    setup.client.ecn = false;
    let mut pair = Pair::with(setup);
    pair.connect();
    pair.upload(300_000);
    pair.download(300_000);
    let seen = [pair.client.batches.len(), pair.server.batches.len()];
    pair.upload(300_000);
    pair.download(300_000);
    for (end, seen) in [(&pair.client, seen[0]), (&pair.server, seen[1])] {
        let batches = &end.batches[seen..];
        let datagrams: usize = batches.iter().sum();
        assert!(datagrams > 4 * batches.len(), "{batches:?}");
    }
}

/// Keeps the records of optional features.
#[derive(Clone, Debug, Default)]
struct Seen(Arc<Mutex<Vec<(Side, PathFeatureUpdated)>>>);

struct OneSide(Seen, Side);

impl SinkFactory for Seen {
    fn sink(&self, _: &ConnectionId, side: Side) -> Option<Box<dyn Sink>> {
        Some(Box::new(OneSide(self.clone(), side)))
    }
}

impl Sink for OneSide {
    fn record(&mut self, _: Time, record: &Record) {
        if let Record::PathFeatureUpdated(update) = record {
            self.0.0.lock().push((self.1, *update));
        }
    }
}

#[test]
fn sinks_receive_disabled_and_reenabled_features() {
    let seen = Seen::default();
    let mut pair = connected(|config| {
        config.sinks = Some(Arc::new(seen.clone()));
        config.max_idle_timeout = None;
    });
    pair.client.batch_fault = BatchFault::Lost;
    pair.upload(300_000);
    pair.client.batch_fault = BatchFault::None;
    pair.run_for(Duration::from_secs(61));
    pair.upload(300_000);
    let feature = PathFeature::Batches;
    let expected = [false, true].map(|is_used| PathFeatureUpdated { feature, is_used });
    assert_eq!(*seen.0.lock(), expected.map(|it| (Side::Client, it)));
}
