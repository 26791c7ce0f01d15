//! Tests paths on which probes are not answered. RFC 9002 §6.2.

use courser_wire::TransportErrorCode;

use super::*;

const LIMIT: Duration = Duration::from_secs(60);

fn silences(events: &[Event]) -> Vec<&Event> {
    let is_about_silence = |event: &&Event| {
        matches!(
            event,
            Event::PathSilent | Event::PathAnswers | Event::Lost(_)
        )
    };
    events.iter().filter(is_about_silence).collect()
}

/// Drops what the server sends.
fn drop_packets_to_client(pair: &mut Pair) {
    pair.link.filter = Some(Box::new(|_, datagram| datagram.from.port() != 4433));
}

/// The third timeout in a row is reported (limit K286).
#[test]
fn third_timeout_in_a_row_makes_the_path_silent_and_an_acknowledgement_ends_that() {
    let mut pair = connected(|_| {});
    let ptos = pair.client.connection().stats().ptos;
    pair.link.loss = 1000;
    write(&mut pair, b"a request");
    let is_silent = pair.run_until(LIMIT, |pair| pair.client.has(&Event::PathSilent));
    assert!(is_silent && pair.client.connection().is_path_silent());
    assert_eq!(pair.client.connection().stats().ptos - ptos, 3);
    pair.run_for(Duration::from_secs(5));
    pair.link.loss = 0;
    let answers = pair.run_until(LIMIT, |pair| pair.client.has(&Event::PathAnswers));
    assert!(answers && !pair.client.connection().is_path_silent());
    pair.run_for(Duration::from_secs(1));
    assert_eq!(
        silences(&pair.client.events),
        [&Event::PathSilent, &Event::PathAnswers],
        "each is reported once"
    );
    assert_eq!(
        silences(&pair.server.events),
        Vec::<&Event>::new(),
        "nothing of the server was in flight"
    );
}

/// Writes data and drops all packets until this many probe timeouts have expired.
fn lose_for(pair: &mut Pair, timeouts: u64) {
    let before = pair.client.connection().stats().ptos;
    pair.link.loss = 1000;
    write(pair, b"a request");
    pair.run_until(LIMIT, |pair| {
        pair.client.connection().stats().ptos - before == timeouts
    });
    pair.link.loss = 0;
}

#[test]
fn two_timeouts_in_a_row_do_not_make_the_path_silent() {
    let mut pair = connected(|_| {});
    let ptos = pair.client.connection().stats().ptos;
    lose_for(&mut pair, 1);
    // The probes of the second one arrive.
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.client.connection().stats().ptos - ptos, 2);
    assert_eq!(silences(&pair.client.events), Vec::<&Event>::new());
}

#[test]
fn packets_without_an_acknowledgement_do_not_end_the_silence() {
    let mut pair = connected(|_| {});
    // What the client sends is lost.
    pair.link.filter = Some(Box::new(|_, datagram| datagram.from.port() == 4433));
    write(&mut pair, b"a request");
    assert!(pair.run_until(LIMIT, |pair| pair.client.has(&Event::PathSilent)));
    let received = pair.client.connection().stats().packets_received;
    pair.server.connection().pings().request();
    pair.server.touch();
    pair.run_for(Duration::from_millis(100));
    assert!(pair.client.connection().stats().packets_received > received);
    assert_eq!(silences(&pair.client.events), [&Event::PathSilent]);
    pair.link.filter = None;
    assert!(pair.run_until(LIMIT, |pair| pair.client.has(&Event::PathAnswers)));
}

/// Sends a request that the server does not answer.
fn ask(pair: &mut Pair) {
    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Bidirectional).expect("room");
    streams.write(id, b"what time is it?").expect("room");
    streams.finish(id).expect("open");
    pair.client.touch();
}

