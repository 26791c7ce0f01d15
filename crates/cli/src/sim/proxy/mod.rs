//! `courser sim proxy`: a link in real time between any UDP programs.
//!
//! One socket for clients and one towards the server for each client, all on one thread. A
//! datagram that comes in enters a [`Link`](courser_sim::link::Link) with the time of its
//! arrival, and leaves when the link says.

mod args;
mod batch;
mod clients;
mod icmp;
mod progress;
mod relay;
mod report;
mod slabs;
mod wait;

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use courser_sim::link::DuplexSpec;
use courser_udp::UdpSocket;
use serde_json::json;

pub(crate) use args::ProxyArguments;

use crate::error::{Failure, cannot_listen};
use crate::output;
use clients::Clients;
use icmp::Router;
use progress::Progress;
use relay::Relay;
use report::ProxyReport;

/// Runs until Ctrl-C or the time is over, then tells what was counted.
pub(crate) fn main(arguments: &ProxyArguments) -> Result<(), Failure> {
    if let Some(core) = arguments.core {
        courser_measure::pin_to(core).map_err(Failure::new)?;
    }
    let spec = arguments.spec();
    let server = resolve(&arguments.to)?;
    check_rebinding(&spec, server)?;
    let listener = UdpSocket::bind(arguments.listen)
        .map_err(|error| cannot_listen(arguments.listen, "udp", &error))?;
    let address = listener.local_addr()?;
    if address == server {
        return Err(Failure::new(format!(
            "--listen and --to are the same address {server}: datagrams would loop"
        )));
    }
    listener.enlarge_buffers(clients::BUFFER);
    let router = Router::new(&spec, address, server)?;
    announce(arguments, &listener, address, server, &spec);

    let clients = Clients::new(
        server,
        arguments.max_clients,
        arguments.idle,
        arguments.amplification_bytes,
    );
    let mut relay = Relay::new((listener, server), clients, router, &spec, arguments.seed);
    relay.set_hold(arguments.hold);
    let is_stopped = stop_flag()?;
    let mut progress = Progress::new();
    let outcome = relay.run(|relay| {
        let elapsed = relay.elapsed();
        progress.at(relay, elapsed);
        let is_over = arguments.time.is_some_and(|time| elapsed >= time);
        !is_over && !is_stopped.load(Relaxed)
    });
    drop(progress);
    outcome.map_err(|error| Failure::new(format!("the proxy failed: {error}")))?;

    let watched = arguments.amplification_bytes;
    let report = ProxyReport::new(&relay, &spec, arguments.seed, watched);
    if arguments.json {
        let text = serde_json::to_string(&report);
        output::line(text.map_err(|error| Failure::new(error.to_string()))?);
    } else {
        report.print_text();
    }
    Ok(())
}

fn announce(
    arguments: &ProxyArguments,
    listener: &UdpSocket,
    address: SocketAddr,
    server: SocketAddr,
    spec: &DuplexSpec,
) {
    if arguments.json {
        let event = json!({
            "event": "listening",
            "protocol": "udp",
            "address": address,
            "to": server,
            "link": spec.to_string(),
        });
        output::line(event.to_string());
        return;
    }
    for warning in listener.capabilities().warnings {
        output::note(warning);
    }
    output::line(format!(
        "listening on {address} (udp), forwarding to {server}: {spec}"
    ));
}

/// `HOST:PORT` as an address.
fn resolve(target: &str) -> Result<SocketAddr, Failure> {
    let is_target = target
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if !is_target {
        return Err(Failure::new(format!(
            "'{target}' is not HOST:PORT: use one such as 127.0.0.1:4433 or localhost:4433"
        )));
    }
    let unknown = |reason: String| Failure::new(format!("cannot resolve '{target}': {reason}"));
    let mut addresses = target
        .to_socket_addrs()
        .map_err(|error| unknown(error.to_string()))?;
    let address = addresses.next();
    let address = address.ok_or_else(|| unknown("it has no address".to_owned()))?;
    if address.port() == 0 {
        return Err(Failure::new(format!(
            "'{target}' has port 0: name the server's port"
        )));
    }
    Ok(address)
}

/// Other addresses than 127.0.0.1 need an interface that has them; 127.0.0.0/8 is all ours.
fn check_rebinding(spec: &DuplexSpec, server: SocketAddr) -> Result<(), Failure> {
    if spec.nat.is_some_and(|nat| nat.idle.is_some()) {
        return Err(Failure::new(
            "rebind=idle: works in simulations only: use a period such as rebind=30s".to_owned(),
        ));
    }
    let changes_address = spec.nat.is_some_and(|nat| nat.address);
    let is_local = matches!(server.ip(), IpAddr::V4(ip) if ip.is_loopback());
    if changes_address && !is_local {
        return Err(Failure::new(format!(
            "rebind=addr: needs a server on 127.0.0.0/8, where addresses are free, not {server}; \
             rebind ports instead"
        )));
    }
    Ok(())
}

/// Becomes true when the user or the system asks the process to end.
fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let is_stopped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_stopped);
    let runtime = crate::runtime()?;
    // The thread ends with the process; it holds nothing that needs an end of its own.
    std::thread::spawn(move || {
        runtime.block_on(crate::perf::stop_signal());
        flag.store(true, Relaxed);
    });
    Ok(is_stopped)
}
