//! One QUIC connection. RFC 9000, RFC 9001, RFC 9002.
//!
//! The connection owns parts that own their state, and calls them in written orders: `dispatch`
//! passes frames to the parts, `transmit` decides what is sent and when, and `fate` reports
//! acknowledgements and losses to the parts.

mod batch;
mod candidates;
mod close;
mod closing;
mod coalesced;
mod dispatch;
mod effects;
pub(crate) mod error;
pub(crate) mod event;
mod fate;
mod fill;
#[cfg(test)]
mod forging;
mod header_bits;
mod life;
mod migrations;
mod multipath;
mod observed;
mod packet_too_big;
mod packets;
mod parts;
mod payload;
mod progress;
mod receive;
mod received_datagram;
mod spaces;
mod start;
mod state;
pub(crate) mod stats;
mod timeouts;
pub(crate) mod timer;
mod trace;
mod transmit;
mod versions;
mod watchdog;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use courser_base::{FourTuple, Side, Time, Unreachable};
use courser_crypto::{Exporter, HandshakeData, TlsError};
use courser_recovery::{Algorithm, BASE_MTU};
use courser_telemetry::Tap;
use courser_wire::ConnectionId;

pub use self::candidates::{Candidates, DirectAddress};
pub use self::error::{ConnectionError, PeerClose};
pub use self::event::Event;
pub use self::migrations::{MigrateError, Migrations};
pub use self::multipath::{MultipathPaths, PathInfo};
pub use self::stats::{ConnectionStats, Fallbacks, PathStats, WithheldFeatures};
pub use self::timer::Timer;
pub use crate::handshake::{EarlyData, TlsResult, TlsTask};
pub use crate::protection::KeyUpdateBlocked;

pub(crate) use self::received_datagram::ReceivedDatagram;
pub(crate) use self::start::{FIRST_DESTINATION_LEN, FirstInitial, Origin};

use self::fill::frame_capacity;
use self::life::Life;
use self::packets::Packets;
use self::parts::Parts;
use self::stats::Counters;
use self::watchdog::Watchdog;
use crate::cid::{ConnectionIds, ResetToken, TokenChange};
use crate::datagram::{DatagramId, DatagramPrefix, Datagrams, SendDatagramError, SendOptions};
use crate::handshake::Handshake;
use crate::multipath::PathTotals;
use crate::pings::Pings;
use crate::space::SpaceId;
use crate::stream::Streams;

/// One connection of an endpoint.
#[derive(Debug)]
pub struct Connection {
    life: Life,
    packets: Packets,
    parts: Parts,
    watchdog: Watchdog,
    events: VecDeque<Event>,
    counters: Counters,
    /// The value of [`Connection::datagram_room`] that [`Event::DatagramSizeChanged`] last reported.
    reported_room: (u16, usize),
}

impl Connection {
    /// Returns the side of the connection: client or server.
    pub fn side(&self) -> Side {
        self.parts.handshake.side()
    }

    /// Returns true if the connection is open, and this address of the peer is the one in use and validated.
    pub(crate) fn has_validated(&self, peer: SocketAddr) -> bool {
        let path = self.parts.paths.active();
        self.life.is_open() && path.is_validated() && path.tuple().peer == peer
    }

    /// Returns true until the handshake is complete.
    pub fn is_handshaking(&self) -> bool {
        self.life.is_handshaking()
    }

    /// Returns true once the handshake is confirmed.
    pub fn is_confirmed(&self) -> bool {
        self.life.is_confirmed()
    }

    /// Returns true when the connection is over, for any reason.
    pub fn is_closed(&self) -> bool {
        !self.life.is_open()
    }

    /// Returns true when the connection is over and sends no more packets, because the peer has closed
    /// it too or has lost its state. Late packets are dropped.
    pub fn has_finished_sending(&self) -> bool {
        self.life.has_finished_sending()
    }

    /// Returns true once the closing or draining period has ended, so that the endpoint may forget the
    /// connection.
    pub fn is_drained(&self) -> bool {
        self.life.is_drained()
    }

    /// Returns true while the path is silent: between [`Event::PathSilent`] and [`Event::PathAnswers`].
    pub fn is_path_silent(&self) -> bool {
        self.watchdog.is_path_silent()
    }

