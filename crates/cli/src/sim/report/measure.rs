//! The numbers of a run, by name and unit.

use courser_plot::Unit;
use courser_sim::report::Measures;

/// One of the numbers of a run.
pub(super) struct Measure {
    /// As it stands in a bounds file.
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    /// Which way is better.
    pub(super) is_more_better: bool,
    /// Whether it is worth a column in the table of all scenarios.
    pub(super) is_main: bool,
    pub(super) of: fn(&Measures) -> Option<f64>,
}

/// The values of a measure over the runs of a scenario.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) p10: f64,
    pub(super) p90: f64,
    pub(super) lowest: f64,
    pub(super) highest: f64,
}

impl Spread {
    /// `None` without a value. Percentiles are values that occurred: the nearest by rank.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let rank = |percent: usize| values[(last * percent + 50) / 100];
        Some(Self {
            median: rank(50),
            p10: rank(10),
            p90: rank(90),
            lowest: values[0],
            highest: values[last],
        })
    }
}

const fn measure(
    name: &'static str,
    unit: Unit,
    is_more_better: bool,
    of: fn(&Measures) -> Option<f64>,
) -> Measure {
    Measure {
        name,
        unit,
        is_more_better,
        is_main: false,
        of,
    }
}

impl Measure {
    const fn main(mut self) -> Self {
        self.is_main = true;
        self
    }

    /// The name as people write it.
    pub(super) fn words(&self) -> String {
        self.name.replace('_', " ")
    }
}

/// All measures, in the order of the tables.
pub(super) const MEASURES: &[Measure] = &[
    measure("goodput", Unit::BitsPerSecond, true, |m| m.goodput).main(),
    measure("goodput_share", Unit::Share, true, |m| m.goodput_share).main(),
    measure("utilization", Unit::Share, true, |m| m.utilization),
    measure("jain", Unit::Plain, true, |m| m.jain).main(),
    measure("least_share", Unit::Share, true, |m| m.least_share),
    measure("queue_delay_median", Unit::Seconds, false, |m| {
        m.queue_delay_median
    })
    .main(),
    measure("queue_delay_p95", Unit::Seconds, false, |m| {
        m.queue_delay_p95
    }),
    measure("loss_rate", Unit::Share, false, |m| m.loss_rate).main(),
    measure("retransmitted_share", Unit::Share, false, |m| {
        m.retransmitted_share
    }),
    measure("spurious_share", Unit::Share, false, |m| m.spurious_share),
    measure("completion_time", Unit::Seconds, false, |m| {
        m.completion_time
    })
    .main(),
    measure("handshake_time", Unit::Seconds, false, |m| m.handshake_time).main(),
    measure("exchange_median", Unit::Seconds, false, |m| {
        m.exchange_median
    })
    .main(),
    measure("exchange_p99", Unit::Seconds, false, |m| m.exchange_p99),
    measure("recovery_time", Unit::Seconds, false, |m| m.recovery_time).main(),
    measure("failures", Unit::Plain, false, |m| m.failures).main(),
    measure("unfinished", Unit::Plain, false, |m| m.unfinished).main(),
];
