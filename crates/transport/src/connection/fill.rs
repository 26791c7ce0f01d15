//! Fills packets with frames, in the only list of the parts that write them, most urgent first.

use std::time::Duration;

use courser_base::Time;
use courser_crypto::TAG_LEN;
use courser_telemetry::PathState;
use courser_wire::packet::MIN_INITIAL_DATAGRAM;

use super::parts::Parts;
use crate::acknowledger::AckContext;
use crate::build::packet_builder::PacketBuilder;
use crate::path::paths::PathIndex;
use crate::recovery::Filling;
use crate::space::SpaceId;

/// The frames that a packet may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Content {
    /// Everything, most urgent first.
    All,
    /// Everything that packets 2 to n of a batch may hold: datagrams and stream data alone, unless other frames
    /// wait. Flow-control frames and an ACK that is not due are part of the first packet.
    Further,
    /// The frames that a 0-RTT packet may hold: data of streams and datagrams, and their control frames.
    Early,
    /// An ACK alone, because the congestion window is full.
    AckOnly,
    /// An ACK and a PING, to probe a path whose data other paths carry.
    Ping,
    /// Challenge and response of one path.
    Probe(PathIndex),
    /// A single challenge or response for an address that is no path.
    OffPath,
    /// An ack-eliciting frame and padding: the probe of this number, for this datagram size.
    MtuProbe(u32, u16),
}

/// A packet that is to be filled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub(super) now: Time,
    pub(super) space: SpaceId,
    pub(super) content: Content,
}

impl Order {
    /// Returns the order for a 1-RTT packet, which the application space numbers.
    pub(super) fn one_rtt(now: Time, content: Content) -> Self {
        Self {
            now,
            space: SpaceId::Application,
            content,
        }
    }
}

impl Parts {
    /// Lets each part write its frames, most urgent first, until the packet is full.
    #[inline]
    pub(super) fn fill(
        &mut self,
        packet: &mut PacketBuilder<'_>,
        order: Order,
        recovery: &mut Filling<'_>,
    ) {
        match order.content {
            Content::Further if !self.has_control_frames() && !recovery.has_frames_to_send() => {
                self.fill_data(packet, order.now, recovery);
            }
            Content::All | Content::Further => self.fill_all(packet, order, recovery),
            Content::Early => self.fill_early(packet, order.now, recovery),
            Content::Probe(index) => {
                self.fill_path_frames(packet, order.now, index);
                self.fill_observed_address(packet, order.now, index);
                packet.pad_to(MIN_INITIAL_DATAGRAM);
            }
            Content::MtuProbe(probe, size) => recovery.write_size_probe(probe, size, packet),
            Content::OffPath => {
                if let Some(traversal) = self.traversal_mut() {
                    traversal.write_outgoing(packet);
                }
            }
            Content::AckOnly => self.fill_ack(packet, order, recovery),
            Content::Ping => {
                self.fill_ack(packet, order, recovery);
                recovery.write_ping(order.space, packet);
            }
        }
    }

    fn fill_all(
        &mut self,
        packet: &mut PacketBuilder<'_>,
        order: Order,
        recovery: &mut Filling<'_>,
    ) {
        let Order { now, space, .. } = order;
        if self.datagrams.leads() && space == SpaceId::Application {
            self.fill_datagrams(packet, now, recovery);
        }
        self.fill_ack(packet, order, recovery);
        recovery.write_ping(space, packet);
        self.handshake.write_crypto_frames(space, packet);
        if space != SpaceId::Application {
            return;
        }
        self.pings.write_frame(now, packet);
        let active = self.paths.active_index();
        let probing = self.fill_path_frames(packet, now, active);
        self.fill_observed_address(packet, now, active);
        self.handshake.write_frames(now, packet);
        self.ids.write_frames(packet);
        if let Some(multipath) = &mut self.multipath {
            multipath.write_frames(packet);
        }
        recovery.write_ack_frequency(packet);
        let rtt = self.rtt_of_windows(recovery);
        self.streams.write_control_frames(now, rtt, packet);
        self.fill_data(packet, now, recovery);
        if probing {
            packet.pad_to(MIN_INITIAL_DATAGRAM);
        }
    }

    /// Returns the round trip that receive windows follow.
    ///
    /// On one path it is the shortest one: the smoothed one contains the queue that a large window fills, and on a short path
    /// that queue is our own socket buffer. On several paths, bytes of the fast ones wait behind a gap for as long as the
    /// slowest takes with its queue.
    fn rtt_of_windows(&self, recovery: &Filling<'_>) -> Duration {
        let others = self.multipath.as_ref().and_then(|it| it.longest_rtt());
        let rtt = match others {
            Some(others) => recovery.smoothed_rtt().max(others),
            None => recovery.min_rtt(),
        };
        rtt.max(MIN_WINDOW_RTT)
    }

    /// Fills a 0-RTT packet. It has no ACK, and no frames that depend on parameters which are not
    /// remembered (RFC 9000 §12.5).
    fn fill_early(
        &mut self,
        packet: &mut PacketBuilder<'_>,
        now: Time,
        recovery: &mut Filling<'_>,
    ) {
        recovery.write_ping(SpaceId::Application, packet);
        let rtt = recovery.min_rtt().max(MIN_WINDOW_RTT);
        self.streams.write_control_frames(now, rtt, packet);
        self.fill_data(packet, now, recovery);
    }

