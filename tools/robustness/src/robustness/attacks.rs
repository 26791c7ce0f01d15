//! The effect of each attack at full speed from one core on honest clients.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use courser_adversary::{Attacker, Plan, Sockets, Victim, attacks, client_tls};
use serde_json::{Map, Value, json};

use super::figure::{Figure, Verdict};
use super::ledger::Ledger;
use super::machine;
use super::setup::Setup;
use super::storm::{median, seconds};
use crate::helper::Helper;
use crate::process::{PANIC, Serve, Server, command};

/// The largest permitted CPU time of a hostile datagram, relative to an honest one.
const CPU_AIM: f64 = 10.0;

/// The smallest permitted goodput of honest clients during an attack, relative to that without it.
const GOODPUT_AIM: f64 = 0.5;

/// Measures the selected attacks on servers.
pub(super) fn measure(setup: &Setup, ledger: &mut Ledger) -> Result<Vec<Figure>, String> {
    let is_wanted =
        |name: &str| setup.attacks.is_empty() || setup.attacks.iter().any(|it| it == name);
    let plans: Vec<&Plan> = attacks::ALL
        .iter()
        .filter(|plan| plan.victim == Victim::Server && is_wanted(plan.name))
        .collect();
    if plans.is_empty() {
        return Err("--attacks contains no attack on servers".to_owned());
    }
    let mut results = Vec::new();
    for plan in plans {
        let result = attack(setup, plan)?;
        eprintln!("  {}", result.line());
        ledger.add(plan.name, result.sent, result.dropped);
        ledger.panics += result.panics;
        results.push(result);
    }
    Ok(vec![cpu_figure(&results), goodput_figure(&results)])
}

fn cpu_figure(results: &[Attacked]) -> Figure {
    let factor = |it: &Attacked| it.hostile_us.unwrap_or(0.0) / it.honest_us.max(0.01);
    let worst = results
        .iter()
        .max_by(|a, b| factor(a).total_cmp(&factor(b)));
    let (name, factor_of_worst, us, honest) = worst.map_or(("none", 0.0, 0.0, 0.0), |it| {
        (
            it.plan,
            factor(it),
            it.hostile_us.unwrap_or(0.0),
            it.honest_us,
        )
    });
    Figure {
        id: "attack-cpu".to_owned(),
        title: "CPU of the server per hostile datagram, worst attack".to_owned(),
        aim: format!("<= {CPU_AIM:.0} times an honest one, and bounded"),
        measured: format!(
            "{factor_of_worst:.1} times ({name}: {us:.1} us, honest {honest:.1} us); one core at most"
        ),
        verdict: Verdict::all(&[factor_of_worst <= CPU_AIM]),
        method: format!(
            "{} attacks, attacker on one core, server on another; honest: 400 requests per second on \
             4 connections",
            results.len()
        ),
        cpu: [results.iter().map(|it| it.server_cpu).sum(), 0.0],
        detail: json!({}),
    }
}

fn goodput_figure(results: &[Attacked]) -> Figure {
    let share = |it: &Attacked| it.beside / it.alone.max(1.0);
    let worst = results.iter().min_by(|a, b| share(a).total_cmp(&share(b)));
    let (name, worst_share) = worst.map_or(("none", 0.0), |it| (it.plan, share(it)));
    let refused: u64 = results.iter().map(Attacked::refused).sum();
    let slowest = results
        .iter()
        .max_by(|a, b| a.p99_beside.total_cmp(&b.p99_beside));
    let slowest = slowest.map_or(String::new(), |it| {
        format!("{:.1} ms beside {}", it.p99_beside * 1e3, it.plan)
    });
    let below: Vec<&str> = results
        .iter()
        .filter(|it| share(it) < GOODPUT_AIM || it.refused() > 0)
        .map(|it| it.plan)
        .collect();
    let below = match below.as_slice() {
        [] => String::new(),
        names => format!("; missed beside {}", names.join(", ")),
    };
    Figure {
        id: "attack-goodput".to_owned(),
        title: "honest clients beside each attack at full speed from one core".to_owned(),
        aim: format!(
            ">= {:.0} % of the goodput of the other core, no client refused",
            GOODPUT_AIM * 100.0
        ),
        measured: format!(
            "worst {:.0} % ({name}); p99 at 400 requests per second at worst {slowest}; {refused} \
             refused or failed{below}",
            worst_share * 100.0
        ),
        verdict: Verdict::all(&[worst_share >= GOODPUT_AIM, refused == 0]),
        method:
            "server and honest clients share one core, the attacker has the other; closed loop of \
                 32 requests on 4 connections; attackers have an address of their own"
                .to_owned(),
        cpu: [
            results.iter().map(|it| it.server_cpu).sum(),
            results.iter().map(|it| it.client_cpu).sum(),
        ],
        detail: json!(results.iter().map(Attacked::json).collect::<Vec<_>>()),
    }
}

