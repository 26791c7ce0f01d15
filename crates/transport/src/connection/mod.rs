//! One QUIC connection. RFC 9000, RFC 9001, RFC 9002.
//!
//! The connection owns parts that own their state, and calls them in written orders: which part
//! sees a frame is in `dispatch`, what leaves and when in `transmit`, who hears of an
//! acknowledgement in `fate`.

mod close;
mod datagrams;
mod dispatch;
pub(crate) mod error;
pub(crate) mod event;
mod fate;
mod fill;
#[cfg(test)]
mod forging;
pub(crate) mod handshake;
mod idle;
mod mtu;
mod packet_too_big;
mod receive;
mod start;
mod state;
pub(crate) mod stats;
mod suspicion;
pub(crate) mod timeouts;
mod tls;
mod trace;
mod transmit;
mod transmit_close;
mod transmit_handshake;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use courser_base::{FourTuple, Side, Time};
use courser_crypto::{Exporter, HandshakeData, TlsError};
use courser_recovery::Algorithm;
use courser_telemetry::{Record, Sink, StateChanged, Tap};
use courser_wire::ConnectionId;

pub use self::error::{ConnectionError, PeerClose};
pub use self::event::Event;
pub use self::stats::{ConnectionStats, PathStats, UdpStats};
pub use self::timeouts::Timer;
pub use self::tls::{TlsResult, TlsTask};
pub use crate::protection::KeyUpdateBlocked;

pub(crate) use self::receive::Arrival;
pub(crate) use self::start::{FirstInitial, Origin};

use self::handshake::Handshake;
use self::idle::Idle;
use self::state::State;
use self::suspicion::Suspicion;
use self::timeouts::CreditRequests;
use self::trace::Recorded;
use crate::acknowledger::Acknowledger;
use crate::cid::issued::IssuedIds;
use crate::cid::peer::PeerIds;
use crate::config::TransportConfig;
use crate::datagram::Datagrams;
use crate::path::paths::Paths;
use crate::protection::PacketProtection;
use crate::recovery::LossRecovery;
use crate::rng::Rng;
use crate::space::SpaceId;
use crate::stream::Streams;

/// One connection of an endpoint.
#[derive(Debug)]
pub struct Connection {
    config: Arc<TransportConfig>,
    side: Side,
    state: State,
    handshake: Handshake,
    protection: PacketProtection,
    acknowledger: Acknowledger,
    paths: Paths,
    cids: Cids,
    streams: Streams,
    datagrams: Datagrams,
    recovery: LossRecovery,
    idle: Idle,
    credit_requests: CreditRequests,
    suspicion: Suspicion,
    events: VecDeque<Event>,
    close_error: Option<ConnectionError>,
    stats: ConnectionStats,
    rng: Rng,
    tap: Tap,
    /// What was recorded last, while a sink is plugged in.
    recorded: Option<Box<Recorded>>,
}

/// Connection IDs both ways.
#[derive(Debug)]
struct Cids {
    issued: IssuedIds,
    peer: PeerIds,
    /// Sequence number of the newest of our IDs that the peer moved with.
    in_use: u64,
    /// IDs the peer gave back: the endpoint stops routing them.
    retired: Vec<ConnectionId>,
}

impl Connection {
    /// Which end this is.
    pub fn side(&self) -> Side {
        self.side
    }

    /// True until the handshake is complete.
    pub fn is_handshaking(&self) -> bool {
        self.state.is_handshaking()
    }

    /// True once the handshake is confirmed.
    pub fn is_confirmed(&self) -> bool {
        self.state.is_confirmed()
    }

    /// True when the connection is over, for whatever reason.
    pub fn is_closed(&self) -> bool {
        !self.state.is_open()
    }

    /// True when the peer knows that the connection is over, or is gone: nothing more is to be
    /// said, only late packets are swallowed.
    pub fn is_quiet(&self) -> bool {
        matches!(
            self.state,
            State::Draining { answer: None, .. } | State::Drained
        )
    }

    /// True when nothing is left to do; the endpoint forgets the connection.
    pub fn is_drained(&self) -> bool {
        matches!(self.state, State::Drained)
    }

    /// Addresses of the path in use.
    pub fn path(&self) -> FourTuple {
        self.paths.active().tuple
    }

