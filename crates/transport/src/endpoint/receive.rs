//! Receiving: splits a buffer into datagrams and finds the owner of each.

use std::slice::ChunksMut;

use courser_base::{Ecn, FourTuple, Time};
use courser_wire::packet::{self, Packet, PacketError, PacketKind, version_negotiation};

use super::admission::Admitted;
use super::arrived::Arrived;
use super::router::Found;
use super::router::owner::Owner;
use super::{ConnectionHandle, Endpoint};
use crate::build::transmit::SocketId;
use crate::connection::ReceivedDatagram;
use crate::path::Place;

/// The properties shared by all datagrams in a receive buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiveMeta {
    /// The source address, and the local address if the system reports it.
    pub path: FourTuple,
    /// The ECN mark of all datagrams.
    pub ecn: Ecn,
    /// Length of each datagram but the last, which may be shorter. At least 1.
    pub segment_size: usize,
}

impl Endpoint {
    /// Processes a buffer of datagrams of one origin, and marks their connections ready.
    ///
    /// The address filter is checked first, once for the buffer. Datagrams from a blocked address are
    /// dropped unread.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # fn main() -> Result {
    /// # let mut pair = Pair::new()?;
    /// # let now = pair.now;
    /// # let handle = pair.client.connect(now, &pair.config, SERVER, "localhost")?;
    /// # let mut buffer = TransmitBuffer::new(1);
    /// # pair.client.poll_transmit(now, handle, &mut buffer).expect("a first flight");
    /// # let mut received = buffer.bytes().to_vec();
    /// # let server = &mut pair.server;
    /// let meta = ReceiveMeta {
    ///     path: FourTuple::to("192.0.2.1:5000".parse()?),
    ///     ecn: Ecn::NotEct,
    ///     segment_size: received.len(), // one datagram
    /// };
    /// server.handle_datagrams(now, &mut received, &meta);
    /// // The ClientHello may need another datagram.
    /// println!("a client waits: {}", server.has_incoming());
    /// # Ok(()) }
    /// ```
    pub fn handle_datagrams(&mut self, now: Time, buffer: &mut [u8], meta: &ReceiveMeta) {
        self.handle_datagrams_at(now, self.socket(), buffer, meta);
    }

    /// Processes a buffer of datagrams like [`Endpoint::handle_datagrams`], for an endpoint with more
    /// than one socket. `socket` is the one at which they arrived.
    pub fn handle_datagrams_at(
        &mut self,
        now: Time,
        socket: SocketId,
        buffer: &mut [u8],
        meta: &ReceiveMeta,
    ) {
        let count = buffer.len().div_ceil(meta.segment_size.max(1)) as u64;
        let is_over_share = match self.admission.admit_datagrams(now, meta.path.peer, count) {
            Admitted::All => false,
            Admitted::OfConnections => true,
            Admitted::None => return,
        };
        let arrived = Arrived {
            now,
            path: meta.path,
            socket,
            ecn: meta.ecn,
            is_handed_on: false,
            is_over_share,
        };
        self.handle_batch(arrived, buffer, meta.segment_size);
    }

    /// Processes a buffer of datagrams that arrived at this shard or were forwarded to it.
    pub(super) fn handle_batch(
        &mut self,
        arrived: Arrived,
        buffer: &mut [u8],
        segment_size: usize,
    ) {
        let mut batch: Option<ConnectionHandle> = None;
        let mut datagrams = buffer.chunks_mut(segment_size.max(1));
        // After a panic, the datagrams behind the one that caused it are processed.
        while self
            .guard(|endpoint| endpoint.handle_each(arrived, &mut datagrams, &mut batch))
            .is_none()
        {}
    }

    fn handle_each(
        &mut self,
        arrived: Arrived,
        datagrams: &mut ChunksMut<'_, u8>,
        batch: &mut Option<ConnectionHandle>,
    ) {
        for datagram in datagrams {
            if arrived.is_over_share && !self.is_of_connection(&arrived, datagram) {
                self.admission.on_over_share();
                continue;
            }
            let owner = self.handle_datagram(&arrived, datagram);
            if owner.is_some() && owner != *batch {
                let ended = std::mem::replace(batch, owner);
                self.end_batch(arrived.now, ended);
            }
        }
        let ended = batch.take();
        self.end_batch(arrived.now, ended);
    }

    /// Records whether the socket still has datagrams after a turn. While it is never empty, the
    /// datagrams of a network that sends more than all others together are dropped, except those of
    /// connections at their validated addresses (limit K117).
    pub fn on_socket_read(&mut self, now: Time, has_more: bool) {
        self.admission.on_socket_read(now, has_more);
    }

    /// Returns true once after a buffer that filled half of a connection's queue of unread datagrams. The
    /// reader should run before the next buffer, which could drop some.
    pub fn take_crowded(&mut self) -> bool {
        std::mem::take(&mut self.is_crowded)
    }

    fn end_batch(&mut self, now: Time, handle: Option<ConnectionHandle>) {
        let Some(handle) = handle else { return };
        if let Some(connection) = self.connection_mut(handle) {
            connection.on_batch_end(now);
            let is_crowded = connection.datagrams().take_crowded();
            self.is_crowded |= is_crowded;
            self.mark_ready(handle);
        }
    }