    /// Returns the addresses of the path in use.
    pub fn path(&self) -> FourTuple {
        self.parts.paths.active().tuple()
    }

    /// Returns the addresses of the last validated path, which an application may trust. After a move of
    /// the peer, the path in use is another one until it is validated (RFC 9000 §9.3): its address may
    /// be forged.
    ///
    /// On a server no path is validated before the handshake is complete, unless the client has
    /// presented a token ([`Incoming::is_address_validated`](crate::Incoming::is_address_validated)).
    /// Until then this is the path of the first packet, whose address may be forged, even if early
    /// data has arrived.
    pub fn validated_path(&self) -> FourTuple {
        self.parts.paths.proven().tuple()
    }

    /// Returns the smoothed round-trip time of the path in use.
    pub fn rtt(&self) -> Duration {
        self.packets.recovery.path().rtt().smoothed()
    }

    /// Returns the values that the handshake negotiated, or `None` until ALPN and server name are
    /// known.
    pub fn handshake_data(&self) -> Option<HandshakeData> {
        self.parts.handshake.data().cloned()
    }

    /// Returns the peer's certificate chain in DER, its own first.
    pub fn peer_certificates(&self) -> Option<Vec<Vec<u8>>> {
        self.parts.handshake.peer_certificates().cloned()
    }

    /// Returns the TLS exporter, once the handshake is complete.
    pub fn exporter(&self) -> Option<&Exporter> {
        self.parts.handshake.exporter()
    }

