//! An endpoint with hostile peers, which complete real handshakes. The input decides everything else.

mod application;
mod hooks;
mod ledger;
mod peer;
mod victim;

use std::time::Duration;

use courser_base::Time;
use courser_crypto::Space;

use self::hooks::Orders;
use self::ledger::Ledger;
use self::peer::{MAX_PEERS, Peer};
use self::victim::Victim;
use crate::frames::frame;
use crate::input::Input;
use crate::tls::{Early, Ends};

/// Runs a server with hostile clients, or a client with a hostile server.
///
/// The input decides frames, packet numbers, packet number spaces, coalescing, keys, addresses, times
/// and the calls of the application. It also modifies TLS messages and sends datagrams that are not
/// packets. In some inputs the two have met before, so that clients send early data (0-RTT).
///
/// # Panics
/// Panics if a connection of the endpoint panics, or if the endpoint exceeds its memory budget, sends more
/// than allowed to an unvalidated address, never becomes idle, or retains state at the end.
pub fn endpoint(bytes: &[u8]) {
    World::run(bytes).end();
}

/// The largest number of steps per input.
const MAX_STEPS: usize = 400;

struct World {
    now: Time,
    ends: Ends,
    /// Clients are hostile, and they send early data if they can.
    has_early_clients: bool,
    victim: Victim,
    peers: Vec<Peer>,
    /// Datagrams sent to the victim, for replays.
    sent: Vec<Vec<u8>>,
    ledger: Ledger,
}

/// The largest number of datagrams kept for replays.
const MAX_KEPT: usize = 64;

impl World {
    /// Runs all steps of an input.
    fn run(bytes: &[u8]) -> Self {
        let mut input = Input::new(bytes);
        let mut world = Self::new(&mut input);
        world.settle();
        for _ in 0..MAX_STEPS {
            if input.is_empty() {
                break;
            }
            world.step(&mut input);
            world.settle();
        }
        world
    }

    fn new(input: &mut Input<'_>) -> Self {
        let setup = input.byte();
        // Other values of these two bits are older. 3 splits received datagrams.
        let early = match setup >> 6 {
            1 => Early::Refused,
            2 => Early::Accepted,
            _ => Early::Off,
        };
        let mut ends = match (early, Victim::is_client_in(setup)) {
            (Early::Off, true) => Ends::honest(),
            (Early::Off, false) => Ends::of_hostile_client(),
            (_, true) => Ends::early_of_hostile_server(),
            (_, false) => Ends::early(),
        };
        if early != Early::Off {
            // Another connection, which brings tickets.
            let mut earlier = Self::with(setup, early, &ends, Orders::default());
            earlier.settle();
            earlier.run_honestly(HONEST_ROUNDS);
        }
        if early == Early::Refused {
            ends.forget_sessions();
        }
        Self::with(setup, early, &ends, Orders::read(input))
    }