    /// Addresses of the path where the peer was last proven to be: those that an application may
    /// believe. The path in use is another one while a peer that moved has not answered there
    /// (RFC 9000 §9.3), for its address may be forged.
    pub fn proven_path(&self) -> FourTuple {
        self.paths.proven().tuple
    }

    /// Smoothed round-trip time of the path in use.
    pub fn rtt(&self) -> Duration {
        self.recovery.route().rtt().smoothed()
    }

    /// What the handshake negotiated; `None` until ALPN and server name are known.
    pub fn handshake_data(&self) -> Option<HandshakeData> {
        self.handshake.data.clone()
    }

    /// The peer's certificate chain in DER, its own first.
    pub fn peer_certificates(&self) -> Option<Vec<Vec<u8>>> {
        self.handshake.peer_certificates.clone()
    }

    /// The TLS exporter, once the handshake is complete.
    pub fn exporter(&self) -> Option<&Exporter> {
        self.handshake.exporter.as_ref()
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

    /// The streams: open, accept, read, write.
    pub fn streams(&mut self) -> &mut Streams {
        &mut self.streams
    }

    /// Takes the streams of a connection that is over, as far as something of them can still be
    /// accepted or read; `None` when there is nothing, or our end closed.
    ///
    /// The connection lives for three probe timeouts at the most after its end; this lives as long
    /// as the application wants.
    pub fn take_unread(&mut self) -> Option<Streams> {
        self.streams.take_unread()
    }

    /// Why the connection is over, once it is.
    pub fn close_error(&self) -> Option<&ConnectionError> {
        self.close_error.as_ref()
    }

    /// The next thing the application should know.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if let Some(event) = self.streams.poll_event() {
            return Some(Event::Stream(event));
        }
        self.datagrams.poll_event().map(Event::Datagram)
    }

    /// Sends a PING, so that the peer proves to be there.
    pub fn ping(&mut self) {
        if self.state.is_open() {
            self.recovery.request_ping(SpaceId::Application);
        }
    }

    /// Updates the 1-RTT keys.
    ///
    /// # Errors
    ///
    /// When the rules do not allow an update yet. Nothing changes then.
    pub fn initiate_key_update(&mut self, now: Time) -> Result<(), KeyUpdateBlocked> {
        if !self.state.is_confirmed() {
            return Err(KeyUpdateBlocked::NotConfirmed);
        }
        self.derive_keys();
        let next = self.recovery.first_unused_number();
        self.protection.update(next)?;
        // An empty packet would not show the peer the new phase.
        self.recovery.request_ping(SpaceId::Application);
        self.record_key_update(now, false);
        Ok(())
    }

    /// Derives the 1-RTT keys if they are of use from now on.
    #[inline]
    fn derive_keys(&mut self) {
        if self.protection.is_underived() && (self.may_send_application() || self.is_closed()) {
            self.protection.derive();
        }
    }

    /// Counters, and the state of the path.
    pub fn stats(&self) -> ConnectionStats {
        let counters = self.streams.counters();
        let recovery = self.recovery.stats();
        ConnectionStats {
            key_updates: self.protection.updates(),
            acks_sent: self.acknowledger.sent(),
            packets_sent: recovery.packets_sent,
            packets_lost: recovery.packets_lost,
            packets_spuriously_lost: recovery.packets_spuriously_lost,
            acks_received: recovery.acks_received,
            congestion_events: recovery.congestion_events,
            congestion_events_undone: recovery.congestion_events_undone,
            ptos: recovery.ptos,
            data_sent: counters.data_sent,
            data_retransmitted: counters.data_retransmitted,
            data_acked: counters.data_acked,
            data_received: counters.data_received,
            datagrams: self.datagrams.stats(),
            path: self.recovery.route().stats(),
            ..self.stats
        }
    }

    /// Sends a PING after a third of the idle timeout of silence while a stream for both directions
    /// is open that we have opened. Off at first.
    pub fn keep_alive_while_busy(&mut self, is_on: bool) {
        self.idle.keep_while_busy(is_on);
    }

    /// Plugs in a sink for records, or takes it out.
    pub fn set_sink(&mut self, sink: Option<Box<dyn Sink>>) {
        self.tap.set(sink);
        self.recorded = None;
    }

    /// Goes on with another congestion controller, without a burst and with the window as it is;
    /// see [`CongestionController::switch`]. Paths that the connection moves to later begin with
    /// it too. A controller of the user's own is given up. Nothing changes if it is the same one.
    ///
    /// [`CongestionController::switch`]: courser_recovery::CongestionController::switch
    pub fn set_congestion_controller(&mut self, now: Time, algorithm: Algorithm) {
        let is_same = self.config.congestion == algorithm;
        if !is_same || self.config.controller_factory.is_some() {
            let config = Arc::make_mut(&mut self.config);
            config.congestion = algorithm;
            config.controller_factory = None;
        }
        let capacity_rise = self.config.capacity_rise;
        self.recovery
            .switch_controller(now, algorithm, capacity_rise);
    }

    fn enter(&mut self, now: Time, state: State) {
        let old = Some(self.state.name());
        self.state = state;
        let state = self.state.name();
        self.tap
            .record(now, || Record::StateChanged(StateChanged { old, state }));
    }
}

