//! Loss, probes, congestion and silence between two ends. RFC 9002, RFC 9000 §10.1, §13.4.

use courser_base::{Ecn, Time};
use courser_wire::frame::Frame;

use super::*;
use crate::config::TransportConfig;
use crate::testing::traffic::Transfer;
use crate::testing::{Setup, steady};

mod ecn;
mod features;
mod reordering;
mod silence;
mod unanswered;

/// Returns the same settings for both ends.
fn both(change: impl Fn(&mut TransportConfig)) -> Setup {
    let mut transport = steady();
    change(&mut transport);
    let mut setup = Setup {
        client: transport.clone(),
        ..Setup::default()
    };
    setup.server.transport = Arc::new(transport);
    setup
}

fn connected(change: impl Fn(&mut TransportConfig)) -> Pair {
    let mut pair = Pair::with(both(change));
    pair.connect();
    pair
}

fn write(pair: &mut Pair, data: &[u8]) {
    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Unidirectional).expect("room");
    assert_eq!(streams.write(id, data), Ok(data.len()));
    streams.finish(id).expect("open");
    pair.client.touch();
}

/// Returns the times and sizes of the datagrams that the client sends within `time`.
fn sends_of_client(pair: &mut Pair, time: Duration) -> Vec<(Time, usize)> {
    let end = pair.now + time;
    let mut sends = Vec::new();
    pair.drive();
    let mut seen = pair.client.sent.len();
    while pair.now < end {
        pair.step();
        let bytes: usize = pair.client.sent[seen..]
            .iter()
            .map(|it| it.bytes.len())
            .sum();
        if bytes > 0 {
            sends.push((pair.now, bytes));
            seen = pair.client.sent.len();
        }
    }
    sends
}

#[test]
fn probes_back_off_by_doubling() {
    let mut pair = connected(|_| {});
    pair.link.loss = 1000;
    let begun = pair.now;
    write(&mut pair, b"hello");
    let sends = sends_of_client(&mut pair, Duration::from_secs(20));
    let times: Vec<_> = sends.iter().map(|(at, _)| *at - begun).collect();
    assert!(times.len() >= 6, "{times:?}");
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for pair in gaps.windows(2) {
        assert_eq!(pair[1], pair[0] * 2, "{times:?}");
    }
    // A smoothed RTT of 20 ms, a variation that is still settling, and the peer's delay of 25 ms.
    assert!(times[0] > RTT + Duration::from_millis(25), "{times:?}");
    assert!(times[0] < RTT * 4 + Duration::from_millis(25), "{times:?}");
    assert!(
        pair.client.connection().stats().packets_lost == 0,
        "a timeout does not declare packets lost"
    );
}

#[test]
fn back_off_ends_with_an_acknowledgement() {
    let mut pair = connected(|_| {});
    pair.link.loss = 1000;
    write(&mut pair, b"hello");
    pair.run_for(Duration::from_secs(5));
    assert!(pair.client.connection().packets.recovery.pto_count() > 3);
    pair.link.loss = 0;
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.client.connection().packets.recovery.pto_count(), 0);
    assert_eq!(pair.client.connection().stats().path.bytes_in_flight, 0);
}

#[test]
fn lost_tail_is_repeated_after_one_probe_timeout() {
    let mut pair = connected(|_| {});
    let begun = pair.now;
    let mut transfer = Transfer::up(&mut pair, 30_000);
    // The very last datagram is lost, once.
    let mut count = 0;
    pair.link.filter = Some(Box::new(move |_, datagram| {
        let is_last = datagram.to.port() == 4433 && datagram.bytes.len() < 1200 && count == 0;
        count += usize::from(is_last);
        !is_last
    }));
    transfer.step(&mut pair);
    let time = transfer
        .finish(&mut pair, Duration::from_secs(2))
        .expect("in time");
    assert!(pair.now - begun < RTT * 10, "{time:?}");
}