    fn fill_ack(
        &mut self,
        packet: &mut PacketBuilder<'_>,
        order: Order,
        recovery: &mut Filling<'_>,
    ) {
        let Order { now, space, .. } = order;
        let is_ack_only = order.content == Content::AckOnly;
        // The packet may still get frames other than an ACK. A needless PING is harmless.
        let has_data = self.streams.has_stream_data() || self.datagrams.has_frames_to_send();
        let has_crypto = self.handshake.has_crypto_to_send(space);
        let context = AckContext {
            is_ack_only,
            // A probe of the handshake repeats the last ACK, which may have been lost. Without it the
            // peer waits for its probe timeout, which doubles each time.
            is_repeated: recovery.is_handshake_probe(space, has_crypto),
            is_ack_eliciting: !is_ack_only && has_data,
        };
        let written = self.acknowledger.write_frame(now, space, packet, context);
        if written.is_some_and(|ack| ack.needs_ping) {
            recovery.request_ping_if_none_in_flight(space);
        }
        if let Some(multipath) = &mut self.multipath
            && space == SpaceId::Application
        {
            multipath.write_acks(now, packet);
        }
    }

    /// Writes the frames of a path. Returns true when there was one, because their datagram must have
    /// full size (RFC 9000 §8.2.1, §8.2.2).
    fn fill_path_frames(
        &mut self,
        packet: &mut PacketBuilder<'_>,
        now: Time,
        index: PathIndex,
    ) -> bool {
        let written = self.paths.write_frames(now, index, packet, &mut self.rng);
        if written.begins_probing
            && let Some(path) = self.paths.get_mut(index)
        {
            self.trace.path(now, path, PathState::ProbingStarted);
        }
        written.any
    }

    /// Writes the datagrams that may precede waiting stream data, and then stream data.
    fn fill_data(&mut self, packet: &mut PacketBuilder<'_>, now: Time, recovery: &Filling<'_>) {
        if !self.datagrams.has_frames_to_send() {
            self.streams.write_stream_frames(packet);
            return;
        }
        self.fill_datagrams(packet, now, recovery);
        let before = packet.len();
        self.streams.write_stream_frames(packet);
        let len = packet.len() - before;
        self.datagrams.on_stream_data_sent(len);
    }

    fn fill_datagrams(
        &mut self,
        packet: &mut PacketBuilder<'_>,
        now: Time,
        recovery: &Filling<'_>,
    ) {
        let capacity = frame_capacity(recovery.mtu(), self.ids.destination().len());
        let largest = capacity.saturating_sub(1);
        let is_contested = self.streams.has_stream_data();
        let streams = &mut self.streams;
        let charge = |session, len| streams.charge_session(session, len);
        self.datagrams
            .write_frames(now, largest, is_contested, packet, charge);
        if self.datagrams.has_ordered() {
            self.fill_ordered_datagrams(packet, now, largest, is_contested);
        }
    }

    #[inline(never)]
    fn fill_ordered_datagrams(
        &mut self,
        packet: &mut PacketBuilder<'_>,
        now: Time,
        largest: usize,
        is_contested: bool,
    ) {
        let streams = &mut self.streams;
        let may_send = |session, order| !is_contested || !streams.precede(session, order);
        let sent =
            self.datagrams
                .write_ordered_frames(now, largest, is_contested, packet, may_send);
        for (session, len) in sent {
            streams.charge_session(session, len);
        }
    }

    /// Returns true if frames wait that are neither ACK, datagrams, stream data nor flow control. Flow-control
    /// frames are part of the first packet of each batch.
    #[inline(always)]
    pub(super) fn has_control_frames(&self) -> bool {
        self.pings.has_frames_to_send()
            || self.handshake.has_frames_to_send()
            || self.paths.active().has_frames_to_send()
            || self.ids.has_frames_to_send()
            || self.has_multipath_frames()
            || self.is_observation_due()
    }

    /// Returns true if frames wait that name a path.
    #[inline]
    fn has_multipath_frames(&self) -> bool {
        let multipath = self.multipath.as_ref();
        multipath.is_some_and(|it| it.has_frames_to_send() || it.has_acks_to_send())
    }

    /// Returns true if datagrams of the application wait, and no frames that need full packets.
    pub(super) fn has_only_datagrams(&self) -> bool {
        self.datagrams.has_frames_to_send()
            && !self.streams.has_frames_to_send()
            && !self.paths.active().has_frames_to_send()
    }
}

/// Returns the bytes of frames in a full 1-RTT packet whose number is of the longest kind.
/// `id_len` is the length of the Destination Connection ID.
pub(super) fn frame_capacity(mtu: u16, id_len: usize) -> usize {
    usize::from(mtu).saturating_sub(1 + id_len + LONGEST_NUMBER + TAG_LEN)
}

/// The shortest round trip from which receive windows are derived. Shorter round trips consist of wakeups
/// and system calls, whose delays a window must cover too: it stays at 2 MiB up to 3.5 GB/s, which fits
/// the usual socket buffers. More bytes in flight form a queue there, behind which requests wait. With 300 us, requests took twice as long and nothing was
/// faster; with 60 us, one transfer lost 4 % of its speed.
const MIN_WINDOW_RTT: Duration = Duration::from_micros(150);
/// The most bytes of a packet number (RFC 9000 §17.1).
const LONGEST_NUMBER: usize = 4;
