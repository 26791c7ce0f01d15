//! Measurement of one attack.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use courser_adversary::{Attack, Attacker, Plan, Sockets, Victim, client_tls};

use super::arguments::Arguments;
use super::honest::Service;
use super::process::{PANIC, Process, Site};
use super::stage::Stage;

/// The result of one attack.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) plan: &'static str,
    pub(super) labels: String,
    /// Hostile datagrams sent, and those that the kernel dropped at the victim's socket.
    pub(super) sent: u64,
    pub(super) dropped: u64,
    /// Memory in KiB before the attack, at its peak, and afterwards.
    pub(super) rss: [u64; 3],
    /// The victim's CPU time in microseconds per hostile datagram that reached it.
    pub(super) hostile_us: Option<f64>,
    /// The server's CPU time in microseconds per datagram of honest clients.
    pub(super) honest_us: Option<f64>,
    /// Honest requests per second and their 99th percentile, without and with the attack.
    pub(super) alone: Option<Rate>,
    pub(super) beside: Option<Rate>,
    /// Error codes with which the victim closed connections.
    pub(super) closes: BTreeMap<String, u64>,
    /// The server ended, or a signal ended a client.
    pub(super) has_ended: bool,
    /// The lines of the victim's log that report panics.
    pub(super) panics: Vec<String>,
    /// Differences from the expected reaction of the victim.
    pub(super) differences: Vec<String>,
}

/// Requests per second, and the 99th percentile of their duration in seconds. The latter is infinite
/// if most rounds had no response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub(super) per_second: f64,
    pub(super) p99: f64,
}

/// Rounds of one attack. Alternation distributes other load of the machine over both sides of the
/// comparison.
const ROUNDS: u32 = 3;

/// The pause in which freed memory is returned to the system before it is measured.
const REST: Duration = Duration::from_secs(1);

/// Runs and measures one attack.
pub(super) fn measure(
    plan: &'static Plan,
    arguments: &Arguments,
    site: &Site,
) -> Result<Row, String> {
    let log = Log(site.private().join("victim.log"));
    let mut row = match plan.victim {
        Victim::Client | Victim::SessionClient => attack_client(plan, arguments, &log)?,
        _ => attack_server(plan, arguments, site.path(), &log)?,
    };
    row.panics = log.panics();
    Ok(row)
}

/// The file with standard error of victims, which is removed on drop.
struct Log(PathBuf);

