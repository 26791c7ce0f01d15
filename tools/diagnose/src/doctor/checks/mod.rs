//! The checks. Each is a function from a view of the machine to findings.

pub(crate) mod certificates;
pub(crate) mod cgroup;
pub(crate) mod clock;
pub(crate) mod conntrack;
pub(crate) mod drops;
pub(crate) mod firewall;
pub(crate) mod interfaces;
pub(crate) mod kernel;
pub(crate) mod limits;
pub(crate) mod paths;
pub(crate) mod ports;
pub(crate) mod sockets;
pub(crate) mod sysctl;
pub(crate) mod tunnels;

#[cfg(test)]
pub(crate) mod testing;
