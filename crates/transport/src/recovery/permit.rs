//! The permit to send, and the record of what was sent.

use courser_base::{Ecn, Time};
use courser_recovery::Controller;
use courser_wire::packet_number;

use super::{Built, Flight, LossRecovery, PathKey};
use crate::build::transmit::MAX_BATCH;
use crate::rng::Rng;
use crate::space::SpaceId;

/// What may be sent now, according to pacing, congestion control, the amplification limit and probes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SendPermit {
    /// Nothing: the peer's address is not validated and the amplification limit is reached.
    Nothing,
    /// Only packets that do not count as in flight.
    AckOnly,
    /// A probe packet, even with a full window (RFC 9002 §7.5).
    Probe,
    /// The congestion window allows a datagram, but the pacer only from this time on.
    PacedUntil(Time),
    /// This many bytes, which the pacer reserves until [`LossRecovery::on_batch_sent`]. Less than a datagram only
    /// when there is no more to send, or the amplification limit allows no more.
    Bytes(u64),
}

/// The demand that a permit depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// Bytes that the amplification limit of the address allows.
    pub(crate) budget: u64,
    /// True if an ACK is due.
    pub(crate) is_ack_due: bool,
    /// Bytes of a datagram with everything that is due, if they are few.
    pub(crate) little: Option<u64>,
}

/// A batch of 1-RTT packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SentBatch {
    /// Bytes that count as in flight.
    pub(crate) in_flight: u64,
    /// The number of the last packet.
    pub(crate) last_number: u64,
    /// True if at least one datagram had full size.
    pub(crate) has_full_datagram: bool,
}

/// The number of a packet that is being built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PacketNumber {
    pub(crate) value: u64,
    /// Bytes of its encoding.
    pub(crate) len: usize,
}

impl LossRecovery {
    /// Decides what may be sent in a space on the path in use.
    pub(crate) fn permit(&mut self, now: Time, id: SpaceId, demand: &Demand) -> SendPermit {
        if demand.budget == 0 {
            return SendPermit::Nothing;
        }
        let Some(space) = self.spaces.get(id) else {
            return SendPermit::Nothing;
        };
        if space.probes > 0 {
            return SendPermit::Probe;
        }
        let path = self.paths.active_mut();
        let mtu = u64::from(path.mtu);
        let mut room = path.congestion_room();
        if room < mtu && !self.spaces.awaits_acknowledgement(id) {
            // Padded ACKs count as in flight, and so do 1-RTT packets before the handshake is confirmed, but
            // without an acknowledgement or a probe timeout they would stay in flight: without a datagram now,
            // nothing would ever be sent.
            room = mtu;
        }
        let size = demand.little.map_or(mtu, |little| mtu.min(little));
        // An ACK may be large, and need not wait: it goes first where the datagram is a small one.
        let ack_first = room < mtu && demand.is_ack_due;
        if room < size || ack_first || space.sent.is_full() {
            return SendPermit::AckOnly;
        }
        let window = path.congestion.window();
        let wanted = if size < mtu {
            size
        } else {
            room.min(demand.budget)
        };
        if path.bytes_in_flight == 0 && path.ecn_codepoint() != Ecn::Ect1 {
            path.pacer.on_quiescent(window, path.mtu);
        }
        let (pacer, rtt, mtu_bytes) = (&mut path.pacer, &path.rtt, path.mtu);
        let granted = pacer.reserve(now, wanted, rtt, window, mtu_bytes);
        if granted == 0 {
            let least = if size < mtu { size } else { u64::MAX };
            let at = pacer.next_release(now, least, rtt, window, mtu_bytes);
            self.paced_until = Some(at);
            return SendPermit::PacedUntil(at);
        }
        SendPermit::Bytes(granted.max(room.min(mtu)))
    }

    /// Returns the number of the next packet of a space.
    #[inline]
    pub(crate) fn next_number(&self, id: SpaceId) -> Option<PacketNumber> {
        let space = self.spaces.get(id)?;
        let number = match id {
            SpaceId::Application => self.spaces.application.next_number(),
            _ => space.next_number,
        };
        let len = packet_number::encoded_len(number, space.loss.largest_acked());
        Some(PacketNumber { value: number, len })
    }

    /// Returns the first unused number of a 1-RTT packet.
    pub(crate) fn first_unused_number(&self) -> u64 {
        self.spaces.application.space.next_number
    }

    /// Returns true if too few packet numbers are left for another batch.
    pub(crate) fn is_out_of_numbers(&self) -> bool {
        self.spaces.application.space.next_number > LAST_PACKET_NUMBER
    }

    /// Records a packet that is sent on the path in use.
    #[inline]
    pub(crate) fn on_packet_sent(
        &mut self,
        now: Time,
        id: SpaceId,
        built: &Built,
        ecn: Ecn,
        rng: &mut Rng,
    ) {
        let path = self.paths.active_mut();
        let flight = path.begin_flight(now, built.len, built.in_flight);
        if built.ack_eliciting {
            path.features.on_sent(built, ecn);
        }
        self.draw_skip(id, built.number, rng);
        self.record_sent(now, id, built, ecn, flight);
    }

