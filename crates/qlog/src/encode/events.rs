//! Writes the frame around each event.

use courser_base::Time;

use crate::json::{Object, object};

/// The output of events, with their time.
pub(crate) struct Events<'a> {
    pub(super) out: &'a mut Vec<u8>,
    pub(super) now: Time,
}

impl Events<'_> {
    /// Appends one event between a record separator and a line feed (RFC 7464).
    pub(crate) fn event(&mut self, name: &'static str, data: impl FnOnce(&mut Object<'_>)) {
        let since = self.now.saturating_since(Time::ZERO);
        self.out.push(RECORD_SEPARATOR);
        object(self.out, |event| {
            event.millis("time", since).constant("name", name);
            event.object("data", data);
        });
        self.out.push(b'\n');
    }
}

/// The byte before each record (RFC 7464 §2.2).
pub(crate) const RECORD_SEPARATOR: u8 = 0x1e;
