//! The file in which figures are stored between runs.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::figure::Figure;
use super::ledger::Ledger;
use super::machine;

/// The circumstances of a measurement.
pub(crate) struct Conditions {
    pub(crate) profile: String,
    pub(crate) machine: String,
    pub(crate) date: String,
    /// The duration of the whole row.
    pub(crate) took: Duration,
    pub(crate) is_quick: bool,
}

impl Conditions {
    /// Returns the circumstances of a measurement that has just been made on this machine.
    pub(crate) fn now(took: Duration, is_quick: bool) -> Self {
        Self {
            profile: machine::profile(),
            machine: machine::describe(),
            date: machine::date(),
            took,
            is_quick,
        }
    }
}

/// The latest measurement of each figure.
#[derive(Default)]
pub(crate) struct Store {
    figures: Vec<Value>,
    pub(crate) ledger: Ledger,
}

impl Store {
    /// Reads the file of earlier runs, if it exists.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let Ok(text) = std::fs::read_to_string(path) else {
            return Ok(Self::default());
        };
        let value: Value = serde_json::from_str(&text)
            .map_err(|error| format!("{} is not a report: {error}", path.display()))?;
        let figures = value["figures"].as_array().cloned();
        Ok(Self {
            figures: figures.ok_or_else(|| format!("{} has no figures", path.display()))?,
            ledger: Ledger::read(&value["hostile"]),
        })
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), String> {
        let text = format!(
            "{:#}\n",
            json!({ "figures": self.figures, "hostile": self.ledger.json() })
        );
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        folder
            .and_then(|()| std::fs::write(path, text))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    /// Adds a figure. It replaces an earlier one with the same key.
    pub(crate) fn put(&mut self, figure: &Figure, conditions: &Conditions) {
        let value = json!({
            "id": figure.id,
            "title": figure.title,
            "aim": figure.aim,
            "measured": figure.measured,
            "verdict": figure.verdict.word(),
            "method": figure.method,
            "cpuSeconds": { "server": figure.cpu[0], "clients": figure.cpu[1] },
            "tookSeconds": conditions.took.as_secs_f64(),
            "profile": conditions.profile,
            "machine": conditions.machine,
            "date": conditions.date,
            "quick": conditions.is_quick,
            "detail": figure.detail,
        });
        match self.figures.iter_mut().find(|old| old["id"] == figure.id) {
            Some(old) => *old = value,
            None => self.figures.push(value),
        }
    }

    /// Returns the figure with this key.
    pub(crate) fn get(&self, id: &str) -> Option<&Value> {
        self.figures.iter().find(|figure| figure["id"] == id)
    }

    /// Returns all figures in the order of their first measurement.
    pub(crate) fn figures(&self) -> &[Value] {
        &self.figures
    }
}

#[cfg(test)]
mod tests {
    use super::super::figure::Verdict;
    use super::*;

    fn figure(measured: &str) -> Figure {
        Figure {
            id: "storm".to_owned(),
            title: "Storm".to_owned(),
            aim: "0.3 s".to_owned(),
            measured: measured.to_owned(),
            verdict: Verdict::all(&[true, false]),
            method: "one round".to_owned(),
            cpu: [1.0, 2.0],
            detail: Value::Null,
        }
    }

    #[test]
    fn later_figure_replaces_the_earlier_one() {
        let conditions = Conditions {
            profile: "dist".to_owned(),
            machine: String::new(),
            date: String::new(),
            took: Duration::from_secs(3),
            is_quick: false,
        };
        let mut store = Store::default();
        store.put(&figure("1 s"), &conditions);
        store.put(&figure("0.2 s"), &conditions);
        assert_eq!(store.figures().len(), 1);
        let kept = store.get("storm").expect("the figure is stored");
        assert_eq!(kept["measured"], "0.2 s");
        assert_eq!(kept["verdict"], "missed");
    }
}
