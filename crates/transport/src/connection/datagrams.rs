//! Datagrams of a connection: what fits a packet, and who fills it with what. RFC 9221.

use bytes::Bytes;
use courser_base::Time;
use courser_crypto::TAG_LEN;

use super::Connection;
use crate::build::packet_builder::PacketBuilder;
use crate::datagram::{DatagramId, Datagrams, SendDatagramError, SendOptions};

impl Connection {
    /// Received datagrams, and room for those to be sent.
    pub fn datagrams(&mut self) -> &mut Datagrams {
        &mut self.datagrams
    }

    /// Bytes of the largest datagram that can be sent now; `None` when the peer takes none or its
    /// limits are not known yet.
    ///
    /// Follows the datagram size of the path, in which it changes while the connection lives, the
    /// peer's limit and the length of its connection IDs. At least 1158 bytes on a path in use, if
    /// neither the peer nor our own queue allows less.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.datagrams.max_size(self.frame_room())
    }

    /// Queues a datagram to be sent once (RFC 9221 §5). If there is no room, the oldest ones are
    /// dropped. Its ID is for [`DatagramEvent::Fate`](crate::DatagramEvent::Fate), if it is tracked.
    ///
    /// # Errors
    /// The peer takes no datagrams, or none of this size, or sending is switched off. On a connection
    /// that is over nothing is sent, which is no error here.
    pub fn send_datagram(
        &mut self,
        now: Time,
        data: Bytes,
        options: SendOptions,
    ) -> Result<Option<DatagramId>, SendDatagramError> {
        let max = self.max_datagram_size();
        if max.is_some_and(|max| data.len() + NEARLY_FULL > max) {
            // Packets with room for the longest number are never quite full, but larger ones would
            // be of use.
            self.recovery.on_full_datagram_wanted(now);
        }
        self.datagrams.send(now, data, max, options)
    }

    /// Bytes of frames in a full 1-RTT packet whose number is of the longest kind.
    fn frame_room(&self) -> usize {
        let header = 1 + self.cids.peer.current().len() + LONGEST_NUMBER;
        usize::from(self.recovery.route().mtu()).saturating_sub(header + TAG_LEN)
    }

    /// Datagrams, as far as they may go before stream data that waits, and then stream data.
    pub(super) fn fill_data(&mut self, now: Time, packet: &mut PacketBuilder<'_>) {
        if !self.datagrams.wants_to_send() {
            self.streams.write_stream_frames(packet);
            return;
        }
        self.fill_datagrams(now, packet);
        let before = packet.len();
        self.streams.write_stream_frames(packet);
        self.datagrams.on_stream_data_sent(packet.len() - before);
    }

    pub(super) fn fill_datagrams(&mut self, now: Time, packet: &mut PacketBuilder<'_>) {
        let largest = self.frame_room().saturating_sub(1);
        let is_contested = self.streams.has_stream_data();
        self.datagrams
            .write_frames(now, largest, is_contested, packet);
    }
}

/// Bytes that a datagram may have less than fit, and still want larger packets.
const NEARLY_FULL: usize = 64;
/// Bytes of a packet number at most (RFC 9000 §17.1).
const LONGEST_NUMBER: usize = 4;
