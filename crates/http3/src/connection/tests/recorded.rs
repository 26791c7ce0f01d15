//! Replays recordings of real clients. None of them may approach a limit.
//!
//! `interop/recordings/record` creates the texts from real programs. A line has the milliseconds since the first
//! packet, the stream, a frame, and its size. `opened` is the first packet of a request that is cancelled before
//! its header section is read, and `response` is the header section of its final response. `insert` and
//! `stream_cancellation` are numbers of QPACK instructions.

use std::collections::HashMap;
use std::time::Duration;

use super::*;
use crate::request_stream::{Decoding, RequestStream, Step};

/// The largest use of each budget in a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Used {
    /// Frames without progress, of 500 (K17).
    frames: u64,
    /// PRIORITY_UPDATE frames, of 256 (K17).
    updates: u64,
    /// Cancelled requests, of 1000 (K270).
    cancelled: u64,
    /// Instructions of the encoder stream, of 8192 (K84).
    inserts: u64,
    /// Cancellations of the decoder stream, of 8192 (K84).
    cancellations: u64,
}

impl Used {
    fn raise(&mut self, server: &Connection) {
        let (frames, updates) = server.budget.used();
        let (inserts, cancellations) = server.compression.budget.used();
        self.frames = self.frames.max(frames);
        self.updates = self.updates.max(updates);
        self.cancelled = self.cancelled.max(server.outcomes.used());
        self.inserts = self.inserts.max(inserts);
        self.cancellations = self.cancellations.max(cancellations);
    }
}

/// A server that reads a recording.
struct Replay {
    server: Connection,
    /// Encodes requests without a dynamic table, whose instructions come from the recording.
    client: Connection,
    requests: HashMap<u64, RequestStream>,
    control: u64,
    begun: [bool; 2],
    opened: u64,
    used: Used,
}

impl Replay {
    fn new() -> Self {
        let mut config = Config::new(Side::Client);
        config.encoder.max_table_capacity = 0;
        let mut server = connection(Side::Server);
        server.set_request_limit(MAX_OPEN);
        Self {
            server,
            client: Connection::new(Side::Client, config, 1, NOW),
            requests: HashMap::new(),
            control: 2,
            begun: [false; 2],
            opened: 0,
            used: Used::default(),
        }
    }

    fn line(&mut self, line: &str) {
        let mut words = line.split(' ');
        let mut word = || words.next().expect("four words");
        let now = NOW + Duration::from_millis(word().parse().expect("milliseconds"));
        let stream = word();
        let (name, size) = (word(), word().parse().expect("a size"));
        match stream {
            "-" => self.instructions(now, name, size),
            stream => self.frame(now, stream.parse().expect("a stream"), name, size),
        }
        self.used.raise(&self.server);
        while self.server.poll_event().is_some() {}
        for stream in UniStream::ALL {
            self.server.outgoing(stream).clear();
        }
    }

    fn frame(&mut self, now: Time, stream: u64, name: &str, size: u64) {
        let is_request = stream.is_multiple_of(4);
        match name {
            "opened" => self.open(now, stream),
            "response" => {
                let status = StatusCode::OK;
                let headers = HeaderMap::new();
                let fields = FieldsToSend::response(&status, &headers);
                let sent = self.server.encode(stream, &fields, &mut Vec::new());
                sent.expect("small");
            }
            "RESET_STREAM" => {
                if let Some(mut message) = self.requests.remove(&stream) {
                    message.on_reset(&mut self.server, now).expect("no attack");
                }
            }
            "STOP_SENDING" => self.server.on_given_up(now, stream).expect("no attack"),
            "HEADERS" => {
                self.open(now, stream);
                let bytes = self.section(stream);
                self.read(now, stream, bytes);
            }
            "DATA" => self.read(now, stream, frame(frame::DATA, &vec![0; size as usize])),
            "SETTINGS" => {
                self.control = stream;
                let bytes = [&[0x00][..], &frame(frame::SETTINGS, &[])].concat();
                self.uni(now, stream, bytes);
            }
            "PRIORITY_UPDATE" => {
                let payload = [&integer(size)[..], b"u=2,i"].concat();
                self.uni(now, stream, frame(frame::PRIORITY_UPDATE_REQUEST, &payload));
            }
            "MAX_PUSH_ID" => self.uni(now, stream, frame(frame::MAX_PUSH_ID, &[8])),
            "GOAWAY" => self.uni(now, stream, frame(frame::GOAWAY, &[0])),
            "RESERVED" | "UNKNOWN" => {
                let bytes = frame(frame::reserved(7), &vec![0; size as usize]);
                match is_request {
                    true => self.read(now, stream, bytes),
                    false => self.uni(now, stream, bytes),
                }
            }
            name => panic!("{name} is unknown"),
        }
    }

