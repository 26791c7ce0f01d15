//! Capsules of WebTransport sessions: ends that do not end, unknown ones, and false limits.

use std::time::Duration;

use courser_wire::TransportParameters;

use crate::attack::{Expect, Plan, Victim};
use crate::hooks::Hooks;
use crate::http;
use crate::put_varint;
use crate::sessions;

use super::Crowd;
use super::session_streams::clients;

pub(super) const NO_CLOSE: Plan = Plan {
    name: "session-no-close",
    labels: &["A97", "A253", "A345"],
    summary: "sessions that the server ends, of a client without credit for the message that ends no stream itself",
    victim: Victim::Sessions,
    expect: Expect::ANY.streams(&[sessions::SESSION_GONE]),
    make: || Box::new(no_close()),
};

/// Grants enough for the response, and not for the message.
struct ForTheResponse;

impl Hooks for ForTheResponse {
    fn edit_parameters(&mut self, parameters: &mut TransportParameters) {
        sessions::with_datagrams(parameters);
        parameters.reset_stream_at = true;
        parameters.initial_max_stream_data_bidi_local = 300;
    }
}

fn no_close() -> Crowd {
    clients(2, |connection, progress| {
        for id in progress.requests(connection, 4) {
            let reason = "a".repeat(1000);
            let path = format!("{}?close=7&reason={reason}", sessions::SESSION);
            let bytes = sessions::connect("webtransport-h3", &path, &[]);
            for frame in http::stream_in_chunks(id, &bytes, false) {
                connection.push_bytes(frame);
            }
        }
    })
    .with_hooks(|| Box::new(ForTheResponse))
    .with_pause(Duration::from_millis(10))
}

pub(super) const MESSAGES: Plan = Plan {
    name: "session-messages",
    labels: &["A254"],
    summary: "sessions with messages of their end that are endless, too long, too short or no text",
    victim: Victim::Sessions,
    expect: Expect::TOLERATED.streams(&[sessions::MESSAGE_ERROR]),
    make: || Box::new(messages()),
};

fn messages() -> Crowd {
    clients(2, |connection, progress| {
        for id in progress.requests(connection, 1) {
            let long = [&[0, 0, 0, 7][..], &[b'a'; 1025]].concat();
            let (len, value): (u64, &[u8]) = match id.index() % 5 {
                0 => ((1 << 62) - 1, b"\0\0\0\x07endless"),
                1 => (long.len() as u64, &long),
                2 => (3, b"\0\0\0"),
                3 => (6, b"\0\0\0\x07\xff\xfe"),
                // A character of three bytes, of which the last one is missing.
                _ => (6, b"\0\0\0\x07\xe2\x82"),
            };
            let capsule = sessions::bare_capsule(sessions::CLOSE_SESSION, len, value);
            let mut bytes = sessions::request();
            bytes.extend(http::frame(http::DATA, &capsule));
            for frame in http::stream_in_chunks(id, &bytes, false) {
                connection.push_bytes(frame);
            }
        }
    })
    .with_pause(Duration::from_millis(20))
}

pub(super) const UNKNOWN: Plan = Plan {
    name: "session-unknown-capsules",
    labels: &["A255"],
    summary: "a capsule of an unknown type and 2^61 bytes, in DATA frames of 1000 bytes or of one byte",
    victim: Victim::Sessions,
    // On a slow machine the pieces also exceed the window of QUIC, which ends the connection with another code.
    expect: Expect::ANY.streams(&[sessions::EXCESSIVE_LOAD]),
    make: || Box::new(unknown()),
};

/// Some connections send large pieces, which end the stream, and the others single bytes, which end the connection.
fn unknown() -> Crowd {
    clients(4, |connection, progress| {
        if progress.streams == 0 {
            // The streams that the server has stopped are counted here.
            progress.uni_streams = 0;
        }
        let id = http::request_stream(progress.streams.saturating_sub(1));
        let ended = connection.seen().stops.values().sum();
        if progress.streams == 0 || progress.uni_streams < ended {
            progress.uni_streams = ended;
            let Some(id) = progress.requests(connection, 1).next() else {
                return;
            };
            let mut bytes = sessions::request();
            let capsule = http::header(0x2a_2a2a, 1 << 61);
            bytes.extend(http::frame(http::DATA, &capsule));
            connection.push_bytes(http::stream(id, 0, &bytes, false));
            progress.offset = bytes.len() as u64;
            return;
        }
        let piece: Vec<u8> = match connection.local_id().first().is_some_and(|it| it % 2 == 0) {
            true => http::frame(http::DATA, &[0x5a; 900]),
            false => http::frame(http::DATA, &[0x5a]).repeat(300),
        };
        for _ in 0..16 {
            connection.push_bytes(http::stream(id, progress.offset, &piece, false));
            progress.offset += piece.len() as u64;
        }
    })
}

pub(super) const LIMITS: Plan = Plan {
    name: "session-limits",
    labels: &["A256"],
    summary: "limits of sessions that fall, and of more than 2^60 streams",
    victim: Victim::Sessions,
    expect: Expect::TOLERATED.streams(&[sessions::FLOW_CONTROL_ERROR]),
    make: || Box::new(limits()),
};

fn limits() -> Crowd {
    clients(2, |connection, progress| {
        for id in progress.requests(connection, 1) {
            let (kind, values): (u64, &[u64]) = match id.index() % 3 {
                0 => (sessions::MAX_DATA, &[1 << 41, 1 << 40]),
                1 => (sessions::MAX_STREAMS_BIDI, &[(1 << 40) - 1]),
                _ => (sessions::MAX_STREAMS_BIDI, &[(1 << 60) + 1]),
            };
            let mut bytes = sessions::request();
            for value in values {
                let mut encoded = Vec::new();
                put_varint(&mut encoded, *value);
                bytes.extend(sessions::capsule(kind, &encoded));
            }
            connection.push_bytes(http::stream(id, 0, &bytes, false));
        }
    })
    .with_pause(Duration::from_millis(20))
}
