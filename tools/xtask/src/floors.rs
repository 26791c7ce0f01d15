//! The floors, which order the crates: each may depend on those below it.

/// The folders below `crates/` and `tools/` by floor. A crate depends on lower floors only.
const FLOORS: &[(u8, &[&str])] = &[
    (0, &["base", "fused"]),
    (1, &["link", "wire", "telemetry", "units"]),
    (
        2,
        &[
            "recovery", "crypto", "tls", "qpack", "qlog", "plot", "suffix",
        ],
    ),
    (3, &["transport", "http3", "webtransport"]),
    (WORLDS, &["files", "udp"]),
    (QUIC, &["quic"]),
    (6, &["http3-tokio", "observe"]),
    (7, &["client", "server"]),
    (8, &["courser"]),
    (
        9,
        &[
            "diagnose",
            "emulator",
            "hyperium-h3",
            "interop",
            "load",
            "measure",
            "perf",
            "quinn",
            "services",
            "sim",
            "trace",
        ],
    ),
    (
        TOOLS,
        &[
            "cli",
            "adversary",
            "bench",
            "fuzzing",
            "guide",
            "peers",
            "robustness",
            "xtask",
        ],
    ),
];

/// The only dependencies within a floor.
const SIDEWAYS: &[(&str, &str)] = &[
    ("telemetry", "wire"),
    ("tls", "crypto"),
    ("webtransport", "http3"),
    ("diagnose", "measure"),
    ("emulator", "measure"),
    ("interop", "emulator"),
    ("interop", "measure"),
    ("load", "measure"),
    ("perf", "measure"),
    ("trace", "sim"),
    ("fuzzing", "adversary"),
    ("fuzzing", "cli"),
    ("robustness", "adversary"),
];

/// The floor of the tools. Every crate below it is a library.
pub(crate) const TOOLS: u8 = 10;

/// The floor that makes system calls. The crates below it have no I/O.
pub(crate) const WORLDS: u8 = 4;

/// The floor of QUIC on a runtime, the lowest one that depends on tokio.
pub(crate) const QUIC: u8 = 5;

/// Returns the floor of a folder below `crates/` or `tools/`, or `None` if the table does not list it.
pub(crate) fn floor_of(folder: &str) -> Option<u8> {
    FLOORS
        .iter()
        .find(|(_, folders)| folders.contains(&folder))
        .map(|(floor, _)| *floor)
}

/// Returns true if the crate in `folder` may depend on the one in `dependency`.
pub(crate) fn is_allowed(folder: &str, dependency: &str) -> bool {
    match (floor_of(folder), floor_of(dependency)) {
        (Some(own), Some(other)) => {
            // Tests enable features of their own crate by depending on it.
            own > other || folder == dependency || SIDEWAYS.contains(&(folder, dependency))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
