//! The demonstration, which `courser` runs without a command.

mod stages;

use courser_perf::Loopback;

use crate::error::Failure;
use crate::machine;
use crate::output::Progress;
use stages::Stages;

/// Runs the demonstration. It writes no files, and closes its sockets at the end.
pub(crate) fn run() -> Result<(), Failure> {
    let progress = Progress::new();
    progress.line(format!(
        "courser {}   QUIC v1   {}",
        env!("CARGO_PKG_VERSION"),
        machine::name()
    ));
    let server = Loopback::start(MTU)?;
    let stages = Stages {
        server: &server,
        progress: &progress,
    };
    introduce(&stages);
    let shown = crate::process::runtime()?.block_on(stages.run());
    let stopped = server.stop();
    shown.and(stopped)?;
    next_commands().iter().for_each(|line| progress.line(line));
    Ok(())
}

fn introduce(stages: &Stages<'_>) {
    let server = stages.server;
    stages.print("machine", &machine::describe(&server.capabilities));
    for warning in &server.capabilities.warnings {
        stages.print("  warning", warning);
    }
    if cfg!(debug_assertions) {
        stages.print(
            "  warning",
            "this is a debug build and far slower: use --release",
        );
    }
    let threads = match server.cores {
        Some((server, client)) => format!("server on core {server}, client on core {client}"),
        None => "one thread each".to_owned(),
    };
    stages.print(
        "setup",
        &format!("certificate generated in memory; 127.0.0.1, {threads}; CUBIC,"),
    );
    stages.print(
        "",
        &format!("{MTU}-byte packets, as on Ethernet (elsewhere the packet size is discovered)"),
    );
}

fn next_commands() -> Vec<String> {
    let program = std::env::args()
        .next()
        .unwrap_or_else(|| "courser".to_owned());
    let client = format!("{program} perf client 127.0.0.1:4433 --insecure");
    [
        (
            "next",
            format!("{program} perf server --listen 127.0.0.1:4433 --tcp"),
        ),
        ("", format!("{client} -t 5 -i 1 --mtu 1452")),
        ("", format!("{client} --scenario rr --json")),
        ("", format!("{client} --help")),
    ]
    .map(|(label, text)| format!("{label:<12}{text}"))
    .to_vec()
}

/// UDP payload that Ethernet carries over IPv4 and IPv6, without a tunnel.
const MTU: u16 = 1452;
