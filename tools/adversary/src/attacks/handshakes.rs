//! Handshakes in large numbers that are abandoned, or that lie about their version.

use std::time::Duration;

use courser_base::Time;
use courser_crypto::Space;
use courser_wire::{TransportParameters, Version, VersionInformation, Versions};

use crate::attack::{Attack, Expect, Pace, Plan, Victim};
use crate::attacker::Attacker;
use crate::hooks::{Fate, Honest, Hooks, PacketToSend};

pub(super) const INITIAL_FLOOD: Plan = Plan {
    name: "initial-flood",
    labels: &["A02", "A05"],
    summary: "first flights of handshakes from 64 ports that are never continued",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(InitialFlood { started: 0 }),
};

struct InitialFlood {
    started: u64,
}

impl Attack for InitialFlood {
    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        for _ in 0..16 {
            self.started += 1;
            let port = u16::try_from(self.started % 64).expect("below 64");
            attacker.connect(port, Box::new(Honest));
        }
        attacker.transmit(now);
        // Responses are ignored, and no second flight is sent.
        for key in attacker.keys() {
            attacker.forget(key);
        }
        Pace::Now
    }
}

pub(super) const HALF_OPEN: Plan = Plan {
    name: "half-open",
    labels: &["A05", "A38"],
    summary: "handshakes whose Finished is never sent, kept alive by Initials",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(HalfOpen),
};

struct HalfOpen;

impl Attack for HalfOpen {
    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        const SIMULTANEOUS: usize = 512;
        const STARTED_PER_TURN: usize = 16;
        let keys = attacker.keys();
        for key in &keys {
            if attacker.peek(*key).is_some_and(|it| it.is_closed()) {
                attacker.forget(*key);
            }
        }
        // Removes the oldest. The victim must hold admitted handshakes until they expire.
        let surplus = (keys.len() + STARTED_PER_TURN).saturating_sub(SIMULTANEOUS);
        for key in keys.iter().take(surplus) {
            attacker.forget(*key);
        }
        for _ in 0..STARTED_PER_TURN {
            attacker.connect(0, Box::new(OnlyInitials));
        }
        // One core can create key shares for so many handshakes.
        Pace::At(now + Duration::from_millis(2))
    }
}

/// Drops all packets but Initials, so that the handshake is never completed.
pub(super) struct OnlyInitials;

impl Hooks for OnlyInitials {
    fn on_packet(&mut self, _now: Time, packet: &mut PacketToSend) -> Fate {
        match packet.space {
            Space::Initial => Fate::Send,
            Space::Handshake | Space::Application => Fate::Drop,
        }
    }
}

pub(super) const HANDSHAKE_FLOOD: Plan = Plan {
    name: "handshake-flood",
    labels: &["A02", "A101"],
    summary: "completes handshakes continuously and never closes the connections",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(Handshakes(|| Box::new(Honest))),
};

pub(super) const VERSION_DOWNGRADE: Plan = Plan {
    name: "version-downgrade",
    labels: &["A09"],
    summary: "handshakes of version 1 whose version_information claims version 2",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(Handshakes(|| Box::new(ClaimsVersion2))),
};

/// Maintains 32 handshakes with these hooks, and abandons each connection when its handshake ends.
struct Handshakes(fn() -> Box<dyn Hooks>);

impl Attack for Handshakes {
    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        let mut in_progress = 0;
        for key in attacker.keys() {
            let has_ended = attacker
                .peek(key)
                .is_none_or(|it| it.is_confirmed() || it.is_closed());
            if has_ended {
                attacker.forget(key);
            } else {
                in_progress += 1;
            }
        }
        for _ in in_progress..32 {
            attacker.connect(0, self.0());
        }
        Pace::At(now + Duration::from_millis(1))
    }
}

/// Claims a version other than that of the packets (RFC 9368 §4).
struct ClaimsVersion2;

impl Hooks for ClaimsVersion2 {
    fn edit_parameters(&mut self, parameters: &mut TransportParameters) {
        let versions = VersionInformation::new(Version::V2, Versions::ALL);
        parameters.version_information = Some(versions);
    }
}
