//! `courser-robustness soak`, a long run of servers with honest clients, network faults, restarts and
//! attacks.

mod arguments;
mod result;
mod samples;
mod servers;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use courser_adversary::{Attack, Attacker, Plan, Sockets, Victim, attacks, client_tls};
use courser_measure::kernel_drops_at;

use self::arguments::{Arguments, Command};
use self::result::Soaked;
use self::samples::Samples;
use self::servers::Servers;
use super::helper::Helper;
use super::robustness::figure::Figure;
use super::robustness::ledger::Ledger;

/// Runs the command that the arguments select.
pub(super) fn main(arguments: &[String]) -> Result<(), String> {
    let arguments = match arguments::parse(arguments)? {
        Command::Help => {
            println!("{}", arguments::USAGE);
            return Ok(());
        }
        Command::Run(arguments) => arguments,
    };
    let soaked = run(&arguments)?;
    let is_met = soaked.keep(&arguments.json)?;
    match is_met {
        true => Ok(()),
        false => Err("the soak misses its aim".to_owned()),
    }
}

/// Runs a soak as a row of `docs/ROBUSTNESS.md`. Adds its hostile datagrams to `ledger`.
pub(super) fn measure(
    courser: &Path,
    time: Duration,
    connections: u32,
    ledger: &mut Ledger,
) -> Result<Vec<Figure>, String> {
    let soaked = run(&Arguments {
        courser: courser.to_owned(),
        time,
        connections,
        ..Arguments::default()
    })?;
    if soaked.is_interrupted {
        return Err("interrupted".to_owned());
    }
    soaked.count(ledger);
    Ok(vec![soaked.figure()])
}

fn run(arguments: &Arguments) -> Result<Soaked, String> {
    let is_stopped = stop_flag();
    let began = Instant::now();
    let mut servers = Servers::start(&arguments.courser)?;
    let mut clients = Helper::clients(
        None,
        "soak",
        &[
            ("targets", servers.targets()),
            ("connections", arguments.connections.to_string()),
            ("time_ms", arguments.time.as_millis().to_string()),
            ("pause_ms", arguments.pause.as_millis().to_string()),
            ("seed", arguments.seed.to_string()),
        ],
    )?;
    let plan = Schedule::new(arguments.time);
    let mut samples = Samples::default();
    let mut rotation = AttackRotation::default();
    while began.elapsed() < arguments.time && clients.process.is_running() {
        if is_stopped.load(Relaxed) {
            break;
        }
        let now = began.elapsed();
        samples.take(now, servers.rss());
        servers.keep_restarting(now, plan.restart_every)?;
        let step = Duration::from_secs(1);
        match plan.has_attacks(now) {
            true => rotation.step(&servers, step)?,
            false => {
                rotation.pause();
                std::thread::sleep(step);
            }
        }
    }
    if began.elapsed() < arguments.time {
        // The signal may end the clients before this process handles it.
        std::thread::sleep(Duration::from_millis(200));
    }
    let interrupted = is_stopped.load(Relaxed);
    let report = match interrupted {
        true => serde_json::Value::Null,
        false => clients.finish()?,
    };
    rotation.pause();
    Ok(Soaked {
        // Excludes the duration of the last requests.
        time: began.elapsed().min(arguments.time),
        connections: arguments.connections,
        is_interrupted: interrupted,
        clients: report,
        drift: samples.drift(plan.settled, plan.window),
        samples: samples.json(),
        hostile: rotation.sent,
        servers: servers.finish(),
    })
}

/// Returns a flag that becomes true with the first Ctrl-C, so that folders are removed and the report
/// is written. Child processes end with this one in any case.
fn stop_flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let is_stopped = Arc::clone(&flag);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        if let Ok(runtime) = runtime
            && runtime.block_on(tokio::signal::ctrl_c()).is_ok()
        {
            is_stopped.store(true, Relaxed);
        }
    });
    flag
}

/// The schedule of a run.
struct Schedule {
    /// The time at which memory counts as settled. The first window starts here.
    settled: Duration,
    /// The length of the two windows that are compared. The second one is at the end.
    window: Duration,
    /// The time without attacks before each window, in which state of attackers expires.
    calm: Duration,
    time: Duration,
    restart_every: Duration,
}

