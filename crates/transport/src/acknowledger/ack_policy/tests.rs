use courser_base::Ecn;

use super::*;

const DELAY: Duration = Duration::from_millis(25);
const LEAST: Duration = Duration::from_millis(1);
const RTT: Duration = Duration::from_millis(50);

/// A policy with the packets that arrived and the current time.
struct Receiver {
    policy: AckPolicy,
    received: Received,
    now: Time,
}

impl Receiver {
    fn new() -> Self {
        let mut receiver = Self {
            policy: AckPolicy::default(),
            received: Received::default(),
            now: Time::ZERO + Duration::from_secs(1),
        };
        // An ACK was sent just now, so there was no idle period.
        receiver.policy.last_sent = receiver.now;
        receiver
    }

    fn with_terms(threshold: u64, reordering: u64) -> Self {
        let mut receiver = Self::new();
        let frame = request(0, threshold, DELAY, reordering);
        receiver
            .policy
            .on_ack_frequency_frame(&frame, LEAST)
            .expect("a fair request");
        receiver
    }

    /// Receives one packet in a batch of its own. Returns true when an ACK is due, and sends it.
    fn receive(&mut self, number: u64) -> bool {
        self.receive_as(number, |_| {})
    }

    fn receive_as(&mut self, number: u64, change: impl Fn(&mut AckEliciting)) -> bool {
        let is_in_order = number == self.received.expected();
        self.received.insert(number, self.now, Ecn::NotEct);
        let mut packet = AckEliciting {
            number,
            is_in_order,
            is_marked: false,
            ends_stream: false,
            has_immediate_ack: false,
        };
        change(&mut packet);
        self.policy
            .on_ack_eliciting(self.now, &packet, &self.received, DELAY);
        self.policy.on_batch_end(self.now, RTT);
        let due = self.policy.is_due();
        if due {
            let largest = self.received.largest().expect("one has arrived");
            self.policy.on_ack_sent(self.now, largest, false);
        }
        due
    }

    fn all(&mut self, numbers: impl IntoIterator<Item = u64>) -> Vec<u64> {
        numbers
            .into_iter()
            .filter(|&number| self.receive(number))
            .collect()
    }
}

fn request(sequence: u64, threshold: u64, delay: Duration, reordering: u64) -> AckFrequency {
    AckFrequency {
        sequence,
        ack_eliciting_threshold: threshold,
        requested_max_ack_delay: u64::try_from(delay.as_micros()).expect("short"),
        reordering_threshold: reordering,
    }
}

#[test]
fn one_packet_waits_for_the_delay() {
    let mut receiver = Receiver::new();
    assert!(!receiver.receive(0));
    let policy = &mut receiver.policy;
    assert!(policy.is_pending());
    assert_eq!(policy.deadline(), Some(receiver.now + DELAY));
    policy.on_timeout(receiver.now + DELAY);
    assert!(policy.is_due());
}

#[test]
fn second_packet_makes_it_due_at_the_end_of_the_batch() {
    let mut receiver = Receiver::new();
    assert_eq!(receiver.all(0..6), [1, 3, 5]);
    let policy = &receiver.policy;
    assert!(!policy.is_due() && !policy.is_pending() && policy.deadline().is_none());
}

#[test]
fn packet_of_the_handshake_is_acknowledged_at_once() {
    let mut policy = AckPolicy::default();
    policy.on_handshake_packet();
    assert!(policy.is_due());
}

#[test]
fn gap_and_late_packet_are_acknowledged_at_once() {
    let mut receiver = Receiver::new();
    assert_eq!(receiver.all([0, 2, 1, 3, 4]), [2, 1, 4]);
}

#[test]
fn every_mark_and_the_first_packet_without_one_are_acknowledged_at_once() {
    let mut receiver = Receiver::new();
    let marks = [false, true, true, true, false, false, true];
    let due: Vec<_> = (0..)
        .zip(marks)
        .map(|(number, mark)| receiver.receive_as(number, |packet| packet.is_marked = mark))
        .collect();
    assert_eq!(due, [false, true, true, true, true, false, true]);
}

#[test]
fn thinned_acks_report_each_change_of_the_mark() {
    let mut receiver = Receiver::with_terms(100, 3);
    let marks = [false, true, true, true, false, false, true];
    let due: Vec<_> = (0..)
        .zip(marks)
        .map(|(number, mark)| receiver.receive_as(number, |packet| packet.is_marked = mark))
        .collect();
    assert_eq!(due, [false, true, false, false, true, false, true]);
}

#[test]
fn end_of_a_stream_is_acknowledged_soon_and_with_another_packet_at_once() {
    let mut receiver = Receiver::with_terms(100, 3);
    assert!(!receiver.receive_as(0, |packet| packet.ends_stream = true));
    let deadline = receiver.policy.deadline().expect("something is pending");
    assert_eq!(deadline, receiver.now + END_DELAY);
    assert!(receiver.receive(1), "the end was among the two");
    assert_eq!(receiver.all(2..10), [] as [u64; 0], "thinned again");
    assert!(receiver.receive_as(10, |packet| packet.ends_stream = true));
}

