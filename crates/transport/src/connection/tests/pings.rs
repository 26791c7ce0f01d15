//! PINGs of the application. RFC 9000 §19.2.

use super::*;

/// Time by which the server may delay an acknowledgement.
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

fn request(pair: &mut Pair) -> u64 {
    let request = pair.client.connection().pings().request();
    pair.client.touch();
    request
}

fn answer(pair: &mut Pair, request: u64) -> Option<Duration> {
    pair.client.connection().pings().answer(request)
}

#[test]
fn answer_includes_the_delay_of_the_acknowledgement() {
    let mut pair = Pair::connected();
    let request = request(&mut pair);
    pair.run_for(RTT - Duration::from_millis(1));
    assert_eq!(answer(&mut pair, request), None);
    pair.run_for(MAX_ACK_DELAY + Duration::from_millis(2));
    let time = answer(&mut pair, request).expect("acknowledged");
    assert!(time >= RTT && time <= RTT + MAX_ACK_DELAY, "{time:?}");
    assert!(pair.client.has(&Event::PingAnswered));
}

#[test]
fn requests_before_a_packet_share_its_ping() {
    let mut pair = Pair::connected();
    let sent = pair.client.connection().stats().packets_sent;
    let first = request(&mut pair);
    assert_eq!(request(&mut pair), first);
    pair.run_for(Duration::from_millis(1));
    let second = request(&mut pair);
    assert_ne!(second, first, "it is sent in a later packet");
    pair.run_for(RTT * 4);
    assert!(answer(&mut pair, first).is_some() && answer(&mut pair, second).is_some());
    let stats = pair.client.connection().stats();
    assert_eq!(stats.packets_sent - sent, 2);
    let events = pair.client.events.iter();
    let answers = events
        .filter(|event| **event == Event::PingAnswered)
        .count();
    assert!((1..=2).contains(&answers), "{answers}");
}

#[test]
fn lost_ping_is_replaced_and_measured_from_its_replacement() {
    let mut pair = Pair::connected();
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to.port() != 4433));
    let request = request(&mut pair);
    pair.run_for(RTT / 2);
    pair.link.filter = None;
    pair.run_for(Duration::from_secs(5));
    let time = answer(&mut pair, request).expect("another one arrived");
    assert!(time >= RTT && time <= RTT + MAX_ACK_DELAY, "{time:?}");
}

#[test]
fn unanswered_request_has_no_result_after_the_idle_timeout() {
    let mut pair = Pair::connected();
    pair.client.releases = false;
    pair.link.filter = Some(Box::new(|_, _| false));
    let request = request(&mut pair);
    pair.run_for(Duration::from_secs(40));
    assert!(pair.client.connection().is_closed());
    assert_eq!(answer(&mut pair, request), None);
    assert!(!pair.client.has(&Event::PingAnswered));
}

#[test]
fn request_during_the_handshake_is_answered_after_it() {
    let mut pair = Pair::new();
    pair.start();
    let request = request(&mut pair);
    pair.run_for(RTT * 5);
    assert!(answer(&mut pair, request).is_some());
}

/// A program that requests PINGs as often as it can does not exceed a limit of its peer, and gets answers.
#[test]
fn endless_requests_leave_the_connection_open() {
    let mut pair = Pair::connected();
    let mut last = 0;
    for _ in 0..10_000 {
        last = request(&mut pair);
        pair.run_for(Duration::from_micros(100));
    }
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
    pair.run_for(Duration::from_secs(1));
    assert!(answer(&mut pair, last).is_some());
    let pings = pair.client.connection().stats().frames_sent.ping;
    assert!((500..600).contains(&pings), "{pings}");
}
