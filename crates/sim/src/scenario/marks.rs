//! The times at which the path of a scenario changes.

use std::time::Duration;

use courser_base::Time;
use courser_link::quantity;

use super::definition::{ActionKind, Scenario};
use crate::link::{Change, DuplexSpec};
use crate::report::Mark;

impl Scenario {
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

    /// Returns the times of those changes of the link after which recovery is measured.
    pub(crate) fn path_changes(&self) -> Vec<Time> {
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
            let rate = quantity::rate(*rate);
            format!("rate {rate}")
        }
        Change::Delay(delay) => format!("delay {delay:?}"),
        Change::Jitter(jitter) => format!("jitter {jitter:?}"),
        Change::Loss(_) => "other loss".to_owned(),
        Change::Mtu(mtu) => format!("MTU {}", mtu.bytes),
        Change::Policer(policer) => {
            let rate = quantity::rate(policer.rate);
            format!("policer of {rate}")
        }
    }
}

/// The largest number of changes in a chart. More would hide its data.
const MAX_MARKS: usize = 1000;
