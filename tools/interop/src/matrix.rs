//! All cases between all pairs of implementations.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use courser_base::Mutex;
use courser_measure::Failure;
use serde::Serialize;

use crate::case::{CASES, Case};
use crate::cell::Run;
use crate::outcome::Outcome;
use crate::peer::Peer;

/// The settings of [`run`].
#[derive(Clone, Debug)]
pub struct MatrixPlan {
    /// The implementation that takes part in every pair.
    pub own: Peer,
    /// True if it is also its own peer.
    pub includes_itself: bool,
    /// The other implementations, each of which is paired with `own`.
    pub peers: Vec<Peer>,
    /// The cases, in the order of the grid.
    pub cases: Vec<&'static Case>,
    /// The number of runs of each cell, at least 1. A cell passes if all of them pass.
    pub repeat: u32,
    /// The number of runs at the same time, at least 1.
    pub jobs: usize,
    /// The seed of the links in the first runs.
    pub seed: u64,
    /// The folder for the logs of all runs; `None` keeps none.
    pub logs: Option<PathBuf>,
}

/// The results of all cells.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Matrix {
    /// The seed of the links in the first runs.
    pub seed: u64,
    /// The time of all runs.
    pub seconds: f64,
    /// The number of runs of each cell.
    pub repeat: u32,
    /// The implementations that took part, `own` first.
    pub implementations: Vec<Implementation>,
    /// The results of each pair.
    pub pairs: Vec<Pair>,
}

/// An implementation that took part.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub struct Implementation {
    /// The name in the grid.
    pub name: String,
    /// The version; empty if it is not known.
    pub version: String,
    /// The only protocol that it supports, over which the files of all its cases are sent.
    pub protocol: Option<String>,
}

/// The results of a server and a client.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Pair {
    /// The name of the server.
    pub server: String,
    /// The name of the client.
    pub client: String,
    /// The results in the order of the cases.
    pub cells: Vec<Cell>,
}

/// The result of a case between a server and a client.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Cell {
    /// The letters of the case.
    pub letter: &'static str,
    /// The name of the case.
    pub case: &'static str,
    /// The verdict over all runs.
    pub verdict: Verdict,
    /// The number of runs that passed.
    pub passed: u32,
    /// The mean rate in kbit/s of a measurement.
    pub kbit_per_second: Option<f64>,
    /// The reasons of the runs that failed.
    pub failures: Vec<String>,
}

/// The verdict about a cell.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// All runs of the cell passed.
    Succeeded,
    /// One end does not support the test.
    Unsupported,
    /// At least one run failed.
    Failed,
}

/// A run that has ended, for progress.
#[derive(Clone, Copy, Debug)]
pub struct RunDone<'a> {
    /// The name of the server.
    pub server: &'a str,
    /// The name of the client.
    pub client: &'a str,
    /// The case that was run.
    pub case: &'static Case,
    /// The outcome of this run.
    pub outcome: &'a Outcome,
    /// The number of completed runs.
    pub done: usize,
    /// The number of all runs.
    pub total: usize,
}

impl MatrixPlan {
    /// Makes a plan with one run of each case. The name of `own` among `names` makes it its own
    /// peer; all other names are looked up in `folder`, see [`Peer::find`].
    ///
    /// # Errors
    /// Returns an error if a peer has no program.
    pub fn new(own: Peer, names: &[String], folder: &Path) -> Result<Self, Failure> {
        let others = names.iter().filter(|name| **name != own.name);
        let peers = others.map(|name| Peer::find(name, folder));
        let peers: Vec<Peer> = peers.collect::<Result<_, _>>()?;
        Ok(Self {
            includes_itself: peers.len() < names.len(),
            own,
            peers,
            cases: CASES.iter().collect(),
            repeat: 1,
            jobs: 1,
            seed: 1,
            logs: None,
        })
    }
}

impl fmt::Display for RunDone<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (done, total, case) = (self.done, self.total, self.case.name);
        let (server, client) = (self.server, self.client);
        write!(
            f,
            "{done}/{total} {server} server, {client} client, {case}: "
        )?;
        match self.outcome {
            Outcome::Succeeded(None) => f.write_str("passed"),
            Outcome::Succeeded(Some(rate)) => write!(f, "{rate:.0} kbit/s"),
            Outcome::Unsupported => f.write_str("not supported"),
            Outcome::Failed(reason) => write!(f, "failed: {reason}"),
        }
    }
}

impl Matrix {
    /// Returns the cells that failed, each with its pair.
    pub fn failed(&self) -> impl Iterator<Item = (&Pair, &Cell)> {
        self.cells_with(Verdict::Failed)
    }

    /// Returns the cells with this verdict, each with its pair.
    pub(crate) fn cells_with(&self, verdict: Verdict) -> impl Iterator<Item = (&Pair, &Cell)> {
        let cells = self
            .pairs
            .iter()
            .flat_map(|pair| pair.cells.iter().map(move |cell| (pair, cell)));
        cells.filter(move |(_, cell)| cell.verdict == verdict)
    }
}