    /// Fills `out` with keying material that both ends derive alike (RFC 8446 §7.5).
    ///
    /// # Errors
    ///
    /// Before the handshake is complete, and when label or output are too long.
    pub fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), TlsError> {
        let exporter = self
            .exporter()
            .ok_or_else(|| TlsError::internal("the handshake is not complete"))?;
        exporter
            .export(out, label, context)
            .map_err(|error| TlsError::internal(error.to_string()))
    }

    /// Returns the streams, to open, accept, read and write them. When the connection is over, streams
    /// with unread data remain, unless our end closed.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # fn main() -> Result {
    /// # let mut pair = Pair::connected()?;
    /// # use courser_wire::Direction;
    /// # let connection = pair.near();
    /// let streams = connection.streams();
    /// let id = streams.open(Direction::Unidirectional).expect("peers allow 100 by default");
    /// streams.write(id, b"hello")?;
    /// streams.finish(id)?;
    /// # pair.run();
    /// # let id = pair.far().streams().accept(Direction::Unidirectional).expect("it has arrived");
    /// # assert_eq!(pair.far().streams().read_chunk(id, 100)?.as_deref(), Some(&b"hello"[..]));
    /// # Ok(()) }
    /// ```
    pub fn streams(&mut self) -> &mut Streams {
        &mut self.parts.streams
    }

    /// Returns the reason why the connection is over, once it is.
    pub fn close_error(&self) -> Option<&ConnectionError> {
        self.life.error()
    }

    /// Returns the next event for the application.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # fn main() -> Result {
    /// # let mut pair = Pair::connected()?;
    /// # let connected = pair.events.iter().any(|event| matches!(event, Event::Connected));
    /// # assert!(connected);
    /// # let connection = pair.near();
    /// while let Some(event) = connection.poll_event() {
    ///     match event {
    ///         Event::Connected => println!("streams can be opened"),
    ///         Event::Lost(error) => println!("over: {error}"),
    ///         other => println!("{other:?}"),
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if let Some(event) = self.parts.streams.poll_event() {
            return Some(Event::Stream(event));
        }
        if self.parts.pings.take_answered() {
            return Some(Event::PingAnswered);
        }
        let observed = self.parts.observed.as_mut();
        if let Some(observed) = observed.and_then(|it| it.take_new()) {
            return Some(Event::AddressObserved(observed));
        }
        let room = self.datagram_room();
        if room != self.reported_room && self.life.is_open() {
            self.reported_room = room;
            return Some(Event::DatagramSizeChanged);
        }
        self.parts.datagrams.poll_event().map(Event::Datagram)
    }

    /// Returns the PINGs of the application, to request one and learn its round-trip time.
    /// [`Event::PingAnswered`] follows the answer.
    pub fn pings(&mut self) -> &mut Pings {
        &mut self.parts.pings
    }

    /// Updates the 1-RTT keys.
    ///
    /// # Errors
    ///
    /// [`KeyUpdateBlocked`] while RFC 9001 §6 does not allow an update yet. The keys are unchanged then.
    pub fn initiate_key_update(&mut self, now: Time) -> Result<(), KeyUpdateBlocked> {
        if !self.life.is_confirmed() {
            return Err(KeyUpdateBlocked::NotConfirmed);
        }
        self.packets.protection.update(now)?;
        // An empty packet would not show the peer the new phase.
        self.packets.recovery.request_ping(SpaceId::Application);
        let key_phase = self.packets.protection.key_phase();
        self.parts.trace.key_update(now, false, key_phase);
        Ok(())
    }

    /// Returns counters, and the state of the path.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # fn main() -> Result {
    /// # let mut pair = Pair::connected()?;
    /// let stats = pair.near().stats();
    /// assert_eq!(stats.packets_lost, 0);
    /// println!("a window of {} bytes", stats.path.congestion_window);
    /// # Ok(()) }
    /// ```
    pub fn stats(&self) -> ConnectionStats {
        let streams = self.parts.streams.counters();
        let PathTotals {
            recovery,
            frames_sent,
            arrivals,
        } = self.totals_of_paths();
        ConnectionStats {
            key_updates: self.packets.protection.updates(),
            acks_sent: self.parts.acknowledger.sent(),
            packets_sent: recovery.packets_sent,
            packets_lost: recovery.packets_lost,
            packets_spuriously_lost: recovery.packets_spuriously_lost,
            acks_received: recovery.acks_received,
            congestion_events: recovery.congestion_events,
            congestion_events_undone: recovery.congestion_events_undone,
            ptos: recovery.ptos,
            data_sent: streams.data_sent,
            data_retransmitted: streams.data_retransmitted,
            data_acked: streams.data_acked,
            data_received: streams.data_received,
            datagrams: self.parts.datagrams.stats(),
            frames_sent,
            frames_received: self.counters.frames_received.into(),
            ecn_sent: recovery.ecn_sent,
            fallbacks: recovery.fallbacks,
            ecn_received: self.counters.ecn_received,
            ce_received: self.counters.ecn_received.ce,
            udp_sent: self.counters.udp_sent,
            udp_received: self.counters.udp_received,
            packets_received: self.counters.packets_received,
            packets_missing: arrivals.missing,
            packets_late: arrivals.late,
            packets_dropped: self.counters.packets_dropped,
            early_packets_dropped: self.counters.early_packets_dropped,
            ack_eliciting_received: self.counters.ack_eliciting_received,
            handshake_time: self.counters.handshake_time,
            early_data: self.parts.handshake.early_data(),
            version: self.parts.handshake.version().current(),
            path_changes: self.parts.paths.changes(),
            path: self.packets.recovery.path().stats(),
        }
    }

    /// Returns the state of the path in use, the last part of [`Connection::stats`].
    pub fn path_stats(&self) -> PathStats {
        self.packets.recovery.path().stats()
    }

    /// Sends a PING when the connection was idle for a third of the idle timeout and a
    /// bidirectional stream that we opened is still open. Off by default.
    pub fn keep_alive_while_busy(&mut self, is_on: bool) {
        self.watchdog.keep_alive_while_busy(is_on);
    }

    /// Returns the tap at which sinks for records are attached, and where the layers above record
    /// their events.
    pub fn tap(&mut self) -> &mut Tap {
        self.parts.trace.tap()
    }

    /// Switches to another congestion controller, without a burst and with the current window; see
    /// [`CongestionController::switch`]. Later paths of the connection begin with it too. A custom
    /// controller is dropped. Does nothing if the algorithm is the same.
    ///
    /// [`CongestionController::switch`]: courser_recovery::CongestionController::switch
    pub fn set_congestion_controller(&mut self, now: Time, algorithm: Algorithm) {
        self.packets.recovery.switch_controller(now, algorithm);
    }

    /// Sets the MTU of the interface towards the peer in bytes of an IP packet. It is the next
    /// size that the search tries, and the largest. Without it the search begins at Ethernet's.
    /// Best called at [`Event::InterfaceMtuWanted`]: short connections never need it.
    pub fn set_interface_mtu(&mut self, mtu: u32) {
        let size = self.parts.paths.active().payload_of(mtu);
        self.packets.recovery.set_interface_mtu(size);
    }

    /// Records that the system refused to send a datagram of this size. Unless it was a probe of a larger size, the MTU of the
    /// interface has changed, and is asked for again: without it, the connection would first have to lose several rounds.
    pub fn on_too_large(&mut self, size: usize) {
        if size <= usize::from(self.packets.recovery.path().mtu()) {
            self.want_interface_mtu();
        }
    }

    /// Asks for the MTU of the interface again, because it has changed, by [`Event::InterfaceMtuWanted`].
    pub fn refresh_interface_mtu(&mut self) {
        self.want_interface_mtu();
    }

    /// Records that the system did not set the ECN mark of packets that were sent. No more are marked on this
    /// path, and the ECN counts of the peer are ignored (RFC 9000 §13.4.2).
    pub fn on_marks_refused(&mut self) {
        self.packets.recovery.on_marks_refused();
    }

    /// Returns the received datagrams, and the queue of those to be sent.
    pub fn datagrams(&mut self) -> &mut Datagrams {
        &mut self.parts.datagrams
    }

    /// Returns the bytes of the largest datagram that can be sent now, or `None` when the peer
    /// accepts none or its limits are not known yet.
    ///
    /// The size depends on the peer's limit, the length of its connection IDs and the datagram size
    /// of the path, which changes while the connection lives. It is at least 1158 bytes on a path
    /// in use, if neither the peer nor our own queue allows less.
    pub fn max_datagram_size(&self) -> Option<usize> {
        let (mtu, id_len) = self.datagram_room();
        self.parts.datagrams.max_size(frame_capacity(mtu, id_len))
    }

    /// Returns the datagram size of the path, and the length of the peer's connection ID.
    #[inline]
    fn datagram_room(&self) -> (u16, usize) {
        let others = self.parts.multipath.as_ref();
        let smallest = others.map_or(u16::MAX, |it| it.smallest_mtu());
        let mtu = self.packets.recovery.path().mtu().min(smallest);
        (mtu, self.parts.ids.destination().len())
    }

    /// Queues a datagram to be sent once (RFC 9221 §5). If the queue is full, the oldest ones are
    /// dropped. Returns the ID for [`DatagramEvent::Fate`](crate::DatagramEvent::Fate) if it is tracked.
    ///
    /// # Errors
    /// [`SendDatagramError`] if the peer accepts no datagrams, or none of this size, or sending is switched
    /// off. On a connection that is over, the datagram is dropped without an error.
    pub fn send_datagram(
        &mut self,
        now: Time,
        data: Bytes,
        options: SendOptions,
    ) -> Result<Option<DatagramId>, SendDatagramError> {
        self.send_datagram_after(now, DatagramPrefix::NONE, data, options)
    }

    /// Returns true if a probe of the path's MTU may be due. A datagram that is too large begins the search, and only the next
    /// packet sends the probe.
    pub fn awaits_size_probe(&self) -> bool {
        self.packets.recovery.awaits_size_probe()
    }

    /// Queues a datagram that consists of these two parts, like [`send_datagram`](Self::send_datagram).
    ///
    /// # Errors
    /// The errors of [`send_datagram`](Self::send_datagram), whose sizes include the prefix.
    pub fn send_datagram_after(
        &mut self,
        now: Time,
        prefix: DatagramPrefix,
        data: Bytes,
        options: SendOptions,
    ) -> Result<Option<DatagramId>, SendDatagramError> {
        if self.packets.recovery.on_datagrams_used(now) {
            self.want_interface_mtu();
        }
        let max = self.max_datagram_size();
        let size = prefix.as_bytes().len() + data.len();
        if max.is_some_and(|max| size + NEARLY_FULL > max) {
            // The size leaves space for the longest packet number. A datagram this close to it benefits
            // from a larger MTU.
            self.packets.recovery.on_full_datagram_needed(now);
        }
        self.parts
            .datagrams
            .send_after(now, prefix, data, max, options)
    }
}

