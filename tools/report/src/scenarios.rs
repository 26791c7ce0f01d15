//! Scenarios from files, run many times and judged by their bounds.

mod document;
mod jobs;
mod outcome;
mod sources;
mod traces;
mod verdict;

pub use self::document::document;
pub use self::jobs::{Repetition, run_all};
pub use self::outcome::{Outcome, outcomes, write_report};
pub use self::sources::{Selection, Source, read};
pub use self::verdict::{Judged, judge, shown};