#[test]
fn probes_are_ack_eliciting_and_contain_unacknowledged_data() {
    let (setup, eye) = both(|_| {}).with_eye();
    let mut pair = Pair::with(setup);
    pair.connect();
    pair.link.loss = 1000;
    write(&mut pair, b"hello");
    pair.run_for(Duration::from_millis(10));
    let before = eye.client_sent(&pair).len();
    pair.run_for(Duration::from_secs(2));
    let sent = eye.client_sent(&pair);
    assert!(sent.len() > before + 2);
    for probe in &sent[before..] {
        assert!(probe.is_ack_eliciting(), "{probe:?}");
    }
    let repeats = sent[before..]
        .iter()
        .filter(|seen| seen.has(|frame| matches!(frame, Frame::Stream(it) if it.data == b"hello")));
    assert!(repeats.count() >= 2);
}

#[test]
fn probes_contain_new_data_if_there_is_any() {
    let (setup, eye) = both(|_| {}).with_eye();
    let mut pair = Pair::with(setup);
    pair.connect();
    pair.link.loss = 1000;
    write(&mut pair, &[7; 60_000]);
    pair.run_for(Duration::from_millis(10));
    let largest = |pair: &Pair| {
        let sent = eye.client_sent(pair);
        let ends = sent.iter().flat_map(|seen| {
            seen.frames()
                .filter_map(|frame| match frame {
                    Frame::Stream(it) => Some(it.offset + it.data.len() as u64),
                    _ => None,
                })
                .collect::<Vec<_>>()
        });
        ends.max().unwrap_or(0)
    };
    let (before, in_flight) = (largest(&pair), pair.client.connection().stats().path);
    assert!(
        in_flight.bytes_in_flight + 1200 > in_flight.congestion_window,
        "the window is full"
    );
    pair.run_for(Duration::from_millis(150));
    assert_eq!(pair.client.connection().stats().ptos, 1);
    assert!(largest(&pair) > before, "beyond the window, RFC 9002 §7.5");
    let after = pair.client.connection().stats().path;
    assert!(
        after.bytes_in_flight > in_flight.bytes_in_flight,
        "probes count as in flight"
    );
    assert!(after.bytes_in_flight <= in_flight.bytes_in_flight + 2 * 1200);
}

#[test]
fn long_outage_collapses_the_window() {
    let mut pair = connected(|_| {});
    pair.upload(500_000);
    let mut transfer = Transfer::up(&mut pair, 3_000_000);
    for _ in 0..20 {
        pair.step();
        transfer.step(&mut pair);
    }
    let before = pair.client.connection().stats().path.congestion_window;
    pair.link.loss = 1000;
    pair.run_for(Duration::from_secs(3));
    pair.link.loss = 0;
    let mut least = before;
    let begun = pair.now;
    while !transfer.step(&mut pair) {
        pair.step();
        least = least.min(pair.client.connection().stats().path.congestion_window);
        assert!(
            pair.now - begun < Duration::from_secs(30),
            "{} bytes",
            transfer.received()
        );
    }
    assert_eq!(least, 2 * 1200, "RFC 9002 §7.6.2; it was {before}");
}

#[test]
fn short_outage_does_not_collapse_the_window() {
    let mut pair = connected(|_| {});
    let mut transfer = Transfer::up(&mut pair, 500_000);
    for _ in 0..20 {
        pair.step();
        transfer.step(&mut pair);
    }
    pair.link.loss = 1000;
    pair.run_for(Duration::from_millis(5));
    pair.link.loss = 0;
    while !transfer.step(&mut pair) {
        pair.step();
        assert!(pair.client.connection().stats().path.congestion_window > 2 * 1200);
    }
}

#[test]
fn only_probes_exceed_the_window() {
    for seed in 0..10 {
        let mut pair = Pair::with(Setup {
            seed,
            ..both(|_| {})
        });
        pair.connect();
        pair.link.loss = 50;
        let mut transfer = Transfer::up(&mut pair, 200_000);
        let mut before = pair.client.connection().stats();
        while !transfer.step(&mut pair) {
            pair.step();
            let stats = pair.client.connection().stats();
            let grown = stats.path.bytes_in_flight > before.path.bytes_in_flight;
            // While the flight shrinks to the reduced window, RFC 9937 determines what may be sent.
            let recovery = &pair.client.connection().packets.recovery;
            let is_shrinking = recovery.congestion_state() == "recovery";
            let excused = is_shrinking
                || stats.ptos > before.ptos
                || stats.packets_lost > before.packets_lost;
            let window = stats
                .path
                .congestion_window
                .max(before.path.congestion_window);
            assert!(
                !grown || excused || stats.path.bytes_in_flight <= window,
                "seed {seed}: {:?}",
                stats.path
            );
            before = stats;
        }
    }
}