/// The result of one attack.
struct Attacked {
    plan: &'static str,
    labels: String,
    sent: u64,
    dropped: u64,
    /// CPU time per hostile datagram in microseconds. `None` if there are too few for the resolution
    /// of the CPU clock.
    hostile_us: Option<f64>,
    honest_us: f64,
    /// Requests per second of a closed loop, without and with the attack.
    alone: f64,
    beside: f64,
    p99_alone: f64,
    p99_beside: f64,
    /// Failed requests and connections, by reason.
    failures: Map<String, Value>,
    /// Clients that connected during the attack, and how many of them were served.
    arrivals: [u64; 2],
    arrival_p99: f64,
    rss: [u64; 3],
    server_cpu: f64,
    client_cpu: f64,
    panics: u64,
    closes: Value,
}

impl Attacked {
    fn refused(&self) -> u64 {
        self.failures.values().filter_map(Value::as_u64).sum()
    }

    fn line(&self) -> String {
        format!(
            "{}: {} sent ({} dropped), {} us hostile, {:.1} us honest, {:.0} of {:.0} requests/s, p99 {:.1} \
             ms, {} of {} arrivals in {:.1} ms, failures {}, MiB {:?}",
            self.plan,
            self.sent,
            self.dropped,
            self.hostile_us
                .map_or("-".to_owned(), |us| format!("{us:.1}")),
            self.honest_us,
            self.beside,
            self.alone,
            self.p99_beside * 1e3,
            self.arrivals[1],
            self.arrivals[0],
            self.arrival_p99 * 1e3,
            Value::from(self.failures.clone()),
            self.rss.map(|kib| kib >> 10),
        )
    }

    fn json(&self) -> Value {
        json!({
            "attack": self.plan,
            "labels": self.labels,
            "sent": self.sent,
            "droppedByKernel": self.dropped,
            "hostileUs": self.hostile_us,
            "honestUs": self.honest_us,
            "requestsPerSecond": { "alone": self.alone, "beside": self.beside },
            "p99Seconds": { "alone": self.p99_alone, "beside": self.p99_beside },
            "arrivals": { "started": self.arrivals[0], "served": self.arrivals[1], "p99": self.arrival_p99 },
            "failures": self.failures,
            "rssKib": { "before": self.rss[0], "peak": self.rss[1], "after": self.rss[2] },
            "closes": self.closes,
        })
    }
}

/// Rounds of one attack. Alternation distributes other load of the machine over both sides of the
/// comparison.
const ROUNDS: u32 = 3;

/// Sums over the rounds with or without the attack.
#[derive(Default)]
struct Side {
    /// Requests per second of each closed loop.
    goodput: Vec<f64>,
    /// 99th percentiles at the fixed rate. Infinite if there was no response.
    p99: Vec<f64>,
    /// CPU time of the server at the fixed rate.
    cpu: Duration,
    /// Datagrams of honest clients at the fixed rate.
    datagrams: f64,
    /// Hostile datagrams that reached the server at the fixed rate.
    hostile: u64,
    failures: Map<String, Value>,
    client_cpu: f64,
    arrivals: [u64; 2],
    arrival_p99: Vec<f64>,
}

impl Side {
    /// Adds `count` failures with a reason.
    fn fail(&mut self, reason: &str, count: u64) {
        if count > 0 {
            let before = self.failures.get(reason).and_then(Value::as_u64);
            let sum = before.unwrap_or(0) + count;
            self.failures.insert(reason.to_owned(), json!(sum));
        }
    }

    /// Returns the CPU time in microseconds per datagram of honest clients.
    fn honest_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.datagrams.max(1.0)
    }
}

pub(super) struct RunningAttack {
    plan: &'static Plan,
    sockets: Sockets,
    attacker: Attacker,
    attack: Box<dyn courser_adversary::Attack>,
}

