//! Hostile datagrams of all runs, which are stored in the file of figures.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::figure::{Figure, Verdict};

/// The number of hostile datagrams that servers must survive.
pub(super) const AIM: u64 = 100_000_000;

/// Sums over all runs with one file of figures.
#[derive(Default)]
pub(crate) struct Ledger {
    /// By attack: datagrams sent, and datagrams that the kernel dropped before the server read them.
    attacks: BTreeMap<String, [u64; 2]>,
    /// Panics in the logs of servers.
    pub(crate) panics: u64,
}

impl Ledger {
    pub(super) fn read(value: &Value) -> Self {
        let attacks = value["attacks"].as_object().into_iter().flatten();
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        Self {
            attacks: attacks
                .map(|(name, it)| {
                    let counts = [number(&it["sent"]), number(&it["droppedByKernel"])];
                    (name.clone(), counts)
                })
                .collect(),
            panics: number(&value["panics"]),
        }
    }

    pub(super) fn json(&self) -> Value {
        let attacks = self.attacks.iter().map(|(name, [sent, dropped])| {
            (
                name.clone(),
                json!({ "sent": sent, "droppedByKernel": dropped }),
            )
        });
        json!({
            "attacks": attacks.collect::<serde_json::Map<_, _>>(),
            "panics": self.panics,
        })
    }

    /// Adds the datagrams of an attack.
    pub(crate) fn add(&mut self, attack: &str, sent: u64, dropped: u64) {
        let sums = self.attacks.entry(attack.to_owned()).or_default();
        sums[0] += sent;
        sums[1] += dropped;
    }

    /// Returns the number of datagrams that servers read.
    pub(super) fn reached(&self) -> u64 {
        let sums = self.attacks.values();
        sums.map(|[sent, dropped]| sent.saturating_sub(*dropped))
            .sum()
    }

    /// Returns the figure over all runs so far.
    pub(crate) fn figure(&self) -> Figure {
        let sent: u64 = self.attacks.values().map(|[sent, _]| sent).sum();
        Figure {
            id: "hostile-datagrams".to_owned(),
            title: "hostile datagrams in total".to_owned(),
            aim: format!(">= {AIM:.0e}, 0 panics"),
            measured: format!(
                "{:.2e} read by servers ({sent:.2e} sent), {} panics",
                self.reached() as f64,
                self.panics
            ),
            verdict: Verdict::all(&[self.reached() >= AIM, self.panics == 0]),
            method: format!("sum over all runs, {} attacks", self.attacks.len()),
            cpu: [0.0, 0.0],
            detail: self.json(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_restored_from_the_file() {
        let mut ledger = Ledger::default();
        ledger.add("garbage", 60_000_000, 1);
        ledger.add("garbage", 60_000_000, 0);
        ledger.panics = 1;
        let mut read = Ledger::read(&ledger.json());
        assert_eq!(read.reached(), 119_999_999);
        assert!(read.figure().is_missed(), "a panic");
        read.panics = 0;
        assert!(!read.figure().is_missed());
    }
}
