//! Hostile connections, with a real handshake and hand-made packets.

mod early;
mod handshake;
mod numbers;
mod one_rtt;
mod receive;
mod seen;
mod send;

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use courser_base::{Side, Time};
use courser_crypto::initial::initial_keys;
use courser_crypto::{ClientTls, KeyPair, Keys, Rng, ServerTls, Space, TlsSession, TlsStartError};
use courser_wire::{ConnectionId, Frame, TransportParameters, VERSION_1};

use self::numbers::Numbers;
use self::one_rtt::OneRtt;
pub use self::seen::{Close, Seen};
pub use self::send::ack;
use crate::encode::encode;
use crate::hooks::Hooks;

/// A QUIC connection that is controlled by its [`Hooks`].
///
/// It completes the handshake. Afterwards it acknowledges packets, answers PATH_CHALLENGE and sends
/// the frames given to it, as far as the hooks permit. It has no congestion control, flow control or
/// loss detection, and its only timer repeats the handshake.
pub struct Connection {
    side: Side,
    tls: Box<dyn TlsSession>,
    hooks: Box<dyn Hooks>,
    rng: Rng,
    initial: KeyPair,
    handshake: Option<KeyPair>,
    one_rtt: Option<OneRtt>,
    /// The keys of 0-RTT packets, on a client that sends some.
    early: Option<Keys>,
    /// A packet of the peer was opened.
    is_answered: bool,
    numbers: [Numbers; 3],
    local_id: ConnectionId,
    peer_id: ConnectionId,
    token: Vec<u8>,
    frames: Vec<Vec<u8>>,
    datagrams: VecDeque<Vec<u8>>,
    held: Option<Vec<u8>>,
    /// Packets that begin the next datagram.
    joined: Vec<u8>,
    repeat_at: Option<Time>,
    seen: Seen,
}

/// The interval at which an incomplete handshake is repeated.
pub const REPEAT: Duration = Duration::from_millis(300);

/// The size of datagrams with queued frames, which fits every path.
pub const DATAGRAM: usize = 1200;

impl Connection {
    /// Starts a client's handshake with the server `name`.
    ///
    /// # Errors
    /// Returns [`TlsStartError`] if the name or the TLS configuration is invalid.
    pub fn client(
        tls: &dyn ClientTls,
        name: &str,
        mut hooks: Box<dyn Hooks>,
        mut rng: Rng,
    ) -> Result<Self, TlsStartError> {
        let local_id = random_id(&mut rng, hooks.id_len());
        let peer_id = random_id(&mut rng, hooks.id_len());
        let mut parameters = generous_parameters();
        parameters.initial_source_connection_id = Some(local_id);
        hooks.edit_parameters(&mut parameters);
        let session = tls.start(name, encode_parameters(&parameters, &mut *hooks))?;
        let initial = initial_keys(VERSION_1, &peer_id, Side::Client);
        let ids = (local_id, peer_id);
        let mut connection = Self::new(Side::Client, session, hooks, rng, initial, ids);
        connection.write_tls();
        Ok(connection)
    }

    /// Starts the server's side of a handshake. `original` and `client_id` are the Destination and
    /// Source Connection ID of the client's first Initial.
    ///
    /// # Errors
    /// Returns [`TlsStartError`] if the TLS configuration is invalid.
    pub fn server(
        tls: &dyn ServerTls,
        original: ConnectionId,
        client_id: ConnectionId,
        mut hooks: Box<dyn Hooks>,
        mut rng: Rng,
    ) -> Result<Self, TlsStartError> {
        let local_id = random_id(&mut rng, hooks.id_len());
        let mut parameters = generous_parameters();
        parameters.initial_source_connection_id = Some(local_id);
        parameters.original_destination_connection_id = Some(original);
        hooks.edit_parameters(&mut parameters);
        let session = tls.start(encode_parameters(&parameters, &mut *hooks))?;
        let initial = initial_keys(VERSION_1, &original, Side::Server);
        let ids = (local_id, client_id);
        Ok(Self::new(Side::Server, session, hooks, rng, initial, ids))
    }

    fn new(
        side: Side,
        tls: Box<dyn TlsSession>,
        hooks: Box<dyn Hooks>,
        rng: Rng,
        initial: KeyPair,
        (local_id, peer_id): (ConnectionId, ConnectionId),
    ) -> Self {
        Self {
            side,
            tls,
            hooks,
            rng,
            initial,
            handshake: None,
            one_rtt: None,
            early: None,
            is_answered: false,
            numbers: Default::default(),
            local_id,
            peer_id,
            token: Vec::new(),
            frames: Vec::new(),
            datagrams: VecDeque::new(),
            held: None,
            joined: Vec::new(),
            repeat_at: None,
            seen: Seen::default(),
        }
    }

