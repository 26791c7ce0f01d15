//! A server that accepts early data and lowers its limits.

use std::time::Duration;

use courser_base::Time;
use courser_wire::TransportParameters;

use crate::attack::{Attack, Pace, Plan, Victim};
use crate::attacker::Attacker;
use crate::forgetful_server_tls;
use crate::hooks::{Honest, Hooks};

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "early-limits",
    labels: &["A62"],
    summary: "early data accepted by a server whose limits are below the remembered ones",
    victim: Victim::Client,
    make: || Box::new(EarlyLimits::default()),
};

#[derive(Default)]
struct EarlyLimits {
    lowers: bool,
}

/// Grants the client less than when it got its ticket.
struct Lower;

impl Hooks for Lower {
    fn edit_parameters(&mut self, parameters: &mut TransportParameters) {
        parameters.initial_max_data = 1;
        parameters.initial_max_streams_bidi = 1;
    }
}

impl Attack for EarlyLimits {
    fn start(&mut self, attacker: &mut Attacker) {
        attacker.accept_with(forgetful_server_tls(b"h3"), || Box::new(Honest));
    }

    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        for key in attacker.keys() {
            if attacker.peek(key).is_some_and(|it| it.is_closed()) {
                attacker.forget(key);
            }
        }
        // The first client has its ticket.
        if !self.lowers && attacker.counts().handshakes > 0 {
            self.lowers = true;
            attacker.hooks_from_now_on(|| Box::new(Lower));
        }
        Pace::At(now + Duration::from_millis(1))
    }
}