#[test]
fn immediate_ack_frame_makes_an_ack_due_at_once() {
    let mut receiver = Receiver::with_terms(100, 0);
    assert!(!receiver.receive(0));
    assert!(receiver.receive_as(1, |packet| packet.has_immediate_ack = true));
    assert!(!receiver.receive(2));
}

#[test]
fn threshold_counts_packets_without_an_ack() {
    for (threshold, expected) in [(0, [0, 1, 2, 3].as_slice()), (1, &[1, 3]), (2, &[2])] {
        let mut receiver = Receiver::with_terms(threshold, 3);
        assert_eq!(receiver.all(0..4), expected, "threshold {threshold}");
    }
    assert_eq!(Receiver::with_terms(9, 3).all(0..35), [9, 19, 29]);
}

#[test]
fn requested_delay_holds_for_what_waits_already() {
    let mut receiver = Receiver::new();
    receiver.receive(0);
    let frame = request(0, 100, LEAST, 3);
    let result = receiver.policy.on_ack_frequency_frame(&frame, LEAST);
    result.expect("a fair request");
    receiver.receive(1);
    assert_eq!(receiver.policy.deadline(), Some(receiver.now + LEAST));
}

#[test]
fn second_packet_after_an_idle_period_is_acknowledged_at_once() {
    let mut receiver = Receiver::with_terms(100, 3);
    assert_eq!(receiver.all(0..5), [] as [u64; 0]);
    receiver.now += RTT * 2;
    assert!(receiver.receive(5));
    assert!(!receiver.receive(6));
}

/// draft-ietf-quic-ack-frequency-12 §6.2.1, the first table.
#[test]
fn reordering_threshold_of_three_follows_the_example() {
    let mut receiver = Receiver::with_terms(1000, 3);
    let due = receiver.all([0, 1, 3, 4, 5, 8, 9, 10]);
    assert_eq!(due, [5, 9, 10]);
}

/// draft-ietf-quic-ack-frequency-12 §6.2.1, the second table.
#[test]
fn reordering_threshold_of_five_follows_the_example() {
    let mut receiver = Receiver::with_terms(1000, 5);
    let due = receiver.all([0, 1, 3, 5, 6, 7, 8, 9]);
    assert_eq!(due, [7, 9]);
}

#[test]
fn packet_beyond_the_reordering_threshold_is_acknowledged_at_once() {
    let mut receiver = Receiver::with_terms(1000, 3);
    assert_eq!(receiver.all([0, 2, 3, 4]), [4]);
    assert_eq!(receiver.all([1]), [1], "4 - 1 reaches the threshold");
    let mut receiver = Receiver::with_terms(1000, 3);
    assert_eq!(receiver.all([0, 2, 3, 1, 4]), [] as [u64; 0], "in time");
}

#[test]
fn reordering_threshold_of_zero_ignores_order() {
    let mut receiver = Receiver::with_terms(1000, 0);
    assert_eq!(receiver.all([5, 1, 90, 3, 50]), [] as [u64; 0]);
}

#[test]
fn obsolete_and_repeated_requests_are_ignored() {
    let mut receiver = Receiver::new();
    for (sequence, threshold) in [(5, 7), (4, 0), (5, 0)] {
        let frame = request(sequence, threshold, DELAY, 3);
        let result = receiver.policy.on_ack_frequency_frame(&frame, LEAST);
        result.expect("a fair request");
    }
    assert_eq!(receiver.all(0..8), [7]);
}

#[test]
fn delays_outside_the_range_are_a_protocol_violation() {
    let mut policy = AckPolicy::default();
    let longest = Duration::from_millis((1 << 14) - 1);
    for (delay, is_fair) in [
        (Duration::ZERO, false),
        (LEAST - Duration::from_micros(1), false),
        (LEAST, true),
        (longest, true),
        (longest + LEAST, false),
        (Duration::from_micros(courser_wire::MAX_VARINT), false),
    ] {
        let result = policy.on_ack_frequency_frame(&request(1, 5, delay, 3), LEAST);
        let code = result.err().map(|error| error.code.value());
        assert_eq!(code, (!is_fair).then_some(0x0a), "{delay:?}");
    }
}

#[test]
fn request_refused_for_its_delay_leaves_the_old_terms() {
    let mut receiver = Receiver::with_terms(3, 3);
    let frame = request(9, 0, Duration::ZERO, 1);
    let result = receiver.policy.on_ack_frequency_frame(&frame, LEAST);
    assert!(result.is_err());
    assert_eq!(receiver.all(0..8), [3, 7]);
}

#[test]
fn streak_of_ack_only_packets_requests_one_ping() {
    let mut policy = AckPolicy::default();
    let pings = (0..2 * STREAK)
        .filter(|_| policy.on_ack_sent(Time::ZERO, 1, false))
        .count();
    assert_eq!(pings, 2);
    assert!(!policy.on_ack_sent(Time::ZERO, 1, true));
}
