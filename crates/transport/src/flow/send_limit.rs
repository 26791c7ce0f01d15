//! What the peer allows us to send.

/// Credit that the peer granted for one stream or for the connection. RFC 9000 §4.1.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendLimit {
    limit: u64,
    used: u64,
    /// The limit that a BLOCKED frame was queued for; one frame per limit is enough.
    signalled: Option<u64>,
    /// BLOCKED frames for limits below this have been acknowledged.
    heard_below: u64,
}

impl SendLimit {
    /// Starts with nothing used.
    pub(crate) const fn new(limit: u64) -> Self {
        Self {
            limit,
            used: 0,
            signalled: None,
            heard_below: 0,
        }
    }

    /// Takes a new limit; false when it does not raise the old one, which then stays:
    /// frames may arrive in any order (RFC 9000 §4.1).
    pub(crate) fn raise(&mut self, limit: u64) -> bool {
        let raises = limit > self.limit;
        self.limit = self.limit.max(limit);
        raises
    }

    /// Bytes that may still be sent for the first time.
    #[inline]
    pub(crate) const fn available(&self) -> u64 {
        self.limit - self.used
    }

    /// The limit as last raised.
    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes sent so far, each counted once.
    #[cfg(test)]
    pub(crate) const fn used(&self) -> u64 {
        self.used
    }

    /// Notes that `len` new bytes are sent.
    #[inline]
    pub(crate) fn consume(&mut self, len: u64) {
        debug_assert!(
            len <= self.available(),
            "sent {len} with {} allowed",
            self.available()
        );
        self.used = self.limit.min(self.used + len);
    }

    /// True once per limit, when it is used up: then a BLOCKED frame is due.
    pub(crate) fn take_signal(&mut self) -> bool {
        let due = self.available() == 0 && self.signalled != Some(self.limit);
        if due {
            self.signalled = Some(self.limit);
        }
        due
    }

    /// A BLOCKED frame with this limit was acknowledged.
    pub(crate) fn on_blocked_heard(&mut self, limit: u64) {
        self.heard_below = self.heard_below.max(limit.saturating_add(1));
    }

    /// True when the peer knows that the limit of today is in the way.
    pub(crate) const fn is_heard(&self) -> bool {
        self.limit < self.heard_below
    }

    /// The BLOCKED frame got lost or should be repeated.
    pub(crate) fn forget_signal(&mut self) {
        self.signalled = None;
    }
}

#[cfg(test)]
mod tests;