    fn with(setup: u8, early: Early, ends: &Ends, orders: Orders) -> Self {
        let now = Time::ZERO + Duration::from_secs(1);
        let mut victim = Victim::new(setup, ends);
        let peer = if victim.is_client() {
            victim.connect(now, Peer::address_of(0), ends);
            Peer::server(0, orders, ends)
        } else {
            Peer::client(0, orders, ends)
        };
        Self {
            now,
            ends: ends.clone(),
            has_early_clients: early != Early::Off && !victim.is_client(),
            victim,
            peers: vec![peer],
            sent: Vec::new(),
            ledger: Ledger::default(),
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let operation = input.byte();
        let index = usize::from(operation >> 5) % self.peers.len();
        let now = self.now;
        match operation & 31 {
            // Both ends behave honestly until neither has anything to send.
            0 => self.run_honestly(HONEST_ROUNDS),
            1 => self.peers[index].transmit(now),
            7 if self.has_early_clients => self.send_early(index, input),
            2..=7 => self.send_packet(index, operation & 31, input),
            8 => self.peers[index].join_next(),
            9 => self.peers[index].orders(|orders| orders.read_edits(input)),
            10 => self.peers[index].orders(|orders| orders.read_acks(input)),
            11 => self.peers[index].with(|connection| connection.update_keys()),
            12 => {
                let count = input.number();
                self.peers[index].with(|connection| {
                    // Packet numbers above the largest one cannot be sealed.
                    let space = Space::Application;
                    if connection.next_number(space) < MAX_NUMBER - count {
                        connection.skip_numbers(space, count);
                    }
                });
            }
            13 => self.peers[index].change_address(input.byte()),
            14 => self.send_bytes(index, input),
            15 => self.replay(index, input),
            16 => self.peers[index].tamper_next(input.byte(), input.short()),
            17 if self.peers.len() < MAX_PEERS && !self.victim.is_client() => {
                let orders = Orders::read(input);
                let peer = Peer::client(self.peers.len(), orders, &self.ends);
                self.peers.push(peer);
            }
            18 => self.peers[index].switch_id(input),
            19..=21 => self.advance_time(input),
            22 => self.victim.choose_admission(input.byte()),
            23 => self.victim.packet_too_big(now, index, input),
            _ => self.victim.operate(now, input),
        }
        self.deliver();
    }

    /// Sends a packet with up to seven frames in one of the three packet number spaces.
    fn send_packet(&mut self, index: usize, operation: u8, input: &mut Input<'_>) {
        let space = match operation {
            2 => Space::Initial,
            3 => Space::Handshake,
            _ => Space::Application,
        };
        let frames = frames(input);
        let now = self.now;
        self.peers[index].with(|connection| connection.send_packet(now, space, frames));
    }

    /// Sends a 0-RTT packet with up to seven frames, if the client has a ticket.
    fn send_early(&mut self, index: usize, input: &mut Input<'_>) {
        let frames = frames(input);
        self.peers[index].with(|connection| connection.send_early(&frames));
    }

    /// Sends bytes of the input as a datagram, possibly with a connection ID of the victim or padded
    /// to 1200 bytes.
    fn send_bytes(&mut self, index: usize, input: &mut Input<'_>) {
        let shape = input.byte();
        let mut bytes = input.bytes().to_vec();
        let peer = &mut self.peers[index];
        let id = peer.victim_id();
        if shape & 1 != 0 && !bytes.is_empty() {
            let at = if bytes[0] & 0x80 != 0 { 6 } else { 1 };
            let end = at + id.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[at..end].copy_from_slice(&id);
        }
        if shape & 2 != 0 {
            bytes.resize(bytes.len().max(1200), shape);
        }
        peer.push_datagram(bytes);
    }

    /// Sends an earlier datagram again, from the address of a peer.
    fn replay(&mut self, index: usize, input: &mut Input<'_>) {
        let number = input.below(MAX_KEPT);
        if let Some(datagram) = self.sent.get(number) {
            self.peers[index].push_datagram(datagram.clone());
        }
    }

    /// Advances the time to the next timeout, by up to 33 ms, or by up to 33 s.
    fn advance_time(&mut self, input: &mut Input<'_>) {
        let long = input.byte();
        self.now = match (long & 3, self.victim.next_timeout()) {
            (0 | 1, Some(at)) => at.max(self.now),
            (2, _) => self.now + Duration::from_micros(1 << (long >> 2 & 15)),
            _ => self.now + Duration::from_millis(1 << (long >> 2 & 15)),
        };
    }

    /// Lets the peers transmit as honest ones do, for at most `rounds` round trips.
    fn run_honestly(&mut self, rounds: usize) {
        for _ in 0..rounds {
            let now = self.now;
            for peer in &mut self.peers {
                peer.transmit(now);
            }
            let has_sent = self.deliver();
            self.settle();
            if !has_sent {
                break;
            }
        }
    }

    /// Passes the queued datagrams of the peers to the victim. Returns true if there were any.
    fn deliver(&mut self) -> bool {
        let mut has_sent = false;
        for peer in &mut self.peers {
            while let Some((from, datagram)) = peer.poll_datagram() {
                has_sent = true;
                if self.sent.len() < MAX_KEPT {
                    self.sent.push(datagram.clone());
                }
                self.ledger.on_received(from, &datagram);
                self.victim.receive(self.now, from, datagram);
            }
        }
        has_sent
    }

    /// Runs the victim until it has nothing to do at this time, and passes its datagrams to the peers.
    fn settle(&mut self) {
        let is_server = !self.victim.is_client();
        for (to, mut datagram) in self.victim.run(self.now) {
            if is_server {
                self.ledger.on_sent(to, datagram.len());
            }
            for peer in self.peers.iter_mut().filter(|peer| peer.has_address(to)) {
                peer.receive(self.now, &mut datagram);
            }
        }
        self.victim.check();
    }

    /// Stops the peers and checks that the victim releases all state.
    fn end(&mut self) {
        self.victim.choose_admission(0);
        for _ in 0..MAX_LAST_TIMEOUTS {
            self.settle();
            let Some(at) = self.victim.next_timeout() else {
                break;
            };
            self.now = at.max(self.now);
        }
        self.victim.check_empty();
    }
}

/// Encodes one to seven frames.
fn frames(input: &mut Input<'_>) -> Vec<Vec<u8>> {
    let count = 1 + input.below(7);
    (0..count).map(|_| frame(input)).collect()
}

/// Round trips in which a handshake completes and is confirmed.
const HONEST_ROUNDS: usize = 8;

/// Timeouts that may occur after the last datagram: probe, idle, closing and draining timeouts of
/// each peer's connections.
const MAX_LAST_TIMEOUTS: usize = 4000;

/// One more than the largest packet number, 2^62 - 1 (RFC 9000 §12.3).
const MAX_NUMBER: u64 = 1 << 62;

#[cfg(test)]
mod tests;
