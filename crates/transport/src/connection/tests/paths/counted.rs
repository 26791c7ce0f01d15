//! Tests the events of paths in traces: each validation and each move begins once and ends once.

use courser_base::Mutex;
use courser_telemetry::PathState::{
    MigrationAbandoned, MigrationComplete, MigrationStarted, ProbingAbandoned, ProbingStarted,
    ProbingSuccessful,
};
use courser_telemetry::{Detail, PathState, Record, Sink, SinkFactory};

use super::*;
use crate::build::transmit::SocketId;
use crate::config::TransportConfig;
use crate::path::NewPath;
use crate::testing::steady;

/// The events of the paths of both ends.
#[derive(Debug, Default)]
struct Seen {
    client: Events,
    server: Events,
}

/// The state of a path and the address of the peer on it.
#[derive(Clone, Debug, Default)]
struct Events(Arc<Mutex<Vec<(PathState, FourTuple)>>>);

impl Sink for Events {
    fn record(&mut self, _: Time, record: &Record) {
        if let Record::PathUpdated(update) = record {
            self.0.lock().push((update.state, update.path));
        }
    }

    fn detail(&self) -> Detail {
        Detail::Events
    }
}

impl SinkFactory for Seen {
    fn sink(&self, _: &ConnectionId, side: Side) -> Option<Box<dyn Sink>> {
        Some(Box::new(match side {
            Side::Client => self.client.clone(),
            Side::Server => self.server.clone(),
        }))
    }
}

impl Events {
    fn states(&self, is_there: impl Fn(&FourTuple) -> bool) -> Vec<PathState> {
        let events = self.0.lock();
        let there = events.iter().filter(|(_, path)| is_there(path));
        there.map(|(state, _)| *state).collect()
    }

    fn at(&self, peer: SocketAddr) -> Vec<PathState> {
        self.states(|path| path.peer == peer)
    }

    fn count(&self, chosen: PathState) -> usize {
        let all = self.states(|_| true);
        all.iter().filter(|state| **state == chosen).count()
    }
}

fn connected() -> (Pair, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let transport = TransportConfig {
        sinks: Some(seen.clone()),
        ..steady()
    };
    let mut setup = Setup {
        client: transport.clone(),
        ..Setup::default()
    };
    setup.server.transport = Arc::new(transport);
    let mut pair = Pair::with(setup);
    pair.connect();
    pair.run_for(RTT * 2);
    (pair, seen)
}

/// Two challenges are lost, and the third is too small for the size of the path: one validation.
#[test]
fn repeated_challenges_are_one_validation_and_one_move() {
    for to in [other_port(), other_host()] {
        let (mut pair, seen) = connected();
        pair.client.address = to;
        pair.link.filter = Some(Box::new(|_, datagram| datagram.to == server_address()));
        ping(&mut pair);
        // A validation ends after three probe timeouts of a second each.
        pair.run_for(Duration::from_millis(1500));
        rebind(&mut pair, to);
        pair.run_for(Duration::from_secs(5));
        assert!(is_validated(&mut pair), "{to}");
        let new = [
            MigrationStarted,
            ProbingStarted,
            ProbingSuccessful,
            MigrationComplete,
        ];
        assert_eq!(seen.server.at(to), new, "{to}");
        let old = [ProbingStarted, ProbingAbandoned];
        assert_eq!(seen.server.at(client_address()), old, "{to}");
        assert_eq!(seen.client.states(|_| true), [], "it has not moved");
    }
}

#[test]
fn path_that_never_answers_is_abandoned_once_before_its_move() {
    let (mut pair, seen) = connected();
    pair.client.address = other_host();
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to == server_address()));
    ping(&mut pair);
    pair.run_for(Duration::from_secs(2));
    // Nothing more moves the server.
    pair.link.loss = 1000;
    pair.run_for(Duration::from_secs(3));
    assert_eq!(server_peer(&mut pair), client_address());
    let new = [MigrationStarted, ProbingStarted, ProbingAbandoned];
    assert_eq!(seen.server.at(other_host()), new);
    let old = [ProbingStarted, ProbingAbandoned, MigrationAbandoned];
    assert_eq!(seen.server.at(client_address()), old);
    let all = seen.server.states(|_| true);
    assert_eq!(all.last(), Some(&MigrationAbandoned), "{all:?}");
}

/// The client probes before it moves, so its path is validated when the server follows.
#[test]
fn move_to_a_validated_path_is_complete_at_once() {
    let (mut pair, seen) = connected();
    let second = address("10.0.0.1:50001");
    pair.client.sockets = vec![second];
    let path = NewPath {
        local: None,
        socket: SocketId(1),
        is_same_address: false,
        is_at_once: false,
    };
    let now = pair.now;
    let mut migrations = pair.client.connection().migrations();
    migrations.begin(now, &path).expect("allowed");
    pair.client.touch();
    pair.run_for(Duration::from_secs(5));
    assert_eq!(server_peer(&mut pair), second);
    let moved = [
        ProbingStarted,
        ProbingSuccessful,
        MigrationStarted,
        MigrationComplete,
    ];
    assert_eq!(seen.client.states(|_| true), moved);
    assert_eq!(seen.server.at(second), moved);
    let old = [ProbingStarted, ProbingSuccessful];
    assert_eq!(seen.server.at(client_address()), old, "RFC 9000 §9.3.3");
}

#[test]
fn client_that_replaces_its_move_abandons_the_first() {
    let (mut pair, seen) = connected();
    pair.client.sockets = vec![address("10.0.0.1:50001"), address("10.0.0.1:50002")];
    pair.link.loss = 1000;
    for socket in 1..=2 {
        let path = NewPath {
            local: None,
            socket: SocketId(socket),
            is_same_address: false,
            is_at_once: false,
        };
        let now = pair.now;
        let mut migrations = pair.client.connection().migrations();
        migrations.begin(now, &path).expect("allowed");
        pair.client.touch();
        pair.drive();
    }
    pair.link.loss = 0;
    pair.run_for(Duration::from_secs(5));
    let states = [
        ProbingStarted,
        ProbingAbandoned,
        ProbingStarted,
        ProbingSuccessful,
        MigrationStarted,
        MigrationComplete,
    ];
    assert_eq!(seen.client.states(|_| true), states);
}

/// Neither an attacker that probes from many addresses nor a client that keeps moving makes the server
/// store more than its paths.
#[test]
fn queue_of_ended_validations_is_bounded() {
    let (mut pair, seen) = connected();
    for port in 1..=200u16 {
        let from = SocketAddr::from(([192, 168, 7, 7], port));
        if port % 2 == 0 {
            rebind(&mut pair, from);
            ping(&mut pair);
        } else {
            from_elsewhere(&mut pair, from, &padded_challenge([5; 8]));
        }
        pair.run_for(RTT * 3);
        assert_eq!(pair.server.connection().parts.paths.unrecorded(), 0);
    }
    pair.run_for(Duration::from_secs(10));
    let ended = seen.server.count(ProbingSuccessful) + seen.server.count(ProbingAbandoned);
    assert_eq!(seen.server.count(ProbingStarted), ended);
    assert!(ended >= 200, "{ended}");
    let moves = seen.server.count(MigrationStarted);
    assert_eq!(seen.server.count(MigrationComplete), moves);
    assert_eq!(moves, 100);
}
