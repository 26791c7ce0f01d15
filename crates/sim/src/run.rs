//! Runs a scenario with a seed and reports the results.

mod capacity;
mod ideal;
mod measure;
mod sampler;
mod stage;

use std::sync::Arc;
use std::time::Duration;

use courser_base::Time;
use courser_telemetry::SinkFactory;

use crate::report::{DEFAULT_POINTS, RunReport};
use crate::scenario::Scenario;
use crate::world::Stall;

use self::measure::measures;
use self::sampler::Sampler;
use self::stage::Stage;

/// The options of a run.
pub struct RunOptions {
    /// The number of points in each series of the report.
    pub points: usize,
    /// A factory of sinks for the records of both ends of all connections.
    pub sinks: Option<Arc<dyn SinkFactory>>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            points: DEFAULT_POINTS,
            sinks: None,
        }
    }
}

impl std::fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunOptions")
            .field("points", &self.points)
            .finish_non_exhaustive()
    }
}

/// Runs a scenario. The same scenario, seed and version give the same report on every machine.
///
/// # Errors
/// [`Stall`] if virtual time does not advance, which is a bug of an endpoint or of the world.
pub fn run(scenario: &Scenario, seed: u64, options: RunOptions) -> Result<RunReport, Stall> {
    let mut stage = Stage::build(scenario, seed, options.sinks.as_ref());
    let points = u32::try_from(options.points.max(2)).unwrap_or(u32::MAX);
    let interval = (scenario.duration / points).max(Duration::from_nanos(1000));
    let mut sampler = Sampler::new(scenario, &stage, interval, options.points);
    let end = Time::ZERO + scenario.duration;
    let mut actions = scenario.actions.iter().peekable();
    let mut next_sample = Time::ZERO + interval;
    let mut has_begun = false;
    while stage.world.now() < end && !stage.is_over() {
        let action_at = actions.peek().map_or(Time::MAX, |action| action.at);
        let begin_at = if has_begun {
            Time::MAX
        } else {
            scenario.measured_from
        };
        let stop = next_sample.min(action_at).min(begin_at).min(end);
        stage.world.run_for(stop - stage.world.now())?;
        if stop == begin_at {
            has_begun = true;
            sampler.begin(&mut stage);
        }
        while let Some(action) = actions.next_if(|action| action.at <= stop) {
            stage.act(action);
        }
        if stop == next_sample || stop == end {
            sampler.sample(&stage);
            next_sample += interval;
        }
    }
    sampler.sample(&stage);
    sampler.finish(scenario, &stage);
    let measures = measures(scenario, &stage, &sampler);
    Ok(RunReport {
        scenario: scenario.name.clone(),
        seed,
        duration: stage.world.now() - Time::ZERO,
        measured_from: scenario.measured_from,
        flows: std::mem::take(&mut sampler.flows),
        links: sampler.into_links(),
        marks: scenario.marks(),
        digest: stage.world.digest(),
        steps: stage.world.steps(),
        measures,
    })
}

#[cfg(test)]
mod tests;
