//! The order of the crates: each may depend on those in lower layers.

/// The folders below `crates/` and `tools/` by layer. A crate depends on lower layers only.
const LAYERS: &[(u8, &[&str])] = &[
    (0, &["base", "fused"]),
    (1, &["link", "wire", "telemetry", "units"]),
    (
        2,
        &[
            "recovery", "crypto", "tls", "qpack", "qlog", "plot", "suffix",
        ],
    ),
    (3, &["transport", "http3", "masque", "webtransport"]),
    (SYSTEM_CALLS, &["files", "tun", "udp"]),
    (QUIC, &["quic"]),
    (6, &["http3-tokio", "observe", "webtransport-tokio"]),
    (7, &["client", "grpc", "masque-tokio", "server"]),
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
            "tunnel",
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
            "oracle",
            "peers",
            "robustness",
            "xtask",
        ],
    ),
];

/// The only dependencies within a layer.
const WITHIN_A_LAYER: &[(&str, &str)] = &[
    ("telemetry", "wire"),
    ("tls", "crypto"),
    ("masque", "http3"),
    ("webtransport", "http3"),
    ("webtransport-tokio", "http3-tokio"),
    ("grpc", "client"),
    ("grpc", "server"),
    ("masque-tokio", "server"),
    ("client", "masque-tokio"),
    ("diagnose", "measure"),
    ("emulator", "measure"),
    ("interop", "emulator"),
    ("interop", "measure"),
    ("load", "measure"),
    ("perf", "measure"),
    ("trace", "sim"),
    ("tunnel", "measure"),
    ("cli", "oracle"),
    ("fuzzing", "adversary"),
    ("fuzzing", "cli"),
    ("robustness", "adversary"),
];

/// The layer of the tools. Every crate below it is a library.
pub(crate) const TOOLS: u8 = 10;

/// The layer that makes system calls. The crates below it have no I/O.
pub(crate) const SYSTEM_CALLS: u8 = 4;

/// The layer of QUIC on a runtime, the lowest one that depends on tokio.
pub(crate) const QUIC: u8 = 5;

/// Returns the layer of a folder below `crates/` or `tools/`, or `None` if the table does not list it.
pub(crate) fn layer_of(folder: &str) -> Option<u8> {
    LAYERS
        .iter()
        .find(|(_, folders)| folders.contains(&folder))
        .map(|(layer, _)| *layer)
}

/// Returns true if the crate in `folder` may depend on the one in `dependency`.
pub(crate) fn is_allowed(folder: &str, dependency: &str) -> bool {
    match (layer_of(folder), layer_of(dependency)) {
        (Some(own), Some(other)) => {
            // Tests enable features of their own crate by depending on it.
            own > other || folder == dependency || WITHIN_A_LAYER.contains(&(folder, dependency))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
