//! Scenarios: a link, flows on it, things that happen, and bounds for what is measured.
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
//! Every flow has a client and a server of its own; all of them share the link, whose grammar is
//! that of [`LinkSpec`](crate::link::LinkSpec) and [`DuplexSpec`]:
//! `forward` leads from clients to servers. Times have a unit, sizes may have one (`64k`, `1MiB`).
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
//! (for how long), `rebind` (`port` or `address`), `key_update` and `close` (a flow's name).
//! What is given about the link in events may as well stand in the link.
//!
//! A file may stand for a family of scenarios: each `[[matrix]]` has variables with one value or
//! a list of them, and every combination replaces `{variable}` wherever it stands in the file.
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
//! A bound stands beside one of the [`MEASURES`](crate::report::MEASURES). It is about the median
//! of the runs, about all of them with `all` in front (and for what is counted), or about a share
//! of them: `">=0.95"`, `"all <2ms"`, `"90% <=1.5rtt"`, `"==0"`. `rtt` is that of the empty link.

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

/// What a scenario file says.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name, for reports and bounds.
    pub name: String,
    /// What it is about, in a line; may be empty.
    pub about: String,
    /// How long it runs; it ends earlier when all flows have reached their ends.
    pub duration: Duration,
    /// What is measured begins here.
    pub measured_from: Time,
    /// The link that all flows share, with all that the events change about it.
    pub link: DuplexSpec,
    /// Settings of all connections.
    pub transport: TransportConfig,
    /// The flows, each connection apart.
    pub flows: Vec<Flow>,
    /// What is done to connections, in the order of time.
    pub actions: Vec<Action>,
    /// What has to be true of the measures.
    pub bounds: Vec<Bound>,
}

/// Something that is done to connections at a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Action {
    /// When.
    pub at: Time,
    /// Name of the flow; all its connections if it has a count.
    pub flow: String,
    /// What.
    pub what: ActionKind,
}

/// What can be done to a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ActionKind {
    /// The client updates its keys.
    KeyUpdate,
    /// The client closes.
    Close,
}

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// [`ScenarioError`] says where, what was seen and what is allowed.
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

    /// Reads a file that may stand for several scenarios: all that its matrix makes, in its
    /// order.
    ///
    /// # Errors
    /// As [`parse`](Self::parse); with the values of the variables where only some are wrong.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, ScenarioError> {
        file::parse(text)
    }

    /// Round-trip time of the empty link, access links apart.
    pub fn base_rtt(&self) -> Duration {
        self.link.base_rtt()
    }

    /// What happens when, for charts, in the order of time.
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

    /// When the link changes for better or worse; recovery is measured from there.
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

    /// When the NAT changes its mind, while the scenario runs.
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

/// More would hide the chart that they are drawn on.
const MAX_MARKS: usize = 1000;

#[cfg(test)]
mod tests;