/// The frames that abandon requests before the handshake is confirmed stay within the window, even if
/// the first requests fill most of it.
#[test]
fn window_is_not_exceeded_in_the_handshake() {
    for fill in (10_000..11_500).step_by(50) {
        let mut pair = Pair::with(both(|_| {}));
        pair.start();
        assert!(pair.run_until(RTT * 2, |pair| pair.client.has(&Event::Connected)));
        let streams = pair.client.connection().streams();
        let given_up: Vec<_> = (0..90)
            .map(|_| streams.open(Direction::Bidirectional).expect("room"))
            .collect();
        let id = streams.open(Direction::Unidirectional).expect("room");
        assert_eq!(streams.write(id, &vec![7; fill]), Ok(fill));
        pair.client.touch();
        pair.drive();
        let streams = pair.client.connection().streams();
        for id in given_up {
            streams.reset(id, 1).expect("open");
            streams.stop(id, 1).expect("open");
        }
        pair.client.touch();
        pair.drive();
        assert!(!pair.client.connection().is_confirmed());
        let path = pair.client.connection().stats().path;
        assert!(path.bytes_in_flight > 9_000, "{fill}: {path:?}");
        assert!(
            path.bytes_in_flight <= path.congestion_window,
            "{fill}: {path:?}"
        );
    }
}

#[test]
fn sends_are_spread_over_the_round_trip() {
    let mut pair = connected(|_| {});
    pair.link.delay = Duration::from_millis(50);
    pair.link.rate = Some(5_000_000);
    pair.upload(2_000_000);
    let window = pair.client.connection().stats().path.congestion_window;
    let mut transfer = Transfer::up(&mut pair, 2_000_000);
    let mut bursts: Vec<usize> = Vec::new();
    let mut sent = pair.client.sent.len();
    while !transfer.step(&mut pair) {
        pair.step();
        let bytes = pair.client.sent[sent..]
            .iter()
            .map(|it| it.bytes.len())
            .sum();
        sent = pair.client.sent.len();
        bursts.push(bytes);
    }
    // The first burst after idle time may be larger; all others are a small part.
    let largest = bursts.iter().skip(20).max().copied().unwrap_or(0);
    assert!(largest as u64 <= window / 4, "{largest} of {window}");
    assert!(
        bursts.iter().all(|&bytes| bytes <= 64 * 1024 + 14_720),
        "RFC 9002 §7.7"
    );
}

#[test]
fn window_does_not_grow_while_it_is_not_used() {
    let mut pair = connected(|_| {});
    let before = pair.client.connection().stats().path.congestion_window;
    for _ in 0..200 {
        write(&mut pair, &[1; 500]);
        pair.run_for(RTT * 2);
        while let Some(id) = pair
            .server
            .connection()
            .streams()
            .accept(Direction::Unidirectional)
        {
            let mut buffer = [0; 1000];
            while matches!(
                pair.server.connection().streams().read(id, &mut buffer),
                Ok(Some(_))
            ) {}
        }
        pair.server.touch();
    }
    let after = pair.client.connection().stats().path.congestion_window;
    assert!(after <= before + 2 * 1200, "{before} became {after}");
}

#[test]
fn round_trips_of_all_lengths_work() {
    // Attack A41: no overflow, no busy loop; the longest is ten times the longest sample (K82).
    let week = Duration::from_secs(7 * 24 * 3600);
    let delays = [
        Duration::ZERO,
        Duration::from_nanos(1),
        Duration::from_micros(50),
        Duration::from_secs(3),
        Duration::from_secs(300),
    ];
    for delay in delays {
        let mut pair = Pair::with(both(|config| {
            config.handshake_timeout = week * 500;
            config.max_idle_timeout = None;
        }));
        pair.link.delay = delay;
        pair.start();
        let limit = delay * 40 + Duration::from_secs(30);
        let done = pair.run_until(limit, |pair| {
            pair.client.has(&Event::Confirmed) && pair.server.has(&Event::Confirmed)
        });
        assert!(done, "{delay:?}: {:?}", pair.client.events);
        let transfer = Transfer::up(&mut pair, 1000);
        assert!(transfer.finish(&mut pair, limit).is_some(), "{delay:?}");
    }
}

