//! `courser-adversary robustness`, which measures the figures of `docs/ROBUSTNESS.md`.

mod arguments;
mod attacks;
mod document;
mod figure;
mod flood;
mod ledger;
mod machine;
mod memory;
mod overload;
mod quota;
mod storm;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::arguments::{Arguments, Command};
pub(super) use self::attacks::PANIC;
pub(super) use self::figure::{Figure, Verdict};
use self::ledger::Ledger;
use super::process::Site;
use super::soak::Soaked;

/// Measures the selected rows.
pub(super) fn main(arguments: &[String]) -> Result<(), String> {
    let arguments = match arguments::parse(arguments)? {
        Command::Help => {
            println!("{}", arguments::usage());
            return Ok(());
        }
        Command::Run(arguments) => arguments,
    };
    let setup = Setup::new(&arguments)?;
    let mut store = figure::Store::read(&arguments.json)?;
    let mut missed = 0;
    for row in &arguments.rows {
        eprintln!("{}: {}", row.name, row.summary);
        let began = Instant::now();
        let figures = (row.measure)(&setup, &mut store.ledger)
            .map_err(|error| format!("{}: {error}", row.name))?;
        for figure in figures {
            println!("{}", figure.line());
            missed += usize::from(figure.is_missed());
            store.put(&figure, &setup.conditions(began.elapsed()));
        }
        let total = store.ledger.figure();
        store.put(&total, &setup.conditions(Duration::ZERO));
        // Earlier figures are kept even if a later row fails.
        store.write(&arguments.json)?;
    }
    if let Some(path) = &arguments.out {
        document::write(path, &store)?;
    }
    println!("{} figure(s) miss their aim", missed);
    Ok(())
}

/// Prints the figure of a soak and adds it to the file. Returns true if it meets its aim.
pub(super) fn keep(path: &Path, soaked: &Soaked) -> Result<bool, String> {
    let mut store = figure::Store::read(path)?;
    let conditions = figure::Conditions {
        profile: machine::profile(),
        machine: machine::describe(),
        date: machine::date(),
        took: soaked.time(),
        is_quick: false,
    };
    let figure = soaked.figure();
    println!("{}", figure.line());
    store.put(&figure, &conditions);
    for (attack, sent, dropped) in soaked.hostile() {
        store.ledger.add(attack, *sent, *dropped);
    }
    store.ledger.panics += soaked.panics();
    let total = store.ledger.figure();
    store.put(&total, &conditions);
    store.write(path)?;
    Ok(!figure.is_missed())
}

/// Settings for all measurements.
struct Setup {
    courser: PathBuf,
    /// An earlier binary, for comparison.
    before: Option<PathBuf>,
    site: Site,
    /// The core of the server under test.
    server_core: usize,
    /// The core of clients and attackers.
    client_core: usize,
    /// The duration of one attack.
    attack_time: Duration,
    /// The longest duration of the row that counts hostile datagrams.
    flood_time: Duration,
    /// The attacks to run, or all of them if empty.
    attacks: Vec<String>,
    /// Runs fewer and shorter rounds, as a trial.
    is_quick: bool,
}

impl Setup {
    fn new(arguments: &Arguments) -> Result<Self, String> {
        let cores = machine::cores();
        let (Some(first), Some(second)) = (cores.first(), cores.get(1)) else {
            return Err("this needs two cores: one for the server, one for clients".to_owned());
        };
        Ok(Self {
            courser: arguments.courser.clone(),
            before: arguments.before.clone(),
            site: Site::make()?,
            server_core: *first,
            client_core: *second,
            attack_time: arguments.attack_time,
            flood_time: arguments.flood_time,
            attacks: arguments.attacks.clone(),
            is_quick: arguments.is_quick,
        })
    }

    fn site(&self) -> &Path {
        self.site.path()
    }

    fn conditions(&self, took: Duration) -> figure::Conditions {
        figure::Conditions {
            profile: machine::profile(),
            machine: machine::describe(),
            date: machine::date(),
            took,
            is_quick: self.is_quick,
        }
    }
}

/// A measurement that can be selected separately.
struct Row {
    name: &'static str,
    summary: &'static str,
    measure: fn(&Setup, &mut Ledger) -> Result<Vec<Figure>, String>,
}

/// All measurements, in the order of the document.
const ROWS: &[Row] = &[
    Row {
        name: "memory-half-open",
        summary: "memory of an incomplete handshake",
        measure: |setup, _| memory::half_open(setup),
    },
    Row {
        name: "memory-idle",
        summary: "memory of an idle connection",
        measure: |setup, _| memory::idle(setup),
    },
    Row {
        name: "memory-unread",
        summary: "memory of a client that reads nothing",
        measure: |setup, _| memory::unread(setup),
    },
    Row {
        name: "attacks",
        summary: "each attack at full speed: CPU per datagram, and service for honest clients",
        measure: attacks::measure,
    },
    Row {
        name: "storm-1000",
        summary: "1000 clients at once from one address against an idle server",
        measure: |setup, _| storm::measure(setup, 1000),
    },
    Row {
        name: "storm-10000",
        summary: "10 000 clients at once from one address against an idle server",
        measure: |setup, _| storm::measure(setup, 10_000),
    },
    Row {
        name: "overload-handshakes",
        summary: "twice the handshakes that can be served",
        measure: |setup, _| overload::handshakes(setup),
    },
    Row {
        name: "overload-requests",
        summary: "twice the requests that can be served",
        measure: |setup, _| overload::requests(setup),
    },
    Row {
        name: "flood",
        summary: "attacks in turn until servers have read 1e8 hostile datagrams",
        measure: flood::measure,
    },
];
