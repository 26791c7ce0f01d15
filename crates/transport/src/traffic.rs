//! Datagrams and bytes that a connection, or one of its paths, has carried.

use std::ops::AddAssign;

use crate::build::transmit::Transmit;

/// Datagrams and bytes in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UdpStats {
    /// Number of datagrams.
    pub datagrams: u64,
    /// Bytes of UDP payload, without UDP and IP headers.
    pub bytes: u64,
    /// Batches: datagrams that one system call sent, or that one buffer received.
    pub batches: u64,
}

impl UdpStats {
    /// Counts a batch that is sent.
    pub(crate) fn on_batch(&mut self, batch: &Transmit) {
        self.batches += 1;
        self.bytes += batch.len as u64;
        self.datagrams += batch.datagrams();
    }

    /// Counts a datagram that is received.
    #[inline]
    pub(crate) fn on_datagram(&mut self, len: usize) {
        self.datagrams += 1;
        self.bytes += len as u64;
    }
}

/// What one path of a connection with several has carried. [`ConnectionStats`](crate::ConnectionStats) has the same of all
/// paths together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathTraffic {
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Bytes of UDP payload sent.
    pub bytes_sent: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Bytes of UDP payload received.
    pub bytes_received: u64,
}

impl PathTraffic {
    /// Returns what a connection has carried altogether.
    pub(crate) const fn of_all(sent: &UdpStats, received: &UdpStats) -> Self {
        Self {
            datagrams_sent: sent.datagrams,
            bytes_sent: sent.bytes,
            datagrams_received: received.datagrams,
            bytes_received: received.bytes,
        }
    }

    /// Counts a batch that is sent.
    pub(crate) fn on_sent(&mut self, batch: &Transmit) {
        self.datagrams_sent += batch.datagrams();
        self.bytes_sent += batch.len as u64;
    }

    /// Counts a datagram that is received.
    pub(crate) const fn on_received(&mut self, len: usize) {
        self.datagrams_received += 1;
        self.bytes_received += len as u64;
    }

    /// Returns this without the traffic of a part.
    pub(crate) const fn without(self, part: &Self) -> Self {
        Self {
            datagrams_sent: self.datagrams_sent.saturating_sub(part.datagrams_sent),
            bytes_sent: self.bytes_sent.saturating_sub(part.bytes_sent),
            datagrams_received: self
                .datagrams_received
                .saturating_sub(part.datagrams_received),
            bytes_received: self.bytes_received.saturating_sub(part.bytes_received),
        }
    }
}

impl AddAssign for PathTraffic {
    fn add_assign(&mut self, other: Self) {
        let Self {
            datagrams_sent,
            bytes_sent,
            datagrams_received,
            bytes_received,
        } = other;
        self.datagrams_sent += datagrams_sent;
        self.bytes_sent += bytes_sent;
        self.datagrams_received += datagrams_received;
        self.bytes_received += bytes_received;
    }
}
