//! Describes the capabilities of this machine.

use courser::Capabilities;

use crate::output;

/// Returns a description of the machine: `linux x86_64, 2 cores`.
pub(crate) fn name() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let noun = if cores == 1 { "core" } else { "cores" };
    format!(
        "{} {}, {cores} {noun}",
        std::env::consts::OS,
        std::env::consts::ARCH
    )
}

/// Returns the capabilities of a socket in one line, without its warnings.
pub(crate) fn describe(capabilities: &Capabilities) -> String {
    let segmentation = match capabilities.gso_segments {
        1 => "no GSO".to_owned(),
        segments => format!("GSO {segments} segments"),
    };
    let coalescing = if capabilities.gro { "GRO" } else { "no GRO" };
    let marks = if capabilities.ecn { "ECN" } else { "no ECN" };
    format!(
        "{segmentation}, {coalescing}, {marks}, socket buffers {} receive, {} send",
        output::binary_size(capabilities.receive_buffer as u64),
        output::binary_size(capabilities.send_buffer as u64),
    )
}