impl Schedule {
    /// Compares one minute after the first five with the last minute. Both are shorter for runs of
    /// less than fifteen minutes.
    fn new(time: Duration) -> Self {
        Self {
            settled: Duration::from_secs(300).min(time / 3),
            window: Duration::from_secs(60).min(time / 6),
            calm: Duration::from_secs(45).min(time / 10),
            time,
            restart_every: Duration::from_secs(180).min(time / 3),
        }
    }

    fn has_attacks(&self, now: Duration) -> bool {
        let until_first = self.settled.saturating_sub(self.calm);
        let first = self.settled + self.window;
        let last = self.time.saturating_sub(self.window + self.calm);
        now < until_first || (now >= first && now < last)
    }
}

/// All attacks in turn, each on another server.
#[derive(Default)]
struct AttackRotation {
    next: usize,
    current: Option<RunningAttack>,
    /// By attack: datagrams sent, and datagrams that the kernel dropped.
    sent: Vec<(&'static str, u64, u64)>,
}

struct RunningAttack {
    plan: &'static Plan,
    sockets: Sockets,
    attacker: Attacker,
    attack: Box<dyn Attack>,
    left: Duration,
    victim: SocketAddr,
    /// Datagrams that the kernel had dropped at the victim before the attack.
    dropped: u64,
}

/// The duration of an attack.
const ATTACK_TIME: Duration = Duration::from_secs(5);
/// The pause after an attack.
const BREAK: Duration = Duration::from_secs(2);

impl AttackRotation {
    /// Continues the current attack, or pauses and begins the next one.
    fn step(&mut self, servers: &Servers, step: Duration) -> Result<(), String> {
        let running = match &mut self.current {
            Some(running) if !running.left.is_zero() => running,
            _ => {
                self.pause();
                std::thread::sleep(BREAK);
                self.begin(servers)?
            }
        };
        running.left = running.left.saturating_sub(step);
        running
            .sockets
            .run(&mut running.attacker, &mut *running.attack, step)
            .map_err(|error| format!("{}: {error}", running.plan.name))
    }

    /// Ends the current attack.
    fn pause(&mut self) {
        if let Some(running) = self.current.take() {
            let sent = running.attacker.counts().sent;
            let dropped = kernel_drops_at(running.victim.port()).saturating_sub(running.dropped);
            self.sent.push((running.plan.name, sent, dropped.min(sent)));
        }
    }

    fn begin(&mut self, servers: &Servers) -> Result<&mut RunningAttack, String> {
        let plans: Vec<&Plan> = attacks::ALL
            .iter()
            .filter(|plan| plan.victim == Victim::Server)
            .collect();
        let (round, index) = (self.next / plans.len(), self.next % plans.len());
        let plan = plans[index];
        // The same attack meets another server in the next round.
        let victim = servers.address(round + self.next);
        self.next += 1;
        let mut attacker = Attacker::new(victim, client_tls(b"h3"), [7; 32]);
        let mut attack = (plan.make)();
        attack.start(&mut attacker);
        let sockets =
            Sockets::bind(([127, 66, 6, 6], 0).into()).map_err(|error| error.to_string())?;
        Ok(self.current.insert(RunningAttack {
            plan,
            sockets,
            attacker,
            attack,
            left: ATTACK_TIME,
            victim,
            dropped: kernel_drops_at(victim.port()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attacks_pause_during_both_windows() {
        let hour = Schedule::new(Duration::from_secs(3600));
        let at = |seconds| hour.has_attacks(Duration::from_secs(seconds));
        assert!(at(0) && at(254) && !at(255) && !at(359) && at(360));
        assert!(at(3494) && !at(3495) && !at(3599));
        let short = Schedule::new(Duration::from_secs(120));
        assert_eq!(short.settled, Duration::from_secs(40));
        assert_eq!(short.window, Duration::from_secs(20));
        assert!(short.has_attacks(Duration::from_secs(61)));
        assert!(!short.has_attacks(Duration::from_secs(45)));
    }
}
