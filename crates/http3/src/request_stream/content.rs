//! Comparison of the content of a message with its `content-length` (§4.1.2).

use crate::error::Error;

/// Counts the content of one message.
#[derive(Debug, Default)]
pub(super) struct ContentLength {
    /// The number of bytes that `content-length` announces, if it is binding.
    announced: Option<u64>,
    received: u64,
}

impl ContentLength {
    /// Sets the length that the header section announces.
    pub(super) fn announce(&mut self, length: Option<u64>) {
        self.announced = length;
    }

    /// Counts content. Returns an error if it exceeds the announced length.
    pub(super) fn on_content(&mut self, len: usize) -> Result<(), Error> {
        self.received += len as u64;
        if self.announced.is_some_and(|length| self.received > length) {
            return Err(Error::malformed(
                "more content than content-length announces",
            ));
        }
        Ok(())
    }

    /// Checks that all announced content has arrived.
    pub(super) fn check_end(&self) -> Result<(), Error> {
        if self.announced.is_some_and(|length| self.received < length) {
            return Err(Error::malformed(
                "less content than content-length announces",
            ));
        }
        Ok(())
    }
}
