//! The end of a connection, and the resources that are freed with it. RFC 9000 §10.

use std::time::Duration;

use bytes::Bytes;
use courser_base::{ScopedIp, Time};
use courser_wire::{ApplicationErrorCode, MAX_VARINT, TransportErrorCode};

use super::Connection;
use super::closing::cut;
use super::error::ConnectionError;
use super::event::Event;
use super::life::Ending;
use super::state::State;
use crate::error::TransportError;

impl Connection {
    /// Ends the connection with an application error code.
    ///
    /// The peer sees `code` and `reason` (at most 512 bytes of it) once the handshake is done,
    /// and APPLICATION_ERROR before. A code above 2^62-1 is lowered to that, the largest in a frame.
    /// Does nothing when the connection is over already.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # fn main() -> Result {
    /// # let mut pair = Pair::connected()?;
    /// let now = pair.now;
    /// pair.near().close(now, 7, b"done");
    /// pair.run();
    /// assert!(pair.far().is_closed());
    /// # Ok(()) }
    /// ```
    pub fn close(&mut self, now: Time, code: u64, reason: &[u8]) {
        let code = ApplicationErrorCode(code.min(MAX_VARINT));
        let reason = Bytes::copy_from_slice(cut(reason));
        self.end(now, Ending::Application { code, reason });
    }

    /// Enters another state of an open connection.
    pub(super) fn enter(&mut self, now: Time, state: State) {
        self.life.enter(now, state, &mut self.parts.trace);
    }

    /// Ends the connection. The parts free their memory.
    ///
    /// The connection waits for late packets for three probe timeouts (§10.2), at most [`MAX_DRAIN`].
    /// The probe timeouts are those of announced acknowledgement delays: a peer that misses our
    /// CONNECTION_CLOSE sends its next probe after its own probe timeout, and must get the frame again
    /// instead of a stateless reset.
    pub(crate) fn end(&mut self, now: Time, ending: impl Into<Ending>) {
        let own = self.parts.acknowledger.announced_max_ack_delay();
        let pto = self.packets.recovery.announced_pto(own);
        let period = pto.saturating_mul(3).min(MAX_DRAIN);
        let ended = self
            .life
            .end(now, period, ending.into(), &mut self.parts.trace);
        let Some(error) = ended else {
            return;
        };
        let is_lost = matches!(
            error,
            ConnectionError::ConnectionClosed(_)
                | ConnectionError::ApplicationClosed { .. }
                | ConnectionError::Reset
                | ConnectionError::TimedOut
                | ConnectionError::PathSilent
        );
        let peer = ScopedIp::of(self.path().peer);
        // Acknowledgements of a peer that breaks the rules prove nothing about the path (attack A190).
        if !matches!(&error, ConnectionError::TransportError(error) if is_by_peer(error)) {
            self.packets.recovery.remember_path(now, peer);
        }
        if is_lost {
            self.parts.streams.on_lost();
        } else {
            self.parts.streams.on_close();
        }
        self.parts.datagrams.on_end(is_lost);
        self.packets.recovery.forget_all();
        self.parts.handshake.on_close();
        self.packets.protection.on_close();
        self.events.push_back(Event::Lost(error));
    }
}

/// Returns true if the peer caused a transport error. Attackers can forge packets until the keys are used
/// up, and networks can change.
const fn is_by_peer(error: &TransportError) -> bool {
    !matches!(
        error.code,
        TransportErrorCode::NO_VIABLE_PATH
            | TransportErrorCode::AEAD_LIMIT_REACHED
            | TransportErrorCode::INTERNAL_ERROR
    )
}

/// The error of a path that does not carry the smallest datagrams of QUIC: only probes and
/// CONNECTION_CLOSE may be sent on it (RFC 9000 §14.2).
pub(super) fn path_too_small() -> TransportError {
    let reason = "the path does not carry datagrams of 1200 bytes";
    TransportError::new(TransportErrorCode::NO_VIABLE_PATH, reason)
}

/// The longest time for which the state of a closed connection is kept (limit K82).
///
/// Deviates: RFC 9000 §10.2 requires three probe timeouts, whose length the peer decides by
/// acknowledging late (attack A51). Later packets get a stateless reset.
const MAX_DRAIN: Duration = Duration::from_secs(60);
