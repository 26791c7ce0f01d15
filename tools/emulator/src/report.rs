//! The counters of a run, as written to JSON.

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
    /// The time since the emulator was created or the first client arrived, in seconds.
    pub seconds: f64,
    /// CPU time of the emulator's thread.
    pub cpu_seconds: f64,
    /// CPU time without busy waiting.
    pub busy_cpu_seconds: f64,
    /// Number of clients, including those that were forgotten.
    pub clients: u64,
    /// Changes of a client's port or address towards the server.
    pub rebindings: u64,
    /// Replies to a port from before a rebinding.
    pub late_replies: u64,
    /// Datagrams of clients beyond the limit.
    pub refused_datagrams: u64,
    /// Buffers of one or several datagrams that the kernel dropped before they were read.
    pub kernel_drops: u64,
    /// ICMP messages that could not be sent.
    pub icmp_failures: u64,
    /// Bytes towards clients per byte from them.
    pub amplification: Amplification,
    /// The direction towards the server.
    #[serde(rename = "there")]
    pub to_server: Direction,
    /// The direction towards the clients.
    #[serde(rename = "back")]
    pub to_clients: Direction,
}

/// Bytes towards clients per byte from them.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct Amplification {
    /// The ratio over the whole run at the clients' end; `None` if the clients sent no bytes.
    pub total: Option<f64>,
    /// The largest ratio of any client, as the server sees it, until more than `watched_bytes` have arrived
    /// from it. The first reply to a client always counts. `None` if the server sent no bytes.
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
    /// Datagrams that could not be sent, or whose clients were forgotten.
    pub unsent: u64,
    /// Time that datagrams waited in the queue of the link.
    pub queue_delay: Delays,
    /// The delay of datagrams after the time that the link sets.
    pub lateness: Delays,
}

/// The distribution of a delay.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct Delays {
    /// The 50th percentile in seconds.
    pub median_seconds: f64,
    /// The 99th percentile in seconds.
    pub p99_seconds: f64,
    /// The longest delay in seconds.
    pub max_seconds: f64,
}

impl Report {
    pub(crate) fn new(relay: &Relay, spec: &DuplexSpec, seed: u64, watched_bytes: u64) -> Self {
        let counts = &relay.clients.counts;
        let to_server = Direction::new(&relay.to_server);
        let to_clients = Direction::new(&relay.to_clients);
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
                total: ratio(to_clients.link.bytes_out, to_server.link.bytes_in),
                worst,
                watched_bytes,
            },
            to_server,
            to_clients,
        }
    }
}

impl Direction {
    fn new(direction: &LinkDirection) -> Self {
        let link = direction.link.stats();
        Self {
            link,
            dropped_total: link.dropped.total(),
            unsent: direction.unsent,
            queue_delay: Delays::new(&direction.link.queue_delays()),
            lateness: Delays::new(&direction.lateness),
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
