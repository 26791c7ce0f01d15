//! The three-times limit towards an address nobody has proven. RFC 9000 §8.

/// Counts bytes both ways until the peer's address is validated.
#[derive(Debug, Default)]
pub struct Amplification {
    validated: bool,
    received: u64,
    sent: u64,
}

/// How much an unvalidated address gets per byte it sent.
const FACTOR: u64 = 3;

impl Amplification {
    /// A datagram arrived from the address; every byte counts, readable or not (§8.1).
    pub fn on_received(&mut self, len: usize) {
        self.received = self.received.saturating_add(len as u64);
    }

    /// A datagram left for the address.
    pub fn on_sent(&mut self, len: usize) {
        self.sent = self.sent.saturating_add(len as u64);
    }

    /// The peer proved that it receives what is sent there.
    pub fn on_validated(&mut self) {
        self.validated = true;
    }

    /// True once the address is proven.
    pub fn is_validated(&self) -> bool {
        self.validated
    }

    /// Bytes that may still be sent.
    pub fn budget(&self) -> u64 {
        if self.validated {
            return u64::MAX;
        }
        (self.received * FACTOR).saturating_sub(self.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_is_three_times_what_arrived() {
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
            "what was sent too much is paid back first"
        );
    }

    #[test]
    fn validated_address_has_no_limit() {
        let mut amplification = Amplification::default();
        amplification.on_validated();
        assert_eq!(amplification.budget(), u64::MAX);
    }
}
