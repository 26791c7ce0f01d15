//! Clients that hold connections and requests open, with as little traffic as possible.

use std::time::Duration;

use courser_wire::{Frame, MaxData, MaxStreamData, TransportParameters};

use crate::attack::{Expect, LARGE, Plan, Victim};
use crate::hooks::Hooks;
use crate::http::{self, Method};

use super::{Crowd, crowd};

pub(super) const IDLE_STORM: Plan = Plan {
    name: "idle-storm",
    labels: &["A39", "A101"],
    summary: "2000 connections from one address that send a PING every ten seconds",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || {
        let crowd = Crowd::of_clients(2000, |connection, _, _| connection.push(&Frame::Ping));
        Box::new(crowd.with_pause(Duration::from_secs(10)))
    },
};

pub(super) const SLOW_HEADERS: Plan = Plan {
    name: "slow-headers",
    labels: &["A39", "A88"],
    summary: "a hundred requests on each of 50 connections, one byte every two seconds",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(slow_headers()),
};

fn slow_headers() -> Crowd {
    Crowd::of_clients(50, |connection, progress, _| {
        let request = http::request(Method::Get, "/");
        let permitted = crowd::permitted(connection, progress, 100);
        progress.streams = progress.streams.max(permitted);
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
    .with_pause(Duration::from_secs(2))
}

pub(super) const SLOW_BODY: Plan = Plan {
    name: "slow-body",
    labels: &["A39", "A88"],
    summary: "a hundred uploads on each of 50 connections, one byte every two seconds",
    victim: Victim::Server,
    expect: Expect::ANY,
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
    .with_pause(Duration::from_secs(2))
}

pub(super) const NO_CREDIT: Plan = Plan {
    name: "no-credit",
    labels: &["A24", "A88"],
    summary: "100 requests for a large file on each of 50 connections without flow control credit",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(no_credit()),
};

fn no_credit() -> Crowd {
    Crowd::of_clients(50, |connection, progress, _| {
        for id in progress.requests(connection, 100 - progress.streams.min(100)) {
            let request = http::request(Method::Get, LARGE);
            connection.push_bytes(http::stream(id, 0, &request, true));
        }
        // Prevents the idle timeout.
        connection.push(&Frame::Ping);
    })
    .with_hooks(|| Box::new(InitialCredit(0)))
    .with_pause(Duration::from_millis(500))
}

pub(super) const DRIP_CREDIT: Plan = Plan {
    name: "drip-credit",
    labels: &["A24", "A88"],
    summary: "requests for large files with one byte of credit every two seconds",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(drip_credit()),
};

fn drip_credit() -> Crowd {
    // Enough credit for SETTINGS and the header section of a response.
    const INITIAL: u64 = 1000;
    Crowd::of_clients(50, |connection, progress, _| {
        for id in progress.requests(connection, 100 - progress.streams.min(100)) {
            let request = http::request(Method::Get, LARGE);
            connection.push_bytes(http::stream(id, 0, &request, true));
        }
        progress.offset += 1;
        let limit = INITIAL + progress.offset;
        connection.push(&Frame::MaxData(MaxData { limit }));
        let id = http::request_stream(0);
        connection.push(&Frame::MaxStreamData(MaxStreamData { id, limit }));
    })
    .with_hooks(|| Box::new(InitialCredit(INITIAL)))
    .with_pause(Duration::from_secs(2))
}

/// Grants this number of bytes as the initial credit of the connection and of each response.
struct InitialCredit(u64);

impl Hooks for InitialCredit {
    fn edit_parameters(&mut self, parameters: &mut TransportParameters) {
        parameters.initial_max_data = self.0;
        parameters.initial_max_stream_data_bidi_local = self.0;
    }
}
