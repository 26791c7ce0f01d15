//! Families of IP addresses.

use std::net::IpAddr;

/// A family of IP addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Only IPv4 addresses are connected to.
    V4,
    /// Only IPv6 addresses are connected to.
    V6,
}

impl Family {
    pub(super) const fn has(self, address: IpAddr) -> bool {
        address.is_ipv6() == matches!(self, Self::V6)
    }
}
