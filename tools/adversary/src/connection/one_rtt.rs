//! 1-RTT keys that permit updates at any time.
//!
//! The keys of `courser-crypto` refuse updates that violate RFC 9001 §6, which an adversary must be
//! able to send.

use courser_crypto::{HeaderKey, PacketKey, Secret, SecretPair};

/// The keys for both directions.
#[derive(Debug)]
pub(super) struct OneRtt {
    pub(super) send: Send,
    receive: Receive,
}

/// The keys for sending.
#[derive(Debug)]
pub(super) struct Send {
    secret: Secret,
    pub(super) packet: PacketKey,
    pub(super) header: HeaderKey,
    pub(super) phase: bool,
}

/// The keys for receiving.
#[derive(Debug)]
struct Receive {
    secret: Secret,
    current: PacketKey,
    header: HeaderKey,
    phase: bool,
}

impl OneRtt {
    pub(super) fn new(secrets: SecretPair) -> Self {
        Self {
            send: Send {
                packet: secrets.local.packet_key(),
                header: secrets.local.header_key(),
                secret: secrets.local,
                phase: false,
            },
            receive: Receive {
                current: secrets.peer.packet_key(),
                header: secrets.peer.header_key(),
                secret: secrets.peer,
                phase: false,
            },
        }
    }

    pub(super) fn peer_header(&self) -> &HeaderKey {
        &self.receive.header
    }

    /// Updates the keys for sending.
    pub(super) fn update(&mut self) {
        self.send.secret = self.send.secret.next();
        self.send.packet = self.send.secret.packet_key();
        self.send.phase = !self.send.phase;
    }

    /// Opens a payload in place and returns its length. Follows key updates of the peer.
    pub(super) fn open(
        &mut self,
        number: u64,
        phase: bool,
        header: &[u8],
        payload: &mut [u8],
    ) -> Option<usize> {
        if phase == self.receive.phase {
            return self.receive.current.open(number, header, payload).ok();
        }
        let next = self.receive.secret.next();
        let key = next.packet_key();
        let len = key.open(number, header, payload).ok()?;
        self.receive.secret = next;
        self.receive.current = key;
        self.receive.phase = phase;
        // The peer's update requires an update of the send keys (RFC 9001 §6.2).
        if self.send.phase != phase {
            self.update();
        }
        Some(len)
    }
}
