//! Tests of loss recovery without a connection.

use courser_telemetry::Record;
use courser_wire::frame::{Ack, Frame, Frames};
use courser_wire::{StreamId, Writer};

use super::*;
use crate::error::TransportError;
use crate::space::sent::SentFrame;

/// Records which frames were acknowledged and lost.
#[derive(Default)]
struct Fates {
    acked: Vec<(SpaceId, SentFrame)>,
    lost: Vec<(SpaceId, SentFrame)>,
    has_new_data: bool,
    crypto_waits: bool,
}

impl FrameOwners for Fates {
    fn on_frame_acked(&mut self, space: SpaceId, frame: SentFrame) {
        self.acked.push((space, frame));
    }

    fn on_frame_lost(&mut self, space: SpaceId, frame: SentFrame) {
        self.lost.push((space, frame));
    }

    fn has_new_data(&self) -> bool {
        self.has_new_data
    }

    fn has_crypto(&self, _: SpaceId) -> bool {
        self.crypto_waits
    }

    fn record(&mut self, _: Time, _: impl FnOnce() -> Record) {}
}

/// Loss recovery with a clock and the frames that it has reported.
struct Bench {
    recovery: LossRecovery,
    fates: Fates,
    rng: Rng,
    now: Time,
}

const APPLICATION: SpaceId = SpaceId::Application;
const RTT: Duration = Duration::from_millis(20);

impl Bench {
    fn new(side: Side) -> Self {
        let mut rng = Rng::new([7; 32]);
        let now = Time::ZERO + Duration::from_secs(1);
        let config = Arc::new(TransportConfig::default());
        Self {
            recovery: LossRecovery::new(now, side, config, Experience::default(), &mut rng),
            fates: Fates::default(),
            rng,
            now,
        }
    }

    /// A server whose handshake is confirmed.
    fn confirmed() -> Self {
        let mut bench = Self::new(Side::Server);
        bench.recovery.on_handshake_complete();
        bench.recovery.on_handshake_confirmed(Time::ZERO, false);
        bench
    }

    /// Sends a packet of 1000 bytes with one stream frame at `offset`; returns its number.
    fn send(&mut self, id: SpaceId, offset: u64) -> u64 {
        self.send_of_kind(id, offset, true)
    }

    fn send_of_kind(&mut self, id: SpaceId, offset: u64, ack_eliciting: bool) -> u64 {
        let number = self
            .recovery
            .next_number(id)
            .expect("the space is open")
            .value;
        let (lists, _) = self.recovery.filling();
        lists.start();
        lists.push(stream(offset));
        let frames = self.recovery.take_record();
        let built = Built {
            number,
            len: 1000,
            frames,
            ack_eliciting,
            in_flight: true,
            quic_bit_cleared: false,
            follows_in_batch: false,
        };
        let ecn = Ecn::NotEct;
        self.recovery
            .on_packet_sent(self.now, id, &built, ecn, &mut self.rng);
        number
    }

    /// Receives an ACK of one packet.
    fn ack(&mut self, id: SpaceId, number: u64) -> Result<Acknowledged, TransportError> {
        self.ack_after(id, number, 0)
    }

    /// Receives an ACK of one packet with a delay of `delay` units of 8 µs.
    fn ack_after(
        &mut self,
        id: SpaceId,
        number: u64,
        delay: u64,
    ) -> Result<Acknowledged, TransportError> {
        let mut bytes = [0; 64];
        let mut writer = Writer::new(&mut bytes);
        let mut ranges = courser_base::RangeSet::default();
        ranges.insert_one(number);
        assert!(Ack::write(&mut writer, &ranges, delay, None, 1));
        let len = writer.position();
        let Some(Ok(Frame::Ack(frame))) = Frames::new(&bytes[..len]).next() else {
            panic!("an ACK frame");
        };
        self.recovery.check_ack(id, &frame)?;
        Ok(self
            .recovery
            .on_ack_frame(self.now, id, &frame, &mut self.fates))
    }

    /// Advances to the timer of loss recovery and runs it. Returns the time that passed.
    fn expire(&mut self) -> Duration {
        let timer = self.recovery.loss_timer(u64::MAX).expect("a timer runs");
        let waited = timer.at() - self.now;
        self.now = timer.at();
        let is_too_small = self
            .recovery
            .on_timeout(self.now, u64::MAX, &mut self.fates);
        assert!(!is_too_small);
        waited
    }
}