    /// Returns true if a datagram belongs to a connection and comes from its validated address. A forged one would
    /// need both the address and an ID of the connection.
    #[cold]
    fn is_of_connection(&mut self, arrived: &Arrived, datagram: &[u8]) -> bool {
        let cid_len = self.router.ids().length();
        let accepts_cleared = self.config.grease_quic_bit;
        let decoded = packet::decode_greased(datagram, 0, cid_len, accepts_cleared);
        let Ok(packet) = decoded else {
            return false;
        };
        match self.router.find(&packet, &arrived.path) {
            Found::Owner(Owner::Connection(handle)) => {
                let connection = self.connection_mut(handle);
                connection.is_some_and(|it| it.has_validated(arrived.path.peer))
            }
            // Another shard checks it again.
            Found::NoOwner => {
                !arrived.is_handed_on && self.may_be_elsewhere(&packet, &arrived.path)
            }
            Found::Owner(Owner::Waiting(_)) | Found::Foreign => false,
        }
    }

    /// Handles one datagram and returns the connection that it belongs to.
    fn handle_datagram(
        &mut self,
        arrived: &Arrived,
        datagram: &mut [u8],
    ) -> Option<ConnectionHandle> {
        let cid_len = self.router.ids().length();
        let accepts_cleared = self.config.grease_quic_bit;
        // The packet is not moved, because moving it takes longer than decoding it.
        let decoded = packet::decode_greased(datagram, 0, cid_len, accepts_cleared);
        match &decoded {
            Ok(packet) => self.route(arrived, datagram, packet),
            Err(PacketError::UnknownVersion { .. }) => {
                self.answer_unknown_version(*arrived, datagram);
                None
            }
            Err(_) => self.handle_orphan(*arrived, datagram, None),
        }
    }

    /// Passes a packet with a decoded header to its owner.
    fn route(
        &mut self,
        arrived: &Arrived,
        datagram: &mut [u8],
        packet: &Packet,
    ) -> Option<ConnectionHandle> {
        let handle = match self.router.find(packet, &arrived.path) {
            Found::Owner(Owner::Connection(handle)) => handle,
            Found::Owner(Owner::Waiting(id)) => {
                self.keep_for_waiting(id, *arrived, datagram);
                return None;
            }
            Found::NoOwner => return self.handle_unowned(*arrived, datagram, packet),
            Found::Foreign => {
                self.stats.datagrams_foreign += 1;
                return self.handle_orphan(*arrived, datagram, None);
            }
        };
        let connection = self.connection_mut(handle)?;
        if packet.kind == PacketKind::VersionNegotiation {
            if let Ok(parts) = version_negotiation::decode(datagram) {
                let (versions, source) = (parts.versions(), parts.source);
                connection.on_version_negotiation(arrived.now, versions, source);
            }
        } else {
            let received = ReceivedDatagram {
                now: arrived.now,
                arrived: arrived.now,
                place: Place {
                    tuple: arrived.path,
                    socket: arrived.socket,
                },
                ecn: arrived.ecn,
                len: datagram.len(),
            };
            connection.handle_datagram(&received, datagram, packet);
        }
        Some(handle)
    }

    /// Handles a packet without an owner in this shard.
    fn handle_unowned(
        &mut self,
        arrived: Arrived,
        datagram: &mut [u8],
        packet: &Packet,
    ) -> Option<ConnectionHandle> {
        if self.forward(arrived, datagram, packet) {
            return None;
        }
        if is_long(packet.kind) && !self.accepts_version(packet.version) {
            self.answer_unknown_version(arrived, datagram);
            return None;
        }
        // A forwarded packet is not a first one, or its client was refused meanwhile.
        let is_first = packet.kind == PacketKind::Initial && !arrived.is_handed_on;
        if is_first && self.server.is_some() {
            self.handle_first_initial(arrived, datagram, packet);
            return None;
        }
        // Other protocols have a cleared bit, and must not be answered (RFC 9443).
        let is_quic = packet::has_fixed_bit(datagram[0]);
        self.handle_orphan(arrived, datagram, is_quic.then_some(packet))
    }

    /// Processes a datagram without an owner: a stateless reset for one of our connections, or a packet of
    /// a connection without state (RFC 9000 §10.3).
    fn handle_orphan(
        &mut self,
        arrived: Arrived,
        datagram: &[u8],
        packet: Option<&Packet>,
    ) -> Option<ConnectionHandle> {
        if let Some(handle) = self.router.find_reset(arrived.path.peer, datagram)
            && let Some(connection) = self.connection_mut(handle)
        {
            connection.check_stateless_reset(arrived.now, datagram);
            return Some(handle);
        }
        if packet.is_none() && self.forward_reset(arrived, datagram) {
            return None;
        }
        let packet = packet.filter(|packet| packet.kind == PacketKind::OneRtt);
        let is_reset = packet.is_some_and(|packet| {
            let (len, id) = (datagram.len(), &packet.destination);
            self.stateless.reset(arrived, len, id, &mut self.rng)
        });
        self.stats.datagrams_dropped += u64::from(!is_reset);
        None
    }
}

/// Returns true for packets with a long header of a version.
fn is_long(kind: PacketKind) -> bool {
    !matches!(kind, PacketKind::OneRtt | PacketKind::VersionNegotiation)
}
