//! Checks a machine for QUIC. Each finding has an observation, the reason why it matters, and the command
//! that corrects it.
//!
//! [`examine`] runs all checks, each of which is a function from a [`Machine`] to [`Finding`]s. They cover the
//! kernel and its settings, socket buffers, UDP offload and ECN as measured over loopback, silent losses of a
//! connection over loopback, interfaces, connection tracking, the firewall, the clock, limits of the process
//! and of its control group, drops, and TUN devices with what tunnels need. On request they also cover the path to a host, an address to listen on
//! and certificate files. The checks change nothing.
//!
//! ```
//! use courser_diagnose::doctor::{Arguments, Machine, examine};
//!
//! let report = examine(&Machine::this(), &Arguments::default()).expect("no host to resolve");
//! println!("{report}");
//! assert!([0, 3, 4].contains(&report.exit_code()));
//! ```

mod arguments;
mod checks;
mod machine;
mod report;

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use courser_measure::{Failure, target};

use crate::doctor::checks::{
    certificates, cgroup, clock, conntrack, drops, firewall, interfaces, kernel, limits, paths,
    ports, sockets, sysctl, tunnels,
};
use crate::{Finding, HTTPS};

pub use crate::doctor::arguments::Arguments;
pub use crate::doctor::machine::{Machine, Unseen};
pub use crate::doctor::report::Report;

/// Runs all checks that apply to the system. Takes less than a second, unless a program that lists firewall
/// rules hangs or a path loses packets. Blocks the calling thread, which must not belong to an asynchronous
/// runtime.
///
/// # Errors
/// Returns an error if the host cannot be resolved.
pub fn examine(machine: &Machine, arguments: &Arguments) -> Result<Report, Failure> {
    let route = arguments.host.as_deref().map(route_to).transpose()?;
    let route = route.unwrap_or_default();
    let mut found = Vec::new();
    if cfg!(target_os = "linux") {
        found.extend(kernel::check(machine));
    }
    let trials = sockets::loopback().map(|address| (address, sockets::measure(address)));
    found.extend(sockets::check(&trials));
    if let Some((address, _)) = trials.iter().find(|(_, trial)| trial.is_ok()) {
        found.extend(paths::check(
            paths::Path::Loopback,
            &paths::loopback(*address),
        ));
    }
    if cfg!(target_os = "linux") {
        let (requested, obtained) = buffers(&trials);
        found.extend(sysctl::check(machine, requested, obtained));
        found.extend(drops::check(machine));
        found.extend(interfaces::check(machine));
        found.extend(conntrack::check(machine));
        let port = arguments.listen.map_or(HTTPS, |address| address.port());
        found.push(firewall::check(machine, port));
    }
    found.extend(clock::check(machine));
    if cfg!(target_os = "linux") {
        found.extend(limits::check(machine));
        found.extend(cgroup::check(machine));
        found.extend(tunnels::check(machine));
    }
    found.extend(route);
    if let Some(address) = arguments.listen {
        found.extend(ports::check(machine, address, &ports::try_bind(address)));
    }
    for path in &arguments.cert {
        found.extend(certificates::check(path, machine.now()));
    }
    Ok(Report::new(describe(machine), found))
}

/// Returns the buffer size that courser requests, and the sizes of the receive and the send buffer that it
/// got.
fn buffers(trials: &[(IpAddr, io::Result<sockets::Trial>)]) -> (u64, [u64; 2]) {
    let first = trials.iter().find_map(|(_, trial)| trial.as_ref().ok());
    let capabilities = first.map(|trial| trial.capabilities.clone());
    let capabilities = capabilities.unwrap_or_default();
    let obtained = [capabilities.receive_buffer, capabilities.send_buffer];
    (
        capabilities.receive_buffer_wanted as u64,
        obtained.map(|bytes| bytes as u64),
    )
}

fn route_to(host: &str) -> Result<Vec<Finding>, Failure> {
    let (name, port) = target::split_target(host, HTTPS)?;
    let peer = target::resolve(name, port)?[0];
    let socket = UdpSocket::bind(SocketAddr::from((target::local_ip_for(peer.ip()), 0)))?;
    let mtu = courser_udp::UdpSocket::from_std(socket)?.interface_mtu(peer);
    let mut found = vec![interfaces::route(&peer.to_string(), peer.is_ipv6(), mtu)];
    let trial = paths::towards(peer, target::without_zone(name));
    found.extend(paths::check(paths::Path::Host, &trial));
    Ok(found)
}

/// Returns a description of the machine: `linux 6.18.44 x86_64, 2 cores`.
fn describe(machine: &Machine) -> String {
    let release = machine.read(kernel::OSRELEASE).unwrap_or_default();
    let words = [std::env::consts::OS, release.trim(), std::env::consts::ARCH];
    let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
    format!(
        "{}, {}",
        words.join(" "),
        report::counted(machine.cores(), "core")
    )
}

#[cfg(test)]
mod tests;