fn stream(offset: u64) -> SentFrame {
    SentFrame::Stream {
        id: StreamId::from_value(0),
        offset,
        len: 900,
        fin: false,
    }
}

#[test]
fn acknowledged_packet_is_not_in_flight_and_owner_is_notified() {
    let mut bench = Bench::confirmed();
    let number = bench.send(APPLICATION, 0);
    assert_eq!(bench.recovery.path().stats().bytes_in_flight, 1000);
    bench.now += RTT;
    let acknowledged = bench.ack(APPLICATION, number).expect("it was sent");
    assert_eq!(acknowledged.largest, Some(number));
    assert_eq!(bench.fates.acked, [(APPLICATION, stream(0))]);
    assert_eq!(bench.recovery.path().stats().bytes_in_flight, 0);
    assert_eq!(bench.recovery.path().rtt().smoothed(), RTT);
    assert_eq!(bench.recovery.loss_timer(u64::MAX), None);
}

#[test]
fn acknowledged_unsent_number_is_protocol_violation() {
    let mut bench = Bench::confirmed();
    let number = bench.send(APPLICATION, 0);
    let error = bench.ack(APPLICATION, number + 1).expect_err("not sent");
    assert_eq!(
        error.code,
        courser_wire::TransportErrorCode::PROTOCOL_VIOLATION
    );
    let skipped = bench.recovery.skip_at();
    while bench.send(APPLICATION, 0) < skipped {}
    let error = bench.ack(APPLICATION, skipped).expect_err("skipped");
    assert_eq!(
        error.code,
        courser_wire::TransportErrorCode::PROTOCOL_VIOLATION
    );
    assert!(bench.fates.acked.is_empty());
}

#[test]
fn three_newer_packets_cause_loss_and_lower_window() {
    let mut bench = Bench::confirmed();
    let numbers: Vec<_> = (0..5)
        .map(|offset| bench.send(APPLICATION, offset))
        .collect();
    let window = bench.recovery.path().window();
    bench.now += RTT;
    bench.ack(APPLICATION, numbers[3]).expect("it was sent");
    assert_eq!(bench.fates.lost, [(APPLICATION, stream(0))]);
    assert!(bench.recovery.path().window() < window);
    let stats = bench.recovery.stats();
    assert_eq!((stats.packets_lost, stats.congestion_events), (1, 1));
    assert!(bench.recovery.is_probing(APPLICATION), "one packet leaves");
}

#[test]
fn late_packet_undoes_its_loss() {
    let mut bench = Bench::confirmed();
    let numbers: Vec<_> = (0..5)
        .map(|offset| bench.send(APPLICATION, offset))
        .collect();
    let window = bench.recovery.path().window();
    bench.now += RTT;
    bench.ack(APPLICATION, numbers[3]).expect("it was sent");
    bench.ack(APPLICATION, numbers[0]).expect("it was sent");
    assert!(bench.recovery.path().window() >= window);
    let stats = bench.recovery.stats();
    assert_eq!(stats.packets_spuriously_lost, 1);
    assert_eq!(stats.congestion_events_undone, 1);
    assert!(bench.recovery.packet_threshold() > 3);
}

#[test]
fn probe_timeouts_double_and_repeat_the_oldest_frame() {
    let mut bench = Bench::confirmed();
    bench.send(APPLICATION, 0);
    let first = bench.expire();
    assert_eq!(bench.fates.lost, [(APPLICATION, stream(0))]);
    assert!(bench.recovery.is_probing(APPLICATION));
    assert!(bench.recovery.is_ping_due(APPLICATION));
    bench.send(APPLICATION, 0);
    let second = bench.expire();
    assert_eq!(second, first * 2);
    assert_eq!(bench.recovery.stats().packets_lost, 0, "nothing is lost");
}

#[test]
fn the_first_probe_carries_new_data_if_there_is_any() {
    let mut bench = Bench::confirmed();
    bench.fates.has_new_data = true;
    bench.send(APPLICATION, 0);
    bench.expire();
    assert!(bench.fates.lost.is_empty());
    bench.expire();
    assert_eq!(bench.fates.lost, [(APPLICATION, stream(0))]);
}