/// Methods that the endpoint calls after each use of a connection.
impl Connection {
    /// Returns the bytes held for the peer: data that it has not acknowledged, data that the
    /// application has not read, datagrams, records of packets, and a handshake in progress.
    pub(crate) fn memory(&self) -> u64 {
        let state = match self.life.is_handshaking() {
            true => HANDSHAKE_MEMORY,
            false if self.is_closed() => 0,
            false => CONNECTION_MEMORY,
        };
        let records = self.packets.recovery.memory() as u64;
        self.parts.streams.memory() + self.parts.datagrams.memory() + records + state
    }

    /// Sets the memory that the endpoint has left for all its connections.
    #[inline]
    pub(crate) fn set_memory_left(&mut self, left: u64) {
        self.parts.streams.set_memory_left(left);
    }

    /// Returns the number of connection IDs that the endpoint should generate.
    pub(crate) fn missing_ids(&self) -> usize {
        let is_ready = self.life.is_open() && self.packets.recovery.ack_delay_exponent().is_some();
        if is_ready && self.packets.protection.has_keys(SpaceId::Application) {
            let others = self.parts.multipath.as_ref();
            self.parts.ids.missing() + others.map_or(0, |multipath| multipath.missing_ids())
        } else {
            0
        }
    }

    /// Adds an ID that the endpoint generated, to a path that lacks one.
    pub(crate) fn issue_id(&mut self, id: ConnectionId, token: ResetToken) {
        match &mut self.parts.multipath {
            Some(multipath) if self.parts.ids.missing() == 0 => multipath.issue(id, token),
            _ => self.parts.ids.issue(id, token),
        }
    }

