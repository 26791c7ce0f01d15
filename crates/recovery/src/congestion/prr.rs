//! Proportional rate reduction, RFC 9937: what may be sent during recovery.

use courser_base::Time;

use super::sample::{AckSample, LossSample};
use super::window::{MAX_WINDOW, initial_window};

/// Brings the bytes in flight down to the slow start threshold over one recovery period.
///
/// Without it a halved window is a silence of half a round trip and then a burst. With it, each
/// acknowledgement lets out its share: `ssthresh / RecoverFS` of what was delivered while more is
/// in flight than the threshold, and enough to come back to the threshold when losses have taken
/// the flight below it.
///
/// Where RFC 9937 writes `cwnd = inflight + sndcnt`, this keeps `sndcnt` and takes from it what is
/// sent: the window stays what the controller made it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prr {
    ssthresh: u64,
    /// Bytes in flight before the acknowledgement that showed the loss, what it delivered and
    /// what it showed to be lost included: `RecoverFS`.
    recover_fs: u64,
    /// `prr_delivered`.
    delivered: u64,
    /// `prr_out`.
    out: u64,
    /// What is left of `sndcnt`.
    allowance: u64,
    /// When recovery began.
    entered: Time,
    /// Packets were lost since the last acknowledgement.
    has_lost: bool,
    is_short: bool,
    mtu: u64,
}

impl Prr {
    /// Recovery begins with this sample and leads to a window of `ssthresh`. RFC 9937 §6.1.
    ///
    /// Flights of no more than an initial window are left to the window. That much may leave at
    /// once anyway, and in a handshake the acknowledgements that should let packets out may wait
    /// for the very packets that are held back.
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

    /// More packets were lost in the same recovery, perhaps without an acknowledgement.
    pub(super) fn on_lost(&mut self, sample: &LossSample<'_>) {
        self.has_lost |= sample.lost_bytes > 0;
        self.allow(0, sample.bytes_in_flight, false);
    }

    /// An acknowledgement arrived during recovery. RFC 9937 §6.2.
    pub(super) fn on_ack(&mut self, sample: &AckSample<'_>) {
        if sample.now == self.entered {
            // The acknowledgement that began it all: only here is known what it delivered.
            self.recover_fs = self.recover_fs.max(sample.bytes_in_flight_before);
        }
        // SafeACK: progress, and nothing that says recovery has to go on for longer.
        let is_safe = sample.acked_bytes > 0 && sample.lost_bytes == 0 && !self.has_lost;
        self.has_lost = false;
        self.delivered = self.delivered.saturating_add(sample.acked_bytes);
        self.allow(sample.acked_bytes, sample.bytes_in_flight, is_safe);
    }

    /// Bytes left, probes included.
    pub(super) fn on_sent(&mut self, bytes: u64) {
        self.out = self.out.saturating_add(bytes);
        self.allowance = self.allowance.saturating_sub(bytes);
    }

    /// Bytes that may leave now. With nothing in flight there is nothing to wait for.
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
        // One packet leaves on entry, to repair what was lost.
        let least = if self.out == 0 { self.mtu } else { 0 };
        self.allowance = count.max(least).min(MAX_WINDOW);
    }

    /// `CEIL(prr_delivered * ssthresh / RecoverFS)`.
    fn proportional(&self) -> u64 {
        let share = u128::from(self.delivered) * u128::from(self.ssthresh);
        let share = share.div_ceil(u128::from(self.recover_fs.max(1)));
        u64::try_from(share).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests;
