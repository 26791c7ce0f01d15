//! Packets that are declared lost, and those that were only late. RFC 9002 §6, §7.6, appendix A.10.

use courser_base::Time;
use courser_recovery::{LossDetector, Lost, Sent, SpuriousLoss};
use courser_telemetry::{self as telemetry, LossTrigger, PacketLost, Record};
use courser_wire::frame::Ack;
use courser_wire::packet::PacketKind;

use super::features::LostByFeature;
use super::{FrameOwners, LossRecovery};
use crate::space::SpaceId;
use crate::space::sent::{SentFrame, SentFrames};

/// The result of loss detection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    /// Bytes lost on the path in use.
    pub(super) bytes: u64,
    /// True if there is persistent congestion (RFC 9002 §7.6).
    pub(super) is_persistent: bool,
    /// True if the path does not carry datagrams of the smallest size (RFC 9000 §14.2).
    pub(super) is_path_too_small: bool,
}

impl LossRecovery {
    /// Detects lost packets and notifies the owners of their frames and the controller.
    pub(super) fn detect_lost(
        &mut self,
        now: Time,
        id: SpaceId,
        owners: &mut impl FrameOwners,
    ) -> Losses {
        let max_ack_delay = self.ack_request.max_ack_delay();
        let path = self.paths.active_mut();
        let Some(space) = self.spaces.get_mut(id) else {
            return Losses::default();
        };
        space
            .loss
            .detect(now, &mut space.sent, &path.rtt, &mut self.lost);
        if self.lost.is_empty() {
            return Losses::default();
        }
        let application = id == SpaceId::Application;
        if application {
            for (number, sent) in &mut self.lost {
                let is_refused = path.refused.contains(*number, sent.size);
                sent.is_mtu_probe |= is_refused && sent.path == path.key;
            }
        }
        let is_persistent = application
            && path
                .persistent
                .on_packets_lost(&self.lost, &path.rtt, max_ack_delay);
        if is_persistent {
            path.rtt.on_persistent_congestion();
        }
        self.lost_packets.clear();
        let (key, mut by_feature) = (path.key, LostByFeature::default());
        let mut marked = 0;
        let mut lost = std::mem::take(&mut self.lost);
        for (number, sent) in lost.drain(..) {
            marked += u64::from(sent.ecn_marked);
            if sent.path == key {
                by_feature.add(&sent);
            }
            self.on_packet_lost(now, id, number, sent, owners);
        }
        self.lost = lost;
        if let Some(space) = self.spaces.get_mut(id) {
            space.ecn.on_lost(marked);
        }
        self.on_features_lost(now, &by_feature);
        let bytes = self.lost_packets.iter().map(|packet| packet.bytes).sum();
        let path = self.paths.active_mut();
        if bytes > 0 && path.on_loss(now, &self.lost_packets, is_persistent) {
            self.stats.congestion_events += 1;
            // One packet is sent in spite of the smaller window (RFC 9002 §7.3.2): during a handshake the
            // peer may be unable to acknowledge the other packets before it has the lost data.
            if let Some(space) = self.spaces.get_mut(id) {
                space.probes = space.probes.max(1);
            }
        }
        let path = self.paths.active_mut();
        let is_after_timeout = self.probe_timer.count() > 0;
        let is_path_too_small =
            path.on_large_packets_lost(now, &self.lost_packets, is_after_timeout);
        Losses {
            bytes,
            is_persistent,
            is_path_too_small,
        }
    }

    /// Processes a lost packet that was removed from the ring.
    pub(super) fn on_packet_lost(
        &mut self,
        now: Time,
        id: SpaceId,
        number: u64,
        sent: Sent<SentFrames>,
        owners: &mut impl FrameOwners,
    ) {
        let Some(space) = self.spaces.get_mut(id) else {
            return;
        };
        if sent.ack_eliciting {
            space.ack_eliciting -= 1;
        }
        let trigger = loss_trigger(number, &space.loss);
        let path = self.paths.active_mut();
        // A lost MTU probe is no sign of congestion: RFC 9000 §14.4.
        let is_sign = sent.in_flight && !sent.is_mtu_probe;
        if is_sign && sent.path == path.key {
            let packet = path.on_packet_lost(number, &sent);
            self.lost_packets.push(packet);
        } else if sent.in_flight {
            self.take_from_other(&sent);
        }
        if id == SpaceId::Application && is_sign {
            self.spaces.application.on_lost(Lost {
                number,
                sent: sent.time,
                lost_at: now,
                size: sent.size,
                path: sent.path,
                follows_in_batch: sent.follows_in_batch,
            });
        }
        self.stats.packets_lost += 1;
        let (kind, len) = (id.packet_kind(), usize::from(sent.size));
        owners.record(now, || {
            Record::PacketLost(PacketLost {
                kind,
                packet_number: number,
                len,
                trigger: Some(trigger),
                is_mtu_probe: sent.frames.is_mtu_probe(),
            })
        });
        self.settle_lost(id, sent.frames, owners);
    }

