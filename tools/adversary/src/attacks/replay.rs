//! Replayed packets.

use courser_base::Time;

use crate::attack::{Attack, Expect, Pace, Plan, Victim};
use crate::attacker::{Attacker, Datagram};
use crate::hooks::Honest;

pub(super) const PLAN: Plan = Plan {
    name: "replay",
    labels: &["A35"],
    summary: "the same 1-RTT datagram, sent repeatedly",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(Replay::default()),
};

#[derive(Default)]
struct Replay {
    key: Option<u64>,
    kept: Option<Datagram>,
}

/// Datagrams in one turn.
const BURST: usize = 64;

impl Attack for Replay {
    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        if let Some(kept) = &self.kept {
            for _ in 0..BURST {
                attacker.send_raw(kept.port, kept.bytes.clone());
            }
            return Pace::Now;
        }
        let key = *self
            .key
            .get_or_insert_with(|| attacker.connect(0, Box::new(Honest)));
        let Some(connection) = attacker.connection(key).filter(|it| it.is_confirmed()) else {
            return Pace::Now;
        };
        connection.transmit(now);
        while connection.poll_datagram().is_some() {}
        connection.push(&courser_wire::Frame::Ping);
        connection.transmit(now);
        let bytes = connection
            .poll_datagram()
            .expect("a PING is sent immediately");
        let to = attacker.target();
        self.kept = Some(Datagram { port: 0, to, bytes });
        Pace::Now
    }
}