#[test]
fn a_client_without_anything_in_flight_probes_until_the_server_has_validated_it() {
    let mut bench = Bench::new(Side::Client);
    bench.recovery.open_space(SpaceId::Initial);
    let number = bench.send(SpaceId::Initial, 0);
    bench.ack(SpaceId::Initial, number).expect("it was sent");
    bench.expire();
    assert!(bench.recovery.is_probing(SpaceId::Initial));
    bench.recovery.open_space(SpaceId::Handshake);
    let number = bench.send(SpaceId::Handshake, 0);
    bench.ack(SpaceId::Handshake, number).expect("it was sent");
    assert_eq!(bench.recovery.loss_timer(u64::MAX), None);
}

#[test]
fn no_timer_runs_at_the_amplification_limit() {
    let mut bench = Bench::new(Side::Server);
    bench.recovery.open_space(SpaceId::Initial);
    bench.send(SpaceId::Initial, 0);
    assert!(bench.recovery.loss_timer(1200).is_some());
    assert_eq!(bench.recovery.loss_timer(1199), None);
}

#[test]
fn full_window_permits_only_acks_and_probes() {
    let mut bench = Bench::confirmed();
    let demand = Demand {
        budget: u64::MAX,
        is_ack_due: false,
        little: None,
    };
    let nothing = Demand {
        budget: 0,
        ..demand
    };
    let permit = |bench: &mut Bench, demand| bench.recovery.permit(bench.now, APPLICATION, demand);
    assert!(matches!(permit(&mut bench, &demand), SendPermit::Bytes(_)));
    assert_eq!(permit(&mut bench, &nothing), SendPermit::Nothing);
    while bench.recovery.path().congestion_room() >= 1200 {
        bench.send(APPLICATION, 0);
    }
    assert_eq!(permit(&mut bench, &demand), SendPermit::AckOnly);
    bench.expire();
    assert_eq!(permit(&mut bench, &demand), SendPermit::Probe);
}

#[test]
fn packets_of_another_path_leave_its_flight_and_not_that_of_the_path_in_use() {
    let mut bench = Bench::confirmed();
    let number = bench.send(APPLICATION, 0);
    let old = bench.recovery.path().key();
    let new = bench.recovery.open_path(bench.now);
    bench.recovery.activate_path(new);
    bench.send(APPLICATION, 900);
    assert_eq!(bench.recovery.bytes_in_flight_of_all_paths(), 2000);
    bench.now += RTT;
    bench.ack(APPLICATION, number).expect("it was sent");
    assert_eq!(bench.recovery.path().stats().bytes_in_flight, 1000);
    assert_eq!(bench.recovery.bytes_in_flight_of_all_paths(), 1000);
    assert_ne!(bench.recovery.path().rtt().smoothed(), RTT);
    bench.recovery.close_path(old);
    assert_eq!(bench.recovery.bytes_in_flight_of_all_paths(), 1000);
}

#[test]
fn packets_of_discarded_keys_are_not_in_flight() {
    let mut bench = Bench::new(Side::Client);
    bench.recovery.open_space(SpaceId::Initial);
    bench.send(SpaceId::Initial, 0);
    assert!(bench.recovery.is_first_flight_open());
    bench.recovery.discard_space(SpaceId::Initial);
    assert_eq!(bench.recovery.path().stats().bytes_in_flight, 0);
    assert_eq!(bench.recovery.next_number(SpaceId::Initial), None);
    assert_eq!(bench.recovery.metrics().packets_in_flight, 0);
}

/// RFC 9002 §6.2.2.
#[test]
fn discarded_keys_reset_probe_timeouts() {
    for id in [SpaceId::Initial, SpaceId::Handshake] {
        let mut bench = Bench::new(Side::Client);
        bench.recovery.open_space(id);
        bench.send(id, 0);
        let first = bench.expire();
        bench.send(id, 0);
        bench.expire();
        assert_eq!(bench.recovery.pto_count(), 2, "{id:?}");
        bench.recovery.discard_space(id);
        assert_eq!(bench.recovery.pto_count(), 0, "{id:?}");
        bench.recovery.on_handshake_complete();
        bench.recovery.on_handshake_confirmed(Time::ZERO, false);
        assert_eq!(bench.recovery.loss_timer(u64::MAX), None, "{id:?}");
        bench.send(APPLICATION, 0);
        assert!(bench.expire() < first * 2, "{id:?}: not doubled");
    }
}