    /// Removes and returns an ID that no longer belongs to the connection.
    pub(crate) fn take_retired_id(&mut self) -> Option<ConnectionId> {
        let multipath = self.parts.multipath.as_mut();
        self.parts
            .ids
            .take_retired()
            .or_else(|| multipath.and_then(|multipath| multipath.take_retired()))
    }

    /// Returns one change at a time to the tokens that reset this connection, with the address that the peer has on their
    /// path. The address of a token that is removed may be unknown.
    pub(crate) fn poll_token_change(&mut self) -> Option<(Option<SocketAddr>, TokenChange)> {
        if let Some(change) = self.parts.ids.poll_token_change() {
            return Some((Some(self.path().peer), change));
        }
        self.parts.multipath.as_mut()?.poll_token_change()
    }

    /// Returns true if the ends have agreed on several paths.
    pub(crate) fn has_several_paths(&self) -> bool {
        self.parts.multipath.is_some()
    }

    /// Returns all IDs that the peer may address this connection by.
    pub(crate) fn active_ids(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        let others = self.parts.multipath.iter();
        let others = others.flat_map(|multipath| multipath.active_ids());
        self.parts.ids.active().chain(others)
    }

    /// Returns the connection IDs, by which the endpoint routes packets.
    pub(crate) fn ids(&self) -> &ConnectionIds {
        &self.parts.ids
    }

    /// Returns the connection IDs, to add new ones and remove retired ones.
    pub(crate) fn ids_mut(&mut self) -> &mut ConnectionIds {
        &mut self.parts.ids
    }

    /// Returns the handshake, with its TLS tasks and tokens.
    pub(crate) fn handshake_mut(&mut self) -> &mut Handshake {
        &mut self.parts.handshake
    }

    /// Processes an ICMP Packet Too Big message: a datagram to the peer exceeded a link that carries IP
    /// packets of `mtu` bytes. `quote` is the beginning of the datagram. Returns true if the
    /// message is accepted.
    ///
    /// The cost is the same for every message, regardless of the bytes in flight.
    pub(crate) fn on_packet_too_big(&mut self, now: Time, mtu: u32, quote: &[u8]) -> bool {
        let claimed = self.parts.paths.active().payload_of(mtu);
        // An MTU that no QUIC path can have is not examined any further.
        if claimed < BASE_MTU || !self.life.is_open() {
            return false;
        }
        let id_len = self.parts.ids.destination().len();
        let is_greased = self.parts.bits.accepts_cleared();
        let quoted = self.packets.quoted(quote, id_len, is_greased);
        self.packets
            .recovery
            .on_router_report(now, quoted, claimed, &mut self.parts)
    }

