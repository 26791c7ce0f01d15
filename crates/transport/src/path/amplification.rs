//! The anti-amplification limit: three times the bytes received from an unvalidated address.
//! RFC 9000 §8.

/// Counts bytes in both directions until the peer's address is validated.
#[derive(Debug, Default)]
pub struct Amplification {
    validated: bool,
    /// True if our own end chose the path, to an address that is validated on another one.
    exempt: bool,
    received: u64,
    sent: u64,
}

/// Bytes that may be sent to an unvalidated address per byte received from it.
const FACTOR: u64 = 3;

impl Amplification {
    /// Counts a datagram received from the address. Every byte counts, readable or not (§8.1).
    pub fn on_received(&mut self, len: usize) {
        self.received = self.received.saturating_add(len as u64);
    }

    /// Lifts the limit for a path that our own end chose to a validated address of the peer. This does not
    /// validate the path itself.
    pub fn exempt(&mut self) {
        self.exempt = true;
    }

    /// Counts a datagram sent to the address.
    pub fn on_sent(&mut self, len: usize) {
        self.sent = self.sent.saturating_add(len as u64);
    }

    /// Lifts the limit, because the peer has shown that it receives at the address.
    pub fn on_validated(&mut self) {
        self.validated = true;
    }

    /// Returns true once the address is validated.
    pub fn is_validated(&self) -> bool {
        self.validated
    }

    /// Returns the number of bytes that may still be sent.
    pub fn budget(&self) -> u64 {
        if self.validated || self.exempt {
            return u64::MAX;
        }
        (self.received * FACTOR).saturating_sub(self.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_is_three_times_the_received_bytes() {
        let mut amplification = Amplification::default();
        assert_eq!(amplification.budget(), 0);
        amplification.on_received(1200);
        amplification.on_sent(3000);
        assert_eq!(amplification.budget(), 600);
        amplification.on_sent(1200);
        assert_eq!(amplification.budget(), 0);
        amplification.on_received(1);
        assert_eq!(
            amplification.budget(),
            0,
            "the excess of sent bytes counts first"
        );
    }

    #[test]
    fn exemption_lifts_the_limit_without_validation() {
        let mut amplification = Amplification::default();
        amplification.exempt();
        assert_eq!(amplification.budget(), u64::MAX);
        assert!(!amplification.is_validated());
    }

    #[test]
    fn validated_address_has_no_limit() {
        let mut amplification = Amplification::default();
        amplification.on_validated();
        assert_eq!(amplification.budget(), u64::MAX);
    }
}
