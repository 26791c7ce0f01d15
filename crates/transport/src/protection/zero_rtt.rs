//! The keys of 0-RTT packets, which a client seals and a server opens. RFC 9001 §4.9.3, §5.6.

use std::time::Duration;

use courser_base::Time;
use courser_crypto::{HeaderKey, Keys, Secret};
use courser_wire::packet::PacketKind;

use crate::error::TransportError;

/// The keys of 0-RTT packets, and the time at which a server discards them.
#[derive(Debug)]
pub(super) struct ZeroRtt {
    keys: Keys,
    /// The smallest number of a 1-RTT packet that was opened.
    first_one_rtt: Option<u64>,
    drop_at: Option<Time>,
}

impl ZeroRtt {
    /// Derives the keys from the early secret of TLS (RFC 9001 §5.1).
    pub(super) fn new(secret: &Secret) -> Self {
        Self {
            keys: secret.keys(),
            first_one_rtt: None,
            drop_at: None,
        }
    }

    /// Returns the header protection key.
    pub(super) fn header(&self) -> &HeaderKey {
        &self.keys.header
    }

    /// Opens a payload. Returns its length, or `None` when it is not authentic.
    pub(super) fn open(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Option<usize> {
        self.keys.packet.open(number, header, payload).ok()
    }

    /// Seals the packet that fills `bytes`.
    pub(super) fn seal(&self, number: u64, bytes: &mut [u8], header_len: usize) {
        self.keys.packet.seal_packet(number, bytes, header_len);
    }

    /// Returns the time at which a server discards the keys. The client sends no 0-RTT packets after its
    /// first 1-RTT packet, and reordered ones arrive within three probe timeouts (§4.9.3).
    pub(super) fn drop_at(&self) -> Option<Time> {
        self.drop_at
    }

    /// Accounts for an authentic packet.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION for a 0-RTT packet that was sent after a 1-RTT packet (§5.6).
    pub(super) fn on_opened(
        &mut self,
        now: Time,
        pto: impl Fn() -> Duration,
        kind: PacketKind,
        number: u64,
    ) -> Result<(), TransportError> {
        match (kind, self.first_one_rtt) {
            (PacketKind::ZeroRtt, Some(first)) if number > first => {
                let reason = format!("0-RTT packet {number} sent after 1-RTT packet {first}");
                return Err(TransportError::protocol_violation(reason));
            }
            (PacketKind::OneRtt, Some(first)) => self.first_one_rtt = Some(first.min(number)),
            (PacketKind::OneRtt, None) => {
                self.first_one_rtt = Some(number);
                self.drop_at = Some(now + pto().saturating_mul(3));
            }
            _ => {}
        }
        Ok(())
    }
}