    fn open(&mut self, now: Time, stream: u64) {
        if self.requests.contains_key(&stream) {
            return;
        }
        self.opened = self.opened.max(stream / 4 + 1);
        self.server.set_request_limit(self.opened + MAX_OPEN);
        self.server.on_request_opened(stream);
        assert_eq!(self.server.admit_request(|| now), Ok(true), "{stream}");
        let limits = FieldLimits::REQUEST;
        self.requests
            .insert(stream, RequestStream::request(stream, limits));
    }

    /// Returns the HEADERS frame of a request.
    fn section(&mut self, stream: u64) -> Vec<u8> {
        let request = Request::get("https://localhost/an/object")
            .body(())
            .expect("a request");
        let (parts, ()) = request.into_parts();
        let fields = FieldsToSend::request(&parts).expect("valid fields");
        let mut out = Vec::new();
        self.client
            .encode(stream, &fields, &mut out)
            .expect("small");
        out
    }

    fn read(&mut self, now: Time, stream: u64, bytes: Vec<u8>) {
        let message = self.requests.get_mut(&stream).expect("an open request");
        message.push(bytes.into());
        loop {
            match message.poll() {
                Step::Read | Step::End => break,
                Step::Decode => {
                    assert_eq!(message.decode(&mut self.server), Decoding::Done);
                }
                Step::Charge => message.charge(&mut self.server, now).expect("no attack"),
                _ => {}
            }
        }
    }

    fn uni(&mut self, now: Time, stream: u64, bytes: Vec<u8>) {
        let fate = self.server.handle_uni(now, stream, bytes.into(), false);
        assert_eq!(fate, Ok(UniFate::Read), "{:?} {:?}", self.used, now - NOW);
    }

    /// Sends QPACK instructions on streams that the recording does not contain.
    fn instructions(&mut self, now: Time, name: &str, count: u64) {
        let (index, stream, first, bytes) = match name {
            "stream_cancellation" => (1, 1_000_002, &[0x03][..], &[0x44][..]),
            _ => (
                0,
                1_000_006,
                &[0x02, 0x3f, 0xe1, 0x1f][..],
                &[0x41, b'k', 1, b'v'][..],
            ),
        };
        let first = match std::mem::replace(&mut self.begun[index], true) {
            true => &[],
            false => first,
        };
        let all = bytes.repeat(count as usize);
        self.uni(now, stream, [first, &all[..]].concat());
    }
}

/// The transport has allowed streams before their header sections are read.
const MAX_OPEN: u64 = 1024;

fn replay(text: &str) -> Used {
    let mut replay = Replay::new();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.for_each(|line| replay.line(line));
    assert!(replay.opened > 0, "no request");
    replay.used
}

macro_rules! recordings {
    ($($name:literal: $used:expr,)*) => {
        [$(($name, include_str!(concat!("recorded/", $name, ".txt")), $used),)*]
    };
}

const fn used(frames: u64, updates: u64, cancelled: u64, inserts: u64, cancellations: u64) -> Used {
    Used {
        frames,
        updates,
        cancelled,
        inserts,
        cancellations,
    }
}

/// K17, K84, K270: the table "Honest peers" of docs/LIMITS.md has the largest numbers.
#[test]
fn honest_clients_stay_far_from_every_limit() {
    let recordings = recordings! {
        "chromium-images-300": used(1, 6, 0, 21, 0),
        "chromium-images-900": used(1, 1, 0, 21, 0),
        "chromium-images-3000": used(1, 1, 0, 22, 0),
        "chromium-tabs": used(1, 1, 0, 20, 0),
        "chromium-search": used(1, 1, 4, 16, 4),
        "chromium-scroll": used(1, 1, 297, 21, 247),
        "chromium-poll": used(1, 1, 10, 16, 24),
        "chromium-wake": used(1, 0, 0, 16, 0),
        "firefox-images-300": used(1, 0, 0, 8, 0),
        "firefox-images-900": used(1, 0, 0, 8, 0),
        "firefox-images-3000": used(1, 0, 0, 8, 0),
        "firefox-tabs": used(1, 0, 0, 8, 0),
        "firefox-search": used(1, 0, 4, 8, 6),
        "firefox-scroll": used(1, 0, 85, 8, 304),
        "firefox-poll": used(1, 0, 15, 8, 15),
        "firefox-wake": used(1, 0, 0, 8, 0),
        "curl": used(0, 0, 0, 3, 0),
        "quic-go": used(0, 0, 1, 0, 0),
    };
    let seen = recordings.map(|(name, text, _)| (name, replay(text)));
    assert_eq!(seen, recordings.map(|(name, _, expected)| (name, expected)));
    // No client uses more than half of its initial budget.
    let most = used(250, 128, 500, 4096, 4096);
    for (name, used) in seen {
        assert!(used.frames <= most.frames, "{name}");
        assert!(used.updates <= most.updates, "{name}");
        assert!(used.cancelled <= most.cancelled, "{name}");
        assert!(used.inserts <= most.inserts, "{name}");
        assert!(used.cancellations <= most.cancellations, "{name}");
    }
}
