//! The best possible results of a flow, for comparison.

use std::time::Duration;

use courser_base::{Rate, Time};
use courser_recovery::initial_window;

use crate::apps::TransferDirection;

/// The properties of a path from which the results of an ideal sender follow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Path {
    pub(super) rate: Rate,
    pub(super) rtt: Duration,
    /// The UDP payload of a full datagram.
    pub(super) mtu: u64,
    /// The bytes on the wire for each byte of a stream, at least one.
    pub(super) expansion: f64,
}

impl Path {
    /// Returns the time from the client's first packet to the end of a slow start that fills the
    /// pipe: the handshake, the doublings from the initial window to the bandwidth-delay product,
    /// and two more round trips, one for the packets in flight and one to detect the end.
    pub(super) fn ideal_start(&self) -> Duration {
        let doublings = (self.product() / self.initial()).log2().ceil().max(0.0);
        self.rtt.mul_f64(3.0 + doublings)
    }

    /// Returns the time from the client's first packet to the last byte at the receiver if the
    /// window doubles with each round trip until the link is full.
    pub(super) fn ideal_completion(&self, bytes: u64, direction: TransferDirection) -> Duration {
        let mut rest = to_f64(bytes) * self.expansion;
        // The server sends when the request arrives, half a round trip after the handshake.
        let mut time = match direction {
            TransferDirection::Up => self.rtt.mul_f64(1.5),
            TransferDirection::Down => self.rtt * 2,
        };
        let mut window = self.initial();
        while rest > window && window < self.product() {
            rest -= window;
            window *= 2.0;
            time += self.rtt;
        }
        time + Duration::from_secs_f64(rest / to_f64(self.rate.as_bytes_per_second()))
    }

    /// Returns the bandwidth-delay product in bytes.
    pub(super) fn product(&self) -> f64 {
        to_f64(self.rate.as_bytes_per_second()) * self.rtt.as_secs_f64()
    }

    fn initial(&self) -> f64 {
        to_f64(initial_window(u16::try_from(self.mtu).unwrap_or(u16::MAX)))
    }
}

/// Returns the average window of CUBIC in packets on a path that loses this share of packets: the
/// larger one of the cubic function and the Reno-friendly region (RFC 9438 §5.1).
pub(super) fn cubic_window(rtt: Duration, loss: f64) -> f64 {
    const C: f64 = 0.4;
    const BETA: f64 = 0.7;
    let growth = (C * (3.0 + BETA) / (4.0 * (1.0 - BETA))).powf(0.25);
    let cubic = growth * (rtt.as_secs_f64() / loss).powf(0.75);
    // With the additive increase of RFC 9438 §4.3 the factor is that of Reno.
    let reno = (1.5 / loss).sqrt();
    cubic.max(reno)
}

/// Returns the end of an ideal slow start, or `measured_from` if that is later.
pub(super) fn steady_from(path: &Path, measured_from: Time) -> Time {
    measured_from.max(Time::ZERO + path.ideal_start())
}

/// Converts a count. A report has no use for more than the fifteen digits that this keeps.
#[expect(
    clippy::cast_precision_loss,
    reason = "fifteen digits are plenty for rates and ratios"
)]
pub(super) fn to_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(rate: u64, rtt: u64) -> Path {
        Path {
            rate: Rate::from_bytes_per_second(rate),
            rtt: Duration::from_millis(rtt),
            mtu: 1200,
            expansion: 1.0,
        }
    }

    #[test]
    fn start_counts_doublings() {
        // 12 000 bytes of 1 200 000 bytes a second and 100 ms: 3.3 doublings.
        let time = path(1_200_000, 100).ideal_start();
        assert_eq!(time, Duration::from_millis(700));
        assert_eq!(path(12_000, 100).ideal_start(), Duration::from_millis(300));
    }

    #[test]
    fn completion_is_round_trips_and_transmission_time() {
        let path = path(1_200_000, 100);
        let direction = TransferDirection::Down;
        // One window: connection, request and response, and ten milliseconds of link.
        let one = path.ideal_completion(12_000, direction);
        assert_eq!(one, Duration::from_millis(210));
        // 12 + 24 + 24 kB: two more rounds.
        let three = path.ideal_completion(60_000, direction);
        assert_eq!(three, Duration::from_millis(420));
        let up = path.ideal_completion(12_000, TransferDirection::Up);
        assert_eq!(up, Duration::from_millis(160));
    }

    #[test]
    fn cubic_window_matches_the_tables_of_rfc_9438() {
        // RFC 9438 §5.1, table 1 and 2: RTT 0.1 s, p = 10^-4, Reno 120, CUBIC 187 with C = 0.4.
        // With p = 10^-2 the Reno-friendly region has 12.
        let rtt = Duration::from_millis(100);
        let window = cubic_window(rtt, 1e-4);
        assert!((window - 187.0).abs() < 1.0, "{window}");
        let window = cubic_window(rtt, 1e-2);
        assert!((window - 12.2).abs() < 0.1, "{window}");
    }
}
