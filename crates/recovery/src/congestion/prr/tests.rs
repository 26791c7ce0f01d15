use proptest::prelude::*;

use super::super::tests::{MTU, blank_ack, ms};
use super::*;
use crate::RttEstimator;

const MSS: u64 = MTU as u64;

fn loss(now: Time, lost: u64, in_flight: u64) -> LossSample<'static> {
    LossSample {
        now,
        lost_bytes: lost * MSS,
        largest_lost_sent: Time::ZERO,
        persistent: false,
        is_ecn: lost == 0,
        bytes_in_flight: in_flight * MSS,
        packets: &[],
    }
}

fn ack(rtt: &RttEstimator, now: Time, acked: u64, lost: u64, in_flight: u64) -> AckSample<'_> {
    AckSample {
        now,
        acked_bytes: acked,
        bytes_in_flight_before: in_flight + acked + lost,
        bytes_in_flight: in_flight,
        lost_bytes: lost,
        ..blank_ack(rtt)
    }
}

/// Sends all whole datagrams that are permitted. Returns their number.
fn send_allowed(prr: &mut Prr, in_flight: &mut u64) -> u64 {
    let sent = prr.room(u64::MAX, *in_flight) / MSS;
    prr.on_sent(sent * MSS);
    *in_flight += sent * MSS;
    sent
}

const START: Time = Time::from_nanos(1_000_000);
const LATER: Time = Time::from_nanos(2_000_000);

/// RFC 9937 §4 and figure 1 of RFC 6937: twenty packets in flight, one lost, the window halved.
#[test]
fn one_loss_permits_a_packet_for_every_other_one_delivered() {
    let rtt = RttEstimator::default();
    let mut prr = Prr::new(&loss(START, 1, 18), 10 * MSS, MTU);
    // The ACK that revealed the loss delivered one of the twenty.
    let mut in_flight = 18 * MSS;
    prr.on_ack(&ack(&rtt, START, MSS, MSS, in_flight));
    assert_eq!(prr.recover_fs, 20 * MSS);
    let mut sent = vec![send_allowed(&mut prr, &mut in_flight)];
    for _ in 0..18 {
        in_flight -= MSS;
        prr.on_ack(&ack(&rtt, LATER, MSS, 0, in_flight));
        sent.push(send_allowed(&mut prr, &mut in_flight));
    }
    assert_eq!(sent[0], 1, "the loss is repaired at once");
    assert_eq!(sent.iter().sum::<u64>(), 10, "{sent:?}");
    assert!(sent.iter().all(|count| *count <= 1), "{sent:?}");
    assert_eq!(in_flight, 10 * MSS);
}

/// RFC 9937 §6.2: losses have taken the flight below the threshold. SafeACK raises it by one packet
/// more than was delivered.
#[test]
fn heavy_loss_is_followed_by_slow_start_up_to_the_threshold() {
    let rtt = RttEstimator::default();
    let mut prr = Prr::new(&loss(START, 15, 4), 10 * MSS, MTU);
    let mut in_flight = 4 * MSS;
    prr.on_ack(&ack(&rtt, START, MSS, 15 * MSS, in_flight));
    let mut sent = vec![send_allowed(&mut prr, &mut in_flight)];
    for _ in 0..12 {
        in_flight -= MSS;
        prr.on_ack(&ack(&rtt, LATER, MSS, 0, in_flight));
        sent.push(send_allowed(&mut prr, &mut in_flight));
    }
    assert_eq!(sent[..8], [1, 2, 2, 2, 2, 2, 1, 1], "{sent:?}");
    assert_eq!(in_flight, 10 * MSS, "the threshold is not exceeded");
}

/// RFC 9937 §6.2: conservative while losses continue.
#[test]
fn more_losses_limit_sending_to_delivered_bytes() {
    let rtt = RttEstimator::default();
    let mut prr = Prr::new(&loss(START, 10, 9), 10 * MSS, MTU);
    let mut in_flight = 9 * MSS;
    prr.on_ack(&ack(&rtt, START, MSS, 10 * MSS, in_flight));
    send_allowed(&mut prr, &mut in_flight);
    in_flight -= 3 * MSS;
    prr.on_lost(&loss(LATER, 2, in_flight / MSS));
    prr.on_ack(&ack(&rtt, LATER, MSS, 2 * MSS, in_flight));
    assert_eq!(send_allowed(&mut prr, &mut in_flight), 1);
}