/// What the endpoint asks a connection after each use.
impl Connection {
    /// Bytes held for the peer: what it has not acknowledged, what nobody has read, datagrams,
    /// records of packets, and a handshake while it goes on.
    pub(crate) fn memory(&self) -> u64 {
        let state = match self.state.is_handshaking() {
            true => HANDSHAKE_MEMORY,
            false if self.is_closed() => 0,
            false => CONNECTION_MEMORY,
        };
        let records = self.recovery.memory() as u64;
        self.streams.memory() + self.datagrams.memory() + records + state
    }

    /// Bytes of streams that reached the peer or the application so far.
    pub(crate) fn moved(&self) -> u64 {
        self.streams.moved()
    }

    /// The endpoint has this much memory left for all its connections.
    #[inline]
    pub(crate) fn set_memory_left(&mut self, left: u64) {
        self.streams.set_memory_left(left);
    }

    /// How many connection IDs the endpoint should make.
    pub(crate) fn cids_wanted(&self) -> usize {
        let ready = self.state.is_open() && self.handshake.peer_parameters.is_some();
        if ready && self.protection.has_keys(SpaceId::Application) {
            self.cids.issued.wanted()
        } else {
            0
        }
    }

    /// Takes a connection ID that the endpoint made.
    pub(crate) fn issue_cid(&mut self, id: ConnectionId, token: [u8; 16]) {
        self.cids.issued.issue(id, token);
    }

    /// True once for each task with TLS work: the endpoint lists it.
    #[inline]
    pub(crate) fn list_tls_task(&mut self) -> bool {
        self.handshake.tls.list()
    }

    /// Hands out the TLS work that is listed.
    pub(crate) fn take_tls_task(&mut self) -> Option<TlsTask> {
        self.handshake.tls.take_listed()
    }

    /// IDs that the peer gave back.
    pub(crate) fn take_retired_cid(&mut self) -> Option<ConnectionId> {
        self.cids.retired.pop()
    }

    /// True while the application has something to read with [`Connection::poll_event`].
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// The ID that we address the peer by.
    pub(crate) fn peer_id(&self) -> ConnectionId {
        *self.cids.peer.current()
    }

    /// All IDs the peer may address us by.
    pub(crate) fn active_cids(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.cids.issued.active()
    }

    /// One change at a time to the tokens that reset this connection.
    pub(crate) fn poll_token_change(&mut self) -> Option<crate::cid::peer::TokenChange> {
        self.cids.peer.poll_token_change()
    }

    /// True once, when a server should give the client tokens for its next connection.
    pub(crate) fn take_wants_tokens(&mut self) -> bool {
        std::mem::take(&mut self.handshake.wants_tokens)
    }

    /// Takes tokens for NEW_TOKEN frames.
    pub(crate) fn queue_tokens(&mut self, tokens: Vec<Bytes>) {
        self.handshake.send_tokens = !tokens.is_empty();
        self.handshake.tokens = tokens;
    }
}

/// What a handshake holds, its TLS state included: measured as 24 KB.
const HANDSHAKE_MEMORY: u64 = 24 << 10;

/// Memory of an idle connection (limit K116): its paths, keys, tables and the task that serves it.
const CONNECTION_MEMORY: u64 = 16 << 10;

#[cfg(test)]
mod tests;
