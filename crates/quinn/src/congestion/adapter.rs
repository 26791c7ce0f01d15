//! Controllers of programs, for courser.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use courser_base::{Rate, Time};
use courser_recovery as recovery;

use super::{Controller, ControllerFactory, RttEstimator};

/// Returns a factory for courser that makes the controllers of a program's factory.
pub(crate) fn custom(
    factory: Arc<dyn ControllerFactory + Send + Sync>,
) -> Arc<dyn recovery::ControllerFactory> {
    Arc::new(Factory(factory))
}

struct Factory(Arc<dyn ControllerFactory + Send + Sync>);

impl recovery::ControllerFactory for Factory {
    fn make(&self, mtu: u16, _seed: u64) -> Box<dyn recovery::Controller> {
        Box::new(Adapter {
            controller: self.0.clone().build(Instant::now(), mtu),
            epoch: None,
        })
    }
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Factory")
    }
}

/// A controller of a program.
#[derive(Debug)]
struct Adapter {
    controller: Box<dyn Controller>,
    /// A time of courser, and the instant that it was reported at first.
    epoch: Option<(Time, Instant)>,
}

impl Adapter {
    /// Returns the instant of a time of courser. Times before the first one count as that.
    fn instant(&mut self, time: Time) -> Instant {
        let (start, instant) = *self.epoch.get_or_insert_with(|| (time, Instant::now()));
        match time >= start {
            true => instant + time.saturating_since(start),
            false => {
                let earlier = start.saturating_since(time);
                instant.checked_sub(earlier).unwrap_or(instant)
            }
        }
    }
}

impl recovery::Controller for Adapter {
    fn on_sent(&mut self, now: Time, bytes: u64, last_pn: u64, _bytes_in_flight: u64) {
        let now = self.instant(now);
        self.controller.on_sent(now, bytes, last_pn);
    }

    fn on_ack(&mut self, sample: &recovery::AckSample<'_>) {
        let now = self.instant(sample.now);
        let sent = self.instant(sample.largest_acked_sent);
        let rtt = RttEstimator {
            latest: sample.rtt.latest(),
            smoothed: sample.rtt.smoothed(),
            min: sample.rtt.min(),
        };
        let app_limited = sample.app_limited;
        self.controller
            .on_ack(now, sent, sample.acked_bytes, app_limited, &rtt);
        let largest = Some(sample.largest_acked);
        self.controller
            .on_end_acks(now, sample.bytes_in_flight, app_limited, largest);
    }

    fn on_congestion(&mut self, sample: &recovery::LossSample<'_>) {
        let now = self.instant(sample.now);
        let sent = self.instant(sample.largest_lost_sent);
        self.controller
            .on_congestion_event(now, sent, sample.persistent, sample.lost_bytes);
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.controller.on_mtu_update(mtu);
    }

    fn window(&self) -> u64 {
        self.controller.window()
    }

    fn ssthresh(&self) -> Option<u64> {
        self.controller.metrics().ssthresh
    }

    fn pacing_rate(&self, _rtt: &recovery::RttEstimator) -> Option<Rate> {
        None
    }

    fn in_slow_start(&self) -> bool {
        let metrics = self.controller.metrics();
        metrics
            .ssthresh
            .is_some_and(|threshold| metrics.congestion_window < threshold)
    }

    fn name(&self) -> &'static str {
        "custom"
    }
}
