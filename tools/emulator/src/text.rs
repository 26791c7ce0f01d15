//! Formats reports as text.

use std::fmt;

use courser_units::{rate, seconds, size, three_digits};

use crate::report::{Amplification, Direction, Report};

/// Writes several lines, without a line feed after the last one.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "link        {} (seed {})", self.link, self.seed)?;
        write_direction(f, &self.to_server, "to server", self.seconds)?;
        write_direction(f, &self.to_clients, "to clients", self.seconds)?;
        writeln!(
            f,
            "clients     {}, {} rebindings, {} late replies dropped, {} datagrams refused",
            self.clients, self.rebindings, self.late_replies, self.refused_datagrams
        )?;
        writeln!(f, "{}", amplified(&self.amplification))?;
        write!(
            f,
            "proxy       {} CPU ({} busy) in {}, {} buffers dropped by the kernel, {} datagrams not \
             sent",
            seconds(self.cpu_seconds),
            seconds(self.busy_cpu_seconds),
            seconds(self.seconds),
            self.kernel_drops,
            self.to_server.unsent + self.to_clients.unsent,
        )
    }
}

fn amplified(amplification: &Amplification) -> String {
    let number = |ratio: Option<f64>| ratio.map_or("-".to_owned(), three_digits);
    format!(
        "amplified   {} bytes to clients per byte from them; at worst {} before {} were received",
        number(amplification.total),
        number(amplification.worst),
        size(amplification.watched_bytes),
    )
}

fn write_direction(
    f: &mut fmt::Formatter<'_>,
    direction: &Direction,
    name: &str,
    elapsed: f64,
) -> fmt::Result {
    let stats = &direction.link;
    writeln!(
        f,
        "{name:<11} {} in ({}), {} out ({}), {}",
        stats.packets_in,
        size(stats.bytes_in),
        stats.packets_out,
        size(stats.bytes_out),
        rate(stats.bytes_out, elapsed),
    )?;
    let counted = [drops(direction), changes(direction)].concat();
    if !counted.is_empty() {
        writeln!(f, "            {}", counted.join(", "))?;
    }
    writeln!(
        f,
        "            queue delay {} median, {} p99; sent {} late, {} p99",
        seconds(direction.queue_delay.median_seconds),
        seconds(direction.queue_delay.p99_seconds),
        seconds(direction.lateness.median_seconds),
        seconds(direction.lateness.p99_seconds),
    )
}

fn drops(direction: &Direction) -> Vec<String> {
    let dropped = &direction.link.dropped;
    let reasons = [
        ("lost", dropped.loss),
        ("lost in bursts", dropped.gilbert),
        ("dropped by number", dropped.listed + dropped.every),
        ("in a blackhole", dropped.blackhole),
        ("above the MTU", dropped.mtu),
        ("policed", dropped.policer),
        ("at a full queue", dropped.queue_full),
        ("by queue management", dropped.aqm),
        ("beyond the limit of bytes", dropped.overflow),
    ];
    describe_nonzero(&reasons)
}

fn changes(direction: &Direction) -> Vec<String> {
    let stats = &direction.link;
    describe_nonzero(&[
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

/// Returns the counts that are not zero, with their names.
fn describe_nonzero(counts: &[(&str, u64)]) -> Vec<String> {
    let nonzero = counts.iter().filter(|(_, count)| *count > 0);
    nonzero
        .map(|(name, count)| format!("{count} {name}"))
        .collect()
}
