//! The idle timeout, and keep-alives that prevent it. RFC 9000 §10.1.

use super::*;

fn is_timed_out(events: &[Event]) -> bool {
    events.contains(&Event::Lost(ConnectionError::TimedOut))
}

#[test]
fn idle_timeout_ends_both_ends_without_a_packet() {
    let mut pair = connected(|config| config.max_idle_timeout = Some(Duration::from_secs(5)));
    pair.run_for(Duration::from_secs(1));
    let sent = (pair.client.sent.len(), pair.server.sent.len());
    pair.run_for(Duration::from_millis(3_800));
    assert!(!pair.client.connection().is_closed() && !pair.server.connection().is_closed());
    pair.run_for(Duration::from_millis(300));
    assert!(is_timed_out(&pair.client.events) && is_timed_out(&pair.server.events));
    assert_eq!(
        sent,
        (pair.client.sent.len(), pair.server.sent.len()),
        "RFC 9000 §10.1"
    );
}

#[test]
fn smaller_idle_timeout_of_the_two_counts() {
    let seconds = |secs: u64| (secs > 0).then(|| Duration::from_secs(secs));
    for (client, server, counts) in [(3, 9, 3), (9, 3, 3), (0, 4, 4), (4, 0, 4), (0, 0, 0)] {
        let mut setup = both(|config| config.max_idle_timeout = seconds(client));
        let mut transport = setup.client.clone();
        transport.max_idle_timeout = seconds(server);
        setup.server.transport = Arc::new(transport);
        let mut pair = Pair::with(setup);
        pair.connect();
        pair.run_for(Duration::from_secs(20));
        for (who, events) in [
            ("client", &pair.client.events),
            ("server", &pair.server.events),
        ] {
            assert_eq!(
                is_timed_out(events),
                counts > 0,
                "{who} of {client} and {server}"
            );
        }
    }
}

#[test]
fn idle_timeout_is_at_least_three_probe_timeouts() {
    let mut pair = Pair::with(both(|config| {
        config.max_idle_timeout = Some(Duration::from_millis(1))
    }));
    pair.link.delay = Duration::from_millis(200);
    pair.start();
    pair.run_until(Duration::from_secs(5), |pair| {
        pair.client.has(&Event::Confirmed)
    });
    assert!(pair.client.has(&Event::Confirmed));
    let begun = pair.now;
    pair.run_until(Duration::from_secs(60), |pair| {
        is_timed_out(&pair.client.events)
    });
    assert!(
        pair.now - begun >= Duration::from_millis(1200),
        "{:?}",
        pair.now - begun
    );
}

#[test]
fn only_the_first_ack_eliciting_packet_since_the_last_receipt_restarts_the_idle_timer() {
    let mut pair = connected(|config| config.max_idle_timeout = Some(Duration::from_secs(6)));
    pair.link.loss = 1000;
    pair.run_for(Duration::from_secs(4));
    write(&mut pair, b"a request");
    let asked = pair.now;
    pair.run_until(Duration::from_secs(60), |pair| {
        is_timed_out(&pair.client.events)
    });
    assert_eq!(
        pair.now - asked,
        Duration::from_secs(6),
        "probes do not count"
    );
}

#[test]
fn keep_alive_of_either_end_keeps_both_ends_open() {
    for (client, server) in [(true, false), (false, true), (true, true)] {
        let interval = |is_on: bool| is_on.then_some(Duration::from_secs(2));
        let mut setup = both(|config| {
            config.max_idle_timeout = Some(Duration::from_secs(6));
            config.keep_alive_interval = interval(client);
        });
        let mut transport = setup.client.clone();
        transport.keep_alive_interval = interval(server);
        setup.server.transport = Arc::new(transport);
        let mut pair = Pair::with(setup);
        pair.connect();
        let before = pair.client.sent.len() + pair.server.sent.len();
        pair.run_for(Duration::from_secs(60));
        assert!(!pair.client.connection().is_closed() && !pair.server.connection().is_closed());
        let sent = pair.client.sent.len() + pair.server.sent.len() - before;
        assert!(
            (50..=130).contains(&sent),
            "client {client}, server {server}: {sent}"
        );
    }
}

/// RFC 9114 §5.1: keep-alives are sent only while a response is expected.
#[test]
fn keep_alive_while_busy_ends_with_the_exchange() {
    let mut pair = connected(|config| config.max_idle_timeout = Some(Duration::from_secs(6)));
    pair.client.connection().keep_alive_while_busy(true);
    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Bidirectional).expect("allowed");
    streams.write(id, b"question").expect("room");
    pair.client.touch();
    pair.run_for(Duration::from_secs(60));
    assert!(!pair.client.connection().is_closed() && !pair.server.connection().is_closed());
    // A stream of the peer keeps nothing alive.
    let server = pair.server.connection();
    server.keep_alive_while_busy(true);
    server.streams().reset(id, 0).expect("open");
    server.streams().stop(id, 0).expect("open");
    pair.server.touch();
    pair.run_for(Duration::from_secs(1));
    let read = pair.client.connection().streams().read(id, &mut [0; 9]);
    assert_eq!(read, Err(crate::ReadError::Reset(0)));
    pair.client.touch();
    pair.run_for(Duration::from_secs(10));
    assert!(is_timed_out(&pair.client.events) && is_timed_out(&pair.server.events));
}

#[test]
fn keep_alive_does_not_prolong_the_timeout_for_a_dead_peer() {
    let mut pair = connected(|config| {
        config.max_idle_timeout = Some(Duration::from_secs(6));
        config.keep_alive_interval = Some(Duration::from_secs(2));
    });
    pair.link.loss = 1000;
    pair.run_for(Duration::from_secs(10));
    assert!(is_timed_out(&pair.client.events) && is_timed_out(&pair.server.events));
}

#[test]
fn handshake_times_out_after_ten_seconds() {
    let mut pair = Pair::with(both(|_| {}));
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to.port() == 4433));
    pair.start();
    let begun = pair.now;
    let failed = Event::Lost(ConnectionError::HandshakeTimedOut);
    assert!(pair.run_until(Duration::from_secs(60), |pair| pair.client.has(&failed)));
    assert_eq!(pair.now - begun, Duration::from_secs(10), "limit K12");
    assert!(pair.run_until(Duration::from_secs(60), |pair| pair.server.has(&failed)));
    assert_eq!(pair.now - begun, Duration::from_secs(10) + RTT / 2);
}