/// Its PINGs (limit K230) restart the probe timer, on most paths before the third timeout.
#[test]
fn end_that_waits_for_content_detects_silence_within_three_timeouts() {
    for delay in [1, 10, 50, 150, 400] {
        let mut pair = Pair::with(both(|config| {
            config.max_ptos = Some(4);
            config.max_idle_timeout = Some(LIMIT * 2);
        }));
        pair.link.delay = Duration::from_millis(delay);
        pair.connect();
        pair.run_for(Duration::from_secs(5));
        let pto = pair.client.connection().packets.recovery.pto();
        pair.link.loss = 1000;
        ask(&mut pair);
        let begun = pair.now;
        assert!(pair.run_until(LIMIT, |pair| pair.client.has(&Event::PathSilent)));
        let took = pair.now - begun;
        let expected = pto * 3..=pto * 8 + Duration::from_millis(250);
        assert!(expected.contains(&took), "{delay} ms: {took:?}, {pto:?}");
        let lost = Event::Lost(ConnectionError::PathSilent);
        assert!(pair.run_until(LIMIT, |pair| pair.client.has(&lost)));
        let took = pair.now - begun;
        let expected = pto * 7..=pto * 18 + Duration::from_millis(250);
        assert!(expected.contains(&took), "{delay} ms: {took:?}, {pto:?}");
    }
}

#[test]
fn slow_answer_does_not_make_the_path_silent() {
    let mut pair = connected(|config| config.max_ptos = Some(3));
    ask(&mut pair);
    pair.run_for(Duration::from_secs(25));
    assert_eq!(silences(&pair.client.events), Vec::<&Event>::new());
}

#[test]
fn idle_connection_on_a_dead_path_is_not_silent() {
    let mut pair = connected(|_| {});
    pair.link.loss = 1000;
    pair.run_for(Duration::from_secs(20));
    assert_eq!(silences(&pair.client.events), Vec::<&Event>::new());
}

#[test]
fn connection_survives_silence_without_a_limit() {
    let mut pair = connected(|config| config.max_idle_timeout = Some(LIMIT));
    pair.link.loss = 1000;
    write(&mut pair, b"a request");
    pair.run_for(Duration::from_secs(20));
    assert!(pair.client.connection().stats().ptos > 5);
    assert!(!pair.client.connection().is_closed());
    pair.link.loss = 0;
    pair.run_for(Duration::from_secs(30));
    let streams = pair.server.connection().streams();
    let id = streams.accept(Direction::Unidirectional).expect("arrived");
    let data = streams.read_chunk(id, 100).expect("no reset");
    assert_eq!(data.as_deref(), Some(b"a request".as_slice()));
}

#[test]
fn limit_ends_the_connection_at_the_last_timeout_with_a_close_frame() {
    for limit in [3, 5] {
        let mut pair = connected(|config| config.max_ptos = Some(limit));
        let ptos = pair.client.connection().stats().ptos;
        drop_packets_to_client(&mut pair);
        write(&mut pair, b"a request");
        assert!(pair.run_until(LIMIT, |pair| pair.client.connection().is_closed()));
        let lost = Event::Lost(ConnectionError::PathSilent);
        assert_eq!(
            silences(&pair.client.events),
            [&Event::PathSilent, &lost],
            "{limit}"
        );
        let stats = pair.client.connection().stats();
        assert_eq!(stats.ptos - ptos, u64::from(limit));
        pair.run_for(Duration::from_secs(1));
        let code = TransportErrorCode::NO_VIABLE_PATH.value();
        assert_eq!(pair.close_received_by_server(), Some(code), "{limit}");
    }
}

#[test]
fn acknowledgement_before_the_limit_restarts_the_count() {
    let mut pair = connected(|config| config.max_ptos = Some(4));
    for round in 0..5 {
        lose_for(&mut pair, 2);
        // The probes of the third one arrive.
        pair.run_for(Duration::from_secs(5));
        let events = silences(&pair.client.events).len();
        assert_eq!(events, 2 * (round + 1), "round {round}");
    }
    assert!(!pair.client.connection().is_closed());
}

#[test]
fn limit_does_not_apply_to_the_handshake() {
    let mut pair = Pair::with(both(|config| config.max_ptos = Some(3)));
    pair.link.loss = 1000;
    pair.start();
    let failed = Event::Lost(ConnectionError::HandshakeTimedOut);
    assert!(pair.run_until(LIMIT, |pair| pair.client.has(&failed)));
    assert_eq!(silences(&pair.client.events), [&failed]);
}
