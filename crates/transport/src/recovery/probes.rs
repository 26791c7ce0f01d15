//! Probes after a timeout, and repetitions before one. RFC 9002 §6.2.

use courser_base::Time;
use courser_recovery::LossTimer;
use courser_telemetry::{Record, Timer, TimerExpired};
use courser_wire::packet::MIN_INITIAL_DATAGRAM;

use super::sent_space::SentSpace;
use super::{FrameOwners, LossRecovery, Phase};
use crate::path::MIN_DATAGRAM;
use crate::space::SpaceId;

impl LossRecovery {
    /// Processes expired timers. Returns true if loss detection found that the path does not carry datagrams of the
    /// smallest size.
    pub(crate) fn on_timeout(
        &mut self,
        now: Time,
        budget: u64,
        owners: &mut impl FrameOwners,
    ) -> bool {
        if self.paced_until.is_some_and(|at| at <= now) {
            self.paced_until = None;
        }
        match self.loss_timer(budget).filter(|timer| timer.at() <= now) {
            Some(LossTimer::TimeThreshold { space, .. }) => {
                let id = SpaceId::ALL[space];
                record_expired(now, Timer::LossDetection, id, owners);
                self.detect_lost(now, id, owners).is_path_too_small
            }
            Some(LossTimer::Probe { space, .. }) => {
                self.on_probe_timeout(now, SpaceId::ALL[space], owners);
                false
            }
            None => false,
        }
    }

    /// Processes the receipt of a packet. After several timeouts in a row it shows that packets arrive again: then
    /// probes are due at once, and the backoff ends (RFC 9002 §6.2.1).
    #[inline]
    pub(crate) fn on_packet_received(&mut self, owners: &mut impl FrameOwners) {
        if self.probe_timer.count() >= OUTAGE
            && self.phase == Phase::Confirmed
            && self.is_waiting(SpaceId::Application)
        {
            self.probe_after_outage(owners);
        }
    }

    #[cold]
    fn probe_after_outage(&mut self, owners: &mut impl FrameOwners) {
        self.probe_timer.end_backoff();
        let space = &mut self.spaces.application.space;
        space.probe(PROBES);
        space.ping = true;
        self.repeat_oldest(SpaceId::Application, owners);
    }

    /// Returns the size of the smallest datagram for a probe.
    pub(super) fn smallest_probe(&self) -> u64 {
        let initial = self.spaces.initial.as_ref();
        let len = match initial.is_some_and(|space| space.ack_eliciting > 0) {
            true => MIN_INITIAL_DATAGRAM,
            false => MIN_DATAGRAM,
        };
        len as u64
    }

    /// Requests probes, because nothing was acknowledged in time. Declares nothing lost (RFC 9002 §6.2.4).
    fn on_probe_timeout(&mut self, now: Time, id: SpaceId, owners: &mut impl FrameOwners) {
        record_expired(now, Timer::Probe, id, owners);
        self.stats.ptos += 1;
        self.probe_timer.on_timeout(now);
        self.count_unanswered(now);
        self.on_silence();
        self.is_handshake_repeated |= self.phase != Phase::Confirmed;
        if let Some(space) = self.spaces.get_mut(id) {
            space.ecn.on_pto();
            space.probe(PROBES);
            space.ping = true;
        }
        // The first probes contain new data, if there is any, otherwise the oldest data or only a PING.
        // Later ones contain the oldest data: the peer may not be able to accept new data before it.
        let is_first = self.probe_timer.count() < 2;
        if id == SpaceId::Application && is_first && owners.has_new_data() {
            return;
        }
        self.repeat_oldest(id, owners);
        if id != SpaceId::Application {
            let other = if id == SpaceId::Initial {
                SpaceId::Handshake
            } else {
                SpaceId::Initial
            };
            self.probe_along(other, owners);
        }
        let is_complete = self.phase != Phase::Handshaking;
        if id == SpaceId::Handshake && self.side.is_client() && is_complete {
            // A server that has our Finished has no keys for the handshake any more. If its packets were
            // lost, only a 1-RTT packet shows it that we wait, and at which address (RFC 9002 §6.2.4).
            // If nothing is in flight it contains a PING: after a NAT rebinding the server sends to the
            // old address until it receives a 1-RTT packet from the new one (RFC 9000 §9).
            self.probe_along(SpaceId::Application, owners);
            let space = &mut self.spaces.application.space;
            space.probe(1);
            space.ping = true;
        }
    }

    /// Requests a PING, because this end waits for content and has received nothing for long.
    pub(crate) fn on_liveness_probe(&mut self, now: Time) {
        self.request_ping(SpaceId::Application);
        self.count_unanswered(now);
    }

    /// Counts the probe timeouts in a row.
    ///
    /// Each liveness probe restarts the timer, so that timeouts longer than the interval of these probes do not
    /// expire. They are counted by the time that has passed: `n` of them take 2^n - 1 times the first. The third
    /// counts one such time earlier, when two liveness probes were due.
    fn count_unanswered(&mut self, now: Time) {
        if self.phase == Phase::Handshaking {
            return;
        }
        let mut count = self.probe_timer.count();
        let mut waiting = self.spaces.application.space.sent.iter();
        let oldest = waiting.find(|(_, sent)| sent.ack_eliciting);
        if let Some((_, oldest)) = oldest.filter(|_| count >= OUTAGE) {
            let periods = (now - oldest.time).as_nanos() / self.pto().as_nanos().max(1);
            count = count.max((periods + 2).ilog2());
        }
        self.probe_timer.on_unanswered(count);
    }

