//! Content of the CONNECT stream that changes nothing.

use std::time::Duration;

use courser_base::Time;
use courser_http3::{Code, Error};

use crate::capsule::stream_error;

/// The bytes of capsules that are skipped or have no effect (attack A255). Unknown capsules are allowed and some ends
/// send them on purpose, so the bytes are forgotten with time.
#[derive(Debug, Default)]
pub(super) struct Noise {
    bytes: usize,
    since: Time,
}

impl Noise {
    /// Adds the bytes of a chunk, before it is known what they are.
    pub(super) fn add(&mut self, now: Time, bytes: usize) {
        let forgotten = (now - self.since).as_nanos() / FORGOTTEN_EACH.as_nanos();
        if let Ok(forgotten) = usize::try_from(forgotten)
            && forgotten < self.bytes
        {
            self.bytes -= forgotten;
            // Remains of less than one byte are kept for the next chunk.
            let whole = FORGOTTEN_EACH.as_nanos() as u64 * forgotten as u64;
            self.since += Duration::from_nanos(whole);
        } else {
            (self.bytes, self.since) = (0, now);
        }
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Subtracts the bytes of a capsule that has an effect.
    pub(super) const fn subtract(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Checks the limit.
    pub(super) const fn check(&self) -> Result<(), Error> {
        if self.bytes > MAX_NOISE {
            let reason = "capsules without an effect";
            return Err(stream_error(Code::EXCESSIVE_LOAD, reason));
        }
        Ok(())
    }
}

/// Bytes without an effect on the CONNECT stream of a session (limit K308).
const MAX_NOISE: usize = 1024 * 1024;
/// Time in which one of these bytes is forgotten, 16 KiB in a second.
const FORGOTTEN_EACH: Duration = Duration::from_nanos(61_035);
