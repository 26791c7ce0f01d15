//! Proportional rate reduction, RFC 9937: limits sending during recovery.

use courser_base::Time;

use super::sample::{AckSample, LossSample};
use super::window::{MAX_WINDOW, initial_window};

/// Reduces the bytes in flight to the slow start threshold over one recovery period.
///
/// Without it, halving the window stops sending for half a round trip, and a burst follows. With
/// it, each acknowledgement permits a share: `ssthresh / RecoverFS` of the delivered bytes while
/// more is in flight than the threshold, and enough to return to the threshold after losses have
/// taken the flight below it.
///
/// RFC 9937 sets `cwnd = inflight + sndcnt`. This implementation stores `sndcnt` instead, less the
/// bytes sent since, and leaves the window as the controller set it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prr {
    ssthresh: u64,
    /// `RecoverFS`: bytes in flight before the acknowledgement that revealed the loss, those that
    /// it delivered or declared lost included.
    recover_fs: u64,
    /// `prr_delivered`: bytes delivered since recovery began.
    delivered: u64,
    /// `prr_out`: bytes sent since recovery began.
    out: u64,
    /// The part of `sndcnt` that was not sent yet.
    allowance: u64,
    /// The time at which recovery began.
    entered: Time,
    /// True if packets were lost since the last acknowledgement.
    has_lost: bool,
    /// True if the flight was so short that the window alone limits it.
    is_short: bool,
    mtu: u64,
}

impl Prr {
    /// Begins recovery to a window of `ssthresh` with this sample. RFC 9937 §6.1.
    ///
    /// The window alone limits flights of at most an initial window. That much may be sent at once
    /// anyway, and in a handshake the acknowledgements that would permit packets may depend on the
    /// packets that wait for them.
    pub(super) fn new(sample: &LossSample<'_>, ssthresh: u64, mtu: u16) -> Self {
        let recover_fs = sample.bytes_in_flight.saturating_add(sample.lost_bytes);
        let mut prr = Self {
            ssthresh: ssthresh.min(MAX_WINDOW),
            recover_fs,
            delivered: 0,
            out: 0,
            allowance: 0,
            entered: sample.now,
            has_lost: sample.lost_bytes > 0,
            is_short: recover_fs <= initial_window(mtu),
            mtu: u64::from(mtu),
        };
        prr.allow(0, sample.bytes_in_flight, false);
        prr
    }

    pub(super) fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = u64::from(mtu);
    }

    /// Records more losses in the same recovery, with or without an acknowledgement.
    pub(super) fn on_lost(&mut self, sample: &LossSample<'_>) {
        self.has_lost |= sample.lost_bytes > 0;
        self.allow(0, sample.bytes_in_flight, false);
    }

    /// Processes an acknowledgement during recovery. RFC 9937 §6.2.
    pub(super) fn on_ack(&mut self, sample: &AckSample<'_>) {
        if sample.now == self.entered {
            // This acknowledgement began recovery. The bytes that it delivered are known only now.
            self.recover_fs = self.recover_fs.max(sample.bytes_in_flight_before);
        }
        // SafeACK: there is progress and no further loss.
        let is_safe = sample.acked_bytes > 0 && sample.lost_bytes == 0 && !self.has_lost;
        self.has_lost = false;
        self.delivered = self.delivered.saturating_add(sample.acked_bytes);
        self.allow(sample.acked_bytes, sample.bytes_in_flight, is_safe);
    }

    /// Records that bytes were sent, those of probes included.
    pub(super) fn on_sent(&mut self, bytes: u64) {
        self.out = self.out.saturating_add(bytes);
        self.allowance = self.allowance.saturating_sub(bytes);
    }

    /// Returns true if more bytes are in flight than after the reduction.
    pub(super) fn is_reducing(&self, bytes_in_flight: u64) -> bool {
        bytes_in_flight > self.ssthresh
    }

    /// Returns the bytes that may be sent now. This is at least a datagram if nothing is in flight,
    /// because no acknowledgement would permit one.
    pub(super) fn room(&self, window: u64, bytes_in_flight: u64) -> u64 {
        if self.is_short {
            window.saturating_sub(bytes_in_flight)
        } else if bytes_in_flight == 0 {
            self.allowance.max(self.mtu)
        } else {
            self.allowance
        }
    }

    fn allow(&mut self, delivered: u64, in_flight: u64, is_safe: bool) {
        let unspent = self.delivered.saturating_sub(self.out);
        let count = if in_flight > self.ssthresh {
            self.proportional().saturating_sub(self.out)
        } else {
            let growth = if is_safe { self.mtu } else { 0 };
            let count = unspent.max(delivered).saturating_add(growth);
            count.min(self.ssthresh - in_flight)
        };
        // One packet is permitted on entry to repair a loss.
        let minimum = if self.out == 0 { self.mtu } else { 0 };
        self.allowance = count.max(minimum).min(MAX_WINDOW);
    }

    /// Returns `CEIL(prr_delivered * ssthresh / RecoverFS)`.
    fn proportional(&self) -> u64 {
        let share = u128::from(self.delivered) * u128::from(self.ssthresh);
        let share = share.div_ceil(u128::from(self.recover_fs.max(1)));
        u64::try_from(share).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests;
