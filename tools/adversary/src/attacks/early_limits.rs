//! A server that accepts early data and lowers its limits.

use std::collections::BTreeSet;
use std::time::Duration;

use courser_base::{Side, Time};
use courser_wire::{Direction, StreamId, TransportParameters};

use crate::attack::{Attack, Pace, Plan, Victim};
use crate::attacker::Attacker;
use crate::forgetful_server_tls;
use crate::hooks::{Honest, Hooks};
use crate::http;

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
    /// Connections that got our settings.
    greeted: BTreeSet<u64>,
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
            let Some(connection) = attacker.connection(key) else {
                continue;
            };
            if connection.is_closed() {
                attacker.forget(key);
                self.greeted.remove(&key);
            } else if connection.is_established() && self.greeted.insert(key) {
                // Clients remember the settings with their ticket.
                let mut control = vec![0x00];
                control.extend(http::frame(http::SETTINGS, &[]));
                let id = StreamId::new(Side::Server, Direction::Unidirectional, 0);
                connection.push_bytes(http::stream(id, 0, &control, false));
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