#[test]
fn round_trips_of_weeks_end_without_busy_loops() {
    // Attacks A41, A51: far beyond the longest sample, so no timer waits for acknowledgements that
    // long.
    let week = Duration::from_secs(7 * 24 * 3600);
    let mut pair = Pair::with(both(|config| {
        config.handshake_timeout = week * 500;
        config.max_idle_timeout = None;
    }));
    pair.link.delay = week * 7;
    pair.start();
    let is_lost = |event: &Event| matches!(event, Event::Lost(_));
    let ended = pair.run_until(week * 280, |pair| pair.client.events.iter().any(is_lost));
    assert!(ended, "{:?}", pair.client.events);
    let sent = pair.client.sent.len() + pair.server.sent.len();
    assert!(sent < 1000, "{sent} datagrams");
}

#[test]
fn clock_that_jumps_or_stands_still_leaves_the_connection_open() {
    // Attack A42, fault F28: the clock jumps forwards by less than the idle timeout, and backwards
    // by any time.
    let mut pair = connected(|config| config.max_idle_timeout = None);
    let mut transfer = Transfer::up(&mut pair, 200_000);
    let mut steps = 0u64;
    while !transfer.step(&mut pair) {
        pair.step();
        steps += 1;
        let now = pair.now;
        match steps % 50 {
            10 => pair.now = now + Duration::from_secs(24 * 3600),
            20 => {
                // Datagrams arrive with earlier timestamps than those before.
                pair.now = now.saturating_sub(Duration::from_secs(3600));
                pair.client.connection().pings().request();
                pair.client.touch();
                pair.drive();
                pair.now = now;
            }
            _ => {}
        }
        assert!(steps < 20_000, "{} bytes", transfer.received());
    }
    assert!(!pair.client.connection().is_closed() && !pair.server.connection().is_closed());
}

#[test]
fn delay_that_jumps_leaves_the_connection_open() {
    // Fault F11.
    let mut pair = connected(|_| {});
    let mut transfer = Transfer::up(&mut pair, 500_000);
    let mut steps = 0;
    while !transfer.step(&mut pair) {
        pair.step();
        steps += 1;
        if steps % 100 == 0 {
            let is_long = pair.link.delay > Duration::from_secs(1);
            pair.link.delay = Duration::from_millis(if is_long { 10 } else { 2000 });
        }
        assert!(steps < 100_000);
    }
}

#[test]
fn connection_survives_a_blackhole_in_one_direction() {
    // Fault F04.
    for port in [4433, 50_000] {
        for seconds in [1, 10, 20] {
            let mut pair = connected(|_| {});
            let mut transfer = Transfer::up(&mut pair, 300_000);
            for _ in 0..10 {
                pair.step();
                transfer.step(&mut pair);
            }
            pair.link.filter = Some(Box::new(move |_, datagram| datagram.to.port() != port));
            pair.run_for(Duration::from_secs(seconds));
            pair.link.filter = None;
            let time = transfer.finish(&mut pair, Duration::from_secs(60));
            assert!(time.is_some(), "{seconds} s, to {port}");
        }
    }
}

#[test]
fn discarded_handshake_leaves_nothing_in_flight() {
    for seed in 0..20 {
        let mut pair = Pair::with(Setup {
            seed,
            ..both(|_| {})
        });
        pair.link.loss = 100;
        pair.link.reorder = 200;
        pair.connect();
        pair.link.loss = 0;
        pair.run_for(Duration::from_secs(3));
        for (who, end) in [("client", &mut pair.client), ("server", &mut pair.server)] {
            assert_eq!(
                end.connection().stats().path.bytes_in_flight,
                0,
                "{who}, seed {seed}"
            );
            assert_eq!(
                end.connection().packets.recovery.lists_in_use(),
                0,
                "{who}, seed {seed}"
            );
        }
    }
}
