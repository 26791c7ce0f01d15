use courser::telemetry::{CloseCause, ConnectionStarted, SendLimited, StateChanged};
use courser::{ApplicationErrorCode, TransportErrorCode};
use courser_base::FourTuple;

use super::*;

const CLIENT: &str = "192.0.2.7:4433";

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

fn limited(by: SendLimit) -> Record {
    Record::SendLimited(SendLimited { by })
}

fn id(byte: u8) -> ConnectionId {
    ConnectionId::new(&[byte; 8]).expect("short")
}

fn sink(observer: &Observer, byte: u8) -> Box<dyn Sink> {
    let mut sink = observer.sinks().sink(&id(byte), Side::Server).expect("one");
    let started = ConnectionStarted {
        path: FourTuple {
            peer: CLIENT.parse().expect("an address"),
            local: None,
        },
        local_id: id(1),
        peer_id: id(2),
    };
    sink.record(at(0), &Record::ConnectionStarted(started));
    sink
}

fn closed(by_peer: bool, code: CloseCause, reason: &str) -> Record {
    Record::ConnectionClosed(ConnectionClosed {
        by_peer,
        cause: code,
        reason: reason.to_owned(),
    })
}

fn is_near(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-6
}

/// Reads the durations that the sink of this connection has recorded until `millis` after the start.
fn read(observer: &Observer, byte: u8, millis: u64) -> Option<LimitTimes> {
    let connections = observer.0.connections.lock();
    connections.get(&id(byte))?.read(at(millis).as_nanos())
}

#[test]
fn durations_are_added_up_only_while_there_are_readers() {
    let observer = Observer::new();
    let mut sink = sink(&observer, 9);
    sink.record(at(0), &limited(SendLimit::Pacer));
    sink.record(at(100), &limited(SendLimit::CongestionWindow));
    let attention = observer.add_reader();
    let before = read(&observer, 9, 200).expect("a limit is in force");
    assert_eq!(before.nanos, [0, 0, 0, 100_000_000, 0, 0]);
    assert_eq!(before.current(), "congestion_window");
    sink.record(at(300), &limited(SendLimit::Pacer));
    let now = read(&observer, 9, 300).expect("a limit is in force");
    assert_eq!(now.nanos[3], 200_000_000);
    drop(attention);
    sink.record(at(400), &limited(SendLimit::Application));
    sink.record(at(900), &limited(SendLimit::Pacer));
    let later = read(&observer, 9, 900).expect("a limit is in force");
    assert_eq!(later.nanos, now.nanos);
}

#[test]
fn shares_are_those_of_the_time_between_two_readings() {
    let observer = Observer::new();
    let _attention = observer.add_reader();
    let mut sink = sink(&observer, 9);
    sink.record(at(0), &limited(SendLimit::Application));
    sink.record(at(1), &limited(SendLimit::Application));
    // The sender has been waiting for five seconds at the first reading.
    let before = read(&observer, 9, 5_000).expect("a limit is in force");
    sink.record(at(5_200), &limited(SendLimit::CongestionWindow));
    sink.record(at(5_700), &limited(SendLimit::Pacer));
    let now = read(&observer, 9, 6_000).expect("a limit is in force");
    // The sender waited for the first 0.2 s and was paced for the last 0.3 s.
    let shares = now.shares_since(&before).expect("a second has passed");
    assert!(is_near(shares[0], 0.2), "{shares:?}");
    assert!(is_near(shares[3], 0.5), "{shares:?}");
    assert!(is_near(shares[4], 0.3), "{shares:?}");
    let (name, share) = largest(&shares);
    assert_eq!(name, "congestion_window");
    assert!(is_near(share, 0.5), "{shares:?}");
    // No record arrived since, so the same limit is in force.
    let later = read(&observer, 9, 7_000).expect("a limit is in force");
    let shares = later.shares_since(&now).expect("a second has passed");
    assert_eq!(largest(&shares), ("pacing", 1.0));
    assert_eq!(later.shares_since(&later), None);
}

#[test]
fn connection_that_was_never_limited_has_no_limit() {
    let observer = Observer::new();
    let _sink = sink(&observer, 9);
    assert_eq!(observer.limits_of(&id(9)), None);
}

#[test]
fn connections_are_removed_with_their_sinks() {
    let observer = Observer::new();
    assert!(observer.sinks().sink(&id(1), Side::Client).is_none());
    let first = sink(&observer, 9);
    let mut second = sink(&observer, 9);
    second.record(at(1), &limited(SendLimit::Pacer));
    drop(first);
    assert!(observer.limits_of(&id(9)).is_some(), "that of the second");
    drop(second);
    assert!(observer.limits_of(&id(9)).is_none());
    assert_eq!(observer.0.connections.lock().len(), 0);
}

#[test]
fn failures_are_kept_and_ordinary_ends_only_counted() {
    let observer = Observer::new();
    let ordinary = CloseCause::Transport {
        code: TransportErrorCode::NO_ERROR,
    };
    let violation = CloseCause::Transport {
        code: TransportErrorCode::PROTOCOL_VIOLATION,
    };
    for (cause, reason) in [
        (ordinary, "bye"),
        (CloseCause::IdleTimeout, ""),
        (violation, "<b>a frame</b>"),
    ] {
        let mut sink = sink(&observer, 9);
        let state = StateChanged {
            old: None,
            state: "closing",
        };
        sink.record(at(1), &Record::StateChanged(state));
        sink.record(at(2), &closed(true, cause, reason));
    }
    let closes = observer.closes();
    assert_eq!(closes.totals().map(|(_, it)| it.count).sum::<u64>(), 3);
    let ordinary = closes.totals().filter(|(_, it)| it.is_ordinary);
    assert_eq!(ordinary.count(), 2);
    let recent: Vec<_> = closes.recent().collect();
    assert_eq!(recent.len(), 1);
    assert_eq!(recent[0].reason, "<b>a frame</b>");
    assert_eq!(recent[0].client, CLIENT.parse().ok());
    assert!(recent[0].cause.contains("PROTOCOL_VIOLATION"));
}

#[test]
fn codes_of_http3_have_their_names() {
    let observer = Observer::new();
    let mut sink = sink(&observer, 9);
    let chosen = courser::telemetry::ProtocolChosen {
        protocol: b"h3".to_vec(),
    };
    sink.record(at(1), &Record::ProtocolChosen(chosen));
    let code = CloseCause::Application {
        code: ApplicationErrorCode(0x107),
    };
    sink.record(at(2), &closed(false, code, ""));
    let closes = observer.closes();
    let recent: Vec<_> = closes.recent().collect();
    assert_eq!(
        (recent[0].cause.as_str(), recent[0].by),
        ("H3_EXCESSIVE_LOAD", "local")
    );
}