    /// Finds packets that were declared lost and are acknowledged now: thresholds rise, and the
    /// effect of their loss on the window is undone.
    #[cold]
    pub(super) fn find_spurious_losses(
        &mut self,
        now: Time,
        frame: &Ack<'_>,
        owners: &mut impl FrameOwners,
    ) {
        let memory = self.paths.active().rtt.pto_base() * SPURIOUS_MEMORY;
        let application = &mut self.spaces.application;
        for lost in application.take_late(now, frame.ranges(), memory) {
            self.on_spurious_loss(now, &lost, owners);
        }
    }

    fn on_spurious_loss(&mut self, now: Time, lost: &Lost, owners: &mut impl FrameOwners) {
        self.stats.packets_spuriously_lost += 1;
        let packet_number = lost.number;
        owners.record(now, || {
            Record::SpuriousLoss(telemetry::SpuriousLoss {
                kind: PacketKind::OneRtt,
                packet_number,
            })
        });
        let path = self.paths.active_mut();
        if lost.path != path.key {
            return;
        }
        let loss = &mut self.spaces.application.space.loss;
        loss.on_spurious_loss(now, lost.number, lost.sent, &path.rtt);
        if lost.follows_in_batch {
            path.features.on_batch_late();
        }
        let is_undone = path.on_spurious_loss(&SpuriousLoss {
            now,
            bytes: u64::from(lost.size),
            sent: lost.sent,
            lost_at: lost.lost_at,
        });
        self.stats.congestion_events_undone += u64::from(is_undone);
    }

    /// Drops the snapshots of the delivery rate from before the oldest packet in flight, which no sample needs
    /// any more.
    pub(super) fn drop_snapshots(&mut self, id: SpaceId) {
        if id != SpaceId::Application {
            return;
        }
        let sent = &self.spaces.application.space.sent;
        let oldest = sent.oldest().and_then(|number| sent.get(number));
        let path = self.paths.active_mut();
        match oldest {
            Some(oldest) if oldest.path != path.key => {}
            oldest => path
                .delivery
                .remove_before(oldest.map(|sent| sent.snapshot)),
        }
    }

    /// Notifies the owner of each frame of an acknowledged packet, and releases the record.
    pub(super) fn settle_acked(
        &mut self,
        id: SpaceId,
        frames: SentFrames,
        owners: &mut impl FrameOwners,
    ) {
        let paths = &mut self.paths;
        let ack_request = &mut self.ack_request;
        frames.for_each(&self.lists, |frame| match frame {
            SentFrame::MtuProbe { size, path, .. } => {
                if let Some(path) = paths.get_mut(path)
                    && path.search.on_probe_acked(size)
                {
                    path.follow_search();
                }
            }
            SentFrame::AckFrequency { sequence } => ack_request.on_acked(sequence),
            other => owners.on_frame_acked(id, other),
        });
        frames.release(&mut self.lists);
    }

    /// Notifies the owner of each frame of a lost packet, and releases the record.
    fn settle_lost(&mut self, id: SpaceId, frames: SentFrames, owners: &mut impl FrameOwners) {
        self.repeat(id, frames, owners, |_| true);
        frames.release(&mut self.lists);
    }

    /// Notifies the owners of the frames that satisfy `is_included`, so that they send them again.
    pub(super) fn repeat(
        &mut self,
        id: SpaceId,
        frames: SentFrames,
        owners: &mut impl FrameOwners,
        is_included: fn(SentFrame) -> bool,
    ) {
        let paths = &mut self.paths;
        let ack_request = &mut self.ack_request;
        frames.for_each(&self.lists, |frame| match frame {
            frame if !is_included(frame) => {}
            SentFrame::MtuProbe { probe, path, .. } => {
                if let Some(path) = paths.get_mut(path) {
                    let falls = path.search.on_probe_lost(probe);
                    if falls {
                        path.follow_search();
                    }
                }
            }
            SentFrame::AckFrequency { sequence } => ack_request.on_lost(sequence),
            other => owners.on_frame_lost(id, other),
        });
    }
}

/// Returns the reason for which packet `number` has just been declared lost: packets are compared
/// before times (RFC 9002 §6.1).
fn loss_trigger(number: u64, detector: &LossDetector) -> LossTrigger {
    let newer = detector
        .largest_acked()
        .map_or(0, |largest| largest.saturating_sub(number));
    if newer >= detector.packet_threshold() {
        LossTrigger::ReorderingThreshold
    } else {
        LossTrigger::TimeThreshold
    }
}

/// Probe timeouts after which the record of a lost packet is dropped: a packet that is only reordered arrives
/// earlier.
const SPURIOUS_MEMORY: u32 = 3;
