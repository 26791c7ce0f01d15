//! Streams of WebTransport sessions: too early, too late, too many, with false numbers, and reset.

use courser_wire::{Direction, Frame, ResetStream, ResetStreamAt, StreamId, TransportParameters};

use super::crowd::Progress;
use super::{Crowd, crowd};
use crate::attack::{Expect, Plan, Victim};
use crate::connection::Connection;
use crate::encode;
use crate::hooks::Hooks;
use crate::http::{self, Method};
use crate::sessions::{self, Newest};

pub(super) const EARLY: Plan = Plan {
    name: "session-early-streams",
    labels: &["A250"],
    summary: "streams in both directions of a session that is never requested",
    victim: Victim::Sessions,
    expect: Expect::ANY
        .closes(&["H3 0x107"])
        .streams(&[sessions::STREAM_REJECTED]),
    make: || {
        Box::new(clients(2, |connection, progress| {
            // The first request stream is left out.
            progress.streams = progress.streams.max(1);
            flood(connection, progress, 0, &[0x5a; 300]);
        }))
    },
};

pub(super) const LATE: Plan = Plan {
    name: "session-late-streams",
    labels: &["A250", "A258"],
    summary: "streams in both directions of a session that has ended",
    victim: Victim::Sessions,
    expect: Expect::ANY
        .closes(&["H3 0x107"])
        .streams(&[sessions::SESSION_GONE]),
    make: || {
        Box::new(clients(2, |connection, progress| {
            if progress.streams == 0 {
                open(connection, progress, true);
                return;
            }
            // The end of the session arrives before the streams.
            if connection.seen().statuses.contains_key(&200) {
                flood(connection, progress, 0, &[0x5a; 300]);
            }
        }))
    },
};

pub(super) const TINY: Plan = Plan {
    name: "session-tiny-streams",
    labels: &["A339"],
    summary: "streams of one byte, as many as QUIC permits, of a dialect without limits of sessions",
    victim: Victim::Sessions,
    expect: Expect::TOLERATED.statuses(&[200]),
    make: || {
        Box::new(browsers(|connection, progress| {
            if progress.streams == 0 {
                open_as_browser(connection, progress);
                return;
            }
            flood(connection, progress, 0, &[0x5a]);
        }))
    },
};

pub(super) const BEYOND: Plan = Plan {
    name: "session-beyond",
    labels: &["A257"],
    summary: "streams and bytes of a session beyond its limits, in resets too",
    victim: Victim::Sessions,
    // The limits of a server by default are those of QUIC, which is before them.
    expect: Expect::ANY,
    make: || Box::new(beyond()),
};

/// Exceeds the limits of sessions with each session of a connection, as far as QUIC permits.
fn beyond() -> Crowd {
    const STREAMS: u64 = 20;
    clients(2, |connection, progress| {
        if progress.bursts.is_multiple_of(8) {
            progress.offset = progress.streams;
            open(connection, progress, false);
            return;
        }
        let session = http::request_stream(progress.offset).value();
        for id in progress.uni_streams(connection, STREAMS) {
            if id.index() % 2 == 0 {
                connection.push_bytes(sessions::whole_stream(id, session, &[0x5a; 500]));
                continue;
            }
            let header = sessions::stream_header(id.direction(), session);
            let mut frames = http::stream(id, 0, &header, false);
            let reliable_size = header.len() as u64;
            frames.extend(encode(&Frame::ResetStreamAt(ResetStreamAt {
                id,
                error_code: http::REQUEST_CANCELLED,
                // The size counts, although the bytes never arrive.
                final_size: reliable_size + 2000,
                reliable_size,
            })));
            connection.push_bytes(frames);
        }
    })
    .with_pause(std::time::Duration::from_millis(10))
}

pub(super) const NUMBERS: Plan = Plan {
    name: "session-numbers",
    labels: &["A258"],
    summary: "streams with the numbers of other streams, of requests to come and of other requests",
    victim: Victim::Sessions,
    expect: Expect::ANY
        .closes(&["H3 0x108", "H3 0x107"])
        .streams(&[sessions::STREAM_REJECTED]),
    make: || Box::new(numbers()),
};