/// Runs all cells, and calls `on_done` after each run.
///
/// # Panics
/// Panics if `on_done` does.
pub fn run(plan: &MatrixPlan, on_done: impl Fn(RunDone<'_>) + Sync) -> Matrix {
    let start = Instant::now();
    let pairs = pairs(plan);
    let runs = runs(plan, &pairs);
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<Option<Outcome>>> = Mutex::new(vec![None; runs.len()]);
    let work = || {
        while let Some((index, run)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            runs.get(index).map(|run| (index, run))
        } {
            let outcome = run.outcome();
            let mut outcomes = outcomes.lock();
            let done = outcomes.iter().flatten().count() + 1;
            on_done(RunDone {
                server: &run.server.name,
                client: &run.client.name,
                case: run.case,
                outcome: &outcome,
                done,
                total: runs.len(),
            });
            outcomes[index] = Some(outcome);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..plan.jobs {
            scope.spawn(work);
        }
        work();
    });
    let outcomes = outcomes.into_inner();
    let outcomes: Vec<Outcome> = outcomes.into_iter().flatten().collect();
    Matrix {
        seed: plan.seed,
        seconds: start.elapsed().as_secs_f64(),
        repeat: plan.repeat,
        implementations: implementations(plan),
        pairs: collect(plan, &pairs, &outcomes),
    }
}

/// Returns the pairs of a server and a client.
fn pairs(plan: &MatrixPlan) -> Vec<(&Peer, &Peer)> {
    let own = &plan.own;
    let itself = plan.includes_itself.then_some((own, own));
    let others = plan
        .peers
        .iter()
        .flat_map(|peer| [(own, peer), (peer, own)]);
    itself.into_iter().chain(others).collect()
}

/// Returns all runs: those of a cell follow each other.
fn runs<'a>(plan: &'a MatrixPlan, pairs: &[(&'a Peer, &'a Peer)]) -> Vec<Run<'a>> {
    let mut runs = Vec::new();
    for (server, client) in pairs {
        for case in &plan.cases {
            runs.extend((1..=plan.repeat).map(|number| Run {
                case,
                server,
                client,
                competitor: &plan.own,
                number,
                seed: plan.seed.wrapping_add(u64::from(number) - 1),
                logs: plan.logs.as_deref(),
            }));
        }
    }
    runs
}

/// Divides the outcomes of [`runs`] into cells.
fn collect(plan: &MatrixPlan, pairs: &[(&Peer, &Peer)], outcomes: &[Outcome]) -> Vec<Pair> {
    let repeat = usize::try_from(plan.repeat).unwrap_or(usize::MAX);
    let mut cells = outcomes.chunks(repeat);
    let pairs = pairs.iter().map(|(server, client)| Pair {
        server: server.name.clone(),
        client: client.name.clone(),
        cells: plan
            .cases
            .iter()
            .map(|case| Cell::of(case, cells.next().unwrap_or_default()))
            .collect(),
    });
    pairs.collect()
}

fn implementations(plan: &MatrixPlan) -> Vec<Implementation> {
    let all = std::iter::once(&plan.own).chain(&plan.peers);
    all.map(|peer| Implementation {
        name: peer.name.clone(),
        version: peer.version.clone(),
        protocol: peer.protocol.clone(),
    })
    .collect()
}

impl Cell {
    fn of(case: &Case, outcomes: &[Outcome]) -> Self {
        let mut cell = Self {
            letter: case.letter,
            case: case.name,
            verdict: Verdict::Succeeded,
            passed: 0,
            kbit_per_second: None,
            failures: Vec::new(),
        };
        let mut rates = Vec::new();
        let mut is_unsupported = false;
        for outcome in outcomes {
            match outcome {
                Outcome::Succeeded(rate) => {
                    cell.passed += 1;
                    rates.extend(*rate);
                }
                Outcome::Unsupported => is_unsupported = true,
                Outcome::Failed(reason) => cell.failures.push(reason.clone()),
            }
        }
        if !cell.failures.is_empty() {
            cell.verdict = Verdict::Failed;
        } else if is_unsupported {
            cell.verdict = Verdict::Unsupported;
        }
        let count = u32::try_from(rates.len()).unwrap_or(u32::MAX);
        if count > 0 {
            cell.kbit_per_second = Some(rates.iter().sum::<f64>() / f64::from(count));
        }
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(outcomes: &[Outcome]) -> (Verdict, u32) {
        let cell = Cell::of(Case::find("H").expect("a case"), outcomes);
        (cell.verdict, cell.passed)
    }

    #[test]
    fn cell_passes_only_if_all_of_its_runs_pass() {
        let passed = || Outcome::Succeeded(None);
        let failed = || Outcome::Failed("late".to_owned());
        assert_eq!(verdict(&[passed(), passed()]), (Verdict::Succeeded, 2));
        assert_eq!(verdict(&[passed(), failed()]), (Verdict::Failed, 1));
        assert_eq!(verdict(&[Outcome::Unsupported]), (Verdict::Unsupported, 0));
        let mixed = [Outcome::Unsupported, failed()];
        assert_eq!(verdict(&mixed), (Verdict::Failed, 0));
    }

    #[test]
    fn rate_is_the_mean_of_all_runs() {
        let case = Case::find("G").expect("a case");
        let rates = [8000.0, 9000.0].map(|rate| Outcome::Succeeded(Some(rate)));
        assert_eq!(Cell::of(case, &rates).kbit_per_second, Some(8500.0));
    }
}
