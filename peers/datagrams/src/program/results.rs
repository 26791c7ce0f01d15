//! The lines that ends print.

use serde::{Deserialize, Serialize};

/// The line of a client whose load begins.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Began {
    pub(crate) began_us: u64,
}

/// The result of a client, which sends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Client {
    /// Packets of the VPN's host, or frames of all speakers.
    pub(crate) sent: u64,
    /// Packets that travelled in two halves.
    pub(crate) halved: u64,
    /// Milliseconds from the handshake until a packet of 1280 bytes fitted into a datagram.
    pub(crate) fits_ms: Option<f64>,
    /// The sizes of the largest datagram, each with the microseconds since the handshake, and the one at the end.
    pub(crate) sizes: Vec<(u64, usize)>,
    pub(crate) last_size: usize,
    /// CPU time of the load in seconds.
    pub(crate) cpu: f64,
    /// What the library counted in the load.
    pub(crate) counts: Counts,
}

/// Counts of the library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// DATAGRAM frames that left.
    pub(crate) datagrams: u64,
    /// Packets of all kinds that left, and those of them that were declared lost.
    pub(crate) packets: u64,
    pub(crate) packets_lost: u64,
}

impl Counts {
    /// Returns the counts after `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            datagrams: self.datagrams - earlier.datagrams,
            packets: self.packets - earlier.packets,
            packets_lost: self.packets_lost - earlier.packets_lost,
        }
    }
}

/// The result of a server, which receives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Server {
    pub(crate) received: u64,
    /// Times of the first and the last packet of the load.
    pub(crate) first_us: u64,
    pub(crate) last_us: u64,
    /// The longest time without a packet, and its begin.
    pub(crate) gap_us: u64,
    pub(crate) gap_from_us: u64,
    /// Delays of frames in milliseconds.
    pub(crate) delay: Delays,
    /// RFC 3550 §6.4.1, the mean of all speakers, in milliseconds.
    pub(crate) jitter_ms: f64,
    /// Bytes of the stream beside the frames.
    pub(crate) bulk: u64,
    /// CPU time from the first packet of the load to the last, in seconds.
    pub(crate) cpu: f64,
    /// What the library counted.
    pub(crate) counts: Counts,
}

/// Percentiles in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Delays {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Delays {
    /// Returns nearest-rank percentiles of microseconds; zeros without any.
    pub(crate) fn of(mut micros: Vec<u64>) -> Self {
        micros.sort_unstable();
        let rank = |percent: usize| {
            let at = (micros.len() * percent).div_ceil(100).max(1) - 1;
            micros.get(at).map_or(0.0, |&value| value as f64 / 1e3)
        };
        Self {
            p50: rank(50),
            p99: rank(99),
            max: rank(100),
        }
    }
}
