//! Shows the rates of the link on a terminal.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use courser_emulator::Status;

use crate::output::rate;

/// A line on standard error that is updated twice a second, if that is a terminal.
#[derive(Debug)]
pub(super) struct Progress {
    is_shown: bool,
    last: Duration,
    bytes: [u64; 2],
}

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            is_shown: std::io::stderr().is_terminal(),
            last: Duration::ZERO,
            bytes: [0; 2],
        }
    }

    pub(super) fn at(&mut self, status: Status<'_>) {
        let elapsed = status.elapsed();
        let since = elapsed.saturating_sub(self.last);
        if !self.is_shown || since < EVERY {
            return;
        }
        let (there, back) = (status.to_server(), status.to_clients());
        let bytes = [there.bytes_out, back.bytes_out];
        let moved = [bytes[0] - self.bytes[0], bytes[1] - self.bytes[1]];
        let rates = moved.map(|moved| rate(moved, since.as_secs_f64()));
        let dropped = there.dropped.total() + back.dropped.total();
        let [to_server, to_clients] = rates;
        let text = format!("{to_server} to server, {to_clients} to clients, {dropped} dropped");
        let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
        self.last = elapsed;
        self.bytes = bytes;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

const EVERY: Duration = Duration::from_millis(500);