    /// Requests a probe in the other space of the handshake too, in the same datagram if it fits.
    ///
    /// Lost data of that space may wait for the window, which may be full of packets for which the peer has no
    /// keys yet. Without this probe both ends would deadlock.
    fn probe_along(&mut self, id: SpaceId, owners: &mut impl FrameOwners) {
        let Some(space) = self.spaces.get_mut(id) else {
            return;
        };
        let is_pending = owners.has_crypto(id);
        if is_pending || space.ack_eliciting > 0 {
            space.probe(PROBES);
        }
        if !is_pending {
            self.repeat_oldest(id, owners);
        }
    }

    /// Repeats the oldest data in each space of the handshake whose probe has nothing to send: two datagrams per
    /// timeout deliver a ClientHello sooner than one.
    pub(crate) fn repeat_for_probes(&mut self, owners: &mut impl FrameOwners) {
        for id in [SpaceId::Initial, SpaceId::Handshake] {
            let needs_data = |space: &SentSpace| space.probes > 0 && !space.ping;
            if self.spaces.get(id).is_some_and(needs_data) && !owners.has_crypto(id) {
                self.repeat_oldest(id, owners);
            }
        }
    }

    /// Returns true if the second probe of a timeout should repeat the first one when there is nothing else to
    /// send: without it, at 50 % loss the last packet of a stream took twice as many timeouts, each as long as
    /// all before it. Only if the window allows it, which should not be filled with copies.
    pub(crate) fn is_second_probe_due(&self) -> bool {
        let probes = self.spaces.application.space.probes;
        let is_second = probes > 0 && probes < PROBES && self.probe_timer.count() > 0;
        let path = self.paths.active();
        is_second && path.congestion_room() >= u64::from(path.mtu)
    }

    /// Repeats the oldest 1-RTT packets for the second probe of a timeout.
    pub(crate) fn repeat_for_second_probe(&mut self, owners: &mut impl FrameOwners) {
        self.repeat_oldest(SpaceId::Application, owners);
    }

    /// Returns true if the peer has not acknowledged its first flight.
    pub(crate) fn is_first_flight_open(&self) -> bool {
        self.is_waiting(SpaceId::Initial)
    }

    /// Repeats data of the handshake that the peer seems to lack, before the probe timeout (RFC 9002 §6.2.3).
    pub(crate) fn speed_up_handshake(&mut self, owners: &mut impl FrameOwners) {
        self.is_handshake_repeated = true;
        self.repeat_oldest(SpaceId::Initial, owners);
        self.repeat_oldest(SpaceId::Handshake, owners);
    }

    /// Queues the frames of the oldest packets again, as many as fit two datagrams, without
    /// declaring the packets lost.
    ///
    /// Each 1-RTT packet is repeated once before one is repeated again. Otherwise, if acknowledgements are lost,
    /// copies of small packets that the peer has received would delay the data that it needs.
    fn repeat_oldest(&mut self, id: SpaceId, owners: &mut impl FrameOwners) {
        let after = self.spaces.application.repeated;
        let after = after.filter(|_| id == SpaceId::Application);
        let mut room = u32::from(self.paths.active().mtu) * u32::from(PROBES);
        let Some(space) = self.spaces.get(id) else {
            return;
        };
        let eliciting = || space.sent.iter().filter(|(_, sent)| sent.ack_eliciting);
        let is_fresh = |number: u64| after.is_none_or(|after| number > after);
        // Once all packets had their turn, the first one is next again.
        let is_over = !eliciting().any(|(number, _)| is_fresh(number));
        let (mut oldest, mut last) = (Vec::new(), after);
        for (number, sent) in eliciting().filter(|(number, _)| is_over || is_fresh(*number)) {
            let left = room.checked_sub(u32::from(sent.size));
            let is_full = oldest.len() >= usize::from(PROBES) && left.is_none();
            if is_full || oldest.len() == MAX_REPEATED {
                break;
            }
            room = left.unwrap_or(0);
            oldest.push(sent.frames);
            last = Some(number);
        }
        if id == SpaceId::Application {
            self.spaces.application.repeated = last;
        }
        for frames in oldest {
            // Datagrams are sent only once, and these are not declared lost yet (RFC 9221 §5.2).
            self.repeat(id, frames, owners, |frame| !frame.is_datagram());
        }
    }

    /// Requests a PING on a path that does not answer, earlier than its timeout would.
    pub(crate) fn probe_path(&mut self) {
        let space = &mut self.spaces.application.space;
        space.probe(1);
        space.ping = true;
    }

    /// Returns true if a probe packet is due in a space.
    pub(crate) fn is_probing(&self, id: SpaceId) -> bool {
        self.spaces.get(id).is_some_and(|space| space.probes > 0)
    }

    /// Returns true if a PING is due in a space.
    pub(crate) fn is_ping_due(&self, id: SpaceId) -> bool {
        self.spaces.get(id).is_some_and(|space| space.ping)
    }

    /// Requests a PING in a space.
    pub(crate) fn request_ping(&mut self, id: SpaceId) {
        if let Some(space) = self.spaces.get_mut(id) {
            space.ping = true;
        }
    }
}

/// Timeouts in a row after which a packet of the peer causes probes at once. A peer that acknowledges nothing
/// causes at most two probes per this number of timeouts.
const OUTAGE: u32 = 2;

fn record_expired(now: Time, timer: Timer, id: SpaceId, owners: &mut impl FrameOwners) {
    owners.record(now, || {
        let kind = id.packet_kind();
        Record::TimerExpired(TimerExpired { timer, kind })
    });
}

/// Packets per probe timeout, in case one is lost (RFC 9002 §6.2.4).
const PROBES: u8 = 2;

/// Maximum of packets that the probes of one timeout repeat: enough for one or two responses in small packets.
const MAX_REPEATED: usize = 16;
