//! Encodes events of loss recovery and congestion control: quic-events §7.

use courser_telemetry::{
    CongestionStateUpdated, EcnStateUpdated, MetricsUpdated, PacketLost, RecoveryParametersSet,
    SendLimit, SpuriousLoss, TimerExpired,
};

use super::events::Events;
use super::transport::packet_header;
use crate::schema::{self, Dialect};

pub(super) fn parameters_set(events: &mut Events<'_>, set: &RecoveryParametersSet) {
    events.event("quic:recovery_parameters_set", |data| {
        data.uint("reordering_threshold", set.reordering_threshold)
            .float("time_threshold", set.time_threshold)
            .uint(
                "timer_granularity",
                u64::try_from(set.timer_granularity.as_millis()).unwrap_or(0),
            )
            .millis("initial_rtt", set.initial_rtt)
            .uint("max_datagram_size", u64::from(set.max_datagram_size))
            .uint("initial_congestion_window", set.initial_congestion_window)
            // The draft allows implementations to add fields here.
            .text("congestion_controller", set.controller);
    });
}

/// Writes the metrics that differ from `before` (quic-events §7.2).
pub(super) fn metrics_updated(
    events: &mut Events<'_>,
    now: &MetricsUpdated,
    before: Option<&MetricsUpdated>,
) {
    if before == Some(now) {
        return;
    }
    events.event("quic:recovery_metrics_updated", |data| {
        macro_rules! changed {
            ($field:ident) => {
                before.is_none_or(|before| before.$field != now.$field)
            };
        }
        macro_rules! millis {
            ($($field:ident),*) => {$(
                if changed!($field) {
                    data.millis(stringify!($field), now.$field);
                }
            )*};
        }
        macro_rules! uint {
            ($($field:ident),*) => {$(
                if changed!($field) {
                    data.uint(stringify!($field), u64::from(now.$field));
                }
            )*};
        }
        millis!(min_rtt, smoothed_rtt, latest_rtt, rtt_variance);
        uint!(pto_count, congestion_window, bytes_in_flight);
        if changed!(ssthresh)
            && let Some(ssthresh) = now.ssthresh
        {
            data.uint("ssthresh", ssthresh);
        }
        uint!(packets_in_flight);
        if changed!(pacing_rate)
            && let Some(rate) = now.pacing_rate
        {
            let bits = rate.as_bytes_per_second().saturating_mul(8);
            data.uint("pacing_rate", bits);
        }
    });
}

pub(super) fn congestion_state_updated(
    events: &mut Events<'_>,
    updated: &CongestionStateUpdated,
    dialect: Dialect,
) {
    events.event("quic:congestion_state_updated", |data| {
        if let Some(old) = updated.old {
            data.text("old", old);
        }
        data.text("new", updated.new);
        let trigger = updated
            .trigger
            .and_then(|it| dialect.congestion_trigger(it));
        if let Some(trigger) = trigger {
            data.text("trigger", trigger);
        }
    });
}

pub(super) fn packet_lost(events: &mut Events<'_>, lost: &PacketLost) {
    events.event("quic:packet_lost", |data| {
        packet_header(data, lost.kind, lost.packet_number);
        // The draft does not define this field, but allows additional ones. Without it, a reader
        // would have to remember every packet_sent to count the bytes lost.
        data.object("raw", |raw| {
            raw.size("length", lost.len);
        });
        if lost.is_mtu_probe {
            data.boolean("is_mtu_probe_packet", true);
        }
        if let Some(trigger) = lost.trigger {
            data.constant("trigger", schema::loss_trigger(trigger));
        }
    });
}

pub(super) fn spurious_loss(events: &mut Events<'_>, loss: &SpuriousLoss) {
    events.event("courser:spurious_loss", |data| {
        packet_header(data, loss.kind, loss.packet_number);
    });
}

pub(super) fn timer_expired(events: &mut Events<'_>, expired: &TimerExpired) {
    events.event("quic:timer_updated", |data| {
        let space = schema::packet_number_space(expired.kind);
        data.constant("timer_type", schema::timer_type(expired.timer))
            .constant("packet_number_space", space)
            .constant("event_type", "expired");
    });
}

/// Writes the limit on sending, which holds until the next such event names another one.
pub(super) fn blocked_updated(events: &mut Events<'_>, limit: SendLimit) {
    events.event("quic:connection_data_blocked_updated", |data| {
        data.constant("new", "blocked")
            .constant("reason", schema::blocked_reason(limit));
    });
}

pub(super) fn ecn_state_updated(events: &mut Events<'_>, updated: &EcnStateUpdated) {
    events.event("quic:ecn_state_updated", |data| {
        data.constant("old", schema::ecn_state(updated.old))
            .constant("new", schema::ecn_state(updated.new));
    });
}