/// A timer has declared everything lost: one packet may probe the path.
#[test]
fn one_packet_may_be_sent_with_none_in_flight() {
    let rtt = RttEstimator::default();
    let mut prr = Prr::new(&loss(START, 20, 0), 10 * MSS, MTU);
    let mut in_flight = 0;
    assert_eq!(send_allowed(&mut prr, &mut in_flight), 1);
    assert_eq!(send_allowed(&mut prr, &mut in_flight), 0);
    in_flight = 0;
    prr.on_lost(&loss(LATER, 1, 0));
    assert_eq!(
        send_allowed(&mut prr, &mut in_flight),
        1,
        "a further loss permits another packet"
    );
    in_flight = 0;
    prr.on_ack(&ack(&rtt, LATER + ms(1), MSS, 0, 0));
    assert_eq!(
        send_allowed(&mut prr, &mut in_flight),
        1,
        "not a safe ACK after a loss"
    );
    in_flight -= MSS;
    prr.on_ack(&ack(&rtt, LATER + ms(2), MSS, 0, in_flight));
    assert_eq!(send_allowed(&mut prr, &mut in_flight), 2);
}

/// RFC 9937 §4: a mark begins recovery without a loss.
#[test]
fn a_mark_reduces_the_flight_to_the_threshold() {
    let rtt = RttEstimator::default();
    let mut prr = Prr::new(&loss(START, 0, 99), 70 * MSS, MTU);
    let mut in_flight = 99 * MSS;
    prr.on_ack(&ack(&rtt, START, MSS, 0, in_flight));
    send_allowed(&mut prr, &mut in_flight);
    for _ in 0..49 {
        in_flight -= 2 * MSS;
        prr.on_ack(&ack(&rtt, LATER, 2 * MSS, 0, in_flight));
        assert!(send_allowed(&mut prr, &mut in_flight) <= 2);
    }
    assert_eq!(in_flight, 70 * MSS);
}

#[test]
fn the_window_alone_limits_flights_of_an_initial_window() {
    let prr = Prr::new(&loss(START, 3, 7), 5 * MSS, MTU);
    assert_eq!(prr.room(5 * MSS, 2 * MSS), 3 * MSS);
    assert_eq!(prr.room(5 * MSS, 7 * MSS), 0);
}

proptest! {
    /// For any losses and acknowledgements, a flight above the threshold ends at or below it, and
    /// one below never exceeds it.
    #[test]
    fn the_flight_converges_to_the_threshold(
        flight in 13u64..500,
        part in 10u64..90,
        acks in prop::collection::vec((1u64..10, 0u64..5), 1..300),
    ) {
        let rtt = RttEstimator::default();
        let ssthresh = flight * part / 100 * MSS;
        let mut prr = Prr::new(&loss(START, 1, flight - 1), ssthresh, MTU);
        let mut in_flight = (flight - 1) * MSS;
        let (mut delivered, mut lost) = (0, MSS);
        for (acked, missing) in acks {
            // Packets sent in recovery are not acknowledged in it.
            let old = (flight * MSS).saturating_sub(delivered + lost);
            let acked = (acked * MSS).min(old);
            let missing = (missing * MSS).min(old - acked);
            if acked == 0 {
                break;
            }
            (delivered, lost) = (delivered + acked, lost + missing);
            in_flight -= acked + missing;
            if missing > 0 {
                prr.on_lost(&loss(LATER, missing / MSS, in_flight / MSS));
            }
            prr.on_ack(&ack(&rtt, LATER, acked, missing, in_flight));
            let before = in_flight;
            send_allowed(&mut prr, &mut in_flight);
            prop_assert!(in_flight <= before.max(ssthresh).max(before + 11 * MSS));
            prop_assert!(before > ssthresh || in_flight <= ssthresh + MSS);
        }
        if delivered + lost == flight * MSS {
            prop_assert!(in_flight <= ssthresh + MSS, "{in_flight} of {ssthresh}");
        }
    }
}
