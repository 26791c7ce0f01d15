//! `courser-robustness robustness`, which measures the figures of `docs/ROBUSTNESS.md`.

mod arguments;
mod attacks;
mod document;
pub(super) mod figure;
mod flood;
pub(super) mod ledger;
mod machine;
mod memory;
mod overload;
mod quota;
mod rows;
mod setup;
pub(super) mod store;
mod storm;

use std::time::{Duration, Instant};

use self::arguments::{Arguments, Command};
use self::setup::Setup;
use self::store::Store;
use super::process::Site;

/// Measures the selected rows.
pub(super) fn main(arguments: &[String]) -> Result<(), String> {
    let arguments = match arguments::parse(arguments)? {
        Command::Help => {
            println!("{}", arguments::usage());
            return Ok(());
        }
        Command::Run(arguments) => arguments,
    };
    let setup = set_up(&arguments)?;
    let mut store = Store::read(&arguments.json)?;
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

/// Chooses the cores and makes the site.
fn set_up(arguments: &Arguments) -> Result<Setup, String> {
    let cores = courser_measure::allowed_cores();
    let (Some(first), Some(second)) = (cores.first(), cores.get(1)) else {
        return Err("this needs two cores: one for the server, one for clients".to_owned());
    };
    Ok(Setup {
        courser: arguments.courser.clone(),
        before: arguments.before.clone(),
        site: Site::make()?,
        server_core: *first,
        client_core: *second,
        attack_time: arguments.attack_time,
        flood_time: arguments.flood_time,
        soak_time: arguments.soak_time(),
        attacks: arguments.attacks.clone(),
        is_quick: arguments.is_quick,
    })
}
