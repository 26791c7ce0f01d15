//! The limit on what a server sends to an address that nobody has proven (RFC 9000 §8), from
//! outside.

use std::collections::HashMap;
use std::net::SocketAddr;

use courser_wire::packet::{self, PacketKind};

/// Bytes that a server received from and sent to each address.
#[derive(Default)]
pub(super) struct Ledger(HashMap<SocketAddr, Account>);

#[derive(Default)]
struct Account {
    received: usize,
    sent: usize,
    /// A datagram from there may have proven the address: it has a token, or a packet that is
    /// protected with keys from the handshake.
    may_be_proven: bool,
}

impl Ledger {
    pub(super) fn on_received(&mut self, from: SocketAddr, datagram: &[u8]) {
        let account = self.0.entry(from).or_default();
        account.received += datagram.len();
        let mut start = 0;
        while let Ok(packet) = packet::decode(datagram, start, 8) {
            account.may_be_proven |= match packet.kind {
                PacketKind::Initial => !packet.token.is_empty(),
                PacketKind::Handshake | PacketKind::OneRtt => true,
                _ => false,
            };
            start = packet.end;
            if start >= datagram.len() {
                break;
            }
        }
    }

    pub(super) fn on_sent(&mut self, to: SocketAddr, len: usize) {
        let account = self.0.entry(to).or_default();
        account.sent += len;
        assert!(
            account.may_be_proven || account.sent <= 3 * account.received,
            "{} bytes to {to} for {}",
            account.sent,
            account.received,
        );
    }
}