/// RFC 9002 §6.3.
#[test]
fn retry_resets_loss_recovery() {
    let mut bench = Bench::new(Side::Client);
    bench.recovery.open_space(SpaceId::Initial);
    let window = bench.recovery.path().window();
    let first = bench.send(SpaceId::Initial, 0);
    let waited = bench.expire();
    bench.send(SpaceId::Initial, 0);
    bench.expire();
    bench.recovery.on_retry(bench.now, &mut bench.fates);
    assert_eq!(bench.recovery.pto_count(), 0);
    assert_eq!(bench.recovery.path().stats().bytes_in_flight, 0);
    assert_eq!(bench.recovery.path().window(), window);
    assert_eq!(bench.recovery.stats().packets_lost, 0);
    let next = bench.send(SpaceId::Initial, 0);
    assert!(next > first + 1, "numbers go on (RFC 9000 §17.2.5.3)");
    assert_eq!(bench.expire(), waited, "not doubled");
}

/// RFC 9002 §6.3.
#[test]
fn the_time_to_a_retry_is_the_first_estimate_of_the_round_trip() {
    let timeout = |answered_in: Duration| {
        let mut bench = Bench::new(Side::Client);
        bench.recovery.open_space(SpaceId::Initial);
        bench.send(SpaceId::Initial, 0);
        bench.now += answered_in;
        bench.recovery.on_retry(bench.now, &mut bench.fates);
        bench.send(SpaceId::Initial, 0);
        bench.expire()
    };
    assert_eq!(timeout(RTT), RTT * 3);
    assert_eq!(timeout(Duration::ZERO), MIN_FIRST_RTT * 3);
}

/// RFC 9002 §5.3.
#[test]
fn ack_delays_of_handshake_packets_are_ignored() {
    let smoothed = |delay| {
        let mut bench = Bench::new(Side::Client);
        bench.recovery.open_space(SpaceId::Initial);
        for time in [RTT, RTT * 2] {
            let number = bench.send(SpaceId::Initial, 0);
            bench.now += time;
            let acknowledged = bench.ack_after(SpaceId::Initial, number, delay);
            assert!(acknowledged.is_ok());
        }
        bench.recovery.path().rtt().smoothed()
    };
    // An eighth of the second sample, without 10 ms that the peer may have waited.
    assert_eq!(smoothed(0), RTT + RTT / 8);
    assert_eq!(smoothed(1250), smoothed(0));
}

/// RFC 9002 §7.4: no loss is ignored, whatever keys the peer had.
#[test]
fn losses_count_in_every_space() {
    for id in SpaceId::ALL {
        let mut bench = Bench::new(Side::Server);
        if id != APPLICATION {
            bench.recovery.open_space(id);
        }
        let numbers: Vec<_> = (0..5).map(|offset| bench.send(id, offset)).collect();
        let window = bench.recovery.path().window();
        bench.now += RTT;
        bench.ack(id, numbers[4]).expect("it was sent");
        assert_eq!(bench.recovery.stats().packets_lost, 2, "{id:?}");
        assert_eq!(bench.recovery.stats().congestion_events, 1, "{id:?}");
        assert!(bench.recovery.path().window() < window, "{id:?}");
    }
}

#[test]
fn a_quoted_packet_that_was_refused_is_lost_without_congestion() {
    let mut bench = Bench::confirmed();
    let number = bench.send(APPLICATION, 0);
    let window = bench.recovery.path().window();
    let quoted = bench.recovery.quoted(number, 1);
    assert_eq!(quoted, Quoted::Packet(number));
    assert_eq!(bench.recovery.quoted(number + 1, 1), Quoted::Unknown);
    let fates = &mut bench.fates;
    let is_believed = bench
        .recovery
        .on_router_report(bench.now, quoted, 1200, fates);
    assert!(!is_believed, "1000 bytes fit 1200");
    assert_eq!(bench.recovery.path().window(), window);
}

/// Padded ACKs fill the window, and the peer acknowledges none of them. Without a datagram that asks for an
/// acknowledgement, nothing could be sent any more.
#[test]
fn padding_in_flight_does_not_block_sending() {
    let mut bench = Bench::confirmed();
    for offset in 0..100 {
        bench.send_of_kind(APPLICATION, offset, false);
    }
    let demand = Demand {
        budget: u64::MAX,
        is_ack_due: false,
        little: None,
    };
    let permit = |bench: &mut Bench| bench.recovery.permit(bench.now, APPLICATION, &demand);
    bench.now += Duration::from_secs(1);
    assert!(matches!(permit(&mut bench), SendPermit::Bytes(_)));
    bench.send(APPLICATION, 100);
    assert_eq!(
        permit(&mut bench),
        SendPermit::AckOnly,
        "an acknowledgement is awaited"
    );
}
