//! What the proxy tells at the end.

use courser_measure::CpuClock;
use courser_sim::link::{DuplexSpec, Histogram, LinkStats};
use serde::Serialize;

use super::relay::{Relay, Way};
use crate::output::{line, ratio, seconds, size, three_digits, to_f64};

/// Everything that was counted.
#[derive(Serialize, Debug)]
pub(super) struct ProxyReport {
    event: &'static str,
    courser: &'static str,
    link: String,
    seed: u64,
    seconds: f64,
    cpu_seconds: f64,
    /// Without what was spent on waiting as exactly as can be.
    busy_cpu_seconds: f64,
    clients: u64,
    rebindings: u64,
    /// Replies to a port from before a rebinding.
    late_replies: u64,
    /// Datagrams of clients that were too many.
    refused_datagrams: u64,
    /// Buffers that the kernel dropped before we took them.
    kernel_drops: u64,
    /// Senders that could not be told that a packet was too large.
    icmp_failures: u64,
    amplification: Amplification,
    there: WayReport,
    back: WayReport,
}

/// Bytes towards clients for each byte from them.
#[derive(Serialize, Debug)]
struct Amplification {
    /// Over all, at the clients' end; `null` when clients sent nothing.
    total: Option<f64>,
    /// The worst for any client, as the server sees it, before `watched_bytes` had come from it.
    worst: Option<f64>,
    watched_bytes: u64,
}

#[derive(Serialize, Debug)]
struct WayReport {
    #[serde(flatten)]
    link: LinkStats,
    dropped_total: u64,
    unsent: u64,
    queue_delay: Delays,
    lateness: Delays,
}

#[derive(Serialize, Debug)]
struct Delays {
    median_seconds: f64,
    p99_seconds: f64,
    max_seconds: f64,
}

impl ProxyReport {
    pub(super) fn new(relay: &Relay, spec: &DuplexSpec, seed: u64, watched_bytes: u64) -> Self {
        let tally = &relay.clients.tally;
        let (there, back) = (WayReport::new(&relay.there), WayReport::new(&relay.back));
        let cpu_seconds = CpuClock::Thread.seconds();
        let worst = tally.worst_amplification.map(|worst| to_f64(worst) / 1e3);
        Self {
            event: "report",
            courser: env!("CARGO_PKG_VERSION"),
            link: spec.to_string(),
            seed,
            seconds: relay.elapsed().as_secs_f64(),
            cpu_seconds,
            busy_cpu_seconds: (cpu_seconds - relay.spun.as_secs_f64()).max(0.0),
            clients: tally.clients,
            rebindings: tally.rebindings,
            late_replies: relay.late_replies,
            refused_datagrams: tally.refused_datagrams,
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

    pub(super) fn print_text(&self) {
        line(format!("link        {} (seed {})", self.link, self.seed));
        self.there.print("to server", self.seconds);
        self.back.print("to clients", self.seconds);
        let clients = format!(
            "clients     {}, {} rebindings, {} late replies dropped, {} datagrams refused",
            self.clients, self.rebindings, self.late_replies, self.refused_datagrams
        );
        line(clients);
        line(self.amplification.text());
        line(format!(
            "proxy       {} CPU ({} busy) in {}, {} buffers dropped by the kernel, {} datagrams not sent",
            seconds(self.cpu_seconds),
            seconds(self.busy_cpu_seconds),
            seconds(self.seconds),
            self.kernel_drops,
            self.there.unsent + self.back.unsent,
        ));
    }
}

impl Amplification {
    fn text(&self) -> String {
        let number = |ratio: Option<f64>| ratio.map_or("-".to_owned(), three_digits);
        format!(
            "amplified   {} bytes to clients per byte from them; at worst {} before {} were received",
            number(self.total),
            number(self.worst),
            size(self.watched_bytes),
        )
    }
}

impl WayReport {
    fn new(way: &Way) -> Self {
        let link = way.link.stats();
        Self {
            link,
            dropped_total: link.dropped.total(),
            unsent: way.unsent,
            queue_delay: Delays::new(&way.link.queue_delays()),
            lateness: Delays::new(&way.lateness),
        }
    }

    fn print(&self, name: &str, elapsed: f64) {
        let stats = &self.link;
        line(format!(
            "{name:<11} {} in ({}), {} out ({}), {}",
            stats.packets_in,
            size(stats.bytes_in),
            stats.packets_out,
            size(stats.bytes_out),
            crate::output::rate(stats.bytes_out, elapsed),
        ));
        let counted = [self.drops(), self.changes()].concat();
        if !counted.is_empty() {
            line(format!("            {}", counted.join(", ")));
        }
        line(format!(
            "            queue delay {} median, {} p99; sent {} late, {} p99",
            seconds(self.queue_delay.median_seconds),
            seconds(self.queue_delay.p99_seconds),
            seconds(self.lateness.median_seconds),
            seconds(self.lateness.p99_seconds),
        ));
    }

    fn drops(&self) -> Vec<String> {
        let dropped = &self.link.dropped;
        let reasons = [
            ("lost", dropped.loss),
            ("lost in bursts", dropped.gilbert),
            ("dropped by number", dropped.listed + dropped.every),
            ("in a blackhole", dropped.blackhole),
            ("above the MTU", dropped.mtu),
            ("policed", dropped.policer),
            ("at a full queue", dropped.queue_full),
            ("by queue management", dropped.aqm),
            ("beyond --hold", dropped.overflow),
        ];
        named(&reasons)
    }

    fn changes(&self) -> Vec<String> {
        let stats = &self.link;
        named(&[
            ("marked CE", stats.marked),
            ("remarked", stats.remarked),
            ("corrupted", stats.corrupted),
            ("truncated", stats.truncated),
            ("extended", stats.extended),
            ("duplicated", stats.duplicated),
            ("reordered", stats.reordered),
            ("answered with ICMP Packet Too Big", stats.answered),
        ])
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

/// Those that happened.
fn named(counts: &[(&str, u64)]) -> Vec<String> {
    let happened = counts.iter().filter(|(_, count)| *count > 0);
    happened
        .map(|(name, count)| format!("{count} {name}"))
        .collect()
}
