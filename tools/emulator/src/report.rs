//! The figures of a run.

use courser_link::{DuplexSpec, Histogram, LinkStats};
use courser_measure::CpuClock;
use courser_units::{ratio, to_f64};
use serde::Serialize;

use crate::relay::{LinkDirection, Relay};

/// The counters of an emulator.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Report {
    /// The link in both directions, in the grammar of links.
    pub link: String,
    /// The seed of the link's random decisions.
    pub seed: u64,
    /// The time since the emulator was made.
    pub seconds: f64,
    /// CPU time of the emulator's thread.
    pub cpu_seconds: f64,
    /// CPU time without that of busy waiting.
    pub busy_cpu_seconds: f64,
    /// Clients seen.
    pub clients: u64,
    /// Changes of a client's port or address towards the server.
    pub rebindings: u64,
    /// Replies to a port from before a rebinding.
    pub late_replies: u64,
    /// Datagrams of clients beyond the limit.
    pub refused_datagrams: u64,
    /// Buffers that the kernel dropped before they were read.
    pub kernel_drops: u64,
    /// ICMP messages that could not be sent.
    pub icmp_failures: u64,
    /// Bytes towards clients for each byte from them.
    pub amplification: Amplification,
    /// The direction towards the server.
    pub there: Direction,
    /// The direction towards the clients.
    pub back: Direction,
}

/// Bytes towards clients for each byte from them.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct Amplification {
    /// The ratio over the whole run, at the clients' end; `None` when clients sent nothing.
    pub total: Option<f64>,
    /// The largest ratio of any client, as the server sees it, before more than `watched_bytes` had come
    /// from it. The first reply to a client counts always. `None` when the server sent nothing.
    pub worst: Option<f64>,
    /// The number of bytes of a client up to which its ratio is watched.
    pub watched_bytes: u64,
}

/// One direction of the link.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct Direction {
    /// The counters of the link.
    #[serde(flatten)]
    pub link: LinkStats,
    /// Datagrams that the link dropped, for any reason.
    pub dropped_total: u64,
    /// Datagrams that the system did not take, or for clients that were forgotten.
    pub unsent: u64,
    /// Time that datagrams waited in the queue of the link.
    pub queue_delay: Delays,
    /// The delay of datagrams behind the time that the link sets.
    pub lateness: Delays,
}

/// The distribution of a delay.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct Delays {
    /// The median.
    pub median_seconds: f64,
    /// The 99th percentile.
    pub p99_seconds: f64,
    /// The largest.
    pub max_seconds: f64,
}

impl Report {
    pub(crate) fn new(relay: &Relay, spec: &DuplexSpec, seed: u64, watched_bytes: u64) -> Self {
        let counts = &relay.clients.counts;
        let (there, back) = (Direction::new(&relay.there), Direction::new(&relay.back));
        let cpu_seconds = CpuClock::Thread.seconds();
        let worst = counts.worst_amplification.map(|worst| to_f64(worst) / 1e3);
        Self {
            link: spec.to_string(),
            seed,
            seconds: relay.elapsed().as_secs_f64(),
            cpu_seconds,
            busy_cpu_seconds: (cpu_seconds - relay.spun.as_secs_f64()).max(0.0),
            clients: counts.clients,
            rebindings: counts.rebindings,
            late_replies: relay.late_replies,
            refused_datagrams: counts.refused_datagrams,
            kernel_drops: relay.kernel_drops(),
            icmp_failures: relay.router.failures,
            amplification: Amplification {
                total: ratio(back.link.bytes_out, there.link.bytes_in),
                worst,
                watched_bytes,
            },
            there,
            back,
        }
    }
}

impl Direction {
    fn new(way: &LinkDirection) -> Self {
        let link = way.link.stats();
        Self {
            link,
            dropped_total: link.dropped.total(),
            unsent: way.unsent,
            queue_delay: Delays::new(&way.link.queue_delays()),
            lateness: Delays::new(&way.lateness),
        }
    }
}

impl Delays {
    fn new(histogram: &Histogram) -> Self {
        Self {
            median_seconds: histogram.median().as_secs_f64(),
            p99_seconds: histogram.quantile(990).as_secs_f64(),
            max_seconds: histogram.max().as_secs_f64(),
        }
    }
}