fn numbers() -> Crowd {
    clients(4, |connection, progress| {
        if progress.streams == 0 {
            progress.offset = connection.rng().below(4);
            // A request that is no session.
            for id in progress.requests(connection, 1) {
                let bytes = http::request(Method::Get, "/");
                connection.push_bytes(http::stream(id, 0, &bytes, true));
            }
        }
        let session = match progress.offset {
            // Streams of the server and those in one direction cannot be sessions.
            0 => 1,
            1 => 2,
            // More requests than the server permits.
            2 => 4 << 40,
            _ => 0,
        };
        flood(connection, progress, session, &[0x5a; 100]);
    })
}

pub(super) const SIGNAL: Plan = Plan {
    name: "session-signal",
    labels: &["A338"],
    summary: "the signal of a stream of a session behind a header section or another frame of a request",
    victim: Victim::Sessions,
    expect: Expect::ANY.closes(&["H3 0x106"]),
    make: || {
        Box::new(clients(2, |connection, progress| {
            for id in progress.requests(connection, 16) {
                // Servers that have answered do not read the rest of a request, so the signal is also in front of it.
                let mut bytes = match id.index() % 2 {
                    0 => http::request(Method::Post, "/"),
                    _ => http::frame(http::GREASE, &[0x5a; 10]),
                };
                bytes.extend(sessions::stream_header(Direction::Bidirectional, 0));
                bytes.extend([0x5a; 100]);
                connection.push_bytes(http::stream(id, 0, &bytes, true));
            }
        }))
    },
};

pub(super) const RESETS: Plan = Plan {
    name: "session-resets",
    labels: &["A348"],
    summary: "streams of a client of draft 02 that are reset before, in and behind their header",
    victim: Victim::Sessions,
    expect: Expect::ANY.closes(&["H3 0x107"]),
    make: || Box::new(resets()),
};

/// A browser does not support RESET_STREAM_AT, so that a reset may overtake the header of its stream.
struct Browser;

impl Hooks for Browser {
    fn edit_parameters(&mut self, parameters: &mut TransportParameters) {
        sessions::with_datagrams(parameters);
    }
}

fn resets() -> Crowd {
    browsers(|connection, progress| {
        if progress.streams == 0 {
            open_as_browser(connection, progress);
        }
        let ids: Vec<StreamId> = progress
            .requests(connection, 32)
            .chain(progress.uni_streams(connection, 32))
            .collect();
        for id in ids {
            let header = sessions::stream_header(id.direction(), 0);
            let sent = usize::try_from(id.index() % 4)
                .unwrap_or(0)
                .min(header.len());
            let reset = ResetStream {
                id,
                error_code: http::REQUEST_CANCELLED,
                final_size: header.len() as u64 + 1,
            };
            let mut frames = http::stream(id, 0, &header[..sent], false);
            frames.extend(encode(&Frame::ResetStream(reset)));
            connection.push_bytes(frames);
        }
    })
}

/// Two clients of draft 02.
fn browsers(burst: impl Fn(&mut Connection, &mut Progress) + 'static) -> Crowd {
    Crowd::new(2, move |connection, progress, _| {
        burst(connection, progress);
    })
    .with_hooks(|| Box::new(Browser))
    .with_setup(|connection, progress| {
        progress.control = sessions::preface(connection, sessions::SETTINGS_OF_BROWSERS);
        progress.uni_streams = 2;
    })
}

fn open_as_browser(connection: &mut Connection, progress: &mut Progress) {
    for id in progress.requests(connection, 1) {
        let bytes = sessions::connect("webtransport", sessions::SESSION, &[]);
        connection.push_bytes(http::stream(id, 0, &bytes, false));
    }
}

/// Clients of the newest dialect.
pub(super) fn clients(
    connections: usize,
    burst: impl Fn(&mut Connection, &mut Progress) + 'static,
) -> Crowd {
    Crowd::new(connections, move |connection, progress, _| {
        burst(connection, progress);
    })
    .with_hooks(|| Box::new(Newest))
    .with_setup(crowd::preface_of_sessions)
}

/// Requests a session on the next stream, and ends it at once if `is_over`.
pub(super) fn open(connection: &mut Connection, progress: &mut Progress, is_over: bool) {
    for id in progress.requests(connection, 1) {
        connection.push_bytes(http::stream(id, 0, &sessions::request(), is_over));
    }
}

/// Sends complete streams of a session in both directions.
fn flood(connection: &mut Connection, progress: &mut Progress, session: u64, content: &[u8]) {
    let ids: Vec<StreamId> = progress
        .requests(connection, 32)
        .chain(progress.uni_streams(connection, 32))
        .collect();
    for id in ids {
        connection.push_bytes(sessions::whole_stream(id, session, content));
    }
}
