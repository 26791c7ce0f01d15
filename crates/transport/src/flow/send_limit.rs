//! The credit that the peer grants us.

/// Credit that the peer granted for one stream or for the connection. RFC 9000 §4.1.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendLimit {
    limit: u64,
    used: u64,
    /// The limit for which a BLOCKED frame was queued; one frame per limit is enough.
    signalled: Option<u64>,
    /// BLOCKED frames for limits below this have been acknowledged.
    acked_below: u64,
}

impl SendLimit {
    /// Starts with no credit used.
    pub(crate) const fn new(limit: u64) -> Self {
        Self {
            limit,
            used: 0,
            signalled: None,
            acked_below: 0,
        }
    }

    /// Raises the limit. Returns false if the new one is not larger; the old one then stays,
    /// because frames may arrive in any order (RFC 9000 §4.1).
    pub(crate) fn raise(&mut self, limit: u64) -> bool {
        let raises = limit > self.limit;
        self.limit = self.limit.max(limit);
        raises
    }

    /// Returns the bytes that may still be sent for the first time.
    #[inline]
    pub(crate) const fn available(&self) -> u64 {
        self.limit - self.used
    }

    /// Returns the limit as last raised.
    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns the bytes sent so far, each counted once.
    #[cfg(test)]
    pub(crate) const fn used(&self) -> u64 {
        self.used
    }

    /// Counts `len` new bytes as sent.
    #[inline]
    pub(crate) fn consume(&mut self, len: u64) {
        debug_assert!(
            len <= self.available(),
            "sent {len} with {} allowed",
            self.available()
        );
        self.used = self.limit.min(self.used + len);
    }

    /// Returns true once per limit, when it is used up: then a BLOCKED frame is due.
    pub(crate) fn take_signal(&mut self) -> bool {
        let due = self.available() == 0 && self.signalled != Some(self.limit);
        if due {
            self.signalled = Some(self.limit);
        }
        due
    }

    /// Processes the acknowledgement of a BLOCKED frame with this limit.
    pub(crate) fn on_blocked_acked(&mut self, limit: u64) {
        self.acked_below = self.acked_below.max(limit.saturating_add(1));
    }

    /// Returns true if a BLOCKED frame for the current limit was acknowledged.
    pub(crate) const fn is_blocked_acked(&self) -> bool {
        self.limit < self.acked_below
    }

    /// Requests another BLOCKED frame, because the last one was lost or should be repeated.
    pub(crate) fn clear_signal(&mut self) {
        self.signalled = None;
    }
}

#[cfg(test)]
mod tests;