impl RunningAttack {
    pub(super) fn new(plan: &'static Plan, server: &Server) -> Result<Self, String> {
        let mut attacker = Attacker::new(server.address, client_tls(b"h3"), [7; 32]);
        let mut attack = (plan.make)();
        attack.start(&mut attacker);
        // Its address belongs to a network without honest clients.
        let sockets = Sockets::bind(([127, 66, 6, 6], 0).into());
        Ok(Self {
            plan,
            sockets: sockets.map_err(|error| error.to_string())?,
            attacker,
            attack,
        })
    }

    pub(super) fn run(&mut self, time: Duration) -> Result<(), String> {
        self.sockets
            .run(&mut self.attacker, &mut *self.attack, time)
            .map_err(|error| format!("{}: {error}", self.plan.name))
    }

    pub(super) fn sent(&self) -> u64 {
        self.attacker.counts().sent
    }
}

fn attack(setup: &Setup, plan: &'static Plan) -> Result<Attacked, String> {
    let log = setup.site.private().join(LOG);
    // Only panics during this attack count.
    let _ = std::fs::remove_file(&log);
    let serve = Serve {
        core: Some(setup.server_core),
        log: Some(log.clone()),
        ..Serve::folder(&setup.courser, setup.site())
    };
    let (reference, mut victim) = (serve.start()?, serve.start()?);
    let round = setup.attack_time / (2 * ROUNDS);
    for server in [&reference, &victim] {
        let warm_up = Load::start(setup, server, None, Duration::from_millis(500))?;
        warm_up.finish(server, &mut Side::default());
    }
    let before = victim.process.rss();
    let mut offense = RunningAttack::new(plan, &victim)?;
    let (mut alone, mut beside) = (Side::default(), Side::default());
    machine::pin(&[setup.client_core])?;
    for _ in 0..ROUNDS {
        closed_loop(setup, &reference, round, &mut alone, None)?;
        fixed_rate(setup, &reference, round, &mut alone, None)?;
        closed_loop(setup, &victim, round, &mut beside, Some(&mut offense))?;
        fixed_rate(setup, &victim, round, &mut beside, Some(&mut offense))?;
    }
    machine::pin(&[setup.server_core, setup.client_core])?;
    let dropped = victim.kernel_drops();
    let (sent, closes) = (offense.sent(), json!(offense.attacker.counts().closes));
    drop(offense);
    std::thread::sleep(REST);
    if !victim.process.is_running() {
        beside.fail("the server ended", 1);
    }
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let _ = std::fs::remove_file(&log);
    let honest_us = alone.honest_us();
    let honest_part = Duration::from_secs_f64(honest_us * beside.datagrams / 1e6);
    let hostile_cpu = beside.cpu.saturating_sub(honest_part).as_secs_f64();
    Ok(Attacked {
        plan: plan.name,
        labels: plan.labels.join(","),
        sent,
        dropped,
        hostile_us: (beside.hostile >= FEW).then(|| hostile_cpu * 1e6 / beside.hostile as f64),
        honest_us,
        alone: median(alone.goodput),
        beside: median(beside.goodput),
        p99_alone: median(alone.p99),
        p99_beside: median(beside.p99),
        arrivals: beside.arrivals,
        arrival_p99: median(beside.arrival_p99),
        failures: beside.failures,
        rss: [before, victim.process.peak_rss(), victim.process.rss()],
        server_cpu: victim.process.cpu().as_secs_f64(),
        client_cpu: alone.client_cpu + beside.client_cpu,
        panics: text.matches(PANIC).count() as u64,
        closes,
    })
}

/// The file with standard error of the servers.
const LOG: &str = "attack.log";

/// The pause in which freed memory is returned to the system before it is measured.
const REST: Duration = Duration::from_secs(1);

/// The number of datagrams below which the resolution of the CPU clock is too low.
const FEW: u64 = 1000;