impl Log {
    fn panics(&self) -> Vec<String> {
        let text = std::fs::read(&self.0).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines = text.lines().filter(|line| line.contains(PANIC));
        lines.map(str::to_owned).collect()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // There is none if no victim started.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Sums over all rounds on one server.
#[derive(Default)]
struct Sums {
    services: Vec<Service>,
    cpu: Duration,
}

impl Sums {
    fn rate(&self, round: Duration) -> Rate {
        let count = self.services.len().max(1);
        let total: u64 = self.services.iter().map(|it| it.succeeded).sum();
        // The median over the rounds ignores a disturbed round.
        let time = |service: &Service| match service.succeeded {
            0 => f64::INFINITY,
            _ => service.p99,
        };
        let mut times: Vec<f64> = self.services.iter().map(time).collect();
        times.sort_by(f64::total_cmp);
        Rate {
            per_second: total as f64 / (round.as_secs_f64() * count as f64),
            p99: times.get(count / 2).copied().unwrap_or(0.0),
        }
    }

    fn datagrams(&self) -> u64 {
        self.services.iter().map(|it| it.datagrams).sum()
    }
}

/// Attacks a server. A second server is never attacked and serves the rounds without the attack.
fn attack_server(
    plan: &'static Plan,
    arguments: &Arguments,
    site: &Path,
    log: &Log,
) -> Result<Row, String> {
    let stage = Stage::new(&arguments.courser, site, plan)?;
    let mut reference = stage.start(None)?;
    let mut victim = stage.start(Some(&log.0))?;
    let (reference_address, address) = (reference.address(), victim.address());
    let round = arguments.time / ROUNDS;
    for address in [reference_address, address] {
        stage.honest(address, WARM_UP)?.finish();
    }
    let before = victim.process().rss();
    let mut attacker = attacker(address);
    if let Some(hosts) = stage.hosts() {
        attacker.set_goals(hosts.goals);
    }
    let mut attack = (plan.make)();
    attack.start(&mut attacker);
    let mut sockets = Sockets::bind(local()).map_err(|error| error.to_string())?;
    let (mut alone, mut beside) = (Sums::default(), Sums::default());
    for _ in 0..ROUNDS {
        let cpu = reference.process().cpu();
        alone
            .services
            .push(stage.honest(reference_address, round)?.finish());
        alone.cpu += reference.process().cpu().saturating_sub(cpu);

        let cpu = victim.process().cpu();
        let load = stage.honest(address, round)?;
        sockets
            .run(&mut attacker, &mut *attack, round)
            .map_err(|error| format!("{}: {error}", plan.name))?;
        beside.services.push(load.finish());
        beside.cpu += victim.process().cpu().saturating_sub(cpu);
    }
    let dropped = victim.kernel_drops();
    drop(sockets);
    std::thread::sleep(REST);
    let rss = [before, victim.process().peak_rss(), victim.process().rss()];
    let is_running = victim.process().is_running();
    let mut row = Row {
        rss,
        dropped,
        has_ended: !is_running,
        ..row_of(plan, &attacker)
    };
    if is_running {
        row.differences.extend(victim.finish());
    } else {
        row.closes.insert("the server ended".to_owned(), 1);
    }
    row.differences.extend(bounds(&stage, &row, arguments.time));
    row.add_rates(&alone, &beside, round);
    Ok(row)
}

/// Returns a row with what the attacker has seen, and nothing else.
fn row_of(plan: &'static Plan, attacker: &Attacker) -> Row {
    let counts = attacker.counts();
    Row {
        plan: plan.name,
        labels: plan.labels.join(","),
        sent: counts.sent,
        dropped: 0,
        rss: [0; 3],
        hostile_us: None,
        honest_us: None,
        alone: None,
        beside: None,
        closes: counts.closes.clone(),
        has_ended: false,
        panics: Vec::new(),
        differences: plan.expect.differences(attacker),
    }
}

/// Returns the bounds that an attack on what lies above requests has exceeded.
fn bounds(stage: &Stage<'_>, row: &Row, time: Duration) -> Vec<String> {
    let mut lines = Vec::new();
    let growth = row.rss[1].saturating_sub(row.rss[0]) / 1024;
    if stage.is_above_requests() && growth > MAX_GROWTH {
        lines.push(format!(
            "the memory grew by {growth} MiB, allowed are {MAX_GROWTH}"
        ));
    }
    if let Some(hosts) = stage.hosts() {
        // Two connections with a tunnel each (limit K623), and a probe of a few packets.
        let most = 2 * (64 * 1024 + 1024 * (time.as_secs() + 2));
        let bytes = hosts.silent_bytes();
        if bytes > most {
            lines.push(format!(
                "{bytes} bytes went to a host that never answers, allowed are {most}"
            ));
        }
    }
    lines
}

/// The largest growth of a victim in MiB while sessions or tunnels are attacked. The windows of a few connections are
/// part of it.
const MAX_GROWTH: u64 = 96;

impl Row {
    fn add_rates(&mut self, alone: &Sums, beside: &Sums, round: Duration) {
        let honest = per_datagram(alone.cpu, alone.datagrams());
        let part = Duration::from_secs_f64(honest.unwrap_or(0.0) * beside.datagrams() as f64 / 1e6);
        let arrived = self.sent.saturating_sub(self.dropped);
        self.hostile_us = per_datagram(beside.cpu.saturating_sub(part), arrived);
        self.honest_us = honest;
        self.alone = Some(alone.rate(round));
        self.beside = Some(beside.rate(round));
    }
}

/// The duration of honest load before the measurement.
const WARM_UP: Duration = Duration::from_millis(500);

/// Runs a hostile server, with `courser get` as its repeated victim.
fn attack_client(plan: &'static Plan, arguments: &Arguments, log: &Log) -> Result<Row, String> {
    let mut sockets = Sockets::bind(local()).map_err(|error| error.to_string())?;
    let address = sockets.local_addr().map_err(|error| error.to_string())?;
    let mut attacker = attacker(address);
    let mut attack = (plan.make)();
    attack.start(&mut attacker);
    let mut rss = [u64::MAX, 0, 0];
    let mut cpu = Duration::ZERO;
    let mut has_ended = false;
    let end = Instant::now() + arguments.time;
    while Instant::now() < end {
        let is_early = plan.needs_early_data();
        let mut victim = match plan.victim {
            Victim::SessionClient => Process::session(&arguments.courser, address, &log.0)?,
            _ => Process::get(&arguments.courser, address, is_early, &log.0)?,
        };
        let mut last = Duration::ZERO;
        while victim.is_running() && Instant::now() < end {
            sockets
                .run(&mut attacker, &mut *attack as &mut dyn Attack, SAMPLE)
                .map_err(|error| format!("{}: {error}", plan.name))?;
            let now = victim.rss();
            if now > 0 {
                rss = [rss[0].min(now), rss[1].max(victim.peak_rss()), now];
            }
            last = last.max(victim.cpu());
        }
        cpu += last;
        has_ended |= victim.is_ended_by_signal();
    }
    let sent = attacker.counts().sent;
    Ok(Row {
        rss,
        hostile_us: per_datagram(cpu, sent),
        has_ended,
        ..row_of(plan, &attacker)
    })
}

/// The interval at which the memory of a client is sampled.
const SAMPLE: Duration = Duration::from_millis(20);

fn attacker(target: SocketAddr) -> Attacker {
    Attacker::new(target, client_tls(b"h3"), [7; 32])
}

fn local() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// Returns microseconds per datagram, or `None` if there are too few for the resolution of the CPU
/// clock.
fn per_datagram(cpu: Duration, datagrams: u64) -> Option<f64> {
    (datagrams >= FEW).then(|| cpu.as_secs_f64() * 1e6 / datagrams as f64)
}

const FEW: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_of_a_log_are_found_and_the_log_is_removed() {
        let name = format!("courser-attack-log-{}", std::process::id());
        let log = Log(std::env::temp_dir().join(name));
        assert!(log.panics().is_empty(), "no file");
        let text = b"starting\n\xff\nthread 'main' panicked at a.rs:1:2:\nwhy\n";
        std::fs::write(&log.0, text).expect("the file is written");
        assert_eq!(log.panics(), ["thread 'main' panicked at a.rs:1:2:"]);
        let path = log.0.clone();
        drop(log);
        assert!(!path.exists());
    }
}
