//! Scenarios: a link, flows on it, events, and bounds for the measures.
//!
//! A scenario is a TOML file:
//!
//! ```toml
//! name = "bulk-20mbit"
//! about = "one bulk flow on a plain link"
//! duration = "30s"
//! measure_from = "3s"
//! link = "20mbit,25ms,queue=1bdp"
//!
//! [transport]
//! mtu = 1452
//!
//! [[flow]]
//! controller = "cubic"
//!
//! [[event]]
//! at = "10s"
//! rate = "5mbit"
//!
//! [bounds]
//! goodput_share = ">=0.95"
//! queue_delay_p95 = "<1rtt"
//! ```
//!
//! Every flow has its own client and server. All of them share the link, with the grammar of
//! [`LinkSpec`](crate::link::LinkSpec) and [`DuplexSpec`]. Its direction `forward` leads from
//! clients to servers. Times have a unit, sizes may have one (`64k`, `1MiB`).
//!
//! | key of a flow | of kind | meaning |
//! |---|---|---|
//! | `name`, `controller`, `start` | all | `controller` is that of both ends |
//! | `count`, `spacing` | all | so many alike, each so much later than the one before |
//! | `access` | all | a link between the client and the shared one |
//! | `kind` | | `bulk` (as it is without), `requests`, `ping`, `paced` |
//! | `way` | `bulk` | `up` (as it is without) or `down` |
//! | `bytes` or `end` | `bulk` | how much, or until when; without, as long as the run |
//! | `request`, `response` | `requests` | sizes, 512 and 4000 without |
//! | `repeat`, `interval` | `requests`, `ping` | how many, and how long from one to the next |
//! | `size`, `interval`, `end` | `paced` | so many bytes from the client so often, until when |
//!
//! An event has a time `at` and one or more of `rate`, `delay` (of both directions), `blackhole`
//! (its length), `rebind` (`port` or `address`), `key_update` and `close` (a flow's name). Changes
//! of the link can also be written in the link itself.
//!
//! A file may describe a family of scenarios: each `[[matrix]]` has variables with one value or a
//! list of values, and every combination replaces `{variable}` everywhere in the file.
//!
//! ```toml
//! name = "bulk-{rate}-{rtt}"
//! link = "{rate},rtt={rtt},queue=1bdp"
//!
//! [[matrix]]
//! rate = ["10mbit", "100mbit"]
//! rtt = ["10ms", "50ms"]
//! ```
//!
//! A bound applies to one of the [`MEASURES`](crate::report::MEASURES): to the median of the runs,
//! to all runs with `all` in front (the default for counts), or to a share of them: `">=0.95"`,
//! `"all <2ms"`, `"90% <=1.5rtt"`, `"==0"`. `rtt` is that of the empty link.

mod bounds;
mod error;
mod file;
mod flow;
mod matrix;
mod units;

use std::time::Duration;

use courser_base::Time;
use courser_transport::TransportConfig;

use crate::link::{Change, DuplexSpec};
use crate::report::Mark;

pub use self::bounds::{Bound, BoundsFile, Quantifier, Verdict};
pub use self::error::ScenarioError;
pub use self::flow::{Flow, Kind};

/// A scenario as its file describes it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The name, for reports and bounds.
    pub name: String,
    /// A description of one line, which may be empty.
    pub about: String,
    /// The duration of the run, which ends earlier if all flows have reached their ends.
    pub duration: Duration,
    /// The start of the measured time.
    pub measured_from: Time,
    /// The link that all flows share, with all changes by events.
    pub link: DuplexSpec,
    /// The settings of all connections.
    pub transport: TransportConfig,
    /// The flows, one for each connection.
    pub flows: Vec<Flow>,
    /// The actions on connections, in the order of time.
    pub actions: Vec<Action>,
    /// The bounds of the measures.
    pub bounds: Vec<Bound>,
}

/// A scheduled action on connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Action {
    /// The time of the action.
    pub at: Time,
    /// The name of the flow. The action applies to all its connections if it has a count.
    pub flow: String,
    /// The action.
    pub what: ActionKind,
}

/// An action on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ActionKind {
    /// The client updates its keys.
    KeyUpdate,
    /// The client closes the connection.
    Close,
}

