//! Single acknowledgements and losses with values chosen by the test.

use super::super::drain::Drain;
use super::super::phase::Phase;
use super::super::probe_bw::ProbeBw;
use super::super::probe_rtt::ProbeRtt;
use super::super::startup::Startup;
use super::*;
use crate::RateSample;
pub(in crate::congestion::bbr) use crate::congestion::Controller as _;
use crate::congestion::LostPacket;

pub(in crate::congestion::bbr) const MTU: u16 = 1200;
pub(in crate::congestion::bbr) const SIZE: u64 = MTU as u64;
pub(in crate::congestion::bbr) const RTT: Duration = Duration::from_millis(50);

/// The names of the phases, as `Bbr::state` returns them.
pub(in crate::congestion::bbr) const STARTUP: &str = "startup";
pub(in crate::congestion::bbr) const DRAIN: &str = "drain";
pub(in crate::congestion::bbr) const DOWN: &str = "probe_bw_down";
pub(in crate::congestion::bbr) const CRUISE: &str = "probe_bw_cruise";
pub(in crate::congestion::bbr) const REFILL: &str = "probe_bw_refill";
pub(in crate::congestion::bbr) const UP: &str = "probe_bw_up";
pub(in crate::congestion::bbr) const PROBE_RTT: &str = "probe_rtt";

/// A controller on a path of its own. The test chooses the values of each round.
#[derive(Debug)]
pub(in crate::congestion::bbr) struct Bench {
    pub(in crate::congestion::bbr) bbr: Bbr,
    pub(in crate::congestion::bbr) now: Time,
    pub(in crate::congestion::bbr) rtt: RttEstimator,
    pub(in crate::congestion::bbr) delivered: u64,
    next_number: u64,
}

/// The round trip that one acknowledgement ends.
#[derive(Clone, Copy, Debug)]
pub(in crate::congestion::bbr) struct Round {
    pub(in crate::congestion::bbr) rate: Rate,
    pub(in crate::congestion::bbr) rtt: Duration,
    /// Bytes in flight after the acknowledgement.
    pub(in crate::congestion::bbr) inflight: u64,
    /// Bytes in flight when the acknowledged packet was sent.
    pub(in crate::congestion::bbr) tx_in_flight: u64,
    pub(in crate::congestion::bbr) lost: u64,
    pub(in crate::congestion::bbr) is_app_limited: bool,
    pub(in crate::congestion::bbr) ce: u64,
}

impl Round {
    /// Returns a round at this rate, with as much in flight as such a path holds.
    pub(in crate::congestion::bbr) fn at(megabits: u64) -> Self {
        let rate = Rate::from_bytes_per_second(megabits * 125_000);
        let bdp = rate.bytes_in(RTT);
        Self {
            rate,
            rtt: RTT,
            inflight: bdp,
            tx_in_flight: bdp,
            lost: 0,
            is_app_limited: false,
            ce: 0,
        }
    }
}

impl Bench {
    pub(in crate::congestion::bbr) fn new() -> Self {
        Self {
            bbr: Bbr::new(MTU, 5),
            now: Time::ZERO + Duration::from_secs(3),
            rtt: RttEstimator::default(),
            delivered: 0,
            next_number: 0,
        }
    }

    /// Returns a flow in ProbeBW_CRUISE on a path with this rate.
    pub(in crate::congestion::bbr) fn cruising(megabits: u64) -> Self {
        let mut bench = Self::new();
        for _ in 0..4 {
            bench.round(Round::at(megabits));
        }
        for _ in 0..4 {
            let drained = Round {
                inflight: 0,
                ..Round::at(megabits)
            };
            bench.round(drained);
        }
        assert_eq!(bench.bbr.state(), CRUISE);
        bench
    }

    /// Returns a flow in ProbeBW_UP on such a path.
    pub(in crate::congestion::bbr) fn probing(megabits: u64) -> Self {
        let mut bench = Self::cruising(megabits);
        bench.until(REFILL, Round::at(megabits));
        bench.bbr.model.min_rtt.on_probed(bench.now);
        bench.round(Round::at(megabits));
        assert_eq!(bench.bbr.state(), UP);
        bench
    }

