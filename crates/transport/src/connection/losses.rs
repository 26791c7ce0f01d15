//! Packets that are lost, and those that only seemed so. RFC 9002 §6, §7.6, appendix A.10.

use courser_base::Time;
use courser_recovery::{Controller, LossSample, Lost, LostPacket, Sent, SpuriousLoss};
use courser_telemetry::{self as telemetry, PacketLost, Record};
use courser_wire::frame::Ack;
use courser_wire::packet::PacketKind;

use super::Connection;
use super::trace::loss_trigger;
use crate::space::SpaceId;
use crate::space::sent::SentFrames;

/// What a look for lost packets found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Losses {
    /// Bytes lost on the path in use.
    pub(crate) bytes: u64,
    /// There is persistent congestion (RFC 9002 §7.6).
    pub(crate) is_persistent: bool,
}

impl Connection {
    /// Finds lost packets, tells the owners of their frames and the controller.
    pub(crate) fn detect_lost(&mut self, now: Time, id: SpaceId) -> Losses {
        let max_ack_delay = self.peer_max_ack_delay();
        let mut lost = std::mem::take(&mut self.recovery.lost);
        let path = self.paths.active_mut();
        let Some(space) = self.spaces.get_mut(id) else {
            return Losses::default();
        };
        space
            .loss
            .detect(now, &mut space.sent, &path.rtt, &mut lost);
        if lost.is_empty() {
            self.recovery.lost = lost;
            return Losses::default();
        }
        let application = id == SpaceId::Application;
        if application {
            for (number, sent) in &mut lost {
                let is_refused = path.refused.contains(*number, sent.size);
                sent.is_mtu_probe |= is_refused && sent.path == path.id;
            }
        }
        let is_persistent = application && path.persistent.judge(&lost, &path.rtt, max_ack_delay);
        if is_persistent {
            path.rtt.on_persistent_congestion();
        }
        self.recovery.lost_packets.clear();
        let mut marked = 0;
        for (number, sent) in lost.drain(..) {
            marked += u64::from(sent.ecn_marked);
            self.on_packet_lost(now, id, number, sent);
        }
        self.recovery.lost = lost;
        if let Some(space) = self.spaces.get_mut(id) {
            space.ecn.on_lost(marked);
        }
        let packets = std::mem::take(&mut self.recovery.lost_packets);
        let bytes = packets.iter().map(|packet| packet.bytes).sum();
        if bytes > 0 && self.on_lost_bytes(now, &packets, is_persistent) {
            // One packet leaves whatever the lowered window says (RFC 9002 §7.3.2): in a
            // handshake all else in flight may be waiting for what was lost.
            if let Some(space) = self.spaces.get_mut(id) {
                space.probes = space.probes.max(1);
            }
        }
        self.on_large_packets_lost(now, &packets);
        self.recovery.lost_packets = packets;
        Losses {
            bytes,
            is_persistent,
        }
    }

    pub(super) fn on_packet_lost(
        &mut self,
        now: Time,
        id: SpaceId,
        number: u64,
        sent: Sent<SentFrames>,
    ) {
        let Some(space) = self.spaces.get_mut(id) else {
            return;
        };
        if sent.ack_eliciting {
            space.ack_eliciting_in_flight -= 1;
        }
        let trigger = loss_trigger(number, &space.loss);
        let path = self.paths.active_mut();
        // A lost MTU probe says nothing about congestion: RFC 9000 §14.4.
        let is_sign = sent.in_flight && !sent.is_mtu_probe;
        if is_sign && sent.path == path.id {
            let bytes = u64::from(sent.size);
            let (lost_since_sent, is_app_limited) = path.delivery.on_lost(bytes, sent.snapshot);
            self.recovery.lost_packets.push(LostPacket {
                number,
                bytes,
                sent: sent.time,
                tx_in_flight: u64::from(sent.tx_in_flight),
                lost_since_sent,
                is_app_limited,
            });
        } else if sent.in_flight {
            self.take_from_other(&sent);
        }
        if id == SpaceId::Application && is_sign {
            self.recovery.lately_lost.push(Lost {
                number,
                sent: sent.time,
                lost_at: now,
                size: sent.size,
                path: sent.path,
            });
        }
        self.stats.packets_lost += 1;
        let (kind, len) = (id.packet_kind(), usize::from(sent.size));
        self.tap.record(now, || {
            Record::PacketLost(PacketLost {
                kind,
                packet_number: number,
                len,
                trigger: Some(trigger),
                is_mtu_probe: sent.frames.is_mtu_probe(),
            })
        });
        self.settle(id, sent, Self::on_frame_lost);
    }

