//! The choice of the path for the next batch of a connection with several paths.

mod choice;
mod earliest;
mod fastest;

pub use self::choice::{PathChoice, PathDemand, PathScheduler, PathSchedulerFactory, PathView};
pub use self::earliest::Earliest;
pub use self::fastest::Fastest;

/// The schedulers of this crate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum PathSchedule {
    /// See [`Earliest`].
    #[default]
    Earliest,
    /// See [`Fastest`].
    Fastest,
}

impl PathSchedulerFactory for PathSchedule {
    fn make(&self) -> Box<dyn PathScheduler> {
        match self {
            Self::Earliest => Box::new(Earliest::new()),
            Self::Fastest => Box::new(Fastest),
        }
    }
}

#[cfg(test)]
mod tests;
