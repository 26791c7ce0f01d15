//! `courser-adversary soak`: servers, honest clients, faults of the network, restarts and attacks
//! together, for a long time.

mod arguments;
mod result;
mod samples;
mod servers;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use courser_adversary::{Attack, Attacker, Plan, Sockets, Victim, attacks, client_tls};

use self::arguments::{Arguments, Command};
pub(super) use self::result::Soaked;
use self::samples::Samples;
use self::servers::Servers;
use super::helper::Helper;
use super::process::kernel_drops;
use super::robustness::keep;

/// Runs the command.
pub(super) fn main(arguments: &[String]) -> Result<(), String> {
    let arguments = match arguments::parse(arguments)? {
        Command::Help => {
            println!("{}", arguments::USAGE);
            return Ok(());
        }
        Command::Run(arguments) => arguments,
    };
    let soaked = run(&arguments)?;
    let is_met = keep(&arguments.json, &soaked)?;
    match is_met {
        true => Ok(()),
        false => Err("the soak misses its aim".to_owned()),
    }
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
    let mut siege = Siege::default();
    while began.elapsed() < arguments.time && clients.process.is_running() {
        if is_stopped.load(Relaxed) {
            break;
        }
        let now = began.elapsed();
        samples.take(now, servers.rss());
        servers.keep_restarting(now, plan.restart_every)?;
        let step = Duration::from_secs(1);
        match plan.has_attacks(now) {
            true => siege.step(&servers, step)?,
            false => {
                siege.pause();
                std::thread::sleep(step);
            }
        }
    }
    if began.elapsed() < arguments.time {
        // Clients that the signal has ended may be gone before it is noticed here.
        std::thread::sleep(Duration::from_millis(200));
    }
    let interrupted = is_stopped.load(Relaxed);
    let report = match interrupted {
        true => serde_json::Value::Null,
        false => clients.finish()?,
    };
    siege.pause();
    Ok(Soaked {
        // Without the time that the last requests took.
        time: began.elapsed().min(arguments.time),
        connections: arguments.connections,
        is_interrupted: interrupted,
        clients: report,
        drift: samples.drift(plan.settled, plan.window),
        samples: samples.json(),
        siege: siege.sent,
        servers: servers.finish(),
    })
}

/// Becomes true with the first Ctrl-C, so that folders are removed and the report is written.
/// Children end with this process whatever ends it.
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

/// When something is done in a run.
struct Schedule {
    /// When memory counts as settled.
    settled: Duration,
    /// Length of the two windows that are compared: from there on, and before the end.
    window: Duration,
    /// Without attacks before each window, so that what attackers held has expired.
    calm: Duration,
    time: Duration,
    restart_every: Duration,
}

impl Schedule {
    /// After five minutes over one minute; in proportion for runs that are shorter than an hour.
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

/// The attacks, one after the other, on one server after the other.
#[derive(Default)]
struct Siege {
    next: usize,
    current: Option<Assault>,
    /// Datagrams sent, and those that the kernel dropped, by attack.
    sent: Vec<(&'static str, u64, u64)>,
}

struct Assault {
    plan: &'static Plan,
    sockets: Sockets,
    attacker: Attacker,
    attack: Box<dyn Attack>,
    left: Duration,
    victim: SocketAddr,
    /// Datagrams that the kernel had dropped there before.
    dropped: u64,
}

/// Duration of an attack, and the pause after it.
const ASSAULT: Duration = Duration::from_secs(5);
const BREAK: Duration = Duration::from_secs(2);

impl Siege {
    /// Goes on with the current attack, or with the pause after it.
    fn step(&mut self, servers: &Servers, step: Duration) -> Result<(), String> {
        let assault = match &mut self.current {
            Some(assault) if !assault.left.is_zero() => assault,
            _ => {
                self.pause();
                std::thread::sleep(BREAK);
                self.begin(servers)?
            }
        };
        assault.left = assault.left.saturating_sub(step);
        assault
            .sockets
            .run(&mut assault.attacker, &mut *assault.attack, step)
            .map_err(|error| format!("{}: {error}", assault.plan.name))
    }

    /// Ends the current attack.
    fn pause(&mut self) {
        if let Some(assault) = self.current.take() {
            let sent = assault.attacker.counts().sent;
            let dropped = kernel_drops(assault.victim.port()).saturating_sub(assault.dropped);
            self.sent.push((assault.plan.name, sent, dropped.min(sent)));
        }
    }

    fn begin(&mut self, servers: &Servers) -> Result<&mut Assault, String> {
        let plans: Vec<&Plan> = attacks::ALL
            .iter()
            .filter(|plan| plan.victim == Victim::Server)
            .collect();
        let (round, index) = (self.next / plans.len(), self.next % plans.len());
        let plan = plans[index];
        // Another server in the next round.
        let victim = servers.address(round + self.next);
        self.next += 1;
        let mut attacker = Attacker::new(victim, client_tls(b"h3"), [7; 32]);
        let mut attack = (plan.make)();
        attack.start(&mut attacker);
        let sockets =
            Sockets::bind(([127, 66, 6, 6], 0).into()).map_err(|error| error.to_string())?;
        Ok(self.current.insert(Assault {
            plan,
            sockets,
            attacker,
            attack,
            left: ASSAULT,
            victim,
            dropped: kernel_drops(victim.port()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attacks_leave_both_windows_alone() {
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
