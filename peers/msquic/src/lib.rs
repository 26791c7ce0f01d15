//! Parts that all peer programs share, from the sources of the workspace above, and without its other stacks.

#[path = "../../common/src/command_line.rs"]
pub mod command_line;
#[path = "../../common/src/latency.rs"]
pub mod latency;
#[path = "../../common/src/operations.rs"]
pub mod operations;
#[path = "../../common/src/process.rs"]
pub mod process;
#[path = "../../common/src/result_line.rs"]
mod result_line;
#[path = "../../common/src/settings.rs"]
pub mod settings;
#[path = "../../common/src/standard_input.rs"]
pub mod standard_input;
#[path = "../../common/src/tally.rs"]
pub mod tally;
#[path = "../../common/src/workloads.rs"]
pub mod workloads;

pub use result_line::{
    ClientResult, Datagrams, PathCounts, Ready, ServerResult, print, version_in,
};

/// Any error of a program; it is printed and ends the program.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
