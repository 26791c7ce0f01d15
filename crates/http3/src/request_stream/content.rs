//! The content of a message, held against its `content-length` (§4.1.2).

use crate::error::Error;

/// Counts the content of one message.
#[derive(Debug, Default)]
pub(super) struct ContentLength {
    /// The bytes that `content-length` announces, where it is binding.
    announced: Option<u64>,
    received: u64,
}

impl ContentLength {
    /// Takes the length that the header section announces.
    pub(super) fn announce(&mut self, length: Option<u64>) {
        self.announced = length;
    }

    /// Counts a piece of content. Fails if it exceeds the announced length.
    pub(super) fn on_content(&mut self, len: usize) -> Result<(), Error> {
        self.received += len as u64;
        if self.announced.is_some_and(|length| self.received > length) {
            return Err(Error::malformed("more content than content-length says"));
        }
        Ok(())
    }

    /// Checks that all announced content has arrived.
    pub(super) fn check_end(&self) -> Result<(), Error> {
        if self.announced.is_some_and(|length| self.received < length) {
            return Err(Error::malformed("less content than content-length says"));
        }
        Ok(())
    }
}
