//! The report for humans.

use courser_emulator::{Amplification, Direction, Report};
use courser_units::{rate, seconds, size, three_digits};

use crate::output::line;

/// Prints a report.
pub(super) fn print(report: &Report) {
    line(format!(
        "link        {} (seed {})",
        report.link, report.seed
    ));
    direction(&report.there, "to server", report.seconds);
    direction(&report.back, "to clients", report.seconds);
    let clients = format!(
        "clients     {}, {} rebindings, {} late replies dropped, {} datagrams refused",
        report.clients, report.rebindings, report.late_replies, report.refused_datagrams
    );
    line(clients);
    line(amplified(&report.amplification));
    line(format!(
        "proxy       {} CPU ({} busy) in {}, {} buffers dropped by the kernel, {} datagrams not sent",
        seconds(report.cpu_seconds),
        seconds(report.busy_cpu_seconds),
        seconds(report.seconds),
        report.kernel_drops,
        report.there.unsent + report.back.unsent,
    ));
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

fn direction(direction: &Direction, name: &str, elapsed: f64) {
    let stats = &direction.link;
    line(format!(
        "{name:<11} {} in ({}), {} out ({}), {}",
        stats.packets_in,
        size(stats.bytes_in),
        stats.packets_out,
        size(stats.bytes_out),
        rate(stats.bytes_out, elapsed),
    ));
    let counted = [drops(direction), changes(direction)].concat();
    if !counted.is_empty() {
        line(format!("            {}", counted.join(", ")));
    }
    line(format!(
        "            queue delay {} median, {} p99; sent {} late, {} p99",
        seconds(direction.queue_delay.median_seconds),
        seconds(direction.queue_delay.p99_seconds),
        seconds(direction.lateness.median_seconds),
        seconds(direction.lateness.p99_seconds),
    ));
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
        ("beyond --hold", dropped.overflow),
    ];
    named(&reasons)
}

fn changes(direction: &Direction) -> Vec<String> {
    let stats = &direction.link;
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

/// Returns the counts that are not zero, with their names.
fn named(counts: &[(&str, u64)]) -> Vec<String> {
    let happened = counts.iter().filter(|(_, count)| *count > 0);
    happened
        .map(|(name, count)| format!("{count} {name}"))
        .collect()
}
