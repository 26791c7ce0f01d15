//! An independent check of the anti-amplification limit (RFC 9000 §8).

use std::collections::HashMap;
use std::net::SocketAddr;

use courser_wire::packet::{self, PacketKind};

/// The bytes that a server received from and sent to each address.
#[derive(Default)]
pub(super) struct Ledger(HashMap<SocketAddr, Account>);

#[derive(Default)]
struct Account {
    received: usize,
    sent: usize,
    /// A datagram may have validated the address. It had a token, or a packet protected with keys
    /// from the handshake.
    may_be_validated: bool,
}

impl Ledger {
    pub(super) fn on_received(&mut self, from: SocketAddr, datagram: &[u8]) {
        let account = self.0.entry(from).or_default();
        account.received += datagram.len();
        let (mut start, mut has_keys) = (0, false);
        while let Ok(packet) = packet::decode(datagram, start, 8) {
            account.may_be_validated |= match packet.kind {
                PacketKind::Initial => !packet.token.is_empty(),
                PacketKind::Handshake | PacketKind::OneRtt => true,
                _ => false,
            };
            has_keys |= packet.kind == PacketKind::Handshake;
            start = packet.end;
            if start >= datagram.len() {
                break;
            }
        }
        if has_keys {
            // A client whose port has changed got the keys at its first one, which they validate, too.
            let same_host = |to: &SocketAddr| to.ip() == from.ip();
            let others = self.0.iter_mut().filter(|(to, _)| same_host(to));
            for (_, account) in others.filter(|(_, account)| account.sent > 0) {
                account.may_be_validated = true;
            }
        }
    }

    /// Records a datagram that the server sent.
    ///
    /// # Panics
    /// Panics if it exceeds three times the received bytes and the address cannot have been validated.
    pub(super) fn on_sent(&mut self, to: SocketAddr, len: usize) {
        let account = self.0.entry(to).or_default();
        account.sent += len;
        assert!(
            account.may_be_validated || account.sent <= 3 * account.received,
            "sent {} bytes to {to} after {} received",
            account.sent,
            account.received,
        );
    }
}
