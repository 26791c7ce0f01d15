//! Events of loss recovery and congestion control.

use courser_telemetry::Record;
use tracing::{Span, debug, trace};

use super::targets::RECOVERY;
use crate::names;

pub(super) fn record(span: &Span, record: &Record) {
    match record {
        Record::RecoveryParametersSet(set) => debug!(
            target: RECOVERY,
            parent: span,
            controller = set.controller,
            initial_rtt = ?set.initial_rtt,
            initial_congestion_window = set.initial_congestion_window,
            max_datagram_size = set.max_datagram_size,
            "parameters"
        ),
        Record::MetricsUpdated(metrics) => trace!(
            target: RECOVERY,
            parent: span,
            smoothed_rtt = ?metrics.smoothed_rtt,
            latest_rtt = ?metrics.latest_rtt,
            rtt_variance = ?metrics.rtt_variance,
            min_rtt = ?metrics.min_rtt,
            congestion_window = metrics.congestion_window,
            bytes_in_flight = metrics.bytes_in_flight,
            pto_count = metrics.pto_count,
            "metrics"
        ),
        Record::CongestionStateUpdated(update) => debug!(
            target: RECOVERY,
            parent: span,
            old = update.old,
            new = update.new,
            trigger = update.trigger,
            "congestion state changed"
        ),
        Record::PacketLost(lost) => debug!(
            target: RECOVERY,
            parent: span,
            kind = names::kind(lost.kind),
            number = lost.packet_number,
            bytes = lost.len,
            trigger = names::loss_trigger(lost.trigger),
            is_mtu_probe = lost.is_mtu_probe,
            "packet lost"
        ),
        Record::SpuriousLoss(late) => debug!(
            target: RECOVERY,
            parent: span,
            kind = names::kind(late.kind),
            number = late.packet_number,
            "lost packet was acknowledged"
        ),
        Record::TimerExpired(expired) => debug!(
            target: RECOVERY,
            parent: span,
            timer = names::timer(expired.timer),
            kind = names::kind(expired.kind),
            "timer expired"
        ),
        Record::SendLimited(limited) => trace!(
            target: RECOVERY,
            parent: span,
            by = names::limit(limited.by),
            "sending limited"
        ),
        _ => {}
    }
}
