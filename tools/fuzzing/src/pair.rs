//! Both ends of a connection, their applications, and the network between them.

mod ends;
mod link;
mod model;

use std::time::Duration;

use courser_base::Time;

use self::ends::End;
use self::link::Link;
use crate::input::Input;
use crate::tls::{Early, Ends};

/// Runs two applications with arbitrary calls over a network that loses, duplicates, delays and
/// reorders datagrams. In some inputs the two have met before, so that the client sends early data.
///
/// # Panics
/// Panics if received bytes differ from those sent, or do not all arrive although the network works again.
/// Also if a connection panics, a timeout makes no progress, or state is retained at the end.
pub fn pair(bytes: &[u8]) {
    let mut pair = Pair::run(bytes);
    pair.finish_transfers();
    pair.close();
}

/// The largest number of steps per input.
const MAX_STEPS: usize = 300;

struct Pair {
    now: Time,
    ends: [End; 2],
    link: Link,
}

impl Pair {
    /// Runs all steps of an input.
    fn run(bytes: &[u8]) -> Self {
        let mut input = Input::new(bytes);
        let mut pair = Self::new(&mut input);
        for _ in 0..MAX_STEPS {
            if input.is_empty() {
                break;
            }
            pair.step(&mut input);
        }
        pair
    }

    fn new(input: &mut Input<'_>) -> Self {
        let setup = input.byte();
        let early = match setup >> 6 {
            2 => Early::Accepted,
            3 => Early::Refused,
            _ => Early::Off,
        };
        if early == Early::Off {
            return Self::with(setup, &Ends::honest());
        }
        let mut ends = Ends::early();
        // Another connection, which brings tickets.
        Self::with(setup, &ends).run_for(HANDSHAKE_TIME);
        if early == Early::Refused {
            ends.forget_sessions();
        }
        Self::with(setup, &ends)
    }

    fn with(setup: u8, ends: &Ends) -> Self {
        let now = Time::ZERO + Duration::from_secs(1);
        let (mut client, server) = (End::client(setup), End::server(setup, ends));
        client.connect(now, server.address(), ends);
        Self {
            now,
            ends: [client, server],
            link: Link::default(),
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let operation = input.byte();
        match operation & 15 {
            0 => self.run_for(Duration::from_micros(1 << (operation >> 4))),
            1 => self.run_for(Duration::from_millis(1 << (operation >> 4 & 7))),
            // The idle timeout is 30 seconds.
            2 => self.run_for(Duration::from_millis(250 * u64::from(operation >> 4))),
            3 => self.link.configure(input.byte(), input.byte()),
            4 => self.link.drop_next(operation >> 4),
            5 if operation >> 4 < 3 => self.ends[0].change_address(input.byte()),
            _ => {
                let end = usize::from(operation >> 7);
                self.ends[end].operate(self.now, input);
            }
        }
        self.run_for(Duration::ZERO);
    }

    /// Advances the time and processes all arrivals and timeouts on the way.
    fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        for _ in 0..MAX_TURNS {
            self.drive();
            match self.next_time() {
                Some(at) if at <= until => self.now = at.max(self.now),
                _ => {
                    self.now = until;
                    return;
                }
            }
            while let Some((to, from, datagram)) = self.link.receive(self.now) {
                for end in &mut self.ends {
                    if end.has_address(to) {
                        end.receive(self.now, from, datagram.clone());
                    }
                }
            }
            for end in &mut self.ends {
                end.handle_timeout(self.now);
            }
        }
        panic!("too many arrivals and timeouts in {time:?}");
    }

    /// Sends the datagrams that both ends have at this time, and checks the ends.
    fn drive(&mut self) {
        for end in &mut self.ends {
            for (from, to, datagram) in end.drive(self.now) {
                self.link.send(self.now, from, to, datagram);
            }
            end.check();
        }
        let [client, server] = &self.ends;
        client.check_against(server);
        server.check_against(client);
    }

    /// Returns the time of the next arrival or timeout.
    fn next_time(&self) -> Option<Time> {
        let ends = self.ends.iter().filter_map(End::next_timeout);
        ends.chain(self.link.next_arrival()).min()
    }

    /// Restores the network, finishes all streams, and checks that everything arrives.
    fn finish_transfers(&mut self) {
        self.link.restore();
        for _ in 0..MAX_FINISH_STEPS {
            for end in &mut self.ends {
                end.finish_all(self.now);
            }
            self.run_for(FINISH_STEP);
            if self.ends.iter().any(End::is_over) {
                return;
            }
            let [client, server] = &self.ends;
            if client.has_all_of(server) && server.has_all_of(client) {
                return;
            }
        }
        let [client, server] = &self.ends;
        panic!(
            "data did not arrive: {} {}",
            client.missing(server),
            server.missing(client)
        );
    }

    /// Closes the connection and checks that both ends release all state.
    fn close(&mut self) {
        let now = self.now;
        self.ends[0].close(now);
        self.run_for(CLOSE_TIME);
        for end in &self.ends {
            end.check_empty();
        }
    }
}

/// Time for a handshake with a Retry, and for the tickets after it.
const HANDSHAKE_TIME: Duration = Duration::from_millis(100);

/// The largest number of turns in one step of time.
const MAX_TURNS: usize = 100_000;

/// Steps after which all data must have arrived over the restored network.
const MAX_FINISH_STEPS: usize = 400;

const FINISH_STEP: Duration = Duration::from_millis(200);

/// Longer than any idle timeout and draining period.
const CLOSE_TIME: Duration = Duration::from_secs(400);

#[cfg(test)]
mod tests;