    /// True when the window was lowered.
    fn on_lost_bytes(&mut self, now: Time, packets: &[LostPacket], persistent: bool) -> bool {
        let lost_bytes = packets.iter().map(|packet| packet.bytes).sum();
        self.take_from_flight(lost_bytes);
        let path = self.paths.active_mut();
        let before = path.congestion.window();
        let newest = packets.iter().map(|packet| packet.sent).max();
        path.congestion.on_congestion(&LossSample {
            now,
            lost_bytes,
            largest_lost_sent: newest.unwrap_or_default(),
            persistent,
            is_ecn: false,
            bytes_in_flight: path.bytes_in_flight,
            packets,
        });
        path.set_pacing_rate();
        let is_lowered = path.congestion.window() < before;
        self.stats.congestion_events += u64::from(is_lowered);
        is_lowered
    }

    /// Packets that had been given up were only late: thresholds rise, and what their loss did
    /// to the window is undone.
    #[cold]
    pub(super) fn find_spurious_losses(&mut self, now: Time, frame: &Ack<'_>) {
        let mut late = std::mem::take(&mut self.recovery.lately_lost);
        late.take_acked(frame.ranges(), |lost| self.on_spurious_loss(now, &lost));
        let path = self.paths.active();
        late.forget(now, path.rtt.pto_base() * SPURIOUS_MEMORY);
        self.recovery.lately_lost = late;
    }

    fn on_spurious_loss(&mut self, now: Time, lost: &Lost) {
        self.stats.packets_spuriously_lost += 1;
        let packet_number = lost.number;
        self.tap.record(now, || {
            Record::SpuriousLoss(telemetry::SpuriousLoss {
                kind: PacketKind::OneRtt,
                packet_number,
            })
        });
        let path = self.paths.active_mut();
        if lost.path != path.id {
            return;
        }
        let loss = &mut self.spaces.application.loss;
        loss.on_spurious_loss(now, lost.number, lost.sent, &path.rtt);
        path.delivery.on_spurious_loss(u64::from(lost.size));
        let before = path.congestion.window();
        path.congestion.on_spurious_loss(&SpuriousLoss {
            now,
            bytes: u64::from(lost.size),
            sent: lost.sent,
            lost_at: lost.lost_at,
        });
        path.set_pacing_rate();
        let is_undone = path.congestion.window() > before;
        self.stats.congestion_events_undone += u64::from(is_undone);
    }

    /// Delivery rates are measured from the oldest packet in flight on.
    pub(super) fn forget_snapshots(&mut self, id: SpaceId) {
        if id != SpaceId::Application {
            return;
        }
        let sent = &self.spaces.application.sent;
        let oldest = sent.oldest().and_then(|number| sent.get(number));
        let path = self.paths.active_mut();
        match oldest {
            Some(oldest) if oldest.path != path.id => {}
            oldest => path
                .delivery
                .forget_before(oldest.map(|sent| sent.snapshot)),
        }
    }
}

/// Probe timeouts for which a lost packet is remembered: packets that come later than that were
/// hardly overtaken on the way.
const SPURIOUS_MEMORY: u32 = 3;
