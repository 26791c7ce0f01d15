//! Clients that lie about the version of their first flight.

use courser_base::Time;
use courser_wire::{TransportParameters, Version, VersionInformation, Versions};

use crate::attack::{Attack, Pace, Plan, Victim};
use crate::attacker::Attacker;
use crate::hooks::Hooks;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "version-downgrade",
    labels: &["A09"],
    summary: "handshakes of version 1 whose version_information claims version 2",
    victim: Victim::Server,
    make: || Box::new(VersionDowngrade),
};

struct VersionDowngrade;

/// The number of simultaneous handshakes.
const AT_ONCE: usize = 32;

impl Attack for VersionDowngrade {
    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        let mut in_progress = 0;
        for key in attacker.keys() {
            let is_over = attacker
                .peek(key)
                .is_none_or(|it| it.is_confirmed() || it.is_closed());
            if is_over {
                attacker.forget(key);
            } else {
                in_progress += 1;
            }
        }
        for _ in in_progress..AT_ONCE {
            attacker.connect(0, Box::new(Liar));
        }
        Pace::At(now + std::time::Duration::from_millis(1))
    }
}

/// Claims a version other than that of the packets (RFC 9368 §4).
struct Liar;

impl Hooks for Liar {
    fn edit_parameters(&mut self, parameters: &mut TransportParameters) {
        let versions = VersionInformation::new(Version::V2, Versions::ALL);
        parameters.version_information = Some(versions);
    }
}
