//! Requests whose header section arrives byte by byte.

use crate::attack::{Plan, Victim};
use crate::http::{self, Method};

use super::{Crowd, crowd};

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "slow-headers",
    labels: &["A39", "A88"],
    summary: "a hundred requests on each of 50 connections, one byte every two seconds",
    victim: Victim::Server,
    make: || Box::new(slow_headers()),
};

fn slow_headers() -> Crowd {
    Crowd::of_clients(50, |connection, progress, _| {
        let request = http::request(Method::Get, "/");
        progress.streams = progress
            .streams
            .max(crowd::permitted(connection, progress, 100));
        let at = usize::try_from(progress.offset).unwrap_or(usize::MAX);
        let Some(byte) = request.get(at..at + 1) else {
            return;
        };
        for index in 0..progress.streams {
            let id = http::request_stream(index);
            connection.push_bytes(http::stream(id, progress.offset, byte, false));
        }
        progress.offset += 1;
    })
    .with_pause(std::time::Duration::from_secs(2))
}