    /// Processes a report that a packet did not reach the peer: an ICMP message that quotes a packet to the
    /// connection ID `destination`, or `None` if the system has no route to it. Returns true if the report
    /// is accepted: the server has not answered this client, and the ID is the one that the client chose,
    /// which has at least eight random bytes (RFC 9000 §7.2).
    pub(crate) fn on_unreachable(
        &mut self,
        cause: Unreachable,
        destination: Option<&[u8]>,
    ) -> bool {
        let is_ours = match destination {
            Some(destination) => self.parts.handshake.is_unanswered_by(destination),
            None => self.parts.handshake.is_unanswered(),
        };
        let is_accepted = is_ours && self.life.is_handshaking();
        let event = is_accepted.then(|| self.watchdog.on_unreachable(cause));
        let event = event.flatten();
        let is_new = event.is_some();
        self.events.extend(event);
        is_new
    }

    /// Queues an event if the path became silent or answers again. No event follows the end of the
    /// connection.
    #[inline]
    fn report_silence(&mut self, now: Time) {
        let is_silent = self.are_all_paths_silent();
        if is_silent != self.watchdog.is_path_silent() && self.life.is_open() {
            let event = self.watchdog.on_path_silence(is_silent);
            self.events.push_back(event);
            let timeouts = self.packets.recovery.unanswered();
            self.parts.trace.path_silence(now, is_silent, timeouts);
        }
    }

    /// Drops unread data.
    pub(crate) fn forget_unread(&mut self) {
        self.parts.streams.on_close();
        self.parts.datagrams.on_end(false);
    }

    /// Frees what the connection does not need in its present state.
    ///
    /// A drained one frees keys, connection IDs, records of packets, the state of the handshake, and
    /// hooks of the user. Statistics, addresses, the results of the handshake, and unread data stay
    /// until the owner releases the connection.
    ///
    /// One that was idle for [`IDLE_BEFORE_FREE`], with nothing in flight, frees memory that only makes the
    /// next packets and streams cheaper. After a longer idle time, keys are reduced to the secrets.
    pub(crate) fn free_unneeded(&mut self, now: Time) {
        if self.life.is_drained() {
            self.packets.protection.free();
            self.parts.acknowledger.free();
            self.packets.recovery.free();
            self.parts.ids.free();
            self.parts.handshake.free();
            self.parts.streams.shrink();
            // A sink may flush a file.
            self.parts.trace.end();
        } else if self.life.is_confirmed()
            && !self.packets.recovery.is_waiting(SpaceId::Application)
            && now >= self.watchdog.last_received() + IDLE_BEFORE_FREE
        {
            self.parts.handshake.shrink();
            self.parts.acknowledger.shrink();
            self.parts.ids.shrink();
            self.parts.streams.shrink();
            self.parts.datagrams.shrink();
            self.packets.recovery.shrink();
            self.events.shrink_to_fit();
            self.parts.rng.shrink();
            if self.keys_until().is_some_and(|until| now >= until) {
                self.packets.protection.store(now);
            }
        }
    }

    /// Returns the time at which [`Connection::free_unneeded`] may reduce the keys; `None` if the connection is
    /// not idle or its keys are reduced.
    pub(crate) fn keys_until(&self) -> Option<Time> {
        let can_store = self.life.is_confirmed()
            && !self.packets.recovery.is_waiting(SpaceId::Application)
            && self.packets.protection.can_store();
        can_store
            .then(|| self.watchdog.last_received() + self.packets.protection.idle_before_store())
    }
}

/// Memory of a handshake, its TLS state included: measured as 24 KB.
const HANDSHAKE_MEMORY: u64 = 24 << 10;

/// Memory of an idle connection (limit K116): its paths, keys, tables and the task that serves it.
const CONNECTION_MEMORY: u64 = 16 << 10;

/// The time without a packet of the peer after which a connection frees memory.
const IDLE_BEFORE_FREE: Duration = Duration::from_millis(500);

/// Bytes by which a datagram may fall short of the largest size and still request larger packets.
const NEARLY_FULL: usize = 64;

#[cfg(test)]
mod tests;
