//! Both ends of a connection, two applications, and the network between them.

mod ends;
mod link;
mod model;

use std::time::Duration;

use courser_base::Time;

use self::ends::End;
use self::link::Link;
use crate::input::Input;

/// Operations of two applications in any order, over a network that loses, copies, delays and
/// changes the order.
///
/// # Panics
/// When bytes arrive that were not sent, or in another order, or never although the network works
/// again; when a connection panics, a timer does not move on, or anything is kept at the end.
pub fn pair(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut pair = Pair::new(&mut input);
    for _ in 0..MAX_STEPS {
        if input.is_empty() {
            break;
        }
        pair.step(&mut input);
    }
    pair.calm();
    pair.end();
}

/// Decisions of one input that are followed.
const MAX_STEPS: usize = 300;

struct Pair {
    now: Time,
    ends: [End; 2],
    link: Link,
}

impl Pair {
    fn new(input: &mut Input<'_>) -> Self {
        let now = Time::ZERO + Duration::from_secs(1);
        let setup = input.byte();
        let (mut client, server) = (End::client(setup), End::server(setup));
        client.connect(now, server.address());
        Self {
            now,
            ends: [client, server],
            link: Link::default(),
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let what = input.byte();
        match what & 15 {
            0 => self.run_for(Duration::from_micros(1 << (what >> 4))),
            1 => self.run_for(Duration::from_millis(1 << (what >> 4 & 7))),
            // Connections are idle for 30 seconds before they end.
            2 => self.run_for(Duration::from_millis(250 * u64::from(what >> 4))),
            3 => self.link.set(input.byte(), input.byte()),
            4 => self.link.drop_next(what >> 4),
            5 if what >> 4 < 3 => self.ends[0].change_address(input.byte()),
            _ => {
                let end = usize::from(what >> 7);
                self.ends[end].operate(self.now, input);
            }
        }
        self.run_for(Duration::ZERO);
    }

    /// Everything that is due until then happens.
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
        panic!("too much happens in {time:?}");
    }

    /// Both ends say what they have to say at this time.
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

    fn next_time(&self) -> Option<Time> {
        let ends = self.ends.iter().filter_map(End::next_timeout);
        ends.chain(self.link.next_arrival()).min()
    }

    /// The network works, and both applications read and write all that is left: it arrives.
    fn calm(&mut self) {
        self.link.calm();
        for _ in 0..MAX_CALM {
            for end in &mut self.ends {
                end.finish_all(self.now);
            }
            self.run_for(CALM_STEP);
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
            "not everything arrives: {} {}",
            client.missing(server),
            server.missing(client)
        );
    }

    /// One end closes: nothing is left of either.
    fn end(&mut self) {
        let now = self.now;
        self.ends[0].close(now);
        self.run_for(LAST);
        for end in &self.ends {
            end.check_empty();
        }
    }
}

/// Turns in one step of time.
const MAX_TURNS: usize = 100_000;

/// Steps until all has arrived, after the network has begun to work again.
const MAX_CALM: usize = 400;

const CALM_STEP: Duration = Duration::from_millis(200);

/// Longer than any idle timeout and any time of draining.
const LAST: Duration = Duration::from_secs(400);