impl Scenario {
    /// Parses a scenario file.
    ///
    /// # Errors
    /// [`ScenarioError`] with the place, the value and the allowed values.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let mut all = file::parse(text)?;
        let count = all.len();
        match all.pop() {
            Some(only) if count == 1 => Ok(only),
            _ => {
                let message = format!("the matrix makes {count} scenarios, here it has to be one");
                Err(ScenarioError::at(text, &(0..0), message))
            }
        }
    }

    /// Parses a file that may describe several scenarios. Returns those of its matrix in order.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse), with the values of the variables if only some are wrong.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, ScenarioError> {
        file::parse(text)
    }

    /// Returns the round-trip time of the empty link, without access links.
    pub fn base_rtt(&self) -> Duration {
        self.link.base_rtt()
    }

    /// Returns the times and descriptions of changes for charts, in the order of time.
    pub fn marks(&self) -> Vec<Mark> {
        let mut marks = link_marks(&self.link);
        marks.extend(self.actions.iter().map(|action| Mark {
            at: action.at,
            label: match action.what {
                ActionKind::KeyUpdate => format!("{} updates its keys", action.flow),
                ActionKind::Close => format!("{} closes", action.flow),
            },
        }));
        marks.retain(|mark| mark.at <= Time::ZERO + self.duration);
        marks.sort_by_key(|mark| mark.at);
        marks.dedup();
        marks
    }

    /// Returns the times of changes of the link after which recovery is measured.
    pub(crate) fn upheavals(&self) -> Vec<Time> {
        let mut times = Vec::new();
        for spec in self.link.forward.hops().chain(self.link.back.hops()) {
            let is_rate = |change: &Change| matches!(change, Change::Rate(_) | Change::Policer(_));
            let steps = spec.steps.iter().filter(|step| is_rate(&step.change));
            times.extend(steps.map(|step| Time::ZERO + step.at));
            times.extend(
                spec.blackhole
                    .map(|hole| Time::ZERO + hole.from + hole.lasts),
            );
        }
        times.extend(self.rebindings());
        times.sort_unstable();
        times.dedup();
        times
    }

    /// Returns the times at which the NAT changes its mappings during the scenario.
    fn rebindings(&self) -> Vec<Time> {
        let mut times = Vec::new();
        let Some(nat) = self.link.nat else {
            return times;
        };
        let mut next = nat.next_after(Duration::ZERO);
        while let Some(at) = next.filter(|at| *at < self.duration)
            && times.len() < MAX_MARKS
        {
            times.push(Time::ZERO + at);
            next = nat.next_after(at);
        }
        times
    }
}

fn link_marks(link: &DuplexSpec) -> Vec<Mark> {
    let mut marks = Vec::new();
    for spec in link.forward.hops().chain(link.back.hops()) {
        marks.extend(spec.steps.iter().map(|step| Mark {
            at: Time::ZERO + step.at,
            label: change_label(&step.change),
        }));
        if let Some(hole) = spec.blackhole {
            marks.push(Mark {
                at: Time::ZERO + hole.from,
                label: format!("blackhole of {:?}", hole.lasts),
            });
        }
    }
    let mut next = link.nat.and_then(|nat| nat.next_after(Duration::ZERO));
    while let (Some(at), Some(nat)) = (next, link.nat)
        && marks.len() < MAX_MARKS
    {
        let what = if nat.address { "address" } else { "port" };
        marks.push(Mark {
            at: Time::ZERO + at,
            label: format!("rebinding of the {what}"),
        });
        next = nat.next_after(at);
    }
    marks
}

fn change_label(change: &Change) -> String {
    match change {
        Change::Rate(rate) => {
            let rate = courser_link::quantity::rate(*rate);
            format!("rate {rate}")
        }
        Change::Delay(delay) => format!("delay {delay:?}"),
        Change::Jitter(jitter) => format!("jitter {jitter:?}"),
        Change::Loss(_) => "other loss".to_owned(),
        Change::Mtu(mtu) => format!("MTU {}", mtu.bytes),
        Change::Policer(policer) => {
            let rate = courser_link::quantity::rate(policer.rate);
            format!("policer of {rate}")
        }
    }
}

/// The largest number of changes in a chart. More would hide its data.
const MAX_MARKS: usize = 1000;

#[cfg(test)]
mod tests;