/// Runs a closed loop of requests, and clients that connect at an interval.
fn closed_loop(
    setup: &Setup,
    server: &Server,
    time: Duration,
    side: &mut Side,
    offense: Option<&mut RunningAttack>,
) -> Result<(), String> {
    let load = Load::start(setup, server, None, time)?;
    let count = time.as_millis() / ARRIVAL.as_millis();
    let arrivals = Helper::clients(
        Some(setup.server_core),
        "arrivals",
        &[
            ("server", server.address.to_string()),
            ("count", count.to_string()),
            ("interval_us", ARRIVAL.as_micros().to_string()),
            ("limit_ms", PATIENCE.as_millis().to_string()),
        ],
    )?;
    wait(time, offense)?;
    let report = load.finish(server, side);
    let succeeded = seconds(&report["requests"]["succeeded"]);
    side.goodput.push(succeeded / time.as_secs_f64());
    let report = arrivals.finish()?;
    side.client_cpu += seconds(&report["cpuSeconds"]);
    for (reason, failed) in report["failures"].as_object().into_iter().flatten() {
        side.fail(&format!("arrival: {reason}"), failed.as_u64().unwrap_or(0));
    }
    side.arrivals[0] += u64::try_from(count).unwrap_or(u64::MAX);
    side.arrivals[1] += report["served"].as_u64().unwrap_or(0);
    side.arrival_p99.push(seconds(&report["answer"]["p99"]));
    Ok(())
}

/// The interval at which clients connect.
const ARRIVAL: Duration = Duration::from_millis(100);
/// The time after which such a client gives up.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs requests at a fixed rate far below the capacity of a core.
fn fixed_rate(
    setup: &Setup,
    server: &Server,
    time: Duration,
    side: &mut Side,
    offense: Option<&mut RunningAttack>,
) -> Result<(), String> {
    let cpu = server.process.cpu();
    let (sent, dropped) = (
        offense.as_ref().map_or(0, |it| it.sent()),
        server.kernel_drops(),
    );
    let load = Load::start(setup, server, Some(RATE), time)?;
    let sent_before = sent;
    let sent = match offense {
        None => {
            std::thread::sleep(time);
            0
        }
        Some(offense) => {
            offense.run(time)?;
            offense.sent() - sent_before
        }
    };
    let report = load.finish(server, side);
    side.hostile += sent.saturating_sub(server.kernel_drops() - dropped);
    side.cpu += server.process.cpu().saturating_sub(cpu);
    side.datagrams += seconds(&report["connections"]["datagramsSent"]);
    side.p99
        .push(match seconds(&report["requests"]["succeeded"]) {
            0.0 => f64::INFINITY,
            _ => seconds(&report["latency"]["p99"]),
        });
    Ok(())
}

/// Requests per second over all connections.
const RATE: &str = "400";

/// Runs the attack for `time`, or sleeps without one.
fn wait(time: Duration, offense: Option<&mut RunningAttack>) -> Result<(), String> {
    match offense {
        Some(offense) => offense.run(time),
        None => {
            std::thread::sleep(time);
            Ok(())
        }
    }
}

/// A running `courser load`.
struct Load(Child);

impl Load {
    fn start(
        setup: &Setup,
        server: &Server,
        rate: Option<&str>,
        time: Duration,
    ) -> Result<Self, String> {
        let mut load: Command = command(setup.courser.as_os_str(), Some(setup.server_core));
        load.args(["load", "--h3", "--insecure", "--json", "--no-tui"])
            .args(["--clients", "4", "--max-concurrent-streams", "8"])
            .args(["--connect-timeout", "2s", "--timeout", "5s"])
            .arg("--duration")
            .arg(format!("{}ms", time.as_millis()));
        if let Some(rate) = rate {
            load.args(["--qps", rate]);
        }
        load.arg(format!("https://{}/", server.address))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map(Self)
            .map_err(|error| format!("cannot start `courser load`: {error}"))
    }

    /// Waits for the report and records failures. Returns null if no client was served at all.
    fn finish(self, server: &Server, side: &mut Side) -> Value {
        let output = self.0.wait_with_output();
        let report: Value = output
            .ok()
            .and_then(|output| serde_json::from_slice(&output.stdout).ok())
            .unwrap_or_default();
        if report.is_null() {
            side.fail(&format!("no client of {} was served", server.address), 1);
            return report;
        }
        for name in ["refused", "lost"] {
            let count = report["connections"][name].as_u64().unwrap_or(0);
            side.fail(&format!("connections {name}"), count);
        }
        for (reason, failed) in report["errorDistribution"]
            .as_object()
            .into_iter()
            .flatten()
        {
            side.fail(reason, failed.as_u64().unwrap_or(0));
        }
        side.client_cpu += seconds(&report["cpu"]["seconds"]);
        report
    }
}
