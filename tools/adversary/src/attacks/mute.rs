//! A client that goes on with requests and acknowledges nothing.

use std::time::Duration;

use courser_wire::Frame;

use crate::attack::{Plan, Victim};
use crate::http::{self, Method};

use super::Crowd;
use super::no_acks::NoAcks;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "mute",
    labels: &["A24"],
    summary: "a small request every half second, whose response is never acknowledged",
    victim: Victim::Server,
    make: || Box::new(mute()),
};

/// Unlike `no-acks`, each packet makes progress, so that only the missing acknowledgements are wrong.
fn mute() -> Crowd {
    Crowd::of_clients(4, |connection, progress, _| {
        for id in progress.requests(connection, 1) {
            let request = http::request(Method::Get, "/");
            connection.push_bytes(http::stream(id, 0, &request, true));
        }
        connection.push(&Frame::Ping);
    })
    .with_hooks(|| Box::new(NoAcks))
    .with_pause(Duration::from_millis(500))
}
