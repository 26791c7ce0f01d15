//! Requests of WebTransport sessions: too many, of foreign pages, and before SETTINGS.

use courser_base::Time;

use crate::attack::{Expect, Plan, Victim};
use crate::connection::Connection;
use crate::http;
use crate::sessions::{self, Newest};

use super::Crowd;
use super::crowd::Progress;
use super::session_streams::{clients, open};

pub(super) const MANY: Plan = Plan {
    name: "session-requests",
    labels: &["A251", "A346"],
    summary: "requests of sessions, as many as the server permits, which stay open",
    victim: Victim::Sessions,
    expect: Expect::TOLERATED
        .statuses(&[200, 429])
        .streams(&[sessions::REQUEST_REJECTED]),
    make: || {
        Box::new(clients(2, |connection, progress| {
            for _ in 0..32 {
                open(connection, progress, false);
            }
        }))
    },
};

pub(super) const SHORT: Plan = Plan {
    name: "session-open-close",
    labels: &["A251", "A346"],
    summary: "sessions that are requested and ended in one packet",
    victim: Victim::Sessions,
    expect: Expect::TOLERATED.statuses(&[200, 429]),
    make: || {
        Box::new(clients(2, |connection, progress| {
            for _ in 0..32 {
                open(connection, progress, true);
            }
        }))
    },
};

pub(super) const ORIGINS: Plan = Plan {
    name: "session-origins",
    labels: &["A259"],
    summary: "sessions of pages of another origin, of none, of two, of one without a form, and of a long one",
    victim: Victim::Sessions,
    expect: Expect::TOLERATED.refused().statuses(&[403]),
    make: || Box::new(origins()),
};

/// The origins of each request, of which the server may accept none.
const FOREIGN: [&[&[u8]]; 7] = [
    &[b"https://evil.example"],
    &[b"null"],
    &[b""],
    &[b"https://localhost", b"https://evil.example"],
    &[b"https://localhost.evil.example"],
    &[b"https://localhost@evil.example/"],
    &[b"\xff\xfe"],
];

fn origins() -> Crowd {
    clients(2, |connection, progress| {
        for id in progress.requests(connection, 8) {
            let at = usize::try_from(id.index()).unwrap_or(0) % (FOREIGN.len() + 1);
            let long = vec![b'a'; 64 * 1024];
            let values = FOREIGN
                .get(at)
                .map_or_else(|| vec![&long[..]], |it| it.to_vec());
            let fields: Vec<_> = values.iter().map(|value| ("origin", *value)).collect();
            let bytes = sessions::connect("webtransport-h3", sessions::SESSION, &fields);
            for frame in http::stream_in_chunks(id, &bytes, false) {
                connection.push_bytes(frame);
            }
        }
    })
}

pub(super) const SETTINGS: Plan = Plan {
    name: "session-late-settings",
    labels: &["A251"],
    summary: "requests and streams before SETTINGS, which come late and without what sessions need",
    victim: Victim::Sessions,
    expect: Expect::ANY.streams(&[sessions::MESSAGE_ERROR, sessions::SESSION_GONE]),
    make: || {
        Box::new(silent_clients(|connection, progress, _| {
            if progress.bursts == 50 {
                // Datagrams are missing.
                let list = [(0x08, 1), (0x2c7c_f000, 1)];
                progress.control = sessions::preface(connection, &list);
            }
        }))
    },
};

pub(super) const NO_SETTINGS: Plan = Plan {
    name: "session-no-settings",
    labels: &["A251"],
    summary: "requests and streams on connections whose SETTINGS never arrive",
    victim: Victim::Sessions,
    // H3_MISSING_SETTINGS comes after 30 s only.
    expect: Expect::ANY,
    make: || Box::new(silent_clients(|_, _, _| {})),
};

/// Clients that request a few sessions and send their streams without SETTINGS. `then` runs in each turn.
fn silent_clients(then: fn(&mut Connection, &mut Progress, Time)) -> Crowd {
    Crowd::new(4, move |connection, progress: &mut Progress, now| {
        if progress.bursts == 0 {
            progress.uni_streams = 2;
            for _ in 0..8 {
                open(connection, progress, false);
            }
            for id in progress.uni_streams(connection, 8) {
                // A stream that has arrived as a whole is not stopped.
                let mut bytes = sessions::stream_header(id.direction(), 0);
                bytes.extend([0x5a; 100]);
                connection.push_bytes(http::stream(id, 0, &bytes, false));
            }
        }
        then(connection, progress, now);
    })
    .with_hooks(|| Box::new(Newest))
    .with_pause(std::time::Duration::from_millis(10))
}
