//! Bounds on windows, and the rate that follows from a window.

use courser_base::Rate;

use crate::rtt::RttEstimator;

/// Returns the initial window: ten datagrams, but at most the larger of 14720 bytes and two
/// datagrams. RFC 9002 §7.2.
pub fn initial_window(mtu: u16) -> u64 {
    let mtu = u64::from(mtu);
    (10 * mtu).min((2 * mtu).max(14_720))
}

/// Returns the minimum window: two datagrams. RFC 9002 §7.2.
pub fn minimum_window(mtu: u16) -> u64 {
    2 * u64::from(mtu)
}

/// Returns the pacing rate of a window-based controller.
///
/// It is a quarter more than a window per round trip, so that the window and not the pacer is the
/// limit (RFC 9002 §7.7). In slow start, where the window doubles, it is two windows per round
/// trip.
pub(crate) fn window_rate(window: u64, rtt: &RttEstimator, in_slow_start: bool) -> Rate {
    let (numerator, denominator) = if in_slow_start { (2, 1) } else { (5, 4) };
    Rate::from_bytes_in(window, rtt.smoothed()).scaled(numerator, denominator)
}

/// The largest window, 64 GiB: more than the fastest paths hold, and far from overflow.
pub(crate) const MAX_WINDOW: u64 = 1 << 36;
