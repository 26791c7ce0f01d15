//! The rate sample of the draft, `RS`.

use std::time::Duration;

use courser_base::{Rate, Time};

use super::app_limited::AppLimited;
use crate::congestion::sample::AckSample;

/// The values of `RS` that an acknowledgement gives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) now: Time,
    pub(super) newly_acked: u64,
    /// Bytes in flight when the acknowledgement arrived, those that it covers included.
    pub(super) inflight_before: u64,
    pub(super) rtt: Option<Duration>,
    /// Zero without a sample.
    pub(super) delivery_rate: Rate,
    pub(super) delivered: u64,
    pub(super) prior_delivered: Option<u64>,
    pub(super) is_app_limited: bool,
    pub(super) lost: u64,
    pub(super) tx_in_flight: u64,
    pub(super) has_ce: bool,
}

impl Sample {
    pub(super) fn new(ack: &AckSample<'_>, app_limited: &AppLimited) -> Self {
        let rate = ack.rate;
        Self {
            now: ack.now,
            newly_acked: ack.acked_bytes,
            inflight_before: ack.bytes_in_flight_before,
            rtt: ack.rtt_sample,
            delivery_rate: rate.map_or(Rate::default(), |rate| rate.rate),
            delivered: rate.map_or(0, |rate| rate.delivered),
            prior_delivered: rate.map(|rate| rate.prior_delivered),
            is_app_limited: rate
                .is_none_or(|rate| rate.is_app_limited || app_limited.covers(rate.prior_delivered)),
            lost: rate.map_or(0, |rate| rate.lost),
            tx_in_flight: rate.map_or(0, |rate| rate.tx_in_flight),
            has_ce: ack.ce_packets > 0,
        }
    }
}
