//! The result of a soak as a figure.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::samples::Drift;
use super::servers::ServerCounts;
use crate::robustness::figure::{Figure, Verdict};
use crate::robustness::ledger::Ledger;
use crate::robustness::store::{Conditions, Store};

/// The results of a soak.
pub(super) struct Soaked {
    pub(super) time: Duration,
    pub(super) connections: u32,
    pub(super) is_interrupted: bool,
    pub(super) clients: Value,
    pub(super) drift: Option<Vec<Drift>>,
    pub(super) samples: Value,
    /// By attack: hostile datagrams sent, and those that the kernel dropped.
    pub(super) hostile: Vec<(&'static str, u64, u64)>,
    pub(super) servers: ServerCounts,
}

/// The largest permitted growth of a server after the first minutes in MiB.
const DRIFT: f64 = 8.0;

impl Soaked {
    /// Prints the figure and adds it to the file. Returns true if it meets its aim.
    pub(super) fn keep(&self, path: &Path) -> Result<bool, String> {
        let mut store = Store::read(path)?;
        let conditions = Conditions::now(self.time, false);
        let figure = self.figure();
        println!("{}", figure.line());
        store.put(&figure, &conditions);
        self.count(&mut store.ledger);
        let total = store.ledger.figure();
        store.put(&total, &conditions);
        store.write(path)?;
        Ok(!figure.is_missed())
    }

    /// Adds the hostile datagrams and the panics.
    pub(super) fn count(&self, ledger: &mut Ledger) {
        for (attack, sent, dropped) in &self.hostile {
            ledger.add(attack, *sent, *dropped);
        }
        ledger.panics += self.servers.panics;
    }

    /// Returns the figure with its aim.
    pub(super) fn figure(&self) -> Figure {
        let sum = |name: &str| -> u64 {
            let reasons = self.clients[name].as_object().into_iter().flatten();
            reasons.filter_map(|(_, count)| count.as_u64()).sum()
        };
        let (wrong, lost) = (sum("wrong"), sum("lost"));
        let worst = self.drift.as_ref().and_then(|all| {
            let mib = all.iter().map(|drift| drift.mib());
            mib.max_by(f64::total_cmp)
        });
        let drift = worst.map_or("unknown".to_owned(), |mib| format!("{mib:+.1} MiB"));
        let requests = self.clients["requests"].as_u64().unwrap_or(0);
        let hostile: u64 = self.hostile.iter().map(|(_, sent, _)| sent).sum();
        let servers = &self.servers;
        let conditions = [
            !self.is_interrupted,
            requests > 0,
            wrong == 0,
            lost == 0,
            worst.is_some_and(|mib| mib <= DRIFT),
            servers.panics + servers.killed + servers.ended == 0,
        ];
        Figure {
            id: "soak".to_owned(),
            title: format!(
                "soak: {:.0} minutes, {} connections",
                self.time.as_secs_f64() / 60.0,
                self.connections
            ),
            aim: format!(
                "0 wrong bytes, 0 lost requests that were not refused, RSS drift <= {DRIFT:.0} MiB after \
                 the first 5 minutes"
            ),
            measured: format!(
                "{wrong} wrong, {lost} lost of {requests} requests ({} downloads and {} uploads by hash, \
                 {} MiB); {} refused and repeated; drift {drift}; {} restarts, {} not in time; {} panics",
                self.clients["downloads"],
                self.clients["uploads"],
                self.clients["bytes"].as_u64().unwrap_or(0) >> 20,
                sum("refused"),
                servers.restarts,
                servers.killed,
                servers.panics,
            ),
            verdict: Verdict::all(&conditions),
            method: format!(
                "a server of files, a proxy, and a proxy that is restarted; a quarter of the connections \
                 through links with 1 % loss each way and new ports every 30 s; {} attacks in turn, \
                 {hostile} hostile datagrams{}",
                self.hostile.len(),
                if self.is_interrupted {
                    "; interrupted"
                } else {
                    ""
                }
            ),
            cpu: [
                servers.cpu,
                self.clients["cpuSeconds"].as_f64().unwrap_or(0.0),
            ],
            detail: json!({
                "clients": self.clients,
                "driftMib": self.drift.as_ref().map(|all| {
                    all.iter().map(|drift| drift.mib()).collect::<Vec<_>>()
                }),
                "rss": self.samples,
                "metrics": servers.metrics,
                "endedUnasked": servers.ended,
            }),
        }
    }
}