    /// Returns the side of this end.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Returns the connection ID that the peer uses as destination.
    pub fn local_id(&self) -> ConnectionId {
        self.local_id
    }

    /// Returns the Destination Connection ID of packets to the peer.
    pub fn peer_id(&self) -> ConnectionId {
        self.peer_id
    }

    /// Uses another Destination Connection ID from now on. The peer need not have issued it.
    pub fn set_peer_id(&mut self, id: ConnectionId) {
        self.peer_id = id;
    }

    /// Returns true once 1-RTT packets can be sent in both directions.
    pub fn is_established(&self) -> bool {
        self.one_rtt.is_some() && !self.tls.is_handshaking()
    }

    /// Returns true once the handshake is confirmed (RFC 9001 §4.1.2).
    pub fn is_confirmed(&self) -> bool {
        self.is_established() && (self.side.is_server() || self.seen.handshake_done)
    }

    /// Returns true if the peer closed the connection.
    pub fn is_closed(&self) -> bool {
        self.seen.close.is_some()
    }

    /// Returns the record of the peer's packets and frames.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Returns the peer's transport parameters once they have arrived, if they are valid.
    pub fn peer_parameters(&self) -> Option<TransportParameters> {
        let encoded = self.tls.peer_transport_parameters()?;
        TransportParameters::decode(encoded, self.side.peer()).ok()
    }

    /// Returns the largest 1-RTT packet number received.
    pub fn largest_received(&self) -> Option<u64> {
        self.numbers(Space::Application).received.max()
    }

    /// Returns the packet number of the next packet in `space`.
    pub fn next_number(&self, space: Space) -> u64 {
        self.numbers(space).next
    }

    /// Returns the length of the CRYPTO stream that TLS has written in `space`.
    pub fn crypto_len(&self, space: Space) -> u64 {
        self.numbers(space).crypto_out.len() as u64
    }

    /// Skips `count` packet numbers.
    pub fn skip_numbers(&mut self, space: Space, count: u64) {
        self.numbers_mut(space).next += count;
    }

    /// Updates the send keys, even if RFC 9001 §6 does not permit it now.
    pub fn update_keys(&mut self) {
        if let Some(keys) = &mut self.one_rtt {
            keys.update();
        }
    }

    /// Queues a frame for the next 1-RTT packet.
    pub fn push(&mut self, frame: &Frame<'_>) {
        self.frames.push(encode(frame));
    }

    /// Queues bytes for the next 1-RTT packet, unchanged and in place of a frame.
    pub fn push_bytes(&mut self, bytes: Vec<u8>) {
        self.frames.push(bytes);
    }

    /// Returns the random number generator of this connection.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// Returns the next datagram to send.
    pub fn poll_datagram(&mut self) -> Option<Vec<u8>> {
        self.datagrams.pop_front()
    }

    /// Returns the time at which to call [`Connection::transmit`] even if nothing arrives.
    pub fn next_timeout(&self) -> Option<Time> {
        self.repeat_at
    }

    fn numbers(&self, space: Space) -> &Numbers {
        &self.numbers[index(space)]
    }

    fn numbers_mut(&mut self, space: Space) -> &mut Numbers {
        &mut self.numbers[index(space)]
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("side", &self.side)
            .field("local_id", &self.local_id)
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}

fn index(space: Space) -> usize {
    match space {
        Space::Initial => 0,
        Space::Handshake => 1,
        Space::Application => 2,
    }
}

fn random_id(rng: &mut Rng, len: usize) -> ConnectionId {
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes);
    ConnectionId::new(&bytes).expect("hooks choose 20 bytes at most")
}

fn encode_parameters(parameters: &TransportParameters, hooks: &mut dyn Hooks) -> Vec<u8> {
    let mut encoded = Vec::new();
    parameters.encode(&mut encoded, None);
    hooks.append_parameters(&mut encoded);
    encoded
}

/// Returns transport parameters that do not restrict the peer. Hooks may change them.
fn generous_parameters() -> TransportParameters {
    TransportParameters {
        max_idle_timeout: 30_000,
        initial_max_data: GENEROUS,
        initial_max_stream_data_bidi_local: GENEROUS,
        initial_max_stream_data_bidi_remote: GENEROUS,
        initial_max_stream_data_uni: GENEROUS,
        initial_max_streams_bidi: 100,
        initial_max_streams_uni: 100,
        active_connection_id_limit: 8,
        max_udp_payload_size: 65_527,
        ..TransportParameters::default()
    }
}

/// More credit than a peer uses during any attack.
const GENEROUS: u64 = 1 << 40;

#[cfg(test)]
mod tests;