    /// Puts the controller into the phase with this name, as if it had just begun.
    pub(in crate::congestion::bbr) fn put_into(&mut self, phase: &str) {
        let down = ProbeBw::down(self.now, &mut self.bbr.random);
        self.bbr.phase = match phase {
            STARTUP => Phase::Startup(Startup),
            DRAIN => Phase::Drain(Drain::new(0)),
            DOWN => Phase::ProbeBw(down),
            CRUISE => {
                let mut cruise = down;
                cruise.start_cruise();
                Phase::ProbeBw(cruise)
            }
            REFILL => Phase::ProbeBw(ProbeBw::refill()),
            UP => Phase::ProbeBw(ProbeBw::up(self.bbr.view())),
            PROBE_RTT => Phase::ProbeRtt(ProbeRtt::default()),
            other => panic!("no phase is called {other}"),
        };
        assert_eq!(self.bbr.state(), phase);
    }

    /// Repeats the round until the state is reached. Returns the number of rounds.
    pub(in crate::congestion::bbr) fn until(&mut self, state: &str, round: Round) -> u64 {
        for count in 0..200 {
            if self.bbr.state() == state {
                return count;
            }
            self.round(round);
        }
        panic!("{} after 200 rounds, not {state}", self.bbr.state());
    }

    /// Advances the time by a round trip, which ends with one acknowledgement.
    pub(in crate::congestion::bbr) fn round(&mut self, round: Round) {
        self.now += round.rtt;
        self.ack(round, self.delivered);
    }

    /// Acknowledges a packet that was sent after `prior_delivered` bytes had been delivered.
    pub(in crate::congestion::bbr) fn ack(&mut self, round: Round, prior_delivered: u64) {
        let bytes = round.rate.bytes_in(round.rtt);
        self.delivered += bytes;
        self.next_number += bytes / SIZE + 1;
        self.rtt
            .on_sample(self.now, round.rtt, Duration::ZERO, None);
        let sent = self.now.saturating_sub(round.rtt);
        self.bbr.on_ack(&AckSample {
            now: self.now,
            acked_bytes: bytes,
            largest_acked: self.next_number,
            largest_acked_sent: sent,
            earliest_acked_sent: sent,
            rtt: &self.rtt,
            rtt_sample: Some(round.rtt),
            app_limited: round.is_app_limited,
            bytes_in_flight_before: round.inflight + bytes,
            bytes_in_flight: round.inflight,
            lost_bytes: round.lost,
            delivered: self.delivered,
            rate: Some(RateSample {
                rate: round.rate,
                delivered: self.delivered - prior_delivered,
                interval: round.rtt,
                is_app_limited: round.is_app_limited,
                prior_delivered,
                lost: round.lost,
                tx_in_flight: round.tx_in_flight,
            }),
            ecn_capable_packets: bytes / SIZE,
            ce_packets: round.ce,
        });
    }

    /// Declares packets lost that are not adjacent, out of a flight of `tx_in_flight` bytes.
    pub(in crate::congestion::bbr) fn lose(&mut self, count: u64, tx_in_flight: u64) {
        let sent = self.now.saturating_sub(RTT / 2);
        let packets: Vec<LostPacket> = (0..count)
            .map(|index| LostPacket {
                number: self.next_number + 2 * index,
                bytes: SIZE,
                sent,
                tx_in_flight,
                lost_since_sent: (index + 1) * SIZE,
                is_app_limited: false,
            })
            .collect();
        self.next_number += 2 * count;
        self.report_lost(&packets, sent, false);
    }

    pub(in crate::congestion::bbr) fn report_lost(
        &mut self,
        packets: &[LostPacket],
        sent: Time,
        persistent: bool,
    ) {
        self.bbr.on_congestion(&LossSample {
            now: self.now,
            lost_bytes: packets.iter().map(|packet| packet.bytes).sum(),
            largest_lost_sent: sent,
            persistent,
            is_ecn: false,
            bytes_in_flight: self.bbr.model.inflight,
            packets,
        });
    }

    pub(in crate::congestion::bbr) fn mark(&mut self) {
        self.bbr.on_congestion(&LossSample {
            now: self.now,
            lost_bytes: 0,
            largest_lost_sent: self.now.saturating_sub(RTT / 2),
            persistent: false,
            is_ecn: true,
            bytes_in_flight: self.bbr.model.inflight,
            packets: &[],
        });
    }

    /// Acknowledges packets that were declared lost at the present time.
    pub(in crate::congestion::bbr) fn acknowledge_lost(&mut self, count: u64) {
        let lost_at = self.now;
        self.now += RTT / 4;
        for _ in 0..count {
            self.bbr.on_spurious_loss(&SpuriousLoss {
                now: self.now,
                bytes: SIZE,
                sent: lost_at.saturating_sub(RTT / 2),
                lost_at,
            });
        }
    }

    pub(in crate::congestion::bbr) fn pacing_rate(&self) -> Rate {
        let rate = self.bbr.pacing_rate(&self.rtt);
        rate.expect("BBR always has a rate")
    }
}
