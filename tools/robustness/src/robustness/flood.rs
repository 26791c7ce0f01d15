//! Attacks in turn until servers have read enough hostile datagrams.

use std::time::{Duration, Instant};

use courser_adversary::{Plan, Victim, attacks};

use super::attacks::RunningAttack;
use super::figure::Figure;
use super::ledger::{AIM, Ledger};
use super::machine;
use super::setup::Setup;
use crate::process::{PANIC, Serve};

/// Runs the attacks in turn, each against a new server, until servers have read [`AIM`]
/// hostile datagrams or the time has expired. The ledger provides the figure.
pub(super) fn measure(setup: &Setup, ledger: &mut Ledger) -> Result<Vec<Figure>, String> {
    let end = Instant::now() + setup.flood_time;
    let plans = attacks::ALL
        .iter()
        .filter(|plan| plan.victim == Victim::Server);
    for plan in plans.cycle() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || ledger.reached() >= AIM {
            break;
        }
        flood(setup, plan, left.min(TURN), ledger)?;
    }
    Ok(Vec::new())
}

/// The duration of one attack.
const TURN: Duration = Duration::from_secs(10);

fn flood(
    setup: &Setup,
    plan: &'static Plan,
    time: Duration,
    ledger: &mut Ledger,
) -> Result<(), String> {
    let log = setup.site.private().join("flood.log");
    // Only panics during this attack count.
    let _ = std::fs::remove_file(&log);
    let serve = Serve {
        core: Some(setup.server_core),
        log: Some(log.clone()),
        ..Serve::folder(&setup.courser, setup.site())
    };
    let mut server = serve.start()?;
    machine::pin(&[setup.client_core])?;
    let mut offense = RunningAttack::new(plan, &server)?;
    let result = offense.run(time);
    machine::pin(&[setup.server_core, setup.client_core])?;
    result?;
    let (sent, dropped) = (offense.sent(), server.kernel_drops());
    if !server.process.is_running() {
        return Err(format!("{}: the server ended", plan.name));
    }
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let panics = text.matches(PANIC).count() as u64;
    ledger.add(plan.name, sent, dropped);
    ledger.panics += panics;
    eprintln!(
        "  {}: {sent} sent, {dropped} dropped by the kernel, {panics} panics; {} read in total",
        plan.name,
        ledger.reached()
    );
    Ok(())
}
