//! Parts that all peer programs share, from the sources of the workspace above, and without its other stacks.

#[path = "../../src/command_line.rs"]
pub mod command_line;
#[path = "../../src/latency.rs"]
pub mod latency;
#[path = "../../src/operations.rs"]
pub mod operations;
#[path = "../../src/process.rs"]
pub mod process;
#[path = "../../src/result_line.rs"]
mod result_line;
#[path = "../../src/settings.rs"]
pub mod settings;
#[path = "../../src/sockets.rs"]
pub mod sockets;
#[path = "../../src/standard_input.rs"]
pub mod standard_input;
#[path = "../../src/tally.rs"]
pub mod tally;
#[path = "../../src/workloads.rs"]
pub mod workloads;

pub use result_line::{
    ClientResult, Datagrams, PathCounts, Ready, ServerResult, print, version_in,
};

/// Any error of a program; it is printed and ends the program.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