    /// Records a 1-RTT packet that is sent on a path which is not in use.
    pub(crate) fn on_path_probe_sent(
        &mut self,
        now: Time,
        path: PathKey,
        built: &Built,
        rng: &mut Rng,
    ) {
        let Some(path) = self.paths.get_mut(path) else {
            return;
        };
        let flight = path.begin_flight(now, built.len, built.in_flight);
        let id = SpaceId::Application;
        self.draw_skip(id, built.number, rng);
        self.record_sent(now, id, built, Ecn::NotEct, flight);
    }

    /// Records a 1-RTT packet to an address that is no path. It is in no window, its acknowledgement measures nothing, and
    /// no timer waits for it.
    pub(crate) fn on_off_path_sent(&mut self, now: Time, built: &Built, rng: &mut Rng) {
        let flight = Flight {
            path: u32::MAX,
            snapshot: 0,
            tx_in_flight: 0,
        };
        let built = Built {
            ack_eliciting: false,
            in_flight: false,
            ..*built
        };
        let id = SpaceId::Application;
        self.draw_skip(id, built.number, rng);
        self.record_sent(now, id, &built, Ecn::NotEct, flight);
    }

    /// Records a packet that a test forged and no path has sent, so that its acknowledgement does not affect
    /// round-trip times.
    #[cfg(test)]
    pub(crate) fn on_forged_packet(&mut self, id: SpaceId, built: &Built, rng: &mut Rng) {
        let flight = Flight {
            path: u32::MAX,
            snapshot: 0,
            tx_in_flight: 0,
        };
        self.draw_skip(id, built.number, rng);
        self.record_sent(Time::ZERO, id, built, Ecn::NotEct, flight);
    }

    /// Chooses another number to skip, if a packet has passed the last one.
    #[inline]
    fn draw_skip(&mut self, id: SpaceId, number: u64, rng: &mut Rng) {
        if id == SpaceId::Application {
            let path = self.paths.active();
            let window = || path.window() / u64::from(path.mtu);
            self.spaces.application.draw_skip(number, window, rng);
        }
    }

    #[inline]
    fn record_sent(&mut self, now: Time, id: SpaceId, built: &Built, ecn: Ecn, flight: Flight) {
        let is_on_active = flight.path == self.paths.active().key;
        if let Some(space) = self.spaces.get_mut(id) {
            space.on_packet_sent(now, built, ecn, flight, is_on_active);
        }
        self.stats.ecn_sent.count(ecn);
        self.stats.packets_sent += 1;
    }

    /// Counts a packet with CONNECTION_CLOSE, of which no record is added.
    pub(crate) fn on_close_sent(&mut self, id: SpaceId, number: u64) {
        if let Some(space) = self.spaces.get_mut(id) {
            space.next_number = number + 1;
        }
        self.lists.on_close_sent();
        self.stats.packets_sent += 1;
    }

    /// Processes the sending of a batch of 1-RTT packets.
    #[inline]
    pub(crate) fn on_batch_sent(&mut self, now: Time, batch: &SentBatch) {
        if batch.in_flight == 0 {
            return;
        }
        let path = self.paths.active_mut();
        path.on_batch_sent(now, batch.in_flight, batch.last_number);
        if batch.has_full_datagram {
            path.search.on_full_datagram_sent(now);
        }
    }

    /// Processes the sending of a packet of the handshake.
    pub(crate) fn on_handshake_packet_sent(&mut self, now: Time, built: &Built) {
        if built.in_flight {
            let path = self.paths.active_mut();
            let bytes = built.len as u64;
            let congestion = &mut path.congestion;
            congestion.on_sent(now, bytes, built.number, path.bytes_in_flight);
        }
        if built.ack_eliciting {
            self.probe_timer.on_activity(now);
        }
    }

    /// Processes the sending of a datagram of the handshake.
    pub(crate) fn on_handshake_datagram_sent(&mut self, len: usize) {
        let path = self.paths.active_mut();
        path.pacer.on_sent(len as u64);
        // A client's first request may well fill the window.
        path.app_limited = path.congestion_room() >= u64::from(path.mtu);
    }

    /// Records that there is nothing more to send: an unused window does not grow (RFC 9002 §7.8).
    pub(crate) fn on_app_limited(&mut self, now: Time) {
        let path = self.paths.active_mut();
        if path.congestion_room() >= u64::from(path.mtu) {
            path.app_limited = true;
            let pause = path.rtt.min() / 16;
            path.delivery.on_app_limited(now, pause);
        }
    }

    /// Records that a probe of the path MTU is about to be sent, and nothing else.
    pub(crate) fn on_lone_size_probe(&mut self, size: u16) {
        let path = self.paths.active_mut();
        let in_flight = path.bytes_in_flight + u64::from(size);
        path.delivery.on_lone_probe(in_flight);
    }
}

/// The last number at which a batch may begin, so that it ends below the maximum even with skipped numbers.
const LAST_PACKET_NUMBER: u64 = courser_wire::MAX_PACKET_NUMBER - 2 * MAX_BATCH as u64;
